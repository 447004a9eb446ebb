// A statement whose text is the same at every call. Drizzle writes the text of a query anew each time, which for the
// statements of every request costs more than to send them.
import { Placeholder, type Query, SQL, sql } from 'drizzle-orm'

type Values = Readonly<Record<string, unknown>>
type Rendering = Parameters<SQL['toQuery']>[0]

/** A statement with its values, whose text is rendered already. */
class RenderedStatement extends SQL {
  constructor(
    private readonly render: (rendering: Rendering) => Query,
    private readonly values: Values,
  ) {
    super([])
  }

  override toQuery(rendering: Rendering): Query {
    const rendered = this.render(rendering)
    const filled = (param: unknown): unknown => (param instanceof Placeholder ? this.values[param.name] : param)
    return { ...rendered, params: rendered.params.map(filled) }
  }
}

/**
 * Makes a statement from its values. `build` is called once, and gets a placeholder where a value belongs.
 */
export function fixedStatement<const N extends string>(
  build: (placeholder: (name: N) => Placeholder) => SQL,
): (values: Readonly<Record<N, unknown>>) => SQL {
  let rendered: Query | null = null
  const render = (rendering: Rendering): Query => {
    rendered ??= build(name => sql.placeholder(name)).toQuery(rendering)
    return rendered
  }
  return values => new RenderedStatement(render, values)
}

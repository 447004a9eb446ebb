// The order in which the items of a run are applied (resources.md R-039): what is referred to comes first; between
// items that do not refer to each other the order of kinds decides, then the path.

type OrderedItem = {
  readonly path: string
  /** The place of its kind, from 1. */
  readonly kindOrder: number
  /** Paths of the items of the run that it refers to. */
  readonly refersTo: readonly string[]
}

type ApplyOrder = { readonly paths: readonly string[] } | { readonly cycle: readonly string[] }

const compare = (a: OrderedItem, b: OrderedItem): number =>
  a.kindOrder - b.kindOrder || (a.path < b.path ? -1 : a.path > b.path ? 1 : 0)

/** The paths in order, or the paths of a cycle, the first one named again at its end. */
export function applyOrder(items: readonly OrderedItem[]): ApplyOrder {
  const byPath = new Map(items.map(item => [item.path, item]))
  const done = new Set<string>()
  const paths: string[] = []
  let cycle: readonly string[] | null = null
  const visit = (item: OrderedItem, trail: readonly string[]): void => {
    if (cycle !== null || done.has(item.path)) return
    const at = trail.indexOf(item.path)
    if (at >= 0) {
      cycle = [...trail.slice(at), item.path]
      return
    }
    const next = item.refersTo.flatMap(path => byPath.get(path) ?? []).sort(compare)
    for (const each of next) visit(each, [...trail, item.path])
    if (cycle !== null || done.has(item.path)) return
    done.add(item.path)
    paths.push(item.path)
  }
  for (const item of [...items].sort(compare)) visit(item, [])
  return cycle === null ? { paths } : { cycle }
}

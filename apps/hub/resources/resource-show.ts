// The answer for rows of a kind: what hooks derive, and for one resource its conditions and runs.
import type { Tx } from '../platform/db/transaction.ts'
import type { Language } from '../platform/http/api-texts.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { conditionsOf } from './conditions.ts'
import type { Values } from './field.ts'
import type { CommonRow, Kind } from './kind.ts'
import { presentRow } from './resource-response.ts'
import type { Found } from './resource-rows.ts'
import { lastRuns, presentRun } from './runs.ts'

const NONE: ReadonlySet<string> = new Set()
type Asker = Pick<RouteContext, 'hub' | 'companyId'> & {
  /** The transaction to read in, where the rows are not committed yet. */
  readonly tx?: Tx
}

async function derivedOf(
  kind: Kind,
  { hub, companyId, tx }: Asker,
  rows: readonly CommonRow[],
  isShow: boolean,
  made: ReadonlySet<string>,
) {
  return (
    (await kind.hooks.derive?.(tx?.db ?? hub.database.db, { hub, companyId }, rows, isShow, made)) ??
    new Map<string, Values>()
  )
}

/** The rows of a page. */
export async function presentList(kind: Kind, asker: Asker, rows: readonly Found[]): Promise<Values[]> {
  const derived = await derivedOf(kind, asker, rows, false, NONE)
  return rows.map(row => ({ ...presentRow(kind, row, false), ...derived.get(row.id) }))
}

/** Resources, each whole, in their order. What was made just now (`made`) has no conditions and no runs. */
export async function presentSome<Row extends CommonRow>(
  typed: Kind<Row>,
  asker: Asker & { readonly language: Language },
  rows: readonly Found<Row>[],
  made: ReadonlySet<string> = NONE,
): Promise<Values[]> {
  const kind = typed as Kind
  const { hub, companyId, language, tx } = asker
  const { db } = tx ?? hub.database
  const ids = rows.flatMap(({ id }) => (made.has(id) ? [] : [id]))
  const [derived, conditions, runs] = await Promise.all([
    derivedOf(kind, asker, rows, true, made),
    conditionsOf(db, kind.info, companyId, ids, language),
    lastRuns(db, companyId, kind.info.kind, ids),
  ])
  return rows.map(row => {
    const shown = (runs.get(row.id) ?? []).map(presentRun)
    return {
      ...presentRow(kind, row, true),
      ...derived.get(row.id),
      conditions: conditions.get(row.id) ?? [],
      drift: row.drift,
      last_run: shown[0] ?? null,
      last_runs: shown,
    }
  })
}

/** One resource, whole. */
export const presentOne = async (
  kind: Kind,
  asker: Asker & { readonly language: Language },
  row: Found,
): Promise<Values> => (await presentSome(kind, asker, [row]))[0] ?? {}

// Where a resource differs from what was intended, by who found out: a manifest, or the device that it stands on. Each
// says its own part of the list and leaves the other's.
import { sql } from 'drizzle-orm'
import type { Executor } from '../platform/db/connect.ts'
import type { KindInfo } from './kind-info.ts'

type FieldDrift = { readonly field: string; readonly intended: unknown; readonly actual: unknown }
type Drifted = { readonly id: string; readonly drift: readonly FieldDrift[] }

/** Members that a device found say so; what a manifest says has no such member. */
const DEVICE = 'device'

/** Replaces the part of `source` in the drift of resources. */
export async function setDrift(
  db: Executor,
  { table }: Pick<KindInfo, 'table'>,
  companyId: string,
  source: 'manifest' | 'device',
  resources: readonly Drifted[],
): Promise<void> {
  if (resources.length === 0) return
  const isOthers = source === DEVICE ? sql`e->>'source' is distinct from ${DEVICE}` : sql`e->>'source' = ${DEVICE}`
  const rows = resources.map(({ id, drift }) => ({
    id,
    drift: source === DEVICE ? drift.map(each => ({ ...each, source })) : drift,
  }))
  await db.execute(sql`
    update ${sql.identifier(table)} t set drift = x.drift, drifted = x.drift <> '[]'::jsonb from (
      select r.id, g.drift || coalesce((select jsonb_agg(e) from jsonb_array_elements(r.drift) e where ${isOthers}), '[]'::jsonb) as drift
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as g (id uuid, drift jsonb)
      join ${sql.identifier(table)} r on r.id = g.id and r.company_id = ${companyId}) x
    where t.id = x.id and t.company_id = ${companyId} and t.drift <> x.drift`)
}

// Drift (resources.md R-041): where what is bound to a manifest is no longer what was applied. Looked at after each
// write, which the database notes (sql/hub/0105), and every 15 minutes.
import { sql } from 'drizzle-orm'
import { canonicalText, specDiff } from '../../../core/iac/spec-diff.ts'
import type { Unchecked } from '../../../core/json-object.ts'
import type { Hub } from '../hub-context.ts'
import type { FieldDrift } from '../platform/db/schema-iac.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { setConditions } from '../resources/conditions.ts'
import { setDrift } from '../resources/store-drift.ts'
import { manifestKind } from './kinds/all-manifest-kinds.ts'
import type { Existing, ManifestKind, NameFinder, Reading } from './kinds/manifest-kind.ts'
import { findNames } from './resolve-names.ts'

const AT_ONCE = 500
const COMPARED_SECONDS = 15 * 60
const DRIFT = 'drift'

type Due = {
  company_id: string
  kind: string
  slug: string
  resource_id: string
  applied_spec: Unchecked
  drift: readonly FieldDrift[]
}

/** Where a resource is no longer what was applied. */
const driftOf = (kind: ManifestKind, applied: Unchecked, existing: Existing, find: NameFinder): FieldDrift[] =>
  specDiff(existing.spec, kind.normal(applied, find), kind.whole).map(({ field, old, new: intended }) => ({
    field,
    intended,
    actual: old,
  }))

/** The drift of one that is due; null for one whose resource is gone. */
async function compareBinding(reading: Reading, due: Due): Promise<FieldDrift[] | null> {
  const kind = manifestKind(due.kind)
  const [existing] = kind === null ? [] : await kind.byIds(reading, [due.resource_id])
  if (kind === null || existing === undefined) return null
  const find = await findNames(reading, kind.referencesOf(due.applied_spec), new Map())
  return driftOf(kind, due.applied_spec, existing, find)
}

/** A kind of the registry shows its drift in its own table. */
async function showDrift({ database: { db }, kinds }: Hub, due: Due, drift: readonly FieldDrift[]): Promise<void> {
  const info = kinds.get(manifestKind(due.kind)?.resourceKind ?? '')
  if (!info?.isResource) return
  await setDrift(db, info, due.company_id, 'manifest', [{ id: due.resource_id, drift }])
}

async function compareSome(hub: Hub): Promise<number> {
  const { db } = hub.database
  const rows = await db.execute<Due>(sql`
    select company_id, kind, slug, resource_id, applied_spec, drift from iac_bindings
    where is_stale or updated_at < now() - make_interval(secs => ${COMPARED_SECONDS})
    order by is_stale desc, updated_at limit ${AT_ONCE}`)
  for (const due of rows) {
    const isDue = sql`company_id = ${due.company_id} and kind = ${due.kind} and slug = ${due.slug}
      and resource_id = ${due.resource_id} and applied_spec = ${JSON.stringify(due.applied_spec)}::jsonb`
    // Before it is read: what is written from now on makes it stale again, and it is compared in the next round.
    await db.execute(sql`update iac_bindings set is_stale = false, updated_at = now() where ${isDue}`)
    const drift = await compareBinding({ hub, db, companyId: due.company_id }, due)
    const isSame = canonicalText(drift ?? []) === canonicalText(due.drift)
    await db.execute(sql`
      update iac_bindings set drift = ${JSON.stringify(drift ?? [])}::jsonb,
        drifted_since = case when ${(drift ?? []).length === 0} then null
          when ${isSame} then drifted_since else coalesce(drifted_since, now()) end
      where ${isDue}`)
    await showDrift(hub, due, drift ?? [])
  }
  return rows.length
}

/** Compares what was written, and what was not looked at for a while. */
export async function watchDrift(hub: Hub): Promise<void> {
  while ((await compareSome(hub)) === AT_ONCE) {
    // Each round takes the next ones.
  }
  await openConditions(hub)
}

type Lasting = { company_id: string; resource_kind: string; resource_id: string; slug: string; is_lasting: boolean }

/** Drift that lasts 15 minutes is a condition of its resource, until it is over. */
async function openConditions(hub: Hub): Promise<void> {
  const rows = await hub.database.db.execute<Lasting>(sql`
    select b.company_id, b.resource_kind, b.resource_id, b.slug,
      coalesce(b.drifted_since < now() - make_interval(secs => ${COMPARED_SECONDS}), false) as is_lasting
    from iac_bindings b left join resource_conditions c on c.kind = b.resource_kind and c.resource_id = b.resource_id
      and c.code = ${DRIFT} and c.resolved_at is null
    where (b.drifted_since < now() - make_interval(secs => ${COMPARED_SECONDS})) is true and c.id is null
      or b.drifted_since is null and c.id is not null limit ${AT_ONCE}`)
  for (const { company_id, resource_kind, resource_id, slug, is_lasting } of rows) {
    const info = hub.kinds.get(resource_kind)
    if (!info?.isResource) continue
    const found = is_lasting ? [{ code: DRIFT, detail: { manifest: slug }, severity: 'warning' as const }] : []
    await inTransaction(hub.database.db, tx =>
      setConditions(tx, info, company_id, [resource_id], [DRIFT], new Map([[resource_id, found]])),
    )
  }
}

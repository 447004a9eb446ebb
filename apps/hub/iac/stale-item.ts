// Whether an item of a run is stale: what it was planned against is another by now. People are told as soon as the base
// changed (resources.md, GET /iac/runs/{run}); applying refuses less, for it makes the difference again and applies it
// where it is the same whatever the version. So what is shown as not stale is never refused as stale.
import type { iacItems } from '../platform/db/schema-iac.ts'
import { manifestKind } from './kinds/all-manifest-kinds.ts'
import type { Existing, ManifestKind, NameFinder, Reading } from './kinds/manifest-kind.ts'
import { type Compared, compareItem } from './manifest-effect.ts'
import { bindingsOf } from './match-existing.ts'
import { findNames } from './resolve-names.ts'

type PlannedItem = Pick<
  typeof iacItems.$inferSelect,
  'kind' | 'name' | 'action' | 'spec' | 'resourceId' | 'baseVersion' | 'diffHash'
>

/** The resource of an item as it is now, and the spec that was applied last under the item's name. */
async function current(reading: Reading, kind: ManifestKind, item: PlannedItem) {
  const { bySlug } = await bindingsOf(reading, item.kind, [item.name], [])
  const binding = bySlug.get(item.name)
  const id = item.resourceId ?? binding?.resource_id
  const [known] = id === undefined ? [] : await kind.byIds(reading, [id])
  if (known) return { existing: known, applied: binding?.applied_spec ?? null }
  if (item.resourceId !== null || item.action !== 'create' || !kind.isNameUnique)
    return { existing: null, applied: null }
  const [found] = await kind.candidates(reading, item.spec ?? {}, item.name)
  return { existing: found ?? null, applied: null }
}

type Recompared = {
  readonly existing: Existing | null
  readonly now: Compared
  /** Null where the difference is the one that was planned. */
  readonly staleText: string | null
}

function staleText(item: PlannedItem, existing: Existing | null): string {
  if (item.resourceId === null) return 'stale: it exists since it was planned'
  if (existing === null) return 'stale: it is gone since it was planned'
  if (existing.version === 0) return 'stale: it was changed since it was planned'
  return `stale: planned at version ${item.baseVersion}, now ${existing.version}`
}

/** Makes the difference again, as applying must. */
export async function compareAgain(
  reading: Reading,
  kind: ManifestKind,
  item: PlannedItem,
  find: NameFinder,
): Promise<Recompared> {
  const { existing, applied } = await current(reading, kind, item)
  const now = compareItem(kind, { slug: item.name, spec: item.spec, applied }, existing, find)
  return { existing, now, staleText: now.hash === item.diffHash ? null : staleText(item, existing) }
}

/** Whether the base of an item changed. A kind that counts no versions is compared. */
async function isBaseChanged(reading: Reading, kind: ManifestKind, item: PlannedItem): Promise<boolean> {
  const { existing } = await current(reading, kind, item)
  if (existing === null) return item.resourceId !== null
  if (item.resourceId === null || existing.version !== item.baseVersion) return true
  if (existing.version > 0) return false
  const references = item.spec === null ? [] : kind.referencesOf(item.spec)
  const again = await compareAgain(reading, kind, item, await findNames(reading, references, new Map()))
  return again.staleText !== null
}

type ShownItem = PlannedItem & Pick<typeof iacItems.$inferSelect, 'companyId' | 'status'>

/** Whether the base of any item that is not applied yet changed since the plan. */
export async function isPlanStale(
  { hub, db }: Omit<Reading, 'companyId'>,
  items: readonly ShownItem[],
): Promise<boolean> {
  for (const item of items) {
    const kind = manifestKind(item.kind)
    if (item.status === 'applied') continue
    if (kind === null || (await isBaseChanged({ hub, db, companyId: item.companyId }, kind, item))) return true
  }
  return false
}

// Which resource a manifest means (resources.md R-035): the one that its slug is bound to, else the one with the same
// natural key or name. Where several may have one name, each manifest means another one, and best one that it equals.
import { sql } from 'drizzle-orm'
import { specDiff } from '../../../core/iac/spec-diff.ts'
import type { Unchecked } from '../../../core/json-object.ts'
import type { Existing, ManifestKind, Reading } from './kinds/manifest-kind.ts'
import type { Manifest } from './manifest.ts'

export type Matched = {
  readonly manifest: Manifest
  readonly existing: Existing | null
  readonly isBound: boolean
  /** The spec that was applied last. */
  readonly applied: Unchecked | null
  /** The slug of another manifest that the resource belongs to. */
  readonly boundTo: string | null
}

type Binding = { readonly slug: string; readonly resource_id: string; readonly applied_spec: Unchecked }

type Bindings = {
  readonly bySlug: ReadonlyMap<string, Binding>
  readonly byResource: ReadonlyMap<string, Binding>
}

/** The bindings of a kind that slugs or resources have. */
export async function bindingsOf(
  { db, companyId }: Reading,
  kind: string,
  slugs: readonly string[],
  resourceIds: readonly string[],
): Promise<Bindings> {
  const rows = await db.execute<Binding>(sql`
    select slug, resource_id, applied_spec from iac_bindings
    where company_id = ${companyId} and kind = ${kind} and (
      slug in (select jsonb_array_elements_text(${JSON.stringify(slugs)}::jsonb))
      or resource_id in (select jsonb_array_elements_text(${JSON.stringify(resourceIds)}::jsonb)::uuid))`)
  return {
    bySlug: new Map(rows.map(row => [row.slug, row])),
    byResource: new Map(rows.map(row => [row.resource_id, row])),
  }
}

const equals = (kind: ManifestKind, spec: Unchecked, { spec: current }: Existing): boolean =>
  specDiff(
    current,
    kind.normal(spec, () => null),
    kind.whole,
  ).length === 0

/** What has the slug for its name, where a manifest gives another name that nothing has: it is renamed. */
async function namedBySlug(reading: Reading, { kind, spec, slug, isAbsent }: Manifest): Promise<Existing[]> {
  const { name, ...rest } = spec
  return isAbsent || typeof name !== 'string' || name === '' ? [] : kind.candidates(reading, rest, slug)
}

async function matchKind(reading: Reading, kind: ManifestKind, manifests: readonly Manifest[]): Promise<Matched[]> {
  const slugs = manifests.map(manifest => manifest.slug)
  const { bySlug } = await bindingsOf(reading, kind.kind, slugs, [])
  const bound = await kind.byIds(
    reading,
    [...bySlug.values()].map(binding => binding.resource_id),
  )
  const boundById = new Map(bound.map(existing => [existing.id, existing]))
  const claimed = new Set(boundById.keys())
  const matched: Matched[] = []
  for (const manifest of manifests) {
    const binding = bySlug.get(manifest.slug)
    const existing = binding ? boundById.get(binding.resource_id) : undefined
    if (binding && existing) {
      matched.push({ manifest, existing, isBound: true, applied: binding.applied_spec, boundTo: null })
      continue
    }
    const found = await kind.candidates(reading, manifest.spec, manifest.slug)
    const bySlugAlone = found.length > 0 ? [] : await namedBySlug(reading, manifest)
    const ids = [...found, ...bySlugAlone].map(candidate => candidate.id)
    const { byResource } = await bindingsOf(reading, kind.kind, [], ids)
    const isFree = ({ id }: Existing): boolean => !byResource.has(id) && (kind.isNameUnique || !claimed.has(id))
    const free = [...found, ...bySlugAlone].filter(isFree)
    const adopted = free.find(candidate => equals(kind, manifest.spec, candidate)) ?? free[0] ?? null
    if (adopted) claimed.add(adopted.id)
    const taken = kind.isNameUnique && adopted === null ? found.map(each => byResource.get(each.id)?.slug) : []
    matched.push({ manifest, existing: adopted, isBound: false, applied: null, boundTo: taken[0] ?? null })
  }
  return matched
}

/** What each manifest of a company means. */
export async function matchExisting(reading: Reading, manifests: readonly Manifest[]): Promise<Matched[]> {
  const matched: Matched[] = []
  for (const [kind, ofKind] of Map.groupBy(manifests, manifest => manifest.kind))
    matched.push(...(await matchKind(reading, kind, ofKind)))
  return matched
}

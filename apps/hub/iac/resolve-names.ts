// What names in manifests mean: the slug of a manifest, else the display name of a resource, else its id, in one
// company. Names of what the same run is about to make are known too.
import { eq, sql } from 'drizzle-orm'
import { iacBindings } from '../platform/db/schema-iac.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import { manifestKind, manifestKindOfResource } from './kinds/all-manifest-kinds.ts'
import type { Named, NameFinder, Reading, Reference } from './kinds/manifest-kind.ts'
import { idsByName, namedAs, partName } from './kinds/names-by-id.ts'

type Found = { readonly id: string | null; readonly name: string }

/** The slugs of a kind that are bound, with what they are bound to. */
async function boundIds(
  { db, companyId }: Reading,
  kind: string,
  slugs: readonly string[],
): Promise<Map<string, string>> {
  const rows = await db.execute<{ slug: string; resource_id: string }>(sql`
    select slug, resource_id from ${iacBindings} where ${eq(iacBindings.companyId, companyId)}
      and ${eq(iacBindings.kind, kind)}
      and slug in (select jsonb_array_elements_text(${JSON.stringify(slugs)}::jsonb))`)
  return new Map(rows.map(row => [row.slug, row.resource_id]))
}

async function namesOfKind(
  reading: Reading,
  kind: string,
  names: readonly string[],
): Promise<ReadonlyMap<string, Named>> {
  const definition = manifestKind(kind) ?? manifestKindOfResource(kind)
  // What no manifest makes by itself, such as a team or a part, has a name all the same.
  if (definition === null) return namedAs(reading, kind, names)
  const bound = await boundIds(reading, definition.kind, names)
  const rows = await definition.names(reading, { ids: [...bound.values(), ...names.filter(isUuid)], names })
  const byId = new Map(rows.map(row => [row.id, row]))
  // Several may have one name in another case, such as rules: the one that is called exactly so is meant.
  const byName = new Map(rows.map(row => [row.name.toLowerCase(), row]))
  const byExactName = new Map(rows.map(row => [row.name, row]))
  return new Map(
    names.flatMap(name => {
      const called = name.toLowerCase()
      const row = byId.get(bound.get(name) ?? '') ?? byExactName.get(name) ?? byName.get(called) ?? byId.get(called)
      return row === undefined ? [] : [[name, row] as const]
    }),
  )
}

/** The key of what a run makes: by its slug, and by its display name. */
export const madeKey = (kind: string, name: string): string => `${kind} ${name.toLowerCase()}`

/** Display names that a run is about to change in a company: the new ones, by kind and old name (`madeKey`). */
export type Renames = ReadonlyMap<string, string>

/** What a resource is called once the run is applied; a part by the name of its whole. */
export function nameAfter({ hub }: Reading, renames: Renames, kind: string, name: string): string {
  const parent = hub.kinds.get(kind)?.parent?.kind
  const own = renames.get(madeKey(kind, name))
  if (own !== undefined || parent === undefined) return own ?? name
  const cut = name.indexOf('/')
  const whole = cut < 0 ? undefined : renames.get(madeKey(parent, name.slice(0, cut)))
  return whole === undefined ? name : partName(whole, name.slice(cut + 1))
}

/**
 * Looks up what references mean. `made` is what the run is about to make in this company, `renames` what it renames:
 * names are then those that the resources will have.
 */
export async function findNames(
  reading: Reading,
  references: readonly Reference[],
  made: ReadonlyMap<string, Found>,
  renames: Renames = new Map(),
): Promise<NameFinder> {
  const known = new Map<string, ReadonlyMap<string, Named>>()
  for (const [kind, asked] of Map.groupBy(references, reference => reference.kind)) {
    const found = await namesOfKind(reading, kind, [...new Set(asked.map(reference => reference.name))])
    // By the name that is displayed too: a spec in its normal form has that in place of a slug.
    known.set(kind, new Map([...[...found.values()].map(row => [row.name, row] as const), ...found]))
  }
  return (kind, name) => {
    const found = known.get(kind)?.get(name)
    if (found === undefined) return made.get(madeKey(kind, name)) ?? null
    return { ...found, name: nameAfter(reading, renames, kind, found.name) }
  }
}

export type IdFinder = (kind: string, name: string) => string | undefined

/**
 * Where a display name means another resource, since the manifest of that one is called so: the id that a manifest says
 * in its place.
 */
export async function idsInPlace(reading: Reading, references: readonly Reference[]): Promise<IdFinder> {
  const find = await findNames(reading, references, new Map())
  const isOfAnother = ({ kind, name }: Reference): boolean => (find(kind, name)?.name ?? name) !== name
  const ids = new Map<string, ReadonlyMap<string, string>>()
  for (const [kind, misleading] of Map.groupBy(references.filter(isOfAnother), reference => reference.kind)) {
    const resourceKind = manifestKind(kind)?.resourceKind ?? kind
    ids.set(kind, await idsByName(reading, resourceKind, [...new Set(misleading.map(({ name }) => name))]))
  }
  return (kind, name) => ids.get(kind)?.get(name)
}

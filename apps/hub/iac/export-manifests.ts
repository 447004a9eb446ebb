// What exists as manifests (resources.md §6): planning them right away changes nothing.
import { sql } from 'drizzle-orm'
import { conventionalPath, isSlug, slugFrom } from '../../../core/iac/manifest-path.ts'
import type { Unchecked } from '../../../core/json-object.ts'
import { kinds } from '../kinds.ts'
import { notFound } from '../platform/http/api-error.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { manifestKind, manifestKindOfResource, manifestKinds } from './kinds/all-manifest-kinds.ts'
import type { Existing, ExportFilter, ManifestKind, Named, Range, Reading, Reference } from './kinds/manifest-kind.ts'
import { bindingsOf } from './match-existing.ts'
import { type IdFinder, idsInPlace } from './resolve-names.ts'
import { manifestYaml } from './write-manifest-yaml.ts'

const STEP = 5_000
const NAMES_STEP = 20_000

type Exported = { readonly path: string; readonly contents: string }

/** The kind of a path. Throws 404. */
export function findKind(context: RouteContext): ManifestKind {
  const kind = manifestKind(context.params.kind ?? '')
  if (kind === null) throw notFound()
  return kind
}

/** How many names come to a slug, and how many are that slug but for case. */
type Taken = ReadonlyMap<string, { readonly all: number; readonly exact: number }>

/** The slugs of the names of all resources of a kind, or of those of a page. */
async function takenSlugs(reading: Reading, kind: ManifestKind, page: readonly Existing[] | null): Promise<Taken> {
  const taken = new Map<string, { all: number; exact: number }>()
  const wanted = page && new Set(page.map(({ name }) => slugFrom(name)))
  for (let after: Named | null = null; ; ) {
    const rows: readonly Named[] = await kind.namesAfter(reading, after, NAMES_STEP)
    for (const { name } of rows) {
      const slug = slugFrom(name)
      if (wanted && !wanted.has(slug)) continue
      const known = taken.get(slug) ?? { all: 0, exact: 0 }
      known.all++
      if (name.toLowerCase() === slug) known.exact++
      taken.set(slug, known)
    }
    after = rows.at(-1) ?? null
    if (after === null || rows.length < NAMES_STEP) return taken
  }
}

/**
 * The slug of each resource: of its manifest, else made of its name, with a part of its id where others have the same.
 */
async function slugsOf(
  reading: Reading,
  kind: ManifestKind,
  shown: readonly Existing[],
  taken: Taken,
): Promise<Map<string, string>> {
  const ids = shown.map(existing => existing.id)
  const wanted = shown.map(existing => slugFrom(existing.name))
  const { bySlug, byResource } = await bindingsOf(reading, kind.kind, wanted, ids)
  return new Map(
    shown.map(({ id, name }) => {
      const bound = byResource.get(id)?.slug
      if (bound !== undefined) return [id, bound]
      if (kind.slugs) return [id, name]
      const slug = slugFrom(name)
      const { all = 0, exact = 0 } = taken.get(slug) ?? {}
      const isAlone = all < 2 && !bySlug.has(slug)
      // An exact name has the slug that it is, whatever other names come to the same.
      const isOwn = isSlug(name) && name === slug && exact === 1 && !bySlug.has(slug)
      return [id, isAlone || isOwn ? slug : `${slug.slice(0, 54).replace(/-+$/, '')}-${id.slice(0, 8)}`]
    }),
  )
}

function specOf(kind: ManifestKind, { spec, name }: Existing, slug: string) {
  const given = Object.entries(spec).filter(([, value]) => value !== null)
  const hasName = Object.hasOwn(kind.spec.properties, 'name')
  // The slug is the name already.
  return Object.fromEntries(given.filter(([field]) => !(hasName && field === 'name' && name === slug)))
}

async function slugOfCompany({ db, companyId }: Reading): Promise<string> {
  const [row] = await db.execute<{ slug: string }>(sql`select slug from companies where id = ${companyId}`)
  return row?.slug ?? ''
}

/** A spec with the ids of what its names would mean something else than. */
function withIds(spec: Unchecked, references: readonly Reference[], idInPlace: IdFinder): Unchecked {
  const said = structuredClone(spec)
  for (const { kind, name, at } of references) {
    const id = idInPlace(kind, name)
    const last = at.at(-1)
    if (id === undefined || last === undefined) continue
    const holder: unknown = at.slice(0, -1).reduce((whole: unknown, key) => Object(whole)[key], said)
    Reflect.set(Object(holder), last, id)
  }
  return said
}

async function manifestsOf(
  reading: Reading,
  kind: ManifestKind,
  shown: readonly Existing[],
  taken: Taken,
): Promise<Exported[]> {
  const referring = shown.map(existing => ({ existing, references: kind.referencesOf(existing.spec) }))
  const [slugs, company, idInPlace] = await Promise.all([
    slugsOf(reading, kind, shown, taken),
    slugOfCompany(reading),
    idsInPlace(
      reading,
      referring.flatMap(each => each.references),
    ),
  ])
  return referring.map(({ existing, references }) => {
    const name = slugs.get(existing.id) ?? existing.id
    const spec = withIds(specOf(kind, existing, name), references, idInPlace)
    return {
      path: conventionalPath({ kind: kind.kind, company, name }),
      contents: manifestYaml({ kind: kind.kind, company, name, spec }),
    }
  })
}

const readingOf = ({ hub, companyId }: Pick<RouteContext, 'hub' | 'companyId'>): Reading => ({
  hub,
  db: hub.database.db,
  companyId,
})

/** A name is that of a resource or of its manifest, whose slug may be another one. */
async function withBound(reading: Reading, { kind }: ManifestKind, filter: ExportFilter): Promise<ExportFilter> {
  const slug = filter.name?.toLowerCase()
  if (slug === undefined) return filter
  const { bySlug } = await bindingsOf(reading, kind, [slug], [])
  return { ...filter, boundId: bySlug.get(slug)?.resource_id }
}

/** Manifests of a range of the resources of a kind, and how many there are in all. */
export async function exportKind(
  context: RouteContext,
  kind: ManifestKind,
  asked: ExportFilter,
  range: Range,
): Promise<{ readonly manifests: readonly Exported[]; readonly total: number }> {
  const reading = readingOf(context)
  const filter = await withBound(reading, kind, asked)
  const [shown, total] = await Promise.all([kind.list(reading, filter, range), kind.count(reading, filter)])
  const taken = shown.length === 0 ? new Map() : await takenSlugs(reading, kind, shown)
  return { manifests: await manifestsOf(reading, kind, shown, taken), total }
}

/** All of a kind as one stream of YAML documents, each with its path; `step` resources are read at once. */
export async function exportYaml(
  context: Pick<RouteContext, 'hub' | 'companyId'>,
  kind: ManifestKind,
  asked: ExportFilter,
  step = STEP,
): Promise<ReadableStream<Uint8Array>> {
  const reading = readingOf(context)
  const filter = await withBound(reading, kind, asked)
  const taken = await takenSlugs(reading, kind, null)
  const encoder = new TextEncoder()
  const read = (offset: number) => kind.list(reading, filter, { limit: step, offset })
  // What is refused is refused before the answer begins.
  let next: readonly Existing[] | null = await read(0)
  let offset = 0
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const shown = next ?? (await read(offset))
      const manifests = await manifestsOf(reading, kind, shown, taken)
      const texts = manifests.map(({ path, contents }) => `---\n# path: ${path}\n${contents}`)
      if (texts.length > 0) controller.enqueue(encoder.encode(texts.join('')))
      next = null
      offset += step
      if (shown.length < step) controller.close()
    },
  })
}

/** The kind whose manifests say a resource or a part of one; none for what no manifest says, such as a team. */
function sayingKind(name: string): string | null {
  const parent = kinds.find(each => each.info.kind === name)?.parent?.of.info.kind
  return (manifestKind(name) ?? manifestKindOfResource(parent ?? name))?.kind ?? null
}

/** The other kinds that manifests of a kind refer to. */
const neededBy = ({ kind, dependsOn }: ManifestKind): string[] => [
  ...new Set(dependsOn.flatMap(name => sayingKind(name) ?? []).filter(each => each !== kind)),
]

/** The kinds with how many resources each has, and how many of them drifted. */
export async function listKinds({ hub, companyId }: RouteContext) {
  const reading = { hub, db: hub.database.db, companyId }
  const rows = await hub.database.db.execute<{ kind: string; count: number }>(sql`
    select kind, count(*)::int as count from iac_bindings
    where company_id = ${companyId} and drift <> '[]'::jsonb group by kind`)
  const drifted = new Map(rows.map(row => [row.kind, row.count]))
  return Promise.all(
    manifestKinds.map(async kind => ({
      kind: kind.kind,
      title: kind.title,
      permission_view: kind.permissions.view,
      permission_manage: kind.permissions.manage,
      count: await kind.count(reading, {}),
      drifted: drifted.get(kind.kind) ?? 0,
      depends_on: neededBy(kind),
      schema: `/api/v1/iac/kinds/${kind.kind}/schema`,
    })),
  )
}

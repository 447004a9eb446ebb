// GET /search (R-073): three steps, each bounded, and at most 300 candidates that are ranked. An index cannot order by
// similarity, so the set must be small before it is sorted. What of a row is found is said where its trigger is made
// (those that call keep_search_document in sql/hub).
import { Type } from '@sinclair/typebox'
import { type SQL, sql } from 'drizzle-orm'
import { parseAddress } from '../../../core/network/ip-address.ts'
import { likePattern } from '../platform/db/page-of-rows.ts'
import { plannedAnew } from '../platform/db/prepared.ts'
import { invalidField } from '../platform/http/api-error.ts'
import { id, named, nullable, string, time } from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { pathsOf } from '../resources/resource-paths.ts'
import { alertOwners, alertsOf, type Candidate, collectorsOf } from './beside-documents.ts'

const CANDIDATES_MAX = 300
const PAGE = 15
/** Of a company with more different tags than these, words find the first ones by name. */
const TAGS_LOOKED_AT_MAX = 10_000
/** With fewer hits than this, words that are only similar are looked for too. */
const ENOUGH = 15
const SIMILARITY = 0.4
const HIGHLIGHT_CHARS = 120

export const hitResponse = named('SearchHit', {
  kind: string(),
  id: id(),
  name: string(),
  subtitle: nullable(string()),
  matched_field: string(),
  highlight: string(),
  score: Type.Number(),
  health: nullable(string()),
  status: nullable(string()),
  link: string(),
  updated_at: time(),
})

type Asked = { readonly companyId: string; readonly kinds: readonly string[]; readonly tags: SQL; readonly health: SQL }

const COLUMNS = sql.raw('d.kind, d.resource_id, d.name, d.subtitle, d.text, d.exact, d.health, d.status, d.updated_at')
const kindList = (kinds: readonly string[]): SQL =>
  sql`d.kind in (select jsonb_array_elements_text(${JSON.stringify(kinds)}::jsonb))`
const among = ({ companyId, kinds, tags, health }: Asked): SQL =>
  sql`d.company_id = ${companyId} and ${kindList(kinds)} ${tags} ${health}`

type Db = RouteContext['hub']['database']['db']
const find = async (db: Db, query: SQL): Promise<Candidate[]> => [...(await db.execute<Candidate>(query))]

/** Exact values: addresses, blocks, host names, ids; an address also finds the subnets around it. */
function byExact(db: Db, asked: Asked, q: string): Promise<Candidate[]> {
  const around = parseAddress(q)
    ? sql`union select 'subnet', s.id from subnets s where s.company_id = ${asked.companyId} and s.deleted_at is null
        and s.cidr = any(blocks_around(${q}::inet))`
    : sql``
  const byId = /^[0-9a-f-]{36}$/.test(q)
    ? sql`union select d.kind, d.resource_id from search_documents d
    where d.company_id = ${asked.companyId} and d.resource_id::text = ${q}`
    : sql``
  return find(
    db,
    sql`
    select ${COLUMNS}, 1.0 as similarity from (
      select d.kind, d.resource_id from search_documents d
      where d.company_id = ${asked.companyId} and d.exact @> array[${q}]::text[] ${around} ${byId} limit ${CANDIDATES_MAX}) f
    join search_documents d on d.kind = f.kind and d.resource_id = f.resource_id
    where ${among(asked)} limit ${CANDIDATES_MAX}`,
  )
}

/** Names that begin with the query come before all others, however many hold its words. */
const byPrefix = (db: Db, asked: Asked, q: string): Promise<Candidate[]> =>
  find(
    db,
    sql`${plannedAnew}
    select ${COLUMNS}, 1.0 as similarity from search_documents d
    where ${among(asked)} and lower(d.name) like ${likePattern(q).slice(1)} limit ${CANDIDATES_MAX / 3}`,
  )

/** Words under 3 letters are looked for at the beginning of the name only. */
const inText = (word: string): SQL =>
  word.length < 3 ? sql`lower(d.name) like ${likePattern(word).slice(1)}` : sql`d.text like ${likePattern(word)}`

/** Has one of these tags. Asked of one document after the other, or of the tags first: both stand in one index. */
const isTagged = ({ companyId }: Pick<Asked, 'companyId'>, tags: readonly string[]): SQL => sql`exists (
  select 1 from search_tags t where t.company_id = ${companyId} and t.kind = d.kind and t.resource_id = d.resource_id
    and t.tag = any (array(select jsonb_array_elements_text(${JSON.stringify(tags)}::jsonb))))`

/** The tags that hold each word; words that no tag holds are absent. The different tags are few: each is looked up. */
async function tagsOf(db: Db, { companyId }: Asked, words: readonly string[]): Promise<Map<string, string[]>> {
  const long = words.filter(word => word.length >= 3)
  if (long.length === 0) return new Map()
  const patterns = long.map(word => ({ word, pattern: likePattern(word) }))
  const rows = await db.execute<{ word: string; tags: string[] }>(sql`
    with recursive tags as (
      (select tag, 1 as number from search_tags where company_id = ${companyId} order by tag limit 1)
      union all select next.tag, tags.number + 1 from tags cross join lateral (
        select tag from search_tags where company_id = ${companyId} and tag > tags.tag order by tag limit 1) next
      where tags.number < ${TAGS_LOOKED_AT_MAX}::int)
    select p.word, (array_agg(tags.tag))[1:${CANDIDATES_MAX}::int] as tags from tags
    join jsonb_to_recordset(${JSON.stringify(patterns)}::jsonb) as p (word text, pattern text) 
      on lower(tags.tag collate "default") like p.pattern
    group by p.word`)
  return new Map(rows.map(row => [row.word, row.tags]))
}

/** Every word is in the text, of which the name is the beginning, or in a tag. */
async function byWords(db: Db, asked: Asked, words: readonly string[]): Promise<Candidate[]> {
  const tags = await tagsOf(db, asked, words)
  const inTag = (word: string): SQL => isTagged(asked, tags.get(word) ?? [])
  // What begins with a word that no tag holds is found in the index of the text. Where tags hold every word, one of
  // them is looked for in both places, since no index answers "either".
  const first = words.find(word => !tags.has(word)) ?? words[0] ?? ''
  const others = words
    .filter(word => word !== first)
    .map(word => (tags.has(word) ? sql`(${inText(word)} or ${inTag(word)})` : inText(word)))
  const holding = (found: SQL) =>
    find(
      db,
      sql`${plannedAnew} select ${COLUMNS}, 1.0 as similarity from search_documents d
        where ${among(asked)} and ${sql.join([found, ...others], sql` and `)} limit ${CANDIDATES_MAX}`,
    )
  const inEither = await Promise.all([holding(inText(first)), ...(tags.has(first) ? [holding(inTag(first))] : [])])
  return inEither.flat()
}

/** Names with a word like the one asked for. */
async function bySimilarity(db: Db, asked: Asked, q: string): Promise<Candidate[]> {
  if (q.length < 3) return []
  return db.transaction(async tx => {
    // Read from its beginning, the table has the same candidates each time, and those of the next page with them.
    await tx.execute(sql`select set_config('pg_trgm.word_similarity_threshold', ${String(SIMILARITY)}, true),
      set_config('synchronize_seqscans', 'off', true)`)
    const rows = await tx.execute<Candidate>(sql`${plannedAnew}
      select ${COLUMNS}, word_similarity(${q}, lower(d.name)) as similarity from search_documents d
      where ${among(asked)} and ${q} <% lower(d.name) limit ${CANDIDATES_MAX}`)
    return [...rows]
  })
}

type Ranked = Candidate & { readonly rank: number; readonly matched: string }

/** Exact, the beginning of the name, a word of the name, text, similarity. */
function rankOf(row: Candidate, q: string, words: readonly string[], step: 'exact' | 'words' | 'similar'): Ranked {
  const name = row.name.toLowerCase()
  const rank = (score: number, matched: string): Ranked => ({ ...row, rank: score, matched })
  if (name === q) return rank(1, 'name')
  if (step === 'exact') return row.exact.includes(q) || row.resource_id === q ? rank(1, 'exact') : rank(0.9, 'around')
  if (step === 'similar') return rank(0.3 * Number(row.similarity), 'name')
  if (name.startsWith(q)) return rank(0.8, 'name')
  if (words.every(word => name.includes(word))) return rank(0.6, 'name')
  return rank(0.4, words.every(word => row.text.includes(word)) ? 'text' : 'tags')
}

const PROBLEMS = ['critical', 'warning']
const problemRank = (health: string | null): number => {
  const at = PROBLEMS.indexOf(health ?? '')
  return at < 0 ? PROBLEMS.length : at
}
const timeOf = (row: Candidate): number => new Date(row.updated_at).getTime()

const byRank = (a: Ranked, b: Ranked): number =>
  b.rank - a.rank ||
  problemRank(a.health) - problemRank(b.health) ||
  timeOf(b) - timeOf(a) ||
  (a.resource_id < b.resource_id ? -1 : 1)

function highlightOf({ text, name }: Candidate, words: readonly string[]): string {
  const at = words.map(word => text.indexOf(word)).find(each => each >= 0)
  if (at === undefined) return name.slice(0, HIGHLIGHT_CHARS)
  const from = Math.max(0, at - 20)
  return text.slice(from, from + HIGHLIGHT_CHARS)
}

type Query = {
  readonly q: string
  readonly kinds?: string | undefined
  readonly tag?: readonly string[] | undefined
  readonly health?: string | undefined
  readonly page?: number | undefined
}
/** What is looked for, in lower case, and what narrows it down. */
type Looked = Pick<Query, 'q' | 'health' | 'tag'>

const wordsOf = (q: string): string[] => [...new Set(q.split(/\s+/))].slice(0, 8)

/** What no company has, for super administrators. */
const COLLECTOR = 'collector'
const COLLECTORS = '/monitoring/collectors'

/** The kinds that the caller may view, of those asked for. Throws 422 for one that there is not. */
function kindsOf({ hub, caller }: RouteContext, given: string | undefined): string[] {
  const wanted = given
    ?.split(',')
    .map(each => each.trim())
    .filter(each => each !== '')
  const known = [...hub.kinds.keys(), COLLECTOR]
  const unknown = wanted?.find(each => !known.includes(each))
  if (unknown !== undefined) throw invalidField('kinds', 'one_of', { values: known.join(', ') })
  const mayView = (kind: string): boolean => {
    const info = hub.kinds.get(kind)
    return info ? caller.permissions.has(info.permissions.view) : caller.actsAsSuperAdmin
  }
  return known.filter(kind => mayView(kind) && (wanted?.includes(kind) ?? true))
}

/** Alerts by the names of their rules and servers: of what was found, when that is all that may lead to them. */
async function foundAlerts(
  { hub: { database } }: RouteContext,
  asked: Asked,
  found: readonly Candidate[],
  { q, health, tag }: Looked,
): Promise<Candidate[]> {
  if (!asked.kinds.includes('alert') || tag?.length) return []
  const { db } = database
  const isLed = health === undefined && alertOwners.every(kind => asked.kinds.includes(kind))
  const leading = isLed ? found : await byWords(db, { ...asked, kinds: alertOwners, health: sql`` }, wordsOf(q))
  const alerts = await alertsOf(db, asked.companyId, q, leading)
  return health === undefined ? alerts : alerts.filter(alert => alert.health === health)
}

/** Collectors, which have neither tags nor health. */
const foundCollectors = (context: RouteContext, { kinds }: Asked, { q, health, tag }: Looked): Promise<Candidate[]> =>
  !kinds.includes(COLLECTOR) || health !== undefined || tag?.length
    ? Promise.resolve([])
    : collectorsOf(context, q, wordsOf(q))

/** Where hits stand; nowhere for one that is gone since then. */
async function linksOf(
  { hub, companyId }: RouteContext,
  rows: readonly Candidate[],
): Promise<(row: Candidate) => string> {
  const { db } = hub.database
  const byKind = new Map<string, ReadonlyMap<string, string>>()
  for (const [kind, some] of Map.groupBy(rows, row => row.kind)) {
    const ids = some.map(row => row.resource_id)
    const paths =
      kind === COLLECTOR
        ? new Map(ids.map(id => [id, `${COLLECTORS}/${id}`]))
        : await pathsOf(db, hub.kinds, companyId, kind, ids)
    byKind.set(kind, paths)
  }
  return ({ kind, resource_id }) => byKind.get(kind)?.get(resource_id) ?? ''
}

/** The hits of a page, the number of all up to the bound, and whether there are more. */
export async function search(context: RouteContext, query: Query) {
  const { hub, companyId } = context
  const { db } = hub.database
  const q = query.q.trim().toLowerCase()
  if ([...q].length < 2) throw invalidField('q', 'length_min', { min: 2 })
  const words = wordsOf(q)
  const looked = { ...query, q }
  const asked: Asked = {
    companyId,
    kinds: kindsOf(context, query.kinds),
    tags: sql.join(
      (query.tag ?? []).map(tag => sql`and ${isTagged({ companyId }, [tag])}`),
      sql` `,
    ),
    health: query.health ? sql`and d.health = ${query.health}` : sql``,
  }
  const found = new Map<string, Ranked>()
  const add = (rows: readonly Candidate[], step: Parameters<typeof rankOf>[3]) => {
    for (const row of rows) {
      const key = `${row.kind} ${row.resource_id}`
      if (!found.has(key) && found.size < CANDIDATES_MAX) found.set(key, rankOf(row, q, words, step))
    }
  }
  const [exact, prefixed, worded, collectors] = await Promise.all([
    byExact(db, asked, q),
    byPrefix(db, asked, q),
    byWords(db, asked, words),
    foundCollectors(context, asked, looked),
  ])
  const alerts = await foundAlerts(context, asked, [...exact, ...prefixed, ...worded], looked)
  add(exact, 'exact')
  add(prefixed, 'words')
  // Before the other words, which may be as many as there is room for.
  for (const some of [alerts, collectors]) add(some, 'words')
  add(worded, 'words')
  if (found.size < ENOUGH) add(await bySimilarity(db, asked, q), 'similar')
  const ranked = [...found.values()].sort(byRank)
  const from = ((query.page ?? 1) - 1) * PAGE
  const shown = ranked.slice(from, from + PAGE)
  const linkOf = await linksOf(context, shown)
  const rows = shown.map(row => ({
    kind: row.kind,
    id: row.resource_id,
    name: row.name,
    subtitle: row.subtitle,
    matched_field: row.matched,
    highlight: highlightOf(row, words),
    score: Math.round(row.rank * 100) / 100,
    health: row.health,
    status: row.status,
    link: linkOf(row),
    updated_at: new Date(row.updated_at),
  }))
  return { rows, total: ranked.length, isCapped: ranked.length >= CANDIDATES_MAX }
}

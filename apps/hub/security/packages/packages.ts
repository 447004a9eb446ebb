// Packages of servers, which only the matcher knows (document 3, Security matcher API called by the hub): what it
// answers is checked, and shown with the names of the company's servers. When it cannot answer, there are no rows.
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { sql } from 'drizzle-orm'
import type { Hub } from '../../hub-context.ts'
import { uuidList } from '../../platform/db/transaction.ts'
import { ApiError } from '../../platform/http/api-error.ts'
import { words } from '../../platform/http/api-texts.ts'
import type { Asker } from '../../platform/http/collection.ts'
import { isUuid } from '../../platform/http/request-schema.ts'
import { id, listed, named, nullable, serverReference, string } from '../../platform/http/response-schema.ts'
import { type MatcherReason, matcherNote } from './matcher-note.ts'

const LIMIT_DEFAULT = 100
const LIMIT_MAX = 500

const packageFields = {
  server_id: id(),
  name: string(),
  version: string(),
  arch: string(),
  source_name: string(),
  source_version: string(),
  ecosystem: string(),
}
const packageResponse = named('InstalledPackage', { ...packageFields, server: nullable(serverReference) })

/** A page of packages; `next_cursor` continues it. */
export const packagePage = Type.Object({
  data: listed(packageResponse),
  next_cursor: nullable(string()),
  matcher: Type.Object(matcherNote),
})

const itemsBody = Type.Object({
  data: Type.Object({
    items: Type.Array(Type.Object({ ...packageFields, server_id: string() }), { maxItems: LIMIT_MAX }),
    next_cursor: Type.Union([string(), Type.Null()]),
  }),
})
const summaryBody = Type.Object({
  data: Type.Object({
    servers: Type.Integer({ minimum: 0 }),
    oldest_report_ms: Type.Union([Type.Integer({ minimum: 0, maximum: 8.64e15 }), Type.Null()]),
    ecosystems: Type.Record(string(), Type.Integer({ minimum: 0 })),
    open_findings: Type.Integer({ minimum: 0 }),
  }),
})
const resyncBody = Type.Object({ data: Type.Object({ events: Type.Integer({ minimum: 0 }) }) })

type Item = Static<typeof itemsBody>['data']['items'][number]

const nothing = (reason: MatcherReason) => ({ data: [], next_cursor: null, matcher: { available: false, reason } })

type MatcherAsker = Pick<Asker, 'hub' | 'companyId'>

/** Rows of servers that are not the company's are left out, whatever the matcher says. */
async function withServers({ hub, companyId }: MatcherAsker, items: readonly Item[]) {
  const ids = new Set(items.map(item => item.server_id).filter(isUuid))
  const rows = await hub.database.db.execute<{ id: string; name: string; hostname: string | null }>(sql`
    select id, name, hostname from servers
    where company_id = ${companyId} and deleted_at is null and id = any(${uuidList(ids)}::uuid[])`)
  const byId = new Map(rows.map(row => [row.id, row]))
  return items.flatMap(item => {
    const server = byId.get(item.server_id.toLowerCase())
    return server
      ? [
          {
            server_id: server.id,
            server,
            name: item.name,
            version: item.version,
            arch: item.arch,
            source_name: item.source_name,
            source_version: item.source_version,
            ecosystem: item.ecosystem,
          },
        ]
      : []
  })
}

async function pageOfPackages(asker: MatcherAsker, name: string, path: string, serverId: string | null) {
  const { hub } = asker
  if (!hub.matcher.isConfigured) return nothing('not_configured')
  const answered = await hub.matcher.ask('GET', name, path)
  if (answered === null) return nothing('unavailable')
  if (answered.status === 404)
    return { ...nothing('no_data'), matcher: { available: true, reason: 'no_data' as const } }
  if (answered.status !== 200 || !Value.Check(itemsBody, answered.body)) {
    hub.log.error({ call: name, status: answered.status }, 'the matcher answered what the hub does not understand')
    return nothing('unavailable')
  }
  const { items, next_cursor } = answered.body.data
  const own = serverId === null ? items : items.filter(item => item.server_id.toLowerCase() === serverId)
  return { data: await withServers(asker, own), next_cursor, matcher: { available: true, reason: null } }
}

type PageQuery = { readonly cursor?: string | undefined; readonly limit?: number | undefined }

function queryOf(values: Readonly<Record<string, string | undefined>>, { cursor, limit }: PageQuery): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries({ ...values, cursor })) if (value !== undefined) search.set(name, value)
  search.set('limit', String(Math.min(limit ?? LIMIT_DEFAULT, LIMIT_MAX)))
  return search.toString()
}

/** The packages of a server that was found in the company. */
export const packagesOfServer = (
  asker: MatcherAsker,
  serverId: string,
  { q, ...page }: PageQuery & { readonly q?: string | undefined },
) =>
  pageOfPackages(
    asker,
    'packages',
    `/servers/${serverId}/packages?${queryOf({ company_id: asker.companyId, q }, page)}`,
    serverId,
  )

type SearchQuery = PageQuery & {
  readonly name: string
  readonly version_lt?: string | undefined
  readonly version_gte?: string | undefined
  readonly ecosystem?: string | undefined
}

/** One row a server that has the package. */
export const searchPackages = (asker: Asker, { name, version_lt, version_gte, ecosystem, ...page }: SearchQuery) =>
  pageOfPackages(
    asker,
    'search',
    `/companies/${asker.companyId}/packages/search?${queryOf({ name, version_lt, version_gte, ecosystem }, page)}`,
    null,
  )

/** What the matcher counts of a company; null when it cannot answer. */
export async function inventorySummary({ hub, companyId }: Asker) {
  if (!hub.matcher.isConfigured)
    return { inventory: null, matcher: { available: false, reason: 'not_configured' as const } }
  const answered = await hub.matcher.ask('GET', 'summary', `/companies/${companyId}/summary`)
  if (answered?.status === 404) return { inventory: null, matcher: { available: true, reason: 'no_data' as const } }
  if (answered?.status !== 200 || !Value.Check(summaryBody, answered.body))
    return { inventory: null, matcher: { available: false, reason: 'unavailable' as const } }
  const { servers, oldest_report_ms, ecosystems } = answered.body.data
  const oldest = oldest_report_ms === null ? null : new Date(oldest_report_ms)
  return { inventory: { servers, oldest_report_at: oldest, ecosystems }, matcher: { available: true, reason: null } }
}

const unavailable = (): ApiError =>
  new ApiError(503, 'unavailable', words('matcher_unavailable'), { headers: { 'Retry-After': '30' } })

/** Lets the matcher tell every open finding of the company again. Throws 503 when it cannot be asked. */
export async function resyncCompany(hub: Hub, companyId: string): Promise<number> {
  const answered = hub.matcher.isConfigured
    ? await hub.matcher.ask('POST', 'resync', `/resync?company_id=${companyId}`)
    : null
  // A company without any inventory has nothing to tell.
  if (answered?.status === 404) return 0
  if (answered === null || answered.status !== 200 || !Value.Check(resyncBody, answered.body)) throw unavailable()
  return answered.body.data.events
}

// Configurations of reverse proxies: what the sites of today say in each format, and the revisions that reloads
// have frozen for servers to pull.
import { sql } from 'drizzle-orm'
import type { HealthCheck } from '../../../core/load-balancing/config-text.ts'
import {
  type ConfigFormat,
  type ConfigSite,
  type ConfigTarget,
  type ConfigUpstream,
  configFormats,
  type Listener,
  noCheck,
  type ProxyConfig,
  type RenderedConfig,
} from '../../../core/proxies/proxy-config.ts'
import { renderCaddy } from '../../../core/proxies/render-caddy.ts'
import { renderHaproxy } from '../../../core/proxies/render-haproxy.ts'
import { renderNginx } from '../../../core/proxies/render-nginx.ts'
import { parseHost, parseUpstreamUrl } from '../../../core/proxies/site-fields.ts'
import { sha256Hex } from '../../../core/series/hash.ts'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import { inTransaction } from '../platform/db/transaction.ts'

const REVISIONS_KEPT = 20

type ConfiguredProxy = {
  readonly id: string
  readonly company_id: string
  readonly name: string
  readonly listen: readonly Listener[]
}
type SiteRow = {
  name: string
  hostnames: string[]
  path: string
  certificate_id: string | null
  redirect_https: boolean
  upstream_kind: string | null
  upstream_id: string | null
  upstream_port: number | null
  upstream_url: string | null
}
type Texts = Readonly<Record<ConfigFormat, RenderedConfig & { readonly sha256: string }>>
type Frozen = { readonly revision: number; readonly texts: Texts; readonly created_at: Date }

const renderers: Readonly<Record<ConfigFormat, (config: ProxyConfig) => RenderedConfig>> = {
  nginx: renderNginx,
  caddy: renderCaddy,
  haproxy: renderHaproxy,
}

/** The format of the software that a proxy is; of nginx for what has none here. */
export const formatOf = ({ software }: { readonly software: string }): ConfigFormat =>
  configFormats.find(format => format === software) ?? 'nginx'

const idsOf = (sites: readonly SiteRow[], kind: string): string =>
  JSON.stringify(sites.flatMap(site => (site.upstream_kind === kind ? (site.upstream_id ?? []) : [])))

type Place = {
  id: string
  host: string
  port: number
  weight: number
  is_backup: boolean
  is_tls: boolean
  /** Of a pool. */
  health_check?: HealthCheck
}

/** Where the resources that sites name can be reached, by kind and id. */
async function placesOf({ kinds }: Hub, db: Executor, companyId: string, sites: readonly SiteRow[]) {
  const ids = (kind: string) => sql`(select jsonb_array_elements_text(${idsOf(sites, kind)}::jsonb)::uuid)`
  const rows: Place[] = []
  rows.push(
    ...(await db.execute<Place>(sql`
      select id, ip_address as host, 0 as port, 1 as weight, false as is_backup, false as is_tls from servers
      where company_id = ${companyId} and deleted_at is null and ip_address is not null and id in ${ids('server')}`)),
  )
  if (kinds.has('virtual_server'))
    rows.push(
      ...(await db.execute<Place>(sql`
        select id, address as host, port, 1 as weight, false as is_backup, protocol = 'https' as is_tls
        from virtual_servers
        where company_id = ${companyId} and deleted_at is null and id in ${ids('virtual_server')}`)),
    )
  if (kinds.has('lb_pool'))
    rows.push(
      ...(await db.execute<Place>(sql`
        select m.pool_id as id, coalesce(m.address, s.ip_address) as host, m.port,
          case when m.admin_state = 'enabled' then m.weight else 0 end as weight, m.backup as is_backup,
          p.protocol = 'https' as is_tls, p.health_check
        from lb_members m join lb_pools p on p.id = m.pool_id and p.deleted_at is null
        left join servers s on s.id = m.server_id and s.deleted_at is null
        where m.company_id = ${companyId} and m.deleted_at is null and coalesce(m.address, s.ip_address) is not null
          and m.pool_id in ${ids('lb_pool')} order by m.name, m.id`)),
    )
  return Map.groupBy(rows, row => row.id)
}

function upstreamOf(site: SiteRow, places: ReadonlyMap<string, readonly Place[]>): ConfigUpstream | null {
  const target = { weight: 1, isBackup: false }
  if (site.upstream_url !== null) {
    const url = parseUpstreamUrl(site.upstream_url)
    return url && { isTls: url.scheme === 'https', path: url.path, targets: [{ ...url, ...target }], check: noCheck }
  }
  const found = places.get(site.upstream_id ?? '')
  if (!found) return null
  const targets = found.flatMap(({ host, port, weight, is_backup }): ConfigTarget[] => {
    const normal = parseHost(host)
    return normal === null ? [] : [{ host: normal, port: site.upstream_port ?? port, weight, isBackup: is_backup }]
  })
  const check = found[0]?.health_check ?? noCheck
  return { isTls: found.some(({ is_tls }) => is_tls), path: '', targets, check }
}

/** What a proxy's sites of now say, in every format. */
async function renderTexts(hub: Hub, db: Executor, proxy: ConfiguredProxy): Promise<Texts> {
  const rows = await db.execute<SiteRow>(sql`
    select name, hostnames, path, certificate_id, redirect_https, upstream_kind, upstream_id, upstream_port, upstream_url
    from proxy_sites where company_id = ${proxy.company_id} and proxy_id = ${proxy.id} and deleted_at is null and enabled
    order by id`)
  const places = await placesOf(hub, db, proxy.company_id, rows)
  const sites = rows.map(
    (row): ConfigSite => ({
      name: row.name,
      hostnames: row.hostnames,
      path: row.path,
      certificate: row.certificate_id,
      redirectsToHttps: row.redirect_https,
      upstream: upstreamOf(row, places),
    }),
  )
  const config = { name: proxy.name, listen: proxy.listen, sites }
  const rendered = configFormats.map(format => {
    const { text, warnings } = renderers[format](config)
    return [format, { text, warnings, sha256: sha256Hex(text) }] as const
  })
  // Every format has its renderer.
  return Object.fromEntries(rendered) as Texts
}

/** The newest revision; null before the first reload. */
export async function frozenConfig(db: Executor, proxy: Pick<ConfiguredProxy, 'id' | 'company_id'>) {
  const [row] = await db.execute<Omit<Frozen, 'created_at'> & { created_at: Date | string }>(sql`
    select revision, texts, created_at from proxy_revisions
    where company_id = ${proxy.company_id} and proxy_id = ${proxy.id} order by revision desc limit 1`)
  return row ? { revision: row.revision, texts: row.texts, created_at: new Date(row.created_at) } : null
}

const isEqual = (a: Texts, b: Texts): boolean => configFormats.every(format => a[format].sha256 === b[format].sha256)

/** Whether a reload would make another revision (RES-096). */
export const isConfigStale = async (hub: Hub, db: Executor, proxy: ConfiguredProxy, { texts }: Frozen) =>
  !isEqual(texts, await renderTexts(hub, db, proxy))

/** Freezes what the sites say now; the newest revision stays when it says the same (RES-095). */
export async function freezeConfig(
  hub: Hub,
  proxy: ConfiguredProxy,
): Promise<{ readonly frozen: Frozen; readonly changed: boolean }> {
  return inTransaction(hub.database.db, async tx => {
    const { id, company_id } = proxy
    await tx.db.execute(sql`select 1 from proxies where id = ${id} for no key update`)
    const newest = await frozenConfig(tx.db, proxy)
    const texts = await renderTexts(hub, tx.db, proxy)
    if (newest && isEqual(newest.texts, texts)) return { frozen: newest, changed: false }
    const frozen = { revision: (newest?.revision ?? 0) + 1, texts, created_at: new Date(hub.now()) }
    await tx.db.execute(sql`
      insert into proxy_revisions (company_id, proxy_id, revision, texts, created_at)
      values (${company_id}, ${id}, ${frozen.revision}, ${JSON.stringify(texts)}::jsonb, ${frozen.created_at.toISOString()})`)
    await tx.db.execute(sql`
      delete from proxy_revisions where proxy_id = ${id} and revision <= ${frozen.revision - REVISIONS_KEPT}`)
    return { frozen, changed: true }
  })
}

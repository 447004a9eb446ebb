// What leaves the hub for a proxy: looking at the sites of a reverse one, reaching a place through a forward one, and
// freezing a configuration that servers pull.
import { sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import { parseAddress } from '../../../core/network/ip-address.ts'
import type { Hub } from '../hub-context.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { NoConnection, openConnection } from '../platform/open-connection.ts'
import { resolveTarget } from '../platform/outbound-guard.ts'
import { type Finding, setConditions } from '../resources/conditions.ts'
import type { Editor } from '../resources/editor.ts'
import { rowsOfIds } from '../resources/resource-rows.ts'
import { RunFailed } from '../resources/runs.ts'
import { reachedProxy } from '../way-out/forward-proxy.ts'
import { keepClock, PROBES_TO_AGE } from './next-probe.ts'
import { type ProxyRow, type ProxySecrets, proxyKind, SITE_CODES } from './proxy.ts'
import { type ProxySite, proxySiteKind } from './proxy-site.ts'
import { formatOf, freezeConfig } from './revisions.ts'
import { checkSite } from './site-check.ts'
import { type Checked, findingsOf } from './site-conditions.ts'

const SITES_AT_ONCE = 10
const TEST_MS = 10_000
type Given = { readonly editor: Editor; readonly row: ProxyRow; readonly input: Unchecked }

/** Where the names of a proxy must lead: what it says, else the addresses of its servers. */
async function addressesOf({ database: { db } }: Hub, proxy: ProxyRow): Promise<readonly string[]> {
  if (proxy.addresses.length > 0) return proxy.addresses
  const rows = await db.execute<{ ip_address: string }>(sql`
    select ip_address from servers where company_id = ${proxy.company_id} and deleted_at is null
      and ip_address is not null and id in (select jsonb_array_elements_text(${JSON.stringify(proxy.server_ids)}::jsonb)::uuid)`)
  return rows.flatMap(({ ip_address }) => parseAddress(ip_address)?.toString() ?? [])
}

/** The fingerprints of the certificates that sites name. */
async function fingerprintsOf({ database: { db }, kinds }: Hub, companyId: string, sites: readonly ProxySite[]) {
  const ids = sites.flatMap(({ certificate_id }) => certificate_id ?? [])
  const rows =
    kinds.has('certificate') && ids.length > 0
      ? await db.execute<{ id: string; fingerprint: string }>(sql`
          select id, fingerprint_sha256 as fingerprint from certificates
          where company_id = ${companyId} and deleted_at is null and fingerprint_sha256 is not null
            and id in (select jsonb_array_elements_text(${JSON.stringify(ids)}::jsonb)::uuid)`)
      : []
  return new Map(rows.map(({ id, fingerprint }) => [id, fingerprint]))
}

/** Looks at every enabled site, some at once. */
async function lookAtSites(hub: Hub, proxy: ProxyRow): Promise<Checked[]> {
  const { company_id: companyId } = proxy
  const rows = await hub.database.db.execute<{ id: string }>(sql`
    select id from proxy_sites where company_id = ${companyId} and proxy_id = ${proxy.id} and deleted_at is null
      and enabled and status not in ('planned', 'retired')`)
  const found = await rowsOfIds(
    proxySiteKind,
    hub.database.db,
    companyId,
    rows.map(({ id }) => id),
  )
  const sites = found.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  const fingerprints = await fingerprintsOf(hub, companyId, sites)
  const extraRoots = await hub.state.valueIn(hub.database.db, companyId, 'certificates.extra_roots')
  const seen = { companyId, addresses: await addressesOf(hub, proxy), listen: proxy.listen, extraRoots }
  const waiting = [...sites]
  const checked: Checked[] = []
  const worker = async () => {
    for (let site = waiting.shift(); site; site = waiting.shift())
      checked.push({
        site,
        result: await checkSite(hub, seen, site, fingerprints.get(site.certificate_id ?? '') ?? null),
      })
  }
  await Promise.all(Array.from({ length: SITES_AT_ONCE }, worker))
  return checked.toSorted((a, b) => (a.site.name < b.site.name ? -1 : 1))
}

async function storeSites(hub: Hub, proxy: ProxyRow, checked: readonly Checked[]): Promise<void> {
  const now = new Date(hub.now())
  const seconds = proxy.check_interval_seconds
  const until = seconds > 0 ? new Date(now.getTime() + 1000 * PROBES_TO_AGE * seconds).toISOString() : null
  const rows = checked.map(({ site, result }) => ({
    id: site.id,
    version: site.version,
    state: result.error === null ? 'ok' : 'failing',
    result,
  }))
  await inTransaction(hub.database.db, async tx => {
    // One that was changed or switched off meanwhile is looked at anew.
    const stored = await tx.db.execute<{ id: string }>(sql`
      update proxy_sites s set state = x.state, result = x.result, probe_until = ${until}::timestamptz
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as x (id uuid, version bigint, state text, result jsonb)
      where s.id = x.id and s.version = x.version and s.enabled and s.deleted_at is null
        and exists (select 1 from proxies p where p.id = s.proxy_id and p.enabled and p.deleted_at is null)
      returning s.id`)
    const ids = new Set(stored.map(({ id }) => id))
    const of = checked.filter(({ site }) => ids.has(site.id))
    const found = new Map(of.map(each => [each.site.id, findingsOf(each)]))
    await setConditions(tx, proxySiteKind.info, proxy.company_id, [...ids], SITE_CODES, found)
    const isNewFailure = of.some(({ site, result }) => result.error !== null && site.state !== 'failing')
    await keepClock(tx, proxy, isNewFailure, now)
  })
}

async function testSites({ editor: { hub }, row }: Given): Promise<Unchecked> {
  const checked = row.enabled ? await lookAtSites(hub, row) : []
  await storeSites(hub, row, checked)
  const sites = checked.map(({ site, result }) => ({
    id: site.id,
    name: site.name,
    ok: result.error === null,
    ...result,
  }))
  return { ok: sites.every(({ ok }) => ok), sites }
}

type Place = { readonly host: string; readonly port: number }

/** `host:port` of a text; null for anything else. */
export function parsePlace(text: string): Place | null {
  const url = /^[^/@?#\s]+$/.test(text) ? URL.parse(`tcp://${text}`) : null
  const port = Number(url?.port)
  const host = url?.hostname.replace(/^\[|\]$/g, '') ?? ''
  return host !== '' && port > 0 ? { host, port } : null
}

/** Where a test goes: to the asked place, at its checked address, else to the hub itself. Throws RunFailed. */
async function targetOf({ config }: Hub, { target }: Unchecked): Promise<Place> {
  const asked = typeof target === 'string' ? parsePlace(target) : null
  if (asked) {
    const resolved = await resolveTarget(config, asked.host)
    if ('fault' in resolved) throw new RunFailed(resolved.fault)
    return { host: resolved.addresses[0] ?? '', port: asked.port }
  }
  const url = URL.parse(config.public_url ?? '')
  if (url === null) throw new RunFailed('the hub has no public_url: give a target')
  const usual = url.protocol === 'https:' ? 443 : 80
  return { host: url.hostname.replace(/^\[|\]$/g, ''), port: url.port === '' ? usual : Number(url.port) }
}

async function storeForward(hub: Hub, proxy: ProxyRow, error: string | null): Promise<void> {
  if (!proxy.enabled) return
  const found: Finding[] = error === null ? [] : [{ code: 'proxy_unreachable', detail: { error }, isProbed: true }]
  const { info } = proxyKind
  await inTransaction(hub.database.db, async tx => {
    const [open] = await tx.db.execute(sql`
      select 1 from resource_conditions where company_id = ${proxy.company_id} and kind = ${info.kind}
        and resource_id = ${proxy.id} and code = 'proxy_unreachable' and resolved_at is null`)
    await setConditions(tx, info, proxy.company_id, [proxy.id], ['proxy_unreachable'], new Map([[proxy.id, found]]))
    await keepClock(tx, proxy, error !== null && !open, new Date(hub.now()))
  })
}

/** Reaches a place through the proxy. Only a proxy that does not do its part is a problem of the proxy. */
async function testForward({ editor: { hub }, row, input }: Given): Promise<Unchecked> {
  const target = await targetOf(hub, input)
  const startMs = performance.now()
  let error: NoConnection | null = null
  try {
    const via = await reachedProxy(hub, row as ProxyRow & ProxySecrets)
    const socket = await openConnection(target, via, performance.now() + TEST_MS)
    socket.destroy()
  } catch (caught) {
    if (!(caught instanceof NoConnection)) throw caught
    error = caught
  }
  const seconds = Math.round(performance.now() - startMs) / 1000
  await storeForward(hub, row, error !== null && (error.isProxy || input.target === undefined) ? error.fault : null)
  if (error?.fault === 'target_not_allowed') throw new RunFailed(error.fault)
  return { ok: error === null, seconds, error: error?.fault ?? null }
}

async function reload(given: Given): Promise<Unchecked> {
  const { editor, row } = given
  const { frozen, changed } = await freezeConfig(editor.hub, row)
  const { sha256, warnings } = frozen.texts[formatOf(row)]
  const { ok, sites } = await testSites(given)
  return { revision: frozen.revision, sha256, changed, warnings, ok, sites }
}

export const proxyActs = {
  test: { work: (given: Given) => (given.row.mode === 'forward' ? testForward(given) : testSites(given)) },
  reload: { work: reload },
}

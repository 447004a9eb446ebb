// A proxy: a reverse one stands with its sites before servers, a forward one is the company's way out that the
// hub itself uses. The hub restarts no foreign software: servers pull what a reload has frozen.
import { Type } from '@sinclair/typebox'
import { or, type SQL, sql } from 'drizzle-orm'
import { jsonb, timestamp } from 'drizzle-orm/pg-core'
import { parseAddress } from '../../../core/network/ip-address.ts'
import type { Listener } from '../../../core/proxies/proxy-config.ts'
import { parseDirectTarget, parseProxyUrl, proxyUrlText } from '../../../core/proxies/site-fields.ts'
import type { Executor } from '../platform/db/connect.ts'
import { likePattern } from '../platform/db/page-of-rows.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { invalid, invalidField } from '../platform/http/api-error.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { filter } from '../platform/http/collection.ts'
import { boolean, integer, listOf, oneOf, text, uuid } from '../platform/http/request-schema.ts'
import { nullable, string, time } from '../platform/http/response-schema.ts'
import { refuseTarget } from '../platform/outbound-guard.ts'
import { setConditions } from '../resources/conditions.ts'
import type { Editor } from '../resources/editor.ts'
import {
  booleanField,
  choiceField,
  columnField,
  integerField,
  internalField,
  referencesField,
  secretField,
  textField,
  textsField,
  timeField,
  type Values,
} from '../resources/field.ts'
import { columnNamed, defineKind, type RowOf, type Write } from '../resources/kind.ts'
import { refuseInUse } from '../resources/references.ts'
import { frozenConfig, isConfigStale } from './revisions.ts'
import { linkCertificates } from './site-certificates.ts'

/** Members stand in the order in which the database gives them back, so that what is equal compares as equal. */
const USUAL_LISTEN: readonly Listener[] = [
  { tls: false, port: 80 },
  { tls: true, port: 443 },
]
const uses = ['webhooks', 'probes'] as const
const software = ['nginx', 'caddy', 'haproxy', 'apache', 'traefik', 'envoy', 'squid', 'other'] as const
const INTERVAL_MIN = 60
/** Long past: the newest probe of what is not probed speaks for nothing. */
export const NEVER_PROBED = new Date(0)

const intervalFault = (seconds: number): Words | null =>
  seconds === 0 || seconds >= INTERVAL_MIN ? null : words('minimum', { min: INTERVAL_MIN })
const listenFault = (listen: readonly { readonly port?: unknown }[]): Words | null =>
  new Set(listen.map(({ port }) => port)).size === listen.length ? null : words('proxy_ports')
const urlFault = (url: string): Words | null => (parseProxyUrl(url) === null ? words('proxy_url') : null)
function normalUrl(url: string): string {
  const endpoint = parseProxyUrl(url)
  return endpoint === null ? url : proxyUrlText(endpoint)
}

const listener = Type.Object({ port: integer(1, 65_535), tls: Type.Optional(boolean()) })
const shownListener = Type.Object({ port: Type.Integer(), tls: Type.Boolean() })

const fields = {
  mode: choiceField(['reverse', 'forward'], { fallback: 'reverse', immutable: true, filter: true }),
  software: choiceField(software, { fallback: 'other', filter: true }),
  enabled: booleanField({ fallback: true, filter: true }),
  server_ids: referencesField('server', 20, {}),
  addresses: textsField(64, 20, {}),
  listen: columnField<readonly Listener[]>(name => jsonb(name), listOf(listener, 10), Type.Array(shownListener), {
    fallback: USUAL_LISTEN,
    check: listenFault,
    normal: (listen: readonly { port: number; tls?: boolean }[]) =>
      listen.map(({ port, tls = false }) => ({ tls, port })),
  }),
  url: textField(2048, { check: urlFault, normal: normalUrl }),
  username: textField(255, {}),
  password: secretField(1024, { address: 'url' }),
  use_for: {
    ...textsField(16, uses.length, {}),
    value: listOf(oneOf(uses), uses.length),
    normal: (given: readonly string[]) => [...new Set(given)].sort(),
  },
  no_proxy: textsField(255, 100, {}),
  check_interval_seconds: integerField(0, 86_400, { fallback: 300, check: intervalFault }),
  checked_at: timeField({ readOnly: true, manifest: false }),
  next_check_at: internalField<Date | null>(
    name => timestamp(name, { withTimezone: true, precision: 3, mode: 'date' }),
    null,
  ),
} as const

export type ProxyRow = RowOf<typeof fields>
/** The sealed password has a column and no field of its own name. */
export type ProxySecrets = { readonly password_sealed: string | null }

const isUsualListen = (listen: readonly Listener[]): boolean =>
  listen.length === 0 || JSON.stringify(listen) === JSON.stringify(USUAL_LISTEN)

/** Fields of the other mode that have a value (RES-082); empty ones and defaults are no fault. */
function modeFaults(next: ProxyRow & ProxySecrets): Record<string, Words> {
  const ofReverse = {
    server_ids: next.server_ids.length > 0,
    addresses: next.addresses.length > 0,
    listen: !isUsualListen(next.listen),
  }
  const ofForward = {
    url: next.url !== null,
    username: next.username !== null,
    password: next.password_sealed !== null,
    use_for: next.use_for.length > 0,
    no_proxy: next.no_proxy.length > 0,
  }
  const [others, mode] = next.mode === 'forward' ? [ofReverse, 'reverse'] : [ofForward, 'forward']
  const given = Object.entries(others).filter(([, isGiven]) => isGiven)
  return Object.fromEntries(given.map(([field]) => [field, words('proxy_mode', { mode })]))
}

/** Each member of a list in its usual spelling; what has none is a fault at its place. */
function eachOf(
  field: string,
  given: readonly string[],
  parse: (text: string) => string | null,
  fault: Words,
): { readonly values: string[]; readonly faults: Record<string, Words> } {
  const parsed = given.map(parse)
  const wrong = parsed.flatMap((value, index) => (value === null ? [[`${field}.${index}`, fault] as const] : []))
  return { values: parsed.flatMap(value => value ?? []), faults: Object.fromEntries(wrong) }
}

/** When its next probe is due, and until when the newest one speaks for it. */
function keepClock(before: ProxyRow | null, next: Write<ProxyRow>['next'], now: Date): void {
  const { enabled, check_interval_seconds: seconds } = next
  if (before && before.enabled === enabled && before.check_interval_seconds === seconds && before.url === next.url)
    return
  next.next_check_at = now
  next.probe_until = enabled ? (seconds > 0 ? now : null) : NEVER_PROBED
}

async function beforeWrite({ editor, before, next }: Write<ProxyRow>): Promise<void> {
  const modes = modeFaults(next as ProxyRow & ProxySecrets)
  const addresses = eachOf(
    'addresses',
    next.addresses,
    each => parseAddress(each)?.toString() ?? null,
    words('ip_address'),
  )
  const direct = eachOf('no_proxy', next.no_proxy, parseDirectTarget, words('proxy_direct'))
  const faults = { ...modes, ...addresses.faults, ...direct.faults }
  if (Object.keys(faults).length > 0) throw invalid(faults)
  next.addresses = addresses.values
  next.no_proxy = direct.values
  if (next.mode === 'forward') next.listen = []
  if (next.url !== null && before?.url !== next.url)
    await refuseTarget(editor.hub.config, 'url', parseProxyUrl(next.url)?.host ?? '')
  keepClock(before, next, new Date(editor.hub.now()))
}

/** Sites are probed with their proxy, or not at all. */
async function followSites(tx: Tx, { id, company_id, enabled, check_interval_seconds }: ProxyRow, now: Date) {
  const probed = check_interval_seconds > 0 ? now.toISOString() : null
  await tx.db.execute(sql`
    update proxy_sites set probe_until = case when enabled and ${enabled} then ${probed}::timestamptz
      else ${NEVER_PROBED.toISOString()}::timestamptz end
    where company_id = ${company_id} and proxy_id = ${id}`)
}

const servedAs = (proxy: ProxyRow | null): string => JSON.stringify([proxy?.enabled, proxy?.listen])

type Written = {
  readonly tx: Tx
  readonly editor: Editor
  readonly before: ProxyRow | null
  readonly after: ProxyRow | null
}

async function afterWrite({ tx, editor, before, after }: Written): Promise<void> {
  const proxy = after ?? before
  if (proxy && (!after || servedAs(before) !== servedAs(after))) await linkCertificates(tx, editor, proxy.id)
  if (!after) return
  const isSameClock =
    before?.enabled === after.enabled && before.check_interval_seconds === after.check_interval_seconds
  if (isSameClock) return
  await followSites(tx, after, new Date(editor.hub.now()))
  if (after.enabled) return
  // Nothing looks at it any more, so nothing would end what is open.
  const { company_id, id } = after
  const sites = await tx.db.execute<{ id: string }>(sql`
    select id from proxy_sites where company_id = ${company_id} and proxy_id = ${id}`)
  const siteInfo = editor.hub.kinds.get('proxy_site')
  await setConditions(tx, proxyKind.info, company_id, [id], Object.keys(proxyKind.info.conditions), new Map())
  if (siteInfo)
    await setConditions(
      tx,
      siteInfo,
      company_id,
      sites.map(site => site.id),
      SITE_CODES,
      new Map(),
    )
}

/** What a site's probe can find. */
export const SITE_CODES = ['site_failing', 'dns_elsewhere', 'wrong_certificate'] as const

/** Others may name a site: then its proxy stays. */
async function refuseNamedSites({ tx, editor, row }: { tx: Tx; editor: Editor; row: ProxyRow }): Promise<void> {
  const sites = await tx.db.execute<{ id: string }>(sql`
    select id from proxy_sites where company_id = ${row.company_id} and proxy_id = ${row.id} and deleted_at is null`)
  await refuseInUse(
    editor,
    tx,
    'proxy_site',
    sites.map(({ id }) => id),
  )
}

/** The newest revision, and whether a reload would make another. */
async function deriveRevision(
  db: Executor,
  { hub }: { readonly hub: Editor['hub'] },
  rows: readonly ProxyRow[],
  isShow: boolean,
): Promise<Map<string, Values>> {
  const derived = new Map<string, Values>()
  if (!isShow) return derived
  for (const row of rows) {
    const frozen = row.mode === 'reverse' ? await frozenConfig(db, row) : null
    const { revision, created_at } = frozen ?? {}
    derived.set(row.id, {
      revision: frozen && { revision, created_at },
      config_stale: frozen !== null && (await isConfigStale(hub, db, row, frozen)),
    })
  }
  return derived
}

const searched = (siteText: SQL, own: SQL, pattern: string): SQL | undefined =>
  or(sql`${own} like lower(${pattern})`, sql`exists (${siteText} and s.search_text like lower(${pattern}))`)

export const proxyKind = defineKind({
  kind: 'proxy',
  title: { one: { en: 'proxy', vi: 'proxy' }, many: { en: 'proxies', vi: 'proxy' } },
  buttons: { test: 'manage', reload: 'manage' },
  group: 'Proxies',
  groupText: 'Sites before servers, what they answer, their configuration; and the way out of the hub.',
  path: '/proxies',
  parameter: 'proxy',
  table: 'proxies',
  schemaName: 'Proxy',
  fields,
  uniqueness: { proxies_use_webhooks: 'use_for', proxies_use_probes: 'use_for' },
  limit: 500,
  permissions: { view: 'proxies.view', manage: 'proxies.manage' },
  filters: table => ({
    server_id: filter(uuid(), value => sql`${columnNamed(table, 'server_ids')} @> array[${value}]::uuid[]`),
    // The host names of its sites too.
    search: filter(text(255), value =>
      searched(
        sql`select 1 from proxy_sites s where s.proxy_id = ${table}.id and s.deleted_at is null`,
        sql`${table}.search_text`,
        likePattern(value),
      ),
    ),
  }),
  derived: {
    show: {
      revision: nullable(Type.Object({ revision: Type.Integer({ minimum: 1 }), created_at: time() })),
      config_stale: Type.Boolean(),
      config: Type.Optional(
        nullable(
          Type.Object({
            format: string(),
            revision: Type.Integer({ minimum: 1 }),
            text: string(),
            sha256: string(),
            warnings: Type.Array(string()),
            created_at: time(),
          }),
        ),
      ),
    },
  },
  conditions: {
    proxy_unreachable: {
      severity: 'critical',
      text: { en: 'nothing comes through the proxy: {error}', vi: 'không có gì đi qua được proxy: {error}' },
    },
  },
  iac: { kind: 'proxy', order: 7, key: [] },
  csv: { key: ['name'] },
  hooks: {
    missing: ({ mode, url }) => (mode === 'forward' && url == null ? ['url', words('required')] : null),
    beforeWrite,
    afterWrite,
    beforeDelete: refuseNamedSites,
    derive: deriveRevision,
  },
})

/** Throws 422 for a forward proxy, on the field that only a reverse one has. */
export function refuseForward({ mode }: { readonly mode: string }, field: string): void {
  if (mode === 'forward') throw invalidField(field, 'proxy_mode', { mode: 'reverse' })
}

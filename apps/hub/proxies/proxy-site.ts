// A site of a reverse proxy: host names, the path below which it lies, where its requests go, and what its probe found.
import { Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import { integer as integerColumn, jsonb, text as textColumn, uuid as uuidColumn } from 'drizzle-orm/pg-core'
import { assert } from '../../../core/assert.ts'
import { isSitePath, isStatusRange, parseSiteName, parseUpstreamUrl } from '../../../core/proxies/site-fields.ts'
import { recordLinks, recordsOfHosts } from '../dns/record-links.ts'
import type { Executor } from '../platform/db/connect.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { invalid, invalidField } from '../platform/http/api-error.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { filter } from '../platform/http/collection.ts'
import { integer, listOf, oneOf, optional, text, uuid } from '../platform/http/request-schema.ts'
import { nullable, string, time } from '../platform/http/response-schema.ts'
import { setConditions } from '../resources/conditions.ts'
import type { Editor } from '../resources/editor.ts'
import {
  booleanField,
  choiceField,
  columnField,
  compositeField,
  referenceField,
  textField,
  type Values,
} from '../resources/field.ts'
import { columnNamed, defineKind, type RowOf, type Write } from '../resources/kind.ts'
import { NEVER_PROBED, proxyKind, refuseForward, SITE_CODES } from './proxy.ts'
import { linkCertificates } from './site-certificates.ts'

export const upstreamKinds = ['virtual_server', 'lb_pool', 'server'] as const
const STATUSES_MAX = 50
const KEPT = { readOnly: true, manifest: false } as const

type Upstream = {
  readonly kind?: string | null
  readonly id?: string | null
  readonly port?: number | null
  readonly url?: string | null
}
type UpstreamColumns = {
  readonly upstream_kind: string | null
  readonly upstream_id: string | null
  readonly upstream_port: number | null
  readonly upstream_url: string | null
}
/** How a site is probed. */
type SiteCheck = {
  readonly path: string
  readonly contains: string | null
  readonly expect_status: string | readonly number[]
}
/** What the newest probe saw. */
export type SiteResult = {
  readonly checked_at: string
  readonly resolves_to: readonly string[]
  readonly resolves_here: boolean | null
  readonly status_code: number | null
  readonly seconds: number | null
  readonly tls_valid: boolean | null
  readonly certificate_fingerprint: string | null
  readonly certificate_matches: boolean | null
  readonly error: string | null
}

const USUAL_CHECK: SiteCheck = { path: '/', contains: null, expect_status: '200-399' }

/** The fault of an upstream, at its member; at the whole where neither a resource nor a url is meant, or both are. */
function upstreamFault({ kind, id, port, url }: Upstream): Words | ReadonlyMap<string, Words> | null {
  const isResource = Boolean(kind) || Boolean(id) || Boolean(port)
  if (isResource === Boolean(url)) return words('site_upstream')
  if (url) return parseUpstreamUrl(url) === null ? new Map([['url', words('site_upstream')]]) : null
  if (!kind) return new Map([['kind', words('required')]])
  if (!id) return new Map([['id', words('required')]])
  return (kind === 'server') === Boolean(port) ? null : new Map([['port', words('site_upstream')]])
}

function checkFaults({ path, expect_status }: Partial<SiteCheck>): ReadonlyMap<string, Words> {
  const faults = new Map<string, Words>()
  if (path !== undefined && !isSitePath(path)) faults.set('path', words('site_path'))
  if (typeof expect_status === 'string' && !isStatusRange(expect_status))
    faults.set('expect_status', words('site_status'))
  return faults
}

const checkSchema = Type.Object({
  path: Type.Optional(text(1024)),
  contains: optional(text(255)),
  expect_status: Type.Optional(Type.Union([text(7), listOf(integer(100, 599), STATUSES_MAX, 1)])),
})

const resultSchema = Type.Object({
  checked_at: time(),
  resolves_to: Type.Array(string()),
  resolves_here: nullable(Type.Boolean()),
  status_code: nullable(Type.Integer()),
  seconds: nullable(Type.Number()),
  tls_valid: nullable(Type.Boolean()),
  certificate_fingerprint: nullable(string()),
  certificate_matches: nullable(Type.Boolean()),
  error: nullable(string()),
})

const fields = {
  name: textField(255, { fallback: '', search: 'text', sort: true }),
  hostnames: columnField<string[]>(
    name => textColumn(name).array(),
    listOf(text(255), 50, 1),
    Type.Array(Type.String()),
    { required: true, search: 'text' },
  ),
  path: textField(1024, {
    fallback: '/',
    check: (path: string) => (isSitePath(path) ? null : words('site_path')),
  }),
  upstream: compositeField<UpstreamColumns>({
    value: Type.Object({
      kind: optional(oneOf(upstreamKinds)),
      id: optional(uuid()),
      port: optional(integer(1, 65_535)),
      url: optional(text(2048)),
    }),
    nullable: true,
    columns: {
      upstream_kind: textColumn('upstream_kind'),
      upstream_id: uuidColumn('upstream_id'),
      upstream_port: integerColumn('upstream_port'),
      upstream_url: textColumn('upstream_url'),
    },
    response: nullable(
      Type.Object({
        kind: nullable(oneOf(upstreamKinds)),
        id: nullable(uuid()),
        port: nullable(Type.Integer()),
        url: nullable(string()),
      }),
    ),
    check: upstreamFault,
    store: value => {
      const { kind = null, id = null, port = null, url = null } = (value ?? {}) as Upstream
      return { upstream_kind: kind, upstream_id: id, upstream_port: port, upstream_url: url }
    },
    show: ({ upstream_kind: kind, upstream_id: id, upstream_port: port, upstream_url: url }) =>
      kind === null && url === null ? null : { kind, id, port, url },
  }),
  certificate_id: referenceField('certificate', { filter: true }),
  redirect_https: booleanField({ fallback: false }),
  enabled: booleanField({ fallback: true, filter: true }),
  check: compositeField<{ readonly check: SiteCheck }>({
    value: checkSchema,
    fallback: USUAL_CHECK,
    columns: { check: jsonb('check').notNull() },
    response: Type.Required(checkSchema),
    check: checkFaults,
    // Members in the order in which the database gives them back.
    normal: ({ path = '/', contains = null, expect_status = '200-399' }: Partial<SiteCheck>) => ({
      path,
      contains: contains === '' ? null : contains,
      expect_status,
    }),
    store: value => ({ check: value }),
    show: ({ check }) => check,
  }),
  state: choiceField(['ok', 'failing', 'unknown'], { fallback: 'unknown', filter: true, ...KEPT }),
  result: columnField<SiteResult | null>(name => jsonb(name), resultSchema, resultSchema, KEPT),
  proxy_id: columnField<string>(name => uuidColumn(name), uuid(), uuid(), { required: true, ...KEPT }),
} as const

export type ProxySite = RowOf<typeof fields>

type ProxyOfSite = { id: string; mode: string; enabled: boolean; check_interval_seconds: number }

/** The proxy of a site, locked, so that two writers of a proxy see each other's sites. */
async function lockProxy(tx: Tx, companyId: string, proxyId: string): Promise<ProxyOfSite> {
  const [proxy] = await tx.db.execute<ProxyOfSite>(sql`
    select id, mode, enabled, check_interval_seconds from proxies
    where company_id = ${companyId} and id = ${proxyId} for no key update`)
  assert(proxy !== undefined, 'a site has its proxy')
  return proxy
}

/** Host names in lower case, as A-labels. Throws 422 at the place of one that is none, or is taken in the proxy. */
async function parseHostnames(tx: Tx, next: Pick<ProxySite, 'id' | 'proxy_id' | 'hostnames' | 'path'>) {
  const parsed = next.hostnames.map(parseSiteName)
  const wrong = parsed.flatMap((name, index) => (name === null ? [[`hostnames.${index}`, words('site_hostname')]] : []))
  if (wrong.length > 0) throw invalid(Object.fromEntries(wrong))
  const names = parsed.flatMap(name => name ?? [])
  const others = await tx.db.execute<{ name: string }>(sql`
    select unnest(hostnames) as name from proxy_sites
    where proxy_id = ${next.proxy_id} and id <> ${next.id} and deleted_at is null and path = ${next.path}
      and hostnames && array(select jsonb_array_elements_text(${JSON.stringify(names)}::jsonb))`)
  const known = new Set(others.map(({ name }) => name))
  const taken = names.flatMap((name, index) =>
    known.has(name) || names.indexOf(name) < index ? [[`hostnames.${index}`, words('site_hostname_taken')]] : [],
  )
  if (taken.length > 0) throw invalid(Object.fromEntries(taken))
  return names
}

/** The name of a site that was given none: its first host name, with its path. */
export const usualSiteName = (hostname: string, path: string): string =>
  `${hostname}${path === '/' ? '' : path}`.slice(0, 240)

/** The usual name; with a number behind where the proxy has a site of that name. */
async function usualName(tx: Tx, { id, proxy_id, path }: ProxySite, hostname: string): Promise<string> {
  const base = usualSiteName(hostname, path)
  const rows = await tx.db.execute<{ name: string }>(sql`
    select lower(name) as name from proxy_sites where proxy_id = ${proxy_id} and id <> ${id} and deleted_at is null`)
  const taken = new Set(rows.map(({ name }) => name))
  let name = base
  for (let number = 2; taken.has(name.toLowerCase()); number++) name = `${base} (${number})`
  return name
}

/** Throws 422 for an upstream or a certificate that the company does not have. */
async function refuseUnknown(editor: Editor, db: Executor, before: ProxySite | null, next: ProxySite): Promise<void> {
  const { upstream_kind: kind, upstream_id: id, certificate_id } = next
  if (certificate_id !== null && !editor.hub.kinds.has('certificate'))
    throw invalidField('certificate_id', 'unknown_reference')
  if (kind === null || (before?.upstream_kind === kind && before.upstream_id === id)) return
  const info = editor.hub.kinds.get(kind)
  const [found] = info
    ? await db.execute(sql`
        select id from ${sql.identifier(info.table)}
        where company_id = ${editor.companyId} and id = ${id} and deleted_at is null for key share`)
    : []
  if (!found) throw invalidField('upstream.id', 'unknown_reference')
}

async function beforeWrite({ tx, editor, before, next, given }: Write<ProxySite>): Promise<void> {
  const proxy = await lockProxy(tx, next.company_id, next.proxy_id)
  refuseForward(proxy, 'sites')
  next.hostnames = await parseHostnames(tx, next)
  if (next.name === '') next.name = await usualName(tx, next, next.hostnames[0] ?? '')
  await refuseUnknown(editor, tx.db, before, next)
  const hadCertificate = (before?.certificate_id ?? null) !== null
  const hasCertificate = next.certificate_id !== null
  if (!given.has('redirect_https') && given.has('certificate_id') && hadCertificate !== hasCertificate)
    next.redirect_https = hasCertificate
  const isProbed = next.enabled && proxy.enabled
  if (before === null || before.enabled !== next.enabled)
    next.probe_until = !isProbed ? NEVER_PROBED : proxy.check_interval_seconds > 0 ? new Date(editor.hub.now()) : null
  // What was seen speaks for the site as it was.
  if (before && (isProbedOtherwise(before, next) || !next.enabled))
    Object.assign(next, { state: 'unknown', result: null })
}

const probedAs = (site: ProxySite): string => JSON.stringify([site.hostnames, site.check, site.certificate_id])
const isProbedOtherwise = (before: ProxySite, next: ProxySite): boolean => probedAs(before) !== probedAs(next)

type Written = {
  readonly tx: Tx
  readonly editor: Editor
  readonly before: ProxySite | null
  readonly after: ProxySite | null
}

const servedAs = (site: ProxySite | null): string =>
  JSON.stringify([site?.certificate_id ?? null, site?.hostnames[0], site?.enabled])

async function afterWrite({ tx, editor, before, after }: Written): Promise<void> {
  const site = after ?? before
  if (site && (!after || servedAs(before) !== servedAs(after)))
    await linkCertificates(tx, editor, site.proxy_id, site.id)
  if (!after) return
  if (!before || isProbedOtherwise(before, after))
    await tx.db.execute(sql`update proxies set next_check_at = now() where id = ${after.proxy_id}`)
  if (!after.enabled) await setConditions(tx, proxySiteKind.info, after.company_id, [after.id], SITE_CODES, new Map())
}

/** The records of its host names. */
async function deriveRecords(
  db: Executor,
  { companyId }: { readonly companyId: string },
  rows: readonly ProxySite[],
): Promise<Map<string, Values>> {
  const records = await recordsOfHosts(
    db,
    companyId,
    rows.flatMap(row => row.hostnames),
  )
  return new Map(
    rows.map(row => [row.id, { dns_records: row.hostnames.flatMap(hostname => records.get(hostname) ?? []) }]),
  )
}

export const proxySiteKind = defineKind({
  kind: 'proxy_site',
  title: { one: { en: 'site', vi: 'trang' }, many: { en: 'sites', vi: 'trang' } },
  group: proxyKind.group,
  path: '/proxies/:proxy/sites',
  parameter: 'site',
  table: 'proxy_sites',
  schemaName: 'ProxySite',
  fields,
  parent: { of: proxyKind, column: 'proxy_id' },
  references: [{ field: 'upstream', to: null, column: 'upstream_id', kindColumn: 'upstream_kind' }],
  limit: 500,
  permissions: { view: 'proxies.view', manage: 'proxies.manage' },
  filters: table => ({
    hostname: filter(
      text(255),
      value => sql`${columnNamed(table, 'hostnames')} @> array[${parseSiteName(value) ?? value}]::text[]`,
    ),
  }),
  conditions: {
    site_failing: {
      severity: 'critical',
      text: { en: 'the site {host} fails: {error}', vi: 'trang {host} bị lỗi: {error}' },
    },
    dns_elsewhere: {
      severity: 'warning',
      text: {
        en: '{host} leads to {resolves_to}, not to this proxy',
        vi: '{host} trỏ tới {resolves_to}, không phải proxy này',
      },
    },
    wrong_certificate: {
      severity: 'warning',
      text: {
        en: '{host} serves another certificate than the one that is bound: {fingerprint}',
        vi: '{host} dùng chứng chỉ khác với chứng chỉ đã gắn: {fingerprint}',
      },
    },
  },
  derived: { list: { dns_records: recordLinks() } },
  iac: null,
  csv: null,
  hooks: { beforeWrite, afterWrite, derive: deriveRecords },
  without: ['show'],
})

// A certificate: one purpose ("the shop's certificate") whose leaf is replaced again and again (R-029). Its fields show
// the newest leaf that was uploaded or seen where it is served; the ones before are versions. Never a private key.
import { isDeepStrictEqual } from 'node:util'
import { Type } from '@sinclair/typebox'
import { gte, lte, sql } from 'drizzle-orm'
import {
  boolean as booleanColumn,
  integer as integerColumn,
  jsonb,
  text as textColumn,
  timestamp,
} from 'drizzle-orm/pg-core'
import { parseHostName } from '../../../core/dns/domain-name.ts'
import type { Unchecked } from '../../../core/json-object.ts'
import { parseAddress } from '../../../core/network/ip-address.ts'
import type { Executor } from '../platform/db/connect.ts'
import { likePattern } from '../platform/db/page-of-rows.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'
import { filter } from '../platform/http/collection.ts'
import {
  boolean,
  faultsError,
  instant,
  integer,
  listOf,
  oneOf,
  optional,
  scope,
  text,
} from '../platform/http/request-schema.ts'
import { id as idSchema, listed, named, nullable, string, time, wordOf } from '../platform/http/response-schema.ts'
import { refuseTarget } from '../platform/outbound-guard.ts'
import { type Editor, hubEditor } from '../resources/editor.ts'
import {
  booleanField,
  choiceField,
  columnField,
  compositeField,
  type Field,
  integerField,
  internalField,
  textField,
  textsField,
  timeField,
  type Values,
} from '../resources/field.ts'
import { columnNamed, defineKind, type RowOf, type Table, type Write } from '../resources/kind.ts'
import { startRun } from '../resources/runs.ts'
import { scopeFaults, toScope } from '../scopes/scope.ts'
import { certificateConditions } from './certificate-conditions.ts'
import { certificateStates, daysLeft, STATE_SQL, stateOf } from './certificate-state.ts'
import { type Chain, normalPem, pemFault, readChain } from './chain.ts'
import { deploymentsOf, keepEndpoint } from './deployments.ts'
import { type Endpoint, endpointFault, endpointForm, endpointResponse, normalEndpoint } from './endpoint.ts'
import { namesOf, normalHost, wildcardOf } from './good-for-host.ts'
import { keepMonitorChecks, monitorCheckIds } from './monitor-checks.ts'
import { presentRenewal, type Renewal, renewalResponse } from './renewal.ts'
import {
  hostnameProblemsOf,
  type KeptChain,
  keptChain,
  rootsOf,
  storeJudgement,
  usualWarnDays,
} from './store-judgement.ts'
import { lastVersions, revocationsOf, storeVersion, versionResponse } from './versions.ts'

const PEM_CHARS_MAX = 65_536
const HOSTNAMES_MAX = 100
const KEPT = { readOnly: true, manifest: false } as const

const fieldOfPem: Field<{ readonly column: string | null }> = {
  ...columnField<string | null>(name => textColumn(name), text(PEM_CHARS_MAX), Type.String(), {
    check: (pem: string) => {
      const fault = pemFault(pem)
      return fault === null ? null : words(`pem_${fault}`)
    },
    inManifest: { show: row => row.pem, normal: pem => (typeof pem === 'string' ? normalPem(pem) : pem) },
  }),
  response: () => ({}),
  show: () => ({}),
}

/** The schema names what is no text. */
const isHostname = (name: unknown): boolean =>
  typeof name !== 'string' || parseAddress(name) !== null || parseHostName(name.replace(/^\*\./, '')) !== null

const chainShown = named('CertificateChain', {
  complete: Type.Boolean(),
  trusted: Type.Boolean(),
  order_fixed: Type.Boolean(),
  expires_first: nullable(named('FirstToExpire', { subject: string(), not_after: time() })),
  problems: listed(wordOf(['unrelated_certificate', 'incomplete', 'untrusted_root', 'intermediate_expired'])),
})
type Monitor = { readonly enabled: boolean; readonly scope: Unchecked | null }
const monitorForm = () => Type.Object({ enabled: boolean(), scope: optional(scope()) })
const monitorShown = named('CertificateMonitor', {
  enabled: Type.Boolean(),
  scope: nullable(Type.Record(Type.String(), Type.Unknown())),
})

const kept = (max: number, more: { readonly search?: 'exact' | 'text' } = {}) => textField(max, { ...KEPT, ...more })

const fields = {
  source: choiceField(['uploaded', 'observed'], { fallback: 'observed', filter: true, ...KEPT }),
  pem: fieldOfPem,
  endpoint: compositeField<{ readonly endpoint: Endpoint | null }>({
    value: endpointForm,
    nullable: true,
    columns: { endpoint: jsonb('endpoint') },
    response: nullable(endpointResponse),
    check: (given: Endpoint) => {
      const fault = endpointFault(given)
      return fault && new Map([[fault.field, fault.text]])
    },
    normal: normalEndpoint,
    store: value => ({ endpoint: value }),
    show: ({ endpoint }) => endpoint,
  }),
  hostnames: {
    ...textsField(253, HOSTNAMES_MAX, {
      check: (names: readonly unknown[]) =>
        new Map(names.flatMap((name, index) => (isHostname(name) ? [] : [[`${index}`, words('host_or_address')]]))),
      normal: (names: readonly string[]) => [...new Set(names.map(normalHost))],
    }),
  },
  renew_before_days: integerField(1, 365, { fallback: 30 }),
  warn_days: columnField<number[] | null>(
    name => integerColumn(name).array(),
    listOf(integer(0, 365), 10, 1),
    Type.Array(Type.Integer()),
    { normal: (days: readonly number[]) => [...new Set(days)].sort((a, b) => b - a) },
  ),
  auto_renewed: booleanField({ fallback: false }),
  monitor: compositeField<{ readonly monitor: Monitor }>({
    value: monitorForm(),
    fallback: { enabled: false, scope: null },
    columns: { monitor: jsonb('monitor').notNull() },
    response: monitorShown,
    normal: ({ enabled, scope: given = null }: Partial<Monitor>) => ({ enabled: enabled === true, scope: given }),
    store: value => ({ monitor: value }),
    show: ({ monitor }) => monitor,
  }),
  subject: kept(4096, { search: 'exact' }),
  issuer: kept(4096),
  serial: kept(64, { search: 'exact' }),
  fingerprint_sha256: kept(64, { search: 'exact' }),
  common_name: internalField<string | null>(name => textColumn(name), null),
  sans: textsField(253, 10_000, { ...KEPT, search: 'text' }),
  key_type: { ...kept(64), filter: true as const },
  signature_algorithm: kept(64),
  not_before: timeField(KEPT),
  not_after: timeField({ ...KEPT, sort: true }),
  self_signed: columnField<boolean | null>(name => booleanColumn(name), boolean(), Type.Boolean(), KEPT),
  chain: columnField<KeptChain | null>(name => jsonb(name), Type.Unknown(), chainShown, KEPT),
  revoked_at: timeField(KEPT),
  renewal: internalField<Renewal | null>(name => jsonb(name), null),
  judge_at: internalField<Date | null>(
    name => timestamp(name, { withTimezone: true, precision: 3, mode: 'date' }),
    null,
  ),
} as const

export type Certificate = RowOf<typeof fields>
type Asker = Pick<Editor, 'hub' | 'companyId'>

/** The columns that a leaf and its chain become. */
const columnsOf = (chain: Chain) => ({
  subject: chain.leaf.subject,
  issuer: chain.leaf.issuer,
  serial: chain.leaf.serial,
  fingerprint_sha256: chain.leaf.fingerprint,
  common_name: chain.leaf.commonName,
  sans: [...chain.leaf.sans],
  key_type: chain.leaf.keyType,
  signature_algorithm: chain.leaf.signatureAlgorithm,
  not_before: chain.leaf.notBefore,
  not_after: chain.leaf.notAfter,
  self_signed: chain.leaf.selfSigned,
  chain: keptChain(chain),
})

/** The chain of a PEM text by the roots of a company. Throws 422. */
export async function chainOfPem({ hub, companyId }: Asker, db: Executor, pem: string): Promise<Chain> {
  const chain = readChain(pem, await rootsOf(hub, db, companyId), new Date(hub.now()))
  if (typeof chain === 'string') throw invalidField('pem', `pem_${chain}`)
  return chain
}

/** The fields of the leaf of a PEM text. The newest leaf counts, so an older one takes no place. */
async function takeLeaf({ tx, editor, before, next }: Write<Certificate>, pem: string): Promise<void> {
  const chain = await chainOfPem(editor, tx.db, pem)
  const { notBefore, fingerprint } = chain.leaf
  if (before?.not_before && notBefore < before.not_before) throw invalidField('pem', 'certificate_older')
  const isFirst = next.fingerprint_sha256 === null
  const revoked = await revocationsOf(tx.db, next.id)
  Object.assign(next, columnsOf(chain), { pem: chain.pem, revoked_at: revoked.get(fingerprint) ?? null })
  if (!isFirst || next.hostnames.length > 0) return
  // A certificate may say what is no host, `DNS:a b` or a common name of words: nothing is to be good for it.
  const hosts = namesOf(chain.leaf).filter(isHostname).map(normalHost)
  next.hostnames = [...new Set(hosts)].slice(0, HOSTNAMES_MAX)
}

async function beforeWrite(write: Write<Certificate>): Promise<void> {
  const { tx, editor, before, next, given } = write
  const { hub, companyId } = editor
  // The database keeps the members of an object in another order.
  if (isDeepStrictEqual(next.endpoint, before?.endpoint)) next.endpoint = before?.endpoint ?? null
  else if (given.has('endpoint') && next.endpoint) await refuseTarget(hub.config, 'endpoint.host', next.endpoint.host)
  if (next.pem !== null && next.pem !== before?.pem) await takeLeaf(write, next.pem)
  if (before === null && given.has('pem') && next.pem !== null) next.source = 'uploaded'
  // What an answer showed can be sent back: the stages of the setting are not made the certificate's own.
  if (given.has('warn_days') && before?.warn_days == null) {
    const usual = await usualWarnDays(hub, tx.db, companyId)
    if (JSON.stringify(next.warn_days) === JSON.stringify(usual)) next.warn_days = null
  }
  if (given.has('monitor')) next.monitor = await validMonitor(tx, companyId, before?.monitor ?? null, next.monitor)
}

/** Throws 422. */
async function validMonitor(tx: Tx, companyId: string, before: Monitor | null, { enabled, scope: given }: Monitor) {
  const isEmpty = !enabled && given === null
  const scope = isEmpty ? null : toScope(given ?? {})
  const faults = scope === null ? new Map() : await scopeFaults(tx.db, companyId, scope, toScope(before?.scope ?? {}))
  if (faults.size > 0) throw faultsError(new Map([...faults].map(([field, text]) => [`monitor.${field}`, text])))
  const monitor = { enabled, scope }
  return before !== null && isDeepStrictEqual(monitor, before) ? before : monitor
}

async function afterWrite({
  tx,
  editor,
  before,
  after,
}: {
  readonly tx: Tx
  readonly editor: Write<Certificate>['editor']
  readonly before: Certificate | null
  readonly after: Certificate | null
}): Promise<void> {
  const isMonitored = after?.monitor.enabled || before?.monitor.enabled
  if (after === null && before !== null && isMonitored) await keepMonitorChecks(tx, editor, before.id, null)
  if (after === null) return
  const { hub, companyId, userId } = editor
  if (after.pem !== null && after.pem !== before?.pem)
    await storeVersion(tx, {
      companyId,
      certificateId: after.id,
      chain: await chainOfPem(editor, tx.db, after.pem),
      source: 'uploaded',
      userId,
    })
  const isNew = await keepEndpoint(tx, after, before?.endpoint ?? null, after.endpoint, userId)
  if (isNew) await startRun(tx, hubEditor(hub, companyId), certificateKind, after, 'check')
  if (isMonitored) await keepMonitorChecks(tx, editor, after.id, after)
  await storeJudgement(tx, hub, certificateKind.info, companyId, after.id)
}

async function deriveCertificates(
  db: Executor,
  { hub, companyId }: { readonly hub: Write<Certificate>['editor']['hub']; readonly companyId: string },
  rows: readonly Certificate[],
): Promise<Map<string, Values>> {
  const ids = rows.map(row => row.id)
  const now = new Date(hub.now())
  const [versions, deployments, usual, checkIds] = await Promise.all([
    lastVersions(db, ids),
    deploymentsOf(db, companyId, ids).then(all => Map.groupBy(all, place => place.certificate_id)),
    usualWarnDays(hub, db, companyId),
    monitorCheckIds(db, companyId, ids),
  ])
  return new Map(
    rows.map(row => {
      const { id, fingerprint_sha256: fingerprint, not_before: notBefore, not_after: notAfter, renewal } = row
      const places = deployments.get(id) ?? []
      const names = { sans: row.sans, commonName: row.common_name, hostnames: row.hostnames }
      const derived = {
        warn_days: row.warn_days ?? usual,
        days_left: daysLeft(notAfter, now),
        state: stateOf({ notBefore, notAfter, revoked: row.revoked_at !== null }, row.renew_before_days, now),
        hostname_problems: fingerprint === null ? [] : hostnameProblemsOf(names, places),
        deployments_count: places.length,
        check_ids: checkIds.get(id) ?? [],
        versions: (versions.get(id) ?? []).map(({ certificate_id: _, ...version }) => version),
        renewal: renewal && presentRenewal(renewal, fingerprint, places),
      }
      return [id, derived]
    }),
  )
}

/** Certificates that are good for a host, by their names, or by the common name where they have none. */
function goodFor(table: Table, host: string) {
  const wanted = normalHost(host)
  const names = [wanted, wildcardOf(wanted) ?? wanted]
  const list = sql`array[${sql.join(
    names.map(name => sql`${name}`),
    sql`, `,
  )}]::text[]`
  const sans = columnNamed(table, 'sans')
  return sql`(${sans} && ${list} or (cardinality(${sans}) = 0 and lower(${columnNamed(table, 'common_name')}) = any(${list})))`
}

/** Certificates that are served at a place: a host, or host and port. */
const servedAt = (table: Table, endpoint: string) => {
  const [, bracketed, plain, port = null] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(endpoint) ?? []
  const host = normalHost(bracketed ?? plain ?? endpoint)
  return sql`${table.id} in (select d.certificate_id from certificate_deployments d
    where d.company_id = ${table.company_id} and d.host = ${host} and (${port}::int is null or d.port = ${port}::int))`
}

export const certificateKind = defineKind({
  kind: 'certificate',
  title: { one: { en: 'certificate', vi: 'chứng chỉ' }, many: { en: 'certificates', vi: 'chứng chỉ' } },
  buttons: { check: 'view', renew: 'manage' },
  group: 'SSL certificates',
  groupText: 'What expires when, and where an old one is still served.',
  path: '/certificates',
  parameter: 'certificate',
  table: 'certificates',
  schemaName: 'Certificate',
  fields,
  limit: 10_000,
  permissions: { view: 'certificates.view', manage: 'certificates.manage' },
  filters: table => ({
    state: filter(oneOf(certificateStates), value => sql`(${STATE_SQL}) = ${value}`),
    issuer: filter(text(255), value => sql`lower(${columnNamed(table, 'issuer')}) like lower(${likePattern(value)})`),
    expires_before: filter(instant(), value => lte(columnNamed(table, 'not_after'), new Date(value))),
    expires_after: filter(instant(), value => gte(columnNamed(table, 'not_after'), new Date(value))),
    hostname: filter(text(253), value => goodFor(table, value)),
    endpoint: filter(text(260), value => servedAt(table, value)),
  }),
  sorts: table => ({ name: sql`lower(${columnNamed(table, 'name')})`, days_left: columnNamed(table, 'not_after') }),
  derived: {
    list: {
      warn_days: Type.Array(Type.Integer()),
      days_left: nullable(Type.Integer()),
      state: wordOf(certificateStates),
      hostname_problems: listed(string()),
      deployments_count: Type.Integer(),
      check_ids: listed(idSchema()),
      versions: listed(versionResponse),
      renewal: nullable(renewalResponse),
    },
  },
  conditions: certificateConditions,
  iac: { kind: 'certificate', order: 3, key: ['name'] },
  csv: { key: ['name'] },
  hooks: {
    missing: ({ pem, endpoint }) => (pem == null && endpoint == null ? ['pem', words('certificate_source')] : null),
    beforeWrite,
    afterWrite,
    derive: deriveCertificates,
  },
})

// A virtual server: what clients reach on a load balancer, and the pools that it leads to.
import { Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import { uuid as uuidColumn } from 'drizzle-orm/pg-core'
import { parseRuleHost } from '../../../core/load-balancing/config-text.ts'
import { virtualServerStates } from '../../../core/load-balancing/state-names.ts'
import { normalAddress } from '../../../core/network/cidr.ts'
import { isSitePath } from '../../../core/proxies/site-fields.ts'
import { addressFault } from '../network/subnet.ts'
import type { Executor } from '../platform/db/connect.ts'
import { type Tx, uuidList } from '../platform/db/transaction.ts'
import { invalid, invalidField } from '../platform/http/api-error.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { filter } from '../platform/http/collection.ts'
import { oneOf, optional, text, uuid } from '../platform/http/request-schema.ts'
import { id, nullable, wordOf } from '../platform/http/response-schema.ts'
import { addressesNamed } from '../resources/address-links.ts'
import type { Editor } from '../resources/editor.ts'
import {
  booleanField,
  choiceField,
  columnField,
  integerField,
  internalField,
  objectsField,
  referenceField,
  referencesField,
  textField,
  type Values,
} from '../resources/field.ts'
import { columnNamed, defineKind, type RowOf, type Write } from '../resources/kind.ts'
import { protocols } from './lb-pool.ts'
import { loadBalancerKind } from './load-balancer.ts'
import { isInState } from './member-states.ts'
import { virtualServerStatesSql } from './pool-states.ts'

const RULES_MAX = 50

/** The first one that matches decides; one without host and path matches everything. */
type Rule = { readonly host: string | null; readonly path_prefix: string | null; readonly pool_id: string }
const ruleSchema = Type.Object({
  host: optional(text(253)),
  path_prefix: optional(text(1024)),
  pool_id: uuid(),
})

function rulesFaults(rules: readonly Partial<Rule>[]): ReadonlyMap<string, Words> {
  const faults = new Map<string, Words>()
  for (const [index, { host, path_prefix }] of rules.entries()) {
    if (typeof host === 'string' && host !== '' && parseRuleHost(host) === null)
      faults.set(`${index}.host`, words('host_or_address'))
    if (typeof path_prefix === 'string' && path_prefix !== '' && !isSitePath(path_prefix))
      faults.set(`${index}.path_prefix`, words('site_path'))
  }
  return faults
}
const normalRules = (rules: readonly Partial<Rule>[]) =>
  rules.map(({ host, path_prefix, pool_id }) => ({
    host: host ? (parseRuleHost(host) ?? host) : null,
    path_prefix: path_prefix || null,
    pool_id,
  }))

const fields = {
  address: textField(64, { required: true, search: 'exact', check: addressFault, normal: normalAddress }),
  port: integerField(1, 65_535, { required: true }),
  protocol: choiceField(protocols, { fallback: 'http', filter: true }),
  pool_id: referenceField('lb_pool', {}),
  rules: {
    ...objectsField<Rule>(ruleSchema, RULES_MAX, { check: rulesFaults, normal: normalRules }),
    store: (value: unknown) => ({
      rules: value,
      rule_pool_ids: Array.isArray(value) ? [...new Set(value.map(rule => String(rule.pool_id)))] : [],
    }),
  },
  rule_pool_ids: internalField<string[]>(name => uuidColumn(name).array().notNull(), []),
  certificate_ids: referencesField('certificate', 20, {}),
  enabled: booleanField({ fallback: true, filter: true }),
  device_id: columnField<string>(name => uuidColumn(name), uuid(), id(), {
    required: true,
    readOnly: true,
    manifest: false,
  }),
} as const

type VirtualServer = RowOf<typeof fields>

/** Throws 422 for a pool of another device, and one that is not there. */
async function refuseForeignPools(tx: Tx, { device_id, pool_id, rules }: VirtualServer): Promise<void> {
  const wanted = [
    ...(pool_id === null ? [] : [{ field: 'pool_id', poolId: pool_id }]),
    ...rules.map((rule, index) => ({ field: `rules.${index}.pool_id`, poolId: rule.pool_id })),
  ]
  if (wanted.length === 0) return
  // Who deletes a device locks it before its pools.
  await tx.db.execute(sql`select 1 from load_balancers where id = ${device_id} for key share`)
  const rows = await tx.db.execute<{ id: string; device_id: string }>(sql`
    select id, device_id from lb_pools where id = any(${uuidList(wanted.map(({ poolId }) => poolId))}::uuid[])
      and company_id = (select company_id from load_balancers where id = ${device_id}) and deleted_at is null for key share`)
  const devices = new Map(rows.map(row => [row.id, row.device_id]))
  const faults = wanted.flatMap(({ field, poolId }): [string, Words][] => {
    const device = devices.get(poolId)
    if (device === device_id) return []
    return [[field, words(device === undefined ? 'unknown_reference' : 'lb_other_device')]]
  })
  if (faults.length > 0) throw invalid(Object.fromEntries(faults))
}

async function beforeWrite({ tx, next }: Write<VirtualServer>): Promise<void> {
  await refuseForeignPools(tx, next)
  if (next.protocol !== 'https' && next.certificate_ids.length > 0)
    throw invalidField('certificate_ids', 'lb_https_only')
}

async function deriveVirtualServers(
  db: Executor,
  { hub, companyId }: Pick<Editor, 'hub' | 'companyId'>,
  rows: readonly VirtualServer[],
): Promise<Map<string, Values>> {
  const ids = uuidList(rows.map(row => row.id))
  const states = await db.execute<{ id: string; state: string }>(
    virtualServerStatesSql(hub, sql`v.id = any(${ids}::uuid[])`),
  )
  const stateOf = new Map(states.map(row => [row.id, row.state]))
  const registered = await addressesNamed(
    db,
    companyId,
    rows.map(row => row.address),
  )
  return new Map(
    rows.map(row => [
      row.id,
      { state: stateOf.get(row.id) ?? 'unknown', ip_address_id: registered.get(row.address)?.id ?? null },
    ]),
  )
}

export const virtualServerKind = defineKind({
  kind: 'virtual_server',
  title: { one: { en: 'virtual server', vi: 'máy chủ ảo' }, many: { en: 'virtual servers', vi: 'máy chủ ảo' } },
  group: loadBalancerKind.group,
  path: '/load-balancers/:device/virtual-servers',
  parameter: 'vs',
  table: 'virtual_servers',
  schemaName: 'VirtualServer',
  fields,
  parent: { of: loadBalancerKind, column: 'device_id' },
  uniqueness: { virtual_servers_port: 'port' },
  // A pool that a rule names is in use too; that it is there is asked beside the device it belongs to.
  references: [
    { field: 'rules', to: 'lb_pool', column: 'rule_pool_ids', isList: true },
    { field: 'address', to: 'ip_address', column: 'address', isAddress: true },
  ],
  addressColumns: ['address'],
  limit: 500,
  permissions: loadBalancerKind.info.permissions,
  filters: table => ({
    name: filter(text(255), value => sql`lower(${columnNamed(table, 'name')}) = lower(${value})`),
    state: filter(oneOf(virtualServerStates), (value, { hub }) =>
      isInState(virtualServerStatesSql(hub, sql`v.id = virtual_servers.id`), value),
    ),
    pool_id: filter(
      uuid(),
      value => sql`(${columnNamed(table, 'pool_id')} = ${value}
        or ${columnNamed(table, 'rule_pool_ids')} @> array[${value}]::uuid[])`,
    ),
    certificate_id: filter(uuid(), value => sql`${columnNamed(table, 'certificate_ids')} @> array[${value}]::uuid[]`),
  }),
  derived: { list: { state: wordOf(virtualServerStates), ip_address_id: nullable(id()) } },
  iac: null,
  csv: null,
  without: ['show'],
  hooks: { beforeWrite, derive: deriveVirtualServers },
})

// A connection (group 3 of the catalogue): a source that needs a target.
import { sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import { recordLinks, recordsOfHosts } from '../dns/record-links.ts'
import type { Executor } from '../platform/db/connect.ts'
import { invalidField } from '../platform/http/api-error.ts'
import { filter } from '../platform/http/collection.ts'
import { faultsError } from '../platform/http/request-schema.ts'
import { refuseTarget } from '../platform/outbound-guard.ts'
import { columnNamed, defineKind, type Kind, type Table, type Write, type Written } from '../resources/kind.ts'
import { referenceFaults } from '../resources/references.ts'
import { type Connection, connectionFields, isHttp, NAME_MAX } from './connection-fields.ts'
import { judgeConnections } from './connection-state.ts'
import { type Node, nodeKey, nodeOfKey, nodeReferences, sourceOf, targetOf } from './node.ts'
import { nodeName } from './node-lookup.ts'
import { nodeInfos } from './node-state.ts'
import { hostOfTarget, keepCheck, removeOwnCheck } from './probe-check.ts'

const LONG_AGO = new Date(0)
type Next = Write<Connection>['next']

/** `<source> to <target>[:port]`; one that is taken gets a number (R-077). */
async function usualName({ tx, editor, next }: Pick<Write<Connection>, 'tx' | 'editor' | 'next'>): Promise<string> {
  const nameOf = (node: Node) => nodeName({ kinds: editor.hub.kinds, db: tx.db, companyId: next.company_id }, node)
  const ends = [await nameOf(sourceOf(next)), await nameOf(targetOf(next))]
  const name = `${ends.map(each => each ?? '').join(' to ')}${next.port === null ? '' : `:${next.port}`}`
  const isTaken = async (candidate: string): Promise<boolean> => {
    const rows = await tx.db.execute(sql`
      select 1 from connections where company_id = ${next.company_id} and lower(name) = lower(${candidate})
        and deleted_at is null and id <> ${next.id}`)
    return rows.length > 0
  }
  for (let number = 1; ; number++) {
    const suffix = number === 1 ? '' : ` (${number})`
    const candidate = `${name.slice(0, NAME_MAX - suffix.length)}${suffix}`
    if (!(await isTaken(candidate))) return candidate
  }
}

/** What the fields are not to one another. Throws 422. */
function refuseMisfits({ before, next, given }: Write<Connection>): void {
  if (next.source_key === next.target_key) throw invalidField('target', 'node_same')
  if (isHttp(next)) next.path ??= '/'
  else if (given.has('path') && next.path !== null && next.path !== '/' && next.path !== before?.path)
    throw invalidField('path', 'http_only')
  else next.path = null
  if (next.probe_by === 'none') return
  if (next.protocol === 'udp') throw invalidField('probe.by', 'probe_udp')
  if (next.port === null) throw invalidField('port', 'required')
  if (next.probe_by === 'agent' && next.source_kind !== 'server') throw invalidField('probe.by', 'probe_server')
}

/**
 * A manifest with the path that is kept of what it says: the path of http has a default, that of others is none. One
 * that is refused stays as it is.
 */
function withKeptPath(spec: Unchecked): Unchecked {
  const { protocol, path } = spec
  if (protocol === undefined || path === undefined) return spec
  const isWeb = protocol === 'http' || protocol === 'https'
  return { ...spec, path: isWeb ? (path ?? '/') : path === '/' ? null : path }
}

/** What is looked at has changed: what earlier tests said is no word on it. */
function forgetTests(before: Connection, next: Next): void {
  const isSame = before.protocol === next.protocol && before.port === next.port && before.path === next.path
  if (isSame && before.probe_by === next.probe_by) return
  next.failed_tests = 0
  next.up_until = null
  next.tested_at = null
}

/** What the hub is to look at has an address that it may connect to. Throws 422. */
async function refuseUnreachable({ tx, editor, before, next }: Write<Connection>): Promise<void> {
  if (next.probe_by !== 'hub' || before?.probe_by === 'hub') return
  await refuseTarget(editor.hub.config, 'target', await hostOfTarget(tx, editor, next))
}

async function beforeWrite(write: Write<Connection>): Promise<void> {
  const { tx, editor, before, next } = write
  refuseMisfits(write)
  const unknown = await referenceFaults(editor, tx, connectionKind.info, before, next)
  if (unknown.size > 0) throw faultsError(unknown)
  await refuseUnreachable(write)
  if (next.name === '') next.name = await usualName(write)
  if (before) forgetTests(before, next)
  next.state_since ??= new Date(editor.hub.now())
  if (next.probe_by === 'none') next.probe_until = null
  // Until it is tested nothing speaks for one that is to be tested.
  else if (before === null || before.probe_by === 'none') next.probe_until = LONG_AGO
  await keepCheck(tx, editor, before, next)
}

async function afterWrite({ tx, editor, before, after }: Written<Connection>): Promise<void> {
  if (after) await judgeConnections(tx, connectionKind.info, after.company_id, [after.id])
  else if (before) await removeOwnCheck(tx, editor, before)
}

/** Both ends with their names and states; of one connection also the records of an external host. */
async function derive(
  db: Executor,
  asker: Parameters<typeof nodeInfos>[0] & { readonly companyId: string },
  rows: readonly Connection[],
  isShow: boolean,
) {
  const hosts = isShow ? rows.flatMap(row => (row.target_kind === 'external' ? (row.target_name ?? []) : [])) : []
  const records = await recordsOfHosts(db, asker.companyId, hosts)
  const infos = await nodeInfos(
    asker,
    rows.flatMap(row => [sourceOf(row), targetOf(row)]),
  )
  const shown = ({ kind, id, name, key }: ReturnType<typeof sourceOf>) => {
    const info = infos.get(key)
    return {
      kind,
      id,
      name: info?.name ?? '',
      host: kind === 'external' ? name : null,
      state: info?.state ?? 'unknown',
    }
  }
  return new Map(
    rows.map(row => {
      const ends = { source: shown(sourceOf(row)), target: shown(targetOf(row)) }
      return [row.id, isShow ? { ...ends, dns_records: records.get(row.target_name ?? '') ?? [] } : ends]
    }),
  )
}

const end = (table: Table, side: 'source' | 'target') => columnNamed(table, `${side}_key`)

export const connectionKind: Kind<Connection> = defineKind({
  kind: 'connection',
  title: { one: { en: 'connection', vi: 'kết nối' }, many: { en: 'connections', vi: 'kết nối' } },
  buttons: { test: 'manage' },
  group: 'Connections',
  groupText: 'Who needs whom: connections between servers, devices and services, and what fails with a node.',
  path: '/connections',
  parameter: 'connection',
  table: 'connections',
  schemaName: 'Connection',
  fields: connectionFields,
  uniqueness: { connections_ends: 'target' },
  references: nodeReferences,
  limit: 20_000,
  permissions: { view: 'connections.view', manage: 'connections.manage' },
  filters: table => ({
    node: filter(nodeKey(), key => {
      const node = nodeOfKey('node', key).key
      return sql`(${end(table, 'source')} = ${node} or ${end(table, 'target')} = ${node})`
    }),
    source: filter(nodeKey(), key => sql`${end(table, 'source')} = ${nodeOfKey('source', key).key}`),
    target: filter(nodeKey(), key => sql`${end(table, 'target')} = ${nodeOfKey('target', key).key}`),
  }),
  derived: { show: { dns_records: recordLinks() } },
  conditions: {
    connection_down: {
      severity: 'critical',
      text: { en: '{name} does not answer', vi: '{name} không trả lời' },
    },
  },
  iac: { kind: 'connection', order: 9, key: [], normal: withKeptPath },
  csv: {
    key: ['source', 'target', 'protocol', 'port', 'path'],
    // The path of http has a default, that of others is none.
    normal: values => {
      const isWeb = values.protocol === 'http' || values.protocol === 'https'
      return { ...values, path: isWeb ? (values.path ?? '/') : null }
    },
  },
  hooks: { beforeWrite, afterWrite, derive },
})

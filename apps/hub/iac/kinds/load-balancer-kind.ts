// Load balancers in manifests: the fields of the device as of every kind of the registry, and beside them all of its
// pools, with all of their members, and all of its virtual servers, by name. Whether a member is drained is no part of
// it: a manifest that is applied again must not undo what operators do.
import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import { and, isNull, sql } from 'drizzle-orm'
import { assert } from '../../../../core/assert.ts'
import { isObject, type Unchecked } from '../../../../core/json-object.ts'
import { lbMemberKind } from '../../load-balancers/lb-member.ts'
import { lbPoolKind } from '../../load-balancers/lb-pool.ts'
import { loadBalancerKind } from '../../load-balancers/load-balancer.ts'
import { virtualServerKind } from '../../load-balancers/virtual-server.ts'
import { isAnyOf } from '../../platform/db/transaction.ts'
import { ApiError } from '../../platform/http/api-error.ts'
import type { Words } from '../../platform/http/api-texts.ts'
import { listOf, optional, text } from '../../platform/http/request-schema.ts'
import { editorOf } from '../../resources/editor.ts'
import type { Values } from '../../resources/field.ts'
import { columnNamed, type Form, type Kind } from '../../resources/kind.ts'
import { specFields } from '../../resources/manifest-schema.ts'
import { parseForm } from '../../resources/resource-form.ts'
import { deleteResource, insertResource, updateResource } from '../../resources/write-resource.ts'
import type { Existing, ManifestKind, NameFinder, Reading, Reference, Writing } from './manifest-kind.ts'
import { namesById } from './names-by-id.ts'
import { manifestKindOf } from './registry-kind.ts'

const NAMES_MAX = 20
const ANY_ID = '00000000-0000-4000-8000-000000000000'
const IAC = { origin: 'iac' } as const
const PARTS = ['pools', 'virtual_servers'] as const

const base = manifestKindOf(loadBalancerKind)
assert(base !== null, 'load balancers are in manifests')
const device: ManifestKind = base

const fieldsOf = (kind: Form) => specFields(kind).filter(([key]) => key !== 'owner_team')
const fields = { pool: fieldsOf(lbPoolKind), member: fieldsOf(lbMemberKind), server: fieldsOf(virtualServerKind) }
type Fields = (typeof fields)['pool']

function partSpec(own: Fields, more: Readonly<Record<string, TSchema>>): TObject {
  const members = own.map(([key, , field]): [string, TSchema] => {
    const named = field.value.type === 'array' ? listOf(text(255), NAMES_MAX) : text(255)
    const value = field.to === undefined ? field.value : named
    return [key, field.required ? value : optional(value)]
  })
  return Type.Object({ ...Object.fromEntries(members), ...more })
}

const memberSpec = partSpec(fields.member, {})
const poolSpec = partSpec(fields.pool, { members: optional(listOf(memberSpec, lbMemberKind.limit)) })
const rule = Type.Object({ host: optional(text(253)), path_prefix: optional(text(1024)), pool: text(255) })
const serverSpec = partSpec(fields.server, { rules: optional(listOf(rule, 50)) })

const itemsOf = (value: unknown): Unchecked[] => (Array.isArray(value) ? value.filter(isObject) : [])
const filled = (given: Unchecked): Unchecked =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null && value !== undefined))
const byName = (a: Unchecked, b: Unchecked): number => (String(a.name) < String(b.name) ? -1 : 1)

/** A member whole, with the name that it would have by itself. */
function wholeMember(given: Unchecked): Unchecked {
  const own = fields.member.map(([key, , field]) => [key, given[key] ?? field.fallback] as const)
  const name = given.name || `${given.server ?? given.address}:${given.port}`
  return filled({ ...Object.fromEntries(own), name })
}

/** A rule in the form that both sides have. */
const wholeRule = ({ host, path_prefix, pool }: Unchecked): Unchecked => ({
  host: typeof host === 'string' ? host.toLowerCase() : null,
  path_prefix: path_prefix ?? null,
  pool,
})

const wholePool = (given: Unchecked): Unchecked =>
  filled({ ...given, ...(given.members ? { members: itemsOf(given.members).map(wholeMember).sort(byName) } : {}) })

const wholeServer = (given: Unchecked): Unchecked =>
  filled({
    ...given,
    ...(given.rules ? { rules: itemsOf(given.rules).map(wholeRule) } : {}),
    ...(Array.isArray(given.certificates) ? { certificates: [...given.certificates].sort() } : {}),
  })

/** The display names of what members and virtual servers name; unknown ones stay as they are. */
function renamed(spec: Unchecked, find: NameFinder): Unchecked {
  const name = (kind: string, value: unknown) => find(kind, String(value))?.name ?? value
  const pools = itemsOf(spec.pools).map(pool => ({
    ...pool,
    ...(pool.members
      ? {
          members: itemsOf(pool.members).map(member =>
            member.server ? { ...member, server: name('server', member.server) } : member,
          ),
        }
      : {}),
  }))
  const servers = itemsOf(spec.virtual_servers).map(server =>
    Array.isArray(server.certificates)
      ? { ...server, certificates: server.certificates.map(each => name('certificate', each)) }
      : server,
  )
  return {
    ...(spec.pools ? { pools: pools.map(wholePool).sort(byName) } : {}),
    ...(spec.virtual_servers ? { virtual_servers: servers.map(wholeServer).sort(byName) } : {}),
  }
}

type Row = Values & { readonly id: string; readonly name: string }

async function rowsOf(
  { db }: Reading,
  { table }: Pick<Kind, 'table'>,
  column: string,
  ids: readonly string[],
): Promise<Row[]> {
  const rows = await db
    .select()
    .from(table)
    .where(and(isAnyOf(columnNamed(table, column), ids), isNull(table.deleted_at)))
    .orderBy(sql`${columnNamed(table, 'name')} collate "C"`)
  // The columns that every kind has.
  return rows as readonly Values[] as Row[]
}

function shownBy(own: Fields, row: Row, names: ReadonlyMap<string, string>): Unchecked {
  const members = own.map(([key, name, field]) => {
    if (field.to === undefined) return [key, field.show(row, name)[name]]
    const ids = row[name]
    return [
      key,
      Array.isArray(ids) ? ids.map(id => names.get(String(id)) ?? id).sort() : (names.get(String(ids)) ?? null),
    ]
  })
  return Object.fromEntries(members)
}

/** The parts of devices, by the ids of the devices. */
async function partsOf(reading: Reading, ids: readonly string[]): Promise<Map<string, Unchecked>> {
  const pools = await rowsOf(reading, lbPoolKind, 'device_id', ids)
  const servers = await rowsOf(reading, virtualServerKind, 'device_id', ids)
  const members = await rowsOf(
    reading,
    lbMemberKind,
    'pool_id',
    pools.map(pool => pool.id),
  )
  const serverIds = members.flatMap(member => (member.server_id ? [String(member.server_id)] : []))
  const certificateIds = servers.flatMap(server => (server.certificate_ids as readonly string[]) ?? [])
  const names = new Map([
    ...(await namesById(reading, 'server', serverIds)),
    ...(await namesById(reading, 'certificate', certificateIds)),
    ...pools.map(pool => [pool.id, pool.name] as const),
  ])
  const inPool = Map.groupBy(members, member => String(member.pool_id))
  const shownPool = (pool: Row) => ({
    ...shownBy(fields.pool, pool, names),
    members: (inPool.get(pool.id) ?? []).map(member => shownBy(fields.member, member, names)),
  })
  const shownServer = (server: Row) => ({
    ...shownBy(fields.server, server, names),
    rules: itemsOf(server.rules).map(each => ({ ...each, pool: names.get(String(each.pool_id)) })),
  })
  return new Map(
    ids.map(id => [
      id,
      {
        pools: pools
          .filter(pool => pool.device_id === id)
          .map(shownPool)
          .map(wholePool)
          .sort(byName),
        virtual_servers: servers
          .filter(each => each.device_id === id)
          .map(shownServer)
          .map(wholeServer)
          .sort(byName),
      },
    ]),
  )
}

async function withParts(reading: Reading, found: readonly Existing[]): Promise<Existing[]> {
  const parts = await partsOf(
    reading,
    found.map(({ id }) => id),
  )
  return found.map(existing => ({ ...existing, spec: { ...existing.spec, ...parts.get(existing.id) } }))
}

/** An item in the names of the API; `ids` finds pools of the device. */
function inputOf(own: Fields, item: Unchecked, find: NameFinder, ids: ReadonlyMap<string, string>): Unchecked {
  const idOf = (kind: string, name: unknown) =>
    kind === 'lb_pool' ? (ids.get(String(name)) ?? ANY_ID) : (find(kind, String(name))?.id ?? ANY_ID)
  const members = own.flatMap(([key, name, { to }]): [string, unknown][] => {
    const value = item[key]
    if (value === undefined || value === null || to === undefined) return value === undefined ? [] : [[name, value]]
    return [[name, Array.isArray(value) ? value.map(each => idOf(to, each)) : idOf(to, value)]]
  })
  const rules = itemsOf(item.rules).map(({ pool, ...each }) => ({ ...each, pool_id: idOf('lb_pool', pool) }))
  return { ...Object.fromEntries(members), ...(item.rules ? { rules } : {}) }
}

/** What the form of the API would refuse of the parts, by their places. */
async function partFaults(spec: Unchecked): Promise<Map<string, Words>> {
  const faults = new Map<string, Words>()
  const judge = async (kind: Form, own: Fields, item: Unchecked, path: string): Promise<void> => {
    try {
      await parseForm(
        kind,
        'create',
        inputOf(own, item, () => null, new Map()),
      )
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      for (const [field, [fault]] of Object.entries(error.more.errors ?? {}))
        if (fault) faults.set(`${path}.${field}`, fault)
    }
  }
  for (const [index, pool] of itemsOf(spec.pools).entries()) {
    await judge(lbPoolKind, fields.pool, pool, `pools.${index}`)
    for (const [at, member] of itemsOf(pool.members).entries())
      await judge(lbMemberKind, fields.member, member, `pools.${index}.members.${at}`)
  }
  for (const [index, server] of itemsOf(spec.virtual_servers).entries())
    await judge(virtualServerKind, fields.server, server, `virtual_servers.${index}`)
  return faults
}

async function applyMembers(writing: Writing, pool: Row, wanted: readonly Unchecked[], find: NameFinder) {
  const { tx, context } = writing
  const editor = editorOf(context)
  const known = await rowsOf({ ...writing, db: tx.db }, lbMemberKind, 'pool_id', [pool.id])
  const names = new Set(wanted.map(member => member.name))
  // The manifest is the whole of it: nobody is asked whether the pool still answers in between.
  for (const { id, name } of known)
    if (!names.has(name)) await deleteResource(tx, lbMemberKind, editor, id, {}, { force: true })
  for (const member of wanted) {
    const existing = known.find(({ name }) => name === member.name)
    const given = { server_id: null, address: null, ...inputOf(fields.member, member, find, new Map()) }
    const values = await parseForm(lbMemberKind, existing ? 'change' : 'create', given)
    if (existing) await updateResource(tx, lbMemberKind, editor, existing.id, values, IAC)
    else await insertResource(tx, lbMemberKind, editor, values, { ...IAC, parentId: pool.id })
  }
}

async function applyParts(writing: Writing, deviceId: string, spec: Unchecked, find: NameFinder): Promise<void> {
  const { tx, context } = writing
  const editor = editorOf(context)
  const reading = { ...writing, db: tx.db }
  const known = (kind: Pick<Kind, 'table'>) => rowsOf(reading, kind, 'device_id', [deviceId])
  const [pools, servers] = [itemsOf(spec.pools), itemsOf(spec.virtual_servers)]
  const isGone = (wanted: readonly Unchecked[], { name }: Row) => !wanted.some(each => each.name === name)
  for (const server of await known(virtualServerKind))
    if (spec.virtual_servers && isGone(servers, server)) await deleteResource(tx, virtualServerKind, editor, server.id)
  const before = await known(lbPoolKind)
  for (const pool of pools) {
    const existing = before.find(({ name }) => name === pool.name)
    const form = await parseForm(
      lbPoolKind,
      existing ? 'change' : 'create',
      inputOf(fields.pool, pool, find, new Map()),
    )
    const row = existing
      ? await updateResource(tx, lbPoolKind, editor, existing.id, form, IAC)
      : await insertResource(tx, lbPoolKind, editor, form, { ...IAC, parentId: deviceId })
    if (pool.members) await applyMembers(writing, row, itemsOf(pool.members), find)
  }
  const ids = new Map((await known(lbPoolKind)).map(pool => [pool.name, pool.id]))
  const present = await known(virtualServerKind)
  for (const server of servers) {
    const existing = present.find(({ name }) => name === server.name)
    const form = await parseForm(
      virtualServerKind,
      existing ? 'change' : 'create',
      inputOf(fields.server, server, find, ids),
    )
    if (existing) await updateResource(tx, virtualServerKind, editor, existing.id, form, IAC)
    else await insertResource(tx, virtualServerKind, editor, form, { ...IAC, parentId: deviceId })
  }
  for (const pool of before)
    if (spec.pools && isGone(pools, pool)) await deleteResource(tx, lbPoolKind, editor, pool.id)
}

function partReferences(spec: Unchecked): Reference[] {
  const servers = itemsOf(spec.pools).flatMap((pool, index) =>
    itemsOf(pool.members).flatMap(({ server }, at) =>
      typeof server === 'string'
        ? [{ kind: 'server', name: server, at: ['pools', index, 'members', at, 'server'] }]
        : [],
    ),
  )
  const certificates = itemsOf(spec.virtual_servers).flatMap((server, index) =>
    (Array.isArray(server.certificates) ? server.certificates : []).map((name, at) => ({
      kind: 'certificate',
      name: String(name),
      at: ['virtual_servers', index, 'certificates', at],
    })),
  )
  return [...servers, ...certificates]
}

const ofDevice = (spec: Unchecked): Unchecked =>
  Object.fromEntries(Object.entries(spec).filter(([key]) => !PARTS.some(part => part === key)))

export const loadBalancerManifests: ManifestKind = {
  ...device,
  dependsOn: [...new Set([...device.dependsOn, 'server', 'certificate'])],
  spec: Type.Object({
    ...device.spec.properties,
    pools: optional(listOf(poolSpec, lbPoolKind.limit)),
    virtual_servers: optional(listOf(serverSpec, virtualServerKind.limit)),
  }),
  defaults: { ...device.defaults, pools: [], virtual_servers: [] },
  whole: { pools: ['name'], virtual_servers: ['name'] },
  referencesOf: spec => [...device.referencesOf(spec), ...partReferences(spec)],
  normal: (spec, find) => ({ ...device.normal(ofDevice(spec), find), ...renamed(spec, find) }),
  faults: async (reading, spec, existing) =>
    new Map([...(await device.faults(reading, ofDevice(spec), existing)), ...(await partFaults(spec))]),
  byIds: async (reading, ids) => withParts(reading, await device.byIds(reading, ids)),
  candidates: async (reading, spec, slug) => withParts(reading, await device.candidates(reading, ofDevice(spec), slug)),
  list: async (reading, filter, range) => withParts(reading, await device.list(reading, filter, range)),
  async create(writing, spec, find) {
    const id = await device.create(writing, ofDevice(spec), find)
    await applyParts(writing, id, spec, find)
    return id
  },
  async update(writing, existing, changed, spec, find) {
    await device.update(writing, existing, changed, ofDevice(spec), find)
    if (PARTS.some(part => changed.has(part))) await applyParts(writing, existing.id, spec, find)
  },
}

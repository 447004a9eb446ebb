// Load balancers in manifests: the fields of the device as of every kind of the registry, and beside them all of its
// pools, with all of their members, and all of its virtual servers, by name. Whether a member is drained is no part of
// it: a manifest that is applied again must not undo what operators do.
import { Type } from '@sinclair/typebox'
import { assert } from '../../../../core/assert.ts'
import type { Unchecked } from '../../../../core/json-object.ts'
import { lbMemberKind } from '../../load-balancers/lb-member.ts'
import { lbPoolKind } from '../../load-balancers/lb-pool.ts'
import { loadBalancerKind } from '../../load-balancers/load-balancer.ts'
import { virtualServerKind } from '../../load-balancers/virtual-server.ts'
import { type Words, words } from '../../platform/http/api-texts.ts'
import { listOf, optional, text } from '../../platform/http/request-schema.ts'
import { editorOf } from '../../resources/editor.ts'
import type { Form, Kind } from '../../resources/kind.ts'
import { deleteResource } from '../../resources/write-resource.ts'
import type { Existing, ManifestKind, NameFinder, Reading, Reference, Writing } from './manifest-kind.ts'
import { namesById } from './names-by-id.ts'
import {
  ANY_ID,
  filled,
  itemsOf,
  judgePart,
  keptParts,
  type PartFields,
  type PartRow,
  partFields,
  partInput,
  partRows,
  partSpec,
  partsInManifestNames,
  shownPart,
  withMember,
  writePart,
} from './parts.ts'
import { manifestKindOf } from './registry-kind.ts'

const PARTS = ['pools', 'virtual_servers'] as const

const base = manifestKindOf(loadBalancerKind)
assert(base !== null, 'load balancers are in manifests')
const device: ManifestKind = base

const fields = { pool: partFields(lbPoolKind), member: partFields(lbMemberKind), server: partFields(virtualServerKind) }

const memberSpec = partSpec(fields.member, {})
const poolSpec = partSpec(fields.pool, { members: optional(listOf(memberSpec, lbMemberKind.limit)) })
const rule = Type.Object({ host: optional(text(253)), path_prefix: optional(text(1024)), pool: text(255) })
const serverSpec = partSpec(fields.server, { rules: optional(listOf(rule, 50)) })

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

/** The members of a pool stand in one order, so that pools can be compared as they are. */
const byName = (a: Unchecked, b: Unchecked): number => (String(a.name) < String(b.name) ? -1 : 1)

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
    ...(spec.pools ? { pools: pools.map(wholePool) } : {}),
    ...(spec.virtual_servers ? { virtual_servers: servers.map(wholeServer) } : {}),
  }
}

/** The parts of devices, by the ids of the devices. */
async function partsOf(reading: Reading, ids: readonly string[]): Promise<Map<string, Unchecked>> {
  const pools = await partRows(reading, lbPoolKind, 'device_id', ids)
  const servers = await partRows(reading, virtualServerKind, 'device_id', ids)
  const members = await partRows(
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
  const shownPool = (pool: PartRow) => ({
    ...shownPart(fields.pool, pool, names),
    members: (inPool.get(pool.id) ?? []).map(member => shownPart(fields.member, member, names)),
  })
  const shownServer = (server: PartRow) => ({
    ...shownPart(fields.server, server, names),
    rules: itemsOf(server.rules).map(each => ({ ...each, pool: names.get(String(each.pool_id)) })),
  })
  return new Map(
    ids.map(id => [
      id,
      {
        pools: pools
          .filter(pool => pool.device_id === id)
          .map(shownPool)
          .map(wholePool),
        virtual_servers: servers
          .filter(each => each.device_id === id)
          .map(shownServer)
          .map(wholeServer),
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

/** A part in the names of the API; `pools` finds those of the device. */
function inputOf(own: PartFields, item: Unchecked, find: NameFinder, pools: ReadonlyMap<string, string>): Unchecked {
  const idOf = (kind: string, name: unknown): string =>
    (kind === 'lb_pool' ? pools.get(String(name)) : find(kind, String(name))?.id) ?? ANY_ID
  const rules = itemsOf(item.rules).map(({ pool, ...each }) => ({ ...each, pool_id: idOf('lb_pool', pool) }))
  return { ...partInput(own, item, idOf), ...(item.rules ? { rules } : {}) }
}

/** What the form of the API would refuse of the parts, by their places. */
async function partFaults(spec: Unchecked): Promise<Map<string, Words>> {
  const faults = new Map<string, Words>()
  const judge = (kind: Form, own: PartFields, item: Unchecked, place: string) =>
    judgePart(
      faults,
      kind,
      inputOf(own, item, () => null, new Map()),
      place,
    )
  for (const [index, pool] of itemsOf(spec.pools).entries()) {
    await judge(lbPoolKind, fields.pool, pool, `pools.${index}`)
    for (const [at, member] of itemsOf(pool.members).entries())
      await judge(lbMemberKind, fields.member, member, `pools.${index}.members.${at}`)
  }
  const pools = new Set(itemsOf(spec.pools).map(({ name }) => name))
  const judgePool = (name: unknown, place: string) => {
    if (typeof name === 'string' && !pools.has(name)) faults.set(place, words('unknown_reference'))
  }
  for (const [index, server] of itemsOf(spec.virtual_servers).entries()) {
    const place = `virtual_servers.${index}`
    await judge(virtualServerKind, fields.server, server, place)
    // Of those that stay too: a write would find that a pool which is to go is in use.
    judgePool(server.pool, `${place}.pool`)
    for (const [at, { pool }] of itemsOf(server.rules).entries()) judgePool(pool, `${place}.rules.${at}.pool`)
  }
  return faults
}

async function applyMembers(
  writing: Writing,
  pool: PartRow,
  place: string,
  { before, wanted }: { readonly before: Unchecked | null; readonly wanted: readonly Unchecked[] },
  find: NameFinder,
) {
  const { tx, context } = writing
  const known = await partRows(writing, lbMemberKind, 'pool_id', [pool.id])
  const names = new Set(wanted.map(member => member.name))
  // The manifest is the whole of it: nobody is asked whether the pool still answers in between.
  for (const { id, name } of known)
    if (!names.has(name)) await deleteResource(tx, lbMemberKind, editorOf(context), id, {}, { force: true })
  const isKept = keptParts(before, 'members')
  for (const [index, member] of wanted.entries()) {
    if (isKept(member)) continue
    const body = { server_id: null, address: null, ...inputOf(fields.member, member, find, new Map()) }
    const part = { parentId: pool.id, body, place: `${place}.members.${index}` }
    await writePart(writing, lbMemberKind as Kind, known, part)
  }
}

async function applyParts(
  writing: Writing,
  deviceId: string,
  existing: Unchecked | null,
  spec: Unchecked,
  find: NameFinder,
): Promise<void> {
  const { tx, context } = writing
  const editor = editorOf(context)
  const known = (kind: Pick<Kind, 'table'>) => partRows(writing, kind, 'device_id', [deviceId])
  const [pools, servers] = [itemsOf(spec.pools), itemsOf(spec.virtual_servers)]
  const isGone = (wanted: readonly Unchecked[], { name }: PartRow) => !wanted.some(each => each.name === name)
  for (const server of await known(virtualServerKind))
    if (spec.virtual_servers && isGone(servers, server)) await deleteResource(tx, virtualServerKind, editor, server.id)
  const before = await known(lbPoolKind)
  const isKept = keptParts(existing, 'pools')
  for (const [index, pool] of pools.entries()) {
    if (isKept(pool)) continue
    const [body, place] = [inputOf(fields.pool, pool, find, new Map()), `pools.${index}`]
    const row = await writePart(writing, lbPoolKind as Kind, before, { parentId: deviceId, body, place })
    const former = itemsOf(existing?.pools).find(({ name }) => name === pool.name) ?? null
    if (pool.members) await applyMembers(writing, row, place, { before: former, wanted: itemsOf(pool.members) }, find)
  }
  const ids = new Map((await known(lbPoolKind)).map(pool => [pool.name, pool.id]))
  const present = await known(virtualServerKind)
  const isSame = keptParts(existing, 'virtual_servers')
  for (const [index, server] of servers.entries()) {
    if (isSame(server)) continue
    const body = inputOf(fields.server, server, find, ids)
    const wanted = { parentId: deviceId, body, place: `virtual_servers.${index}` }
    await writePart(writing, virtualServerKind as Kind, present, wanted)
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

const RULE_NAMES = [['pool', 'pool_id']] as const

function inNames(spec: Unchecked): Unchecked {
  const pools = (given: unknown) =>
    partsInManifestNames(fields.pool, given, pool =>
      withMember(pool, 'members', members => partsInManifestNames(fields.member, members)),
    )
  const servers = (given: unknown) =>
    partsInManifestNames(fields.server, given, server =>
      withMember(server, 'rules', rules => partsInManifestNames(RULE_NAMES, rules)),
    )
  const own = device.inManifestNames?.(spec) ?? spec
  return withMember(withMember(own, 'pools', pools), 'virtual_servers', servers)
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
  inManifestNames: inNames,
  defaults: { ...device.defaults, pools: [], virtual_servers: [] },
  whole: { pools: ['name'], 'pools.members': ['name'], virtual_servers: ['name'] },
  referencesOf: spec => [...device.referencesOf(spec), ...partReferences(spec)],
  partsOf: spec => [
    ...itemsOf(spec.pools).map(({ name }) => ({ kind: 'lb_pool', name: String(name) })),
    ...itemsOf(spec.virtual_servers).map(({ name }) => ({ kind: 'virtual_server', name: String(name) })),
  ],
  normal: (spec, find) => ({ ...device.normal(ofDevice(spec), find), ...renamed(spec, find) }),
  faults: async (reading, spec, existing) =>
    new Map([...(await device.faults(reading, ofDevice(spec), existing)), ...(await partFaults(spec))]),
  byIds: async (reading, ids) => withParts(reading, await device.byIds(reading, ids)),
  candidates: async (reading, spec, slug) => withParts(reading, await device.candidates(reading, ofDevice(spec), slug)),
  list: async (reading, filter, range) => withParts(reading, await device.list(reading, filter, range)),
  async create(writing, spec, find, slug) {
    const id = await device.create(writing, ofDevice(spec), find, slug)
    await applyParts(writing, id, null, spec, find)
    return id
  },
  async update(writing, existing, changed, spec, find) {
    await device.update(writing, existing, changed, ofDevice(spec), find)
    if (PARTS.some(part => changed.has(part))) await applyParts(writing, existing.id, existing.spec, spec, find)
  },
}

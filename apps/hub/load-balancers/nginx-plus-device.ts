// NGINX Plus by its API (https://nginx.org/en/docs/http/ngx_http_api_module.html): upstreams of http and stream. It
// does not tell where its servers listen.
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import type { DeviceMember, DevicePool, DeviceView } from '../../../core/load-balancing/device-difference.ts'
import type { AdminState, MemberState } from '../../../core/load-balancing/state-names.ts'
import { plainAddress } from '../../../core/network/ip-address.ts'
import { RunFailed } from '../resources/runs.ts'
import { countOf, type DeviceCall, noList, type WantedState } from './device-call.ts'

const API = '/api/9'
const AREAS = ['http', 'stream'] as const
type Area = (typeof AREAS)[number]

const STATES: Readonly<Record<string, MemberState>> = {
  up: 'up',
  draining: 'draining',
  down: 'disabled',
  unavail: 'down',
  unhealthy: 'down',
}
const ADMIN_STATES: Readonly<Record<string, AdminState>> = { draining: 'draining', down: 'disabled' }

/** Throws RunFailed for what is no upstream. */
function peersOf(upstream: unknown): Unchecked[] {
  const peers = isObject(upstream) ? upstream.peers : null
  if (!Array.isArray(peers) || !peers.every(peer => isObject(peer) && typeof peer.server === 'string')) throw noList()
  return peers
}

/** A socket has no port. */
function endpointOf({ server }: Unchecked) {
  const [, host = String(server), port] = /^(.*):(\d+)$/.exec(String(server)) ?? []
  return {
    address: plainAddress(host.replace(/^\[|\]$/g, '').toLowerCase()),
    port: port === undefined ? null : Number(port),
  }
}

const nameOf = ({ name, server }: Unchecked): string => (typeof name === 'string' ? name : String(server))

/** Servers that come of one host name have its name; then each is called by its address. */
function membersOf(peers: readonly Unchecked[]): DeviceMember[] {
  const byName = Map.groupBy(peers, peer => nameOf(peer).toLowerCase())
  return peers.map(peer => {
    const isAlone = byName.get(nameOf(peer).toLowerCase())?.length === 1
    return memberOf(isAlone ? nameOf(peer) : String(peer.server), peer)
  })
}

const memberOf = (name: string, peer: Unchecked): DeviceMember => ({
  name,
  ...endpointOf(peer),
  weight: typeof peer.weight === 'number' ? peer.weight : 1,
  backup: peer.backup === true,
  max_connections: typeof peer.max_conns === 'number' && peer.max_conns > 0 ? peer.max_conns : null,
  admin_state: ADMIN_STATES[String(peer.state)] ?? 'enabled',
  observed: STATES[String(peer.state)] ?? null,
  activeConnections: countOf(peer.active),
})

/** The peers of each upstream; none where NGINX has no such area, of which it answers 404. Throws RunFailed. */
async function upstreamsOf(call: DeviceCall, area: Area): Promise<ReadonlyMap<string, Unchecked[]>> {
  const given = await call(`${API}/${area}/upstreams`)
  if (given === null) return new Map()
  if (!isObject(given)) throw noList()
  return new Map(Object.entries(given).map(([name, upstream]) => [name, peersOf(upstream)]))
}

export async function readNginxPlus(call: DeviceCall): Promise<DeviceView> {
  const about = await call(`${API}/nginx`)
  if (about === null) throw new RunFailed('the device has no API of version 9')
  const pools: DevicePool[] = []
  for (const area of AREAS)
    for (const [name, peers] of await upstreamsOf(call, area))
      pools.push({
        name,
        protocol: area === 'http' ? 'http' : null,
        algorithm: null,
        members: membersOf(peers),
      })
  // One that has nothing must be what it seems: a page in between may answer `{}` to everything.
  if (pools.length === 0 && (!isObject(about) || typeof about.version !== 'string')) throw noList()
  return { pools, virtualServers: null }
}

const isInState = (peer: Unchecked, state: AdminState): boolean =>
  (ADMIN_STATES[String(peer.state)] ?? 'enabled') === state

/** By address and port, which tell servers of one name apart; by name where no server has those. Throws RunFailed. */
async function findPeer(call: DeviceCall, { pool, member, address, port }: WantedState) {
  for (const area of AREAS) {
    const peers = (await upstreamsOf(call, area)).get(pool) ?? []
    const there = peers.filter(each => {
      const own = endpointOf(each)
      return own.address === address && own.port === port
    })
    const named = peers.filter(each => each.name === member || each.server === member)
    const candidates = there.length > 0 ? there : named
    const found = candidates.length > 1 ? candidates.filter(each => each.name === member) : candidates
    const [peer] = found
    if (candidates.length > 1 && found.length !== 1)
      throw new RunFailed(`ambiguous: the device has several servers ${pool}/${member}`)
    if (peer) return { area, peer }
  }
  throw new RunFailed(`the device has no server ${pool}/${member}`)
}

/** Sets the state of a server, unless it is that already, and sees that it is. Throws RunFailed. */
export async function writeNginxPlus(call: DeviceCall, wanted: WantedState): Promise<void> {
  const { pool, state } = wanted
  const { area, peer } = await findPeer(call, wanted)
  if (isInState(peer, state)) return
  const path = `${API}/${area}/upstreams/${encodeURIComponent(pool)}/servers/${Number(peer.id)}`
  // Only `down: false` ends draining.
  const body = state === 'draining' ? { drain: true } : { down: state === 'disabled' }
  await call(path, { method: 'PATCH', body })
  const after = await findPeer(call, wanted)
  if (!isInState(after.peer, state)) throw new RunFailed('the device did not take the state')
}

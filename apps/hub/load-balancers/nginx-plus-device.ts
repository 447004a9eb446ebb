// NGINX Plus by its API (https://nginx.org/en/docs/http/ngx_http_api_module.html): upstreams of http and stream. It
// does not tell where its servers listen.
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import type { DeviceMember, DevicePool, DeviceView } from '../../../core/load-balancing/device-difference.ts'
import type { AdminState, MemberState } from '../../../core/load-balancing/state-names.ts'
import { plainAddress } from '../../../core/network/ip-address.ts'
import { RunFailed } from '../resources/runs.ts'
import { type DeviceCall, noList } from './device-call.ts'

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

const memberOf = (peer: Unchecked): DeviceMember => ({
  name: typeof peer.name === 'string' ? peer.name : String(peer.server),
  ...endpointOf(peer),
  weight: typeof peer.weight === 'number' ? peer.weight : 1,
  backup: peer.backup === true,
  max_connections: typeof peer.max_conns === 'number' && peer.max_conns > 0 ? peer.max_conns : null,
  admin_state: ADMIN_STATES[String(peer.state)] ?? 'enabled',
  observed: STATES[String(peer.state)] ?? null,
  activeConnections: typeof peer.active === 'number' ? peer.active : null,
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
  if (!isObject(about) || typeof about.version !== 'string') throw noList()
  const pools: DevicePool[] = []
  for (const area of AREAS)
    for (const [name, peers] of await upstreamsOf(call, area))
      pools.push({
        name,
        protocol: area === 'http' ? 'http' : null,
        algorithm: null,
        members: peers.map(memberOf),
      })
  return { pools, virtualServers: null }
}

const isInState = (peer: Unchecked, state: AdminState): boolean =>
  (ADMIN_STATES[String(peer.state)] ?? 'enabled') === state

async function findPeer(call: DeviceCall, pool: string, member: string) {
  for (const area of AREAS) {
    const peers = (await upstreamsOf(call, area)).get(pool)
    const peer = peers?.find(each => each.name === member || each.server === member)
    if (peer) return { area, peer }
  }
  throw new RunFailed(`the device has no server ${pool}/${member}`)
}

/** Sets the state of a server, unless it is that already, and sees that it is. Throws RunFailed. */
export async function writeNginxPlus(call: DeviceCall, pool: string, member: string, state: AdminState): Promise<void> {
  const { area, peer } = await findPeer(call, pool, member)
  if (isInState(peer, state)) return
  const path = `${API}/${area}/upstreams/${encodeURIComponent(pool)}/servers/${Number(peer.id)}`
  // Only `down: false` ends draining.
  const body = state === 'draining' ? { drain: true } : { down: state === 'disabled' }
  await call(path, { method: 'PATCH', body })
  const after = await findPeer(call, pool, member)
  if (!isInState(after.peer, state)) throw new RunFailed('the device did not take the state')
}

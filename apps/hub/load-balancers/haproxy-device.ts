// HAProxy by its Data Plane API, version 3 or 2: what it is configured with, what it sees, and the runtime state of a
// server (https://www.haproxy.com/documentation/dataplaneapi/).

import { isObject, type Unchecked } from '../../../core/json-object.ts'
import type {
  DeviceMember,
  DevicePool,
  DeviceView,
  DeviceVirtualServer,
} from '../../../core/load-balancing/device-difference.ts'
import type { AdminState, MemberState } from '../../../core/load-balancing/state-names.ts'
import { plainAddress } from '../../../core/network/ip-address.ts'
import { RunFailed } from '../resources/runs.ts'
import { countOf, type DeviceCall, noList, type WantedState } from './device-call.ts'

const ALGORITHMS: Readonly<Record<string, string>> = {
  roundrobin: 'round_robin',
  'static-rr': 'round_robin',
  leastconn: 'least_connections',
  source: 'source_hash',
  random: 'random',
}
const ADMIN_STATES: Readonly<Record<string, AdminState>> = { ready: 'enabled', drain: 'draining', maint: 'disabled' }
const WORDS: Readonly<Record<AdminState, string>> = { enabled: 'ready', draining: 'drain', disabled: 'maint' }
const WEIGHT_USUAL = 1

const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const numberOr = <T>(value: unknown, other: T): number | T => (typeof value === 'number' ? value : other)

/** Version 3 answers lists, version 2 `{data}`. Throws RunFailed. */
function rowsOf(given: unknown): Unchecked[] {
  const list = isObject(given) ? (given.data ?? given.stats) : given
  if (!Array.isArray(list) || !list.every(isObject)) throw noList()
  return list
}

function namedRowsOf(given: unknown): Unchecked[] {
  const rows = rowsOf(given)
  if (!rows.every(row => text(row.name) !== '')) throw noList()
  return rows
}

type Defaults = readonly Unchecked[]
const modeOf = ({ mode }: Unchecked): string => text(mode)
const balanceOf = ({ balance }: Unchecked): string => (isObject(balance) ? text(balance.algorithm) : '')

/** A setting of a section, or of the defaults that it has by `from`; null where it is not told which those are. */
function settingOf(
  section: Unchecked,
  defaults: Defaults | null,
  read: (section: Unchecked) => string,
  usual: string,
): string | null {
  const asked = new Set<Unchecked>()
  let at: Unchecked | undefined = section
  while (at !== undefined && !asked.has(at)) {
    asked.add(at)
    const own = read(at)
    if (own !== '') return own
    const from: string = text(at.from)
    // Defaults have others behind them only where they name them, and a section the only ones also where it does not.
    if (from === '' && (at !== section || defaults?.length === 0)) return usual
    at = from === '' && defaults?.length === 1 ? defaults[0] : defaults?.find(each => each.name === from)
  }
  return null
}

class DataPlane {
  private constructor(
    private readonly call: DeviceCall,
    private readonly version: 2 | 3,
  ) {}

  static async of(call: DeviceCall): Promise<DataPlane> {
    if ((await call('/v3/info')) !== null) return new DataPlane(call, 3)
    if ((await call('/v2/info')) !== null) return new DataPlane(call, 2)
    throw new RunFailed('the device has no Data Plane API of version 2 or 3')
  }

  get(path: string): Promise<unknown> {
    return this.call(`/v${this.version}/services/haproxy/${path}`)
  }

  async list(path: string): Promise<Unchecked[]> {
    return namedRowsOf(await this.get(path))
  }

  /** The same; null where the device has nothing of the kind, or does not tell (404). */
  async listThere(path: string): Promise<Unchecked[] | null> {
    const given = await this.get(path)
    return given === null ? null : namedRowsOf(given)
  }

  /** Null where it does not tell. Version 2 had one section without a name, before its 2.7. */
  async defaults(): Promise<Defaults | null> {
    const named = this.version === 2 ? await this.listThere('configuration/named_defaults') : null
    if (named !== null) return named
    const only = await this.get('configuration/defaults')
    if (only === null) return null
    return isObject(only) && isObject(only.data) ? [only.data] : namedRowsOf(only)
  }

  /** The path of what belongs to a section. */
  within(area: 'configuration' | 'runtime', section: 'backend' | 'frontend', name: string, part: string): string {
    const [parent, rest] = [encodeURIComponent(name), part.split('/')]
    const [list = '', ...one] = rest
    return this.version === 3
      ? [area, `${section}s`, parent, list, ...one].join('/')
      : `${[area, list, ...one].join('/')}?${section}=${parent}`
  }

  put(path: string, body: unknown): Promise<unknown> {
    return this.call(`/v${this.version}/services/haproxy/${path}`, { method: 'PUT', body })
  }
}

type Stats = { readonly status: string; readonly connections: number | null }

/** What HAProxy says of a server that it probes; null where it has no check. */
function observedOf({ status }: Stats): MemberState | null {
  if (status.startsWith('MAINT')) return 'disabled'
  if (status.startsWith('DRAIN') || status.startsWith('NOLB')) return 'draining'
  if (status.startsWith('UP')) return 'up'
  return status.startsWith('DOWN') ? 'down' : null
}

/** Before an address may stand of which kind it is; one of IPv6 may stand in brackets. */
const addressOf = (given: unknown): string =>
  plainAddress(
    text(given)
      .toLowerCase()
      .replace(/^ipv[46]@/, '')
      .replace(/^\[|\]$/g, ''),
  )

function memberOf(server: Unchecked, runtime: Unchecked | undefined, stats: Stats): DeviceMember {
  return {
    name: text(server.name),
    address: addressOf(server.address),
    port: numberOr(server.port, null),
    weight: numberOr(server.weight, WEIGHT_USUAL),
    backup: server.backup === 'enabled',
    // 0 is no limit.
    max_connections: numberOr(server.maxconn, null) || null,
    admin_state: ADMIN_STATES[text(runtime?.admin_state)] ?? null,
    observed: observedOf(stats),
    activeConnections: stats.connections,
  }
}

function protocolOf(mode: string | null, isEncrypted: boolean): string | null {
  if (mode !== 'http') return mode === null ? null : 'tcp'
  return isEncrypted ? 'https' : 'http'
}

async function readPool(
  api: DataPlane,
  backend: Unchecked,
  defaults: Defaults | null,
  stats: ReadonlyMap<string, Stats>,
): Promise<DevicePool> {
  const name = text(backend.name)
  const servers = await api.list(api.within('configuration', 'backend', name, 'servers'))
  const runtime = servers.length === 0 ? [] : await api.listThere(api.within('runtime', 'backend', name, 'servers'))
  const now = new Map(runtime?.map(server => [text(server.name), server]))
  const isEncrypted = servers.length > 0 && servers.every(server => server.ssl === 'enabled')
  const mode = settingOf(backend, defaults, modeOf, 'tcp')
  const balance = settingOf(backend, defaults, balanceOf, 'roundrobin')
  return {
    name,
    protocol: protocolOf(mode, isEncrypted),
    algorithm: ALGORITHMS[balance ?? ''] ?? null,
    members: servers.map(server => {
      const own = text(server.name)
      return memberOf(server, now.get(own), stats.get(`${name} ${own}`) ?? { status: '', connections: null })
    }),
  }
}

/** `*`, and nothing at all, is every address. */
function listeningAt({ address }: Unchecked): string {
  const own = addressOf(address)
  if (own !== '' && own !== '*') return own
  return text(address).startsWith('ipv6@') ? '::' : '0.0.0.0'
}

/** What tells a bind of a frontend from its others: its port, where that is enough. */
function placeOf(bind: Unchecked, binds: readonly Unchecked[]): string {
  const [address, port] = [listeningAt(bind), numberOr(bind.port, null)]
  if (port === null) return address
  if (binds.filter(each => each.port === port).length === 1) return String(port)
  return `${address.includes(':') ? `[${address}]` : address}:${port}`
}

/** Null where the device does not tell of the binds. */
async function readFrontend(
  api: DataPlane,
  frontend: Unchecked,
  defaults: Defaults | null,
): Promise<DeviceVirtualServer[] | null> {
  const name = text(frontend.name)
  const given = await api.get(api.within('configuration', 'frontend', name, 'binds'))
  if (given === null) return null
  const binds = rowsOf(given)
  const mode = settingOf(frontend, defaults, modeOf, 'tcp')
  return binds.map(bind => ({
    name: binds.length === 1 ? name : `${name}:${placeOf(bind, binds)}`,
    address: listeningAt(bind),
    port: numberOr(bind.port, null),
    protocol: protocolOf(mode, bind.ssl === true),
    pool: text(frontend.default_backend) || null,
  }))
}

async function statsOf(api: DataPlane): Promise<Map<string, Stats>> {
  const given = await api.get('stats/native?type=server')
  // Version 2 answers a list for each process.
  const rows = given === null ? [] : rowsOf(given).flatMap(row => (Array.isArray(row.stats) ? rowsOf(row) : [row]))
  return new Map(
    rows.flatMap(({ name, backend_name, stats }) => {
      const own: Unchecked = isObject(stats) ? stats : {}
      const seen = { status: text(own.status), connections: countOf(own.scur) }
      return [[`${text(backend_name)} ${text(name)}`, seen] as const]
    }),
  )
}

/** Null where the device does not tell of them: what the hub has of them is left alone. */
async function readFrontends(api: DataPlane, defaults: Defaults | null): Promise<DeviceVirtualServer[] | null> {
  const virtualServers: DeviceVirtualServer[] = []
  const frontends = await api.listThere('configuration/frontends')
  for (const frontend of frontends ?? []) {
    const own = await readFrontend(api, frontend, defaults)
    if (own === null) return null
    virtualServers.push(...own)
  }
  return frontends && virtualServers
}

export async function readHaproxy(call: DeviceCall): Promise<DeviceView> {
  const api = await DataPlane.of(call)
  const stats = await statsOf(api)
  const defaults = await api.defaults()
  const pools: DevicePool[] = []
  for (const backend of await api.list('configuration/backends'))
    pools.push(await readPool(api, backend, defaults, stats))
  return { pools, virtualServers: await readFrontends(api, defaults) }
}

/** Sets the runtime state of a server, unless it is that already, and sees that it is. Throws RunFailed. */
export async function writeHaproxy(call: DeviceCall, { pool, member, state }: WantedState): Promise<void> {
  const api = await DataPlane.of(call)
  const list = api.within('runtime', 'backend', pool, 'servers')
  const stateNow = async () => {
    const servers = await api.listThere(list)
    return servers?.find(server => server.name === member)?.admin_state
  }
  const before = await stateNow()
  if (before === undefined) throw new RunFailed(`the device has no server ${pool}/${member}`)
  if (before === WORDS[state]) return
  const one = api.within('runtime', 'backend', pool, `servers/${encodeURIComponent(member)}`)
  await api.put(one, { admin_state: WORDS[state] })
  if ((await stateNow()) !== WORDS[state]) throw new RunFailed('the device did not take the state')
}

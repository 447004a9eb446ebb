// What a load balancer has, as its own interface tells it, and how that differs from what the hub has (resources.md
// Pools and virtual servers are matched by name, members by name, then by address and port.
import type { AdminState, MemberState } from './state-names.ts'

export type DeviceMember = {
  readonly name: string
  readonly address: string
  /** Null where the device has none. */
  readonly port: number | null
  readonly weight: number
  readonly backup: boolean
  readonly max_connections: number | null
  /** Null where the device does not tell. */
  readonly admin_state: AdminState | null
  /** Null where the device itself does not look. */
  readonly observed: MemberState | null
  readonly activeConnections: number | null
}
export type DevicePool = {
  readonly name: string
  /** Null where the device does not tell. */
  readonly protocol: string | null
  /** Null where it does not tell, and for one that the hub has no word for. */
  readonly algorithm: string | null
  readonly members: readonly DeviceMember[]
}
export type DeviceVirtualServer = {
  readonly name: string
  readonly address: string
  /** Null where it listens at no port. */
  readonly port: number | null
  /** Null where the device does not tell. */
  readonly protocol: string | null
  /** The name of the pool. */
  readonly pool: string | null
}
export type DeviceView = {
  readonly pools: readonly DevicePool[]
  /** Null for a device that does not tell. */
  readonly virtualServers: readonly DeviceVirtualServer[] | null
}

export type KnownMember = Omit<DeviceMember, 'observed' | 'activeConnections' | 'address'> & {
  readonly id: string
  readonly address: string | null
  /** The device was not told its state yet. */
  readonly isPending: boolean
}
export type KnownPool = Omit<DevicePool, 'members'> & { readonly id: string; readonly members: readonly KnownMember[] }
export type KnownVirtualServer = DeviceVirtualServer & { readonly id: string }

export type FieldDifference = { readonly field: string; readonly intended: unknown; readonly actual: unknown }
type Pair<Known, Seen> = {
  /** Null for what only the device has. */
  readonly known: Known | null
  /** Null for what only the hub has. */
  readonly seen: Seen | null
  /** Where it stands: `pools.web.members.a`. */
  readonly path: string
  /** Empty for one that is the same, and for one that only one side has. */
  readonly fields: readonly FieldDifference[]
}
export type MemberPair = Pair<KnownMember, DeviceMember>
export type PoolPair = Pair<KnownPool, DevicePool> & { readonly members: readonly MemberPair[] }
export type VirtualServerPair = Pair<KnownVirtualServer, DeviceVirtualServer>

const fieldsOf = (known: object, seen: object, names: readonly string[]): FieldDifference[] =>
  names.flatMap(field => {
    const [intended, actual] = [known, seen].map(each => (each as Readonly<Record<string, unknown>>)[field])
    return intended === actual ? [] : [{ field, intended, actual }]
  })

function pairsOf<K extends { readonly name: string }, S extends { readonly name: string }>(
  known: readonly K[],
  seen: readonly S[],
  isSame: (known: K, seen: S) => boolean,
): (readonly [K | null, S | null])[] {
  const left = new Set(seen)
  const take = (found: S | undefined): S | null => {
    if (found === undefined) return null
    left.delete(found)
    return found
  }
  const byName = known.map(
    each => [each, take(seen.find(other => left.has(other) && other.name === each.name))] as const,
  )
  const paired = byName.map(
    ([each, found]) => [each, found ?? take(seen.find(other => left.has(other) && isSame(each, other)))] as const,
  )
  return [...paired, ...[...left].map(other => [null, other] as const)]
}

const MEMBER_FIELDS = ['name', 'address', 'port', 'weight', 'backup', 'max_connections'] as const

function memberPair(path: string, known: KnownMember | null, seen: DeviceMember | null): MemberPair {
  const at = `${path}.members.${known?.name ?? seen?.name}`
  if (!known || !seen) return { known, seen, path: at, fields: [] }
  const isStateTold = seen.admin_state !== null && !known.isPending
  return {
    known,
    seen,
    path: at,
    fields: fieldsOf(known, seen, isStateTold ? [...MEMBER_FIELDS, 'admin_state'] : MEMBER_FIELDS),
  }
}

function poolPair(known: KnownPool | null, seen: DevicePool | null): PoolPair {
  const path = `pools.${known?.name ?? seen?.name}`
  const members = pairsOf<KnownMember, DeviceMember>(
    known?.members ?? [],
    seen?.members ?? [],
    (one, other) => one.address === other.address && (other.port === null || one.port === other.port),
  ).map(([one, other]) => memberPair(path, one, other))
  const names = (['protocol', 'algorithm'] as const).filter(name => seen !== null && seen[name] !== null)
  return { known, seen, path, members, fields: known && seen ? fieldsOf(known, seen, names) : [] }
}

const virtualServerFields = ({ protocol }: DeviceVirtualServer): string[] => [
  ...['name', 'address', 'port', 'pool'],
  ...(protocol === null ? [] : ['protocol']),
]

/** Everything that either side has, side by side. */
export function compareDevice(
  pools: readonly KnownPool[],
  virtualServers: readonly KnownVirtualServer[],
  view: DeviceView,
): { readonly pools: readonly PoolPair[]; readonly virtualServers: readonly VirtualServerPair[] } {
  const never = () => false
  const ofVirtualServers =
    view.virtualServers === null
      ? []
      : pairsOf(
          virtualServers,
          view.virtualServers,
          (one, other) => one.address === other.address && one.port === other.port,
        )
  return {
    pools: pairsOf(pools, view.pools, never).map(([known, seen]) => poolPair(known, seen)),
    virtualServers: ofVirtualServers.map(([known, seen]) => ({
      known,
      seen,
      path: `virtual_servers.${known?.name ?? seen?.name}`,
      fields: known && seen ? fieldsOf(known, seen, virtualServerFields(seen)) : [],
    })),
  }
}

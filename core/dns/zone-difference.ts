// What name servers answer against what a zone intends: sets of values by name and type, times to live aside.

/** Values by `name type`, the name relative to the zone. */
export type ValueSets = ReadonlyMap<string, ReadonlySet<string>>

type RecordState = 'in_sync' | 'missing' | 'different' | 'extra' | 'disabled'

type Intended = {
  readonly id: string
  readonly name: string
  readonly type: string
  readonly value: string
  readonly enabled: boolean
}

export type ZoneDifference = {
  readonly states: ReadonlyMap<string, RecordState>
  /** What servers have and the zone has not. */
  readonly unknown: readonly { readonly name: string; readonly type: string; readonly value: string }[]
}

export const setKey = (name: string, type: string): string => `${name} ${type}`

/** A wildcard is asked as a name that nobody has, so its answer stands under the wildcard's own name. */
export function compareWithServers(records: readonly Intended[], servers: readonly ValueSets[]): ZoneDifference {
  const states = new Map<string, RecordState>()
  const known = new Map<string, Set<string>>()
  for (const { id, name, type, value, enabled } of records) {
    const key = setKey(name, type)
    const values = known.get(key) ?? new Set<string>()
    known.set(key, values.add(value))
    const sets = servers.map(server => server.get(key))
    const isServed = sets.some(set => set?.has(value))
    if (!enabled) states.set(id, isServed ? 'extra' : 'disabled')
    else if (sets.every(set => set?.has(value))) states.set(id, 'in_sync')
    else states.set(id, sets.some(set => !set?.has(value) && (set?.size ?? 0) > 0) ? 'different' : 'missing')
  }
  const unknown = new Map<string, ZoneDifference['unknown'][number]>()
  for (const server of servers)
    for (const [key, values] of server) {
      const [name = '', type = ''] = key.split(' ')
      for (const value of values) if (!known.get(key)?.has(value)) unknown.set(`${key} ${value}`, { name, type, value })
    }
  return { states, unknown: [...unknown.values()] }
}

// What name servers answer against what a zone intends: sets of values by name and type, times to live aside.

/** Values by `name type`, the name relative to the zone; null where the server says nothing of it, not even no. */
export type ValueSets = ReadonlyMap<string, ReadonlySet<string> | null>

type RecordState = 'in_sync' | 'missing' | 'different' | 'extra' | 'disabled' | 'unknown'

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

/**
 * What a server makes of wildcards for a name that has no record of its own in force (RFC 4592): the values of the one
 * at its closest encloser. A record that is disabled is asked for all the same, and this is the answer then.
 */
class Wildcards {
  private readonly valuesOf = new Map<string, Set<string>>()
  /** Names that the zone has: those of records in force, and all above them. */
  private readonly nodes = new Set<string>(['@'])

  constructor(records: readonly Intended[]) {
    for (const { name, type, value, enabled } of records) {
      if (!enabled) continue
      const key = setKey(name, type)
      this.valuesOf.set(key, (this.valuesOf.get(key) ?? new Set<string>()).add(value))
      for (let node = name; node !== '@'; node = parentOf(node)) this.nodes.add(node)
    }
  }

  isMade(name: string, type: string, value: string): boolean {
    if (this.nodes.has(name)) return false
    let encloser = parentOf(name)
    while (!this.nodes.has(encloser)) encloser = parentOf(encloser)
    const wildcard = encloser === '@' ? '*' : `*.${encloser}`
    return this.valuesOf.get(setKey(wildcard, type))?.has(value) ?? false
  }
}

/** The name one label up; `@` is the zone itself. */
function parentOf(name: string): string {
  const dot = name.indexOf('.')
  return dot === -1 ? '@' : name.slice(dot + 1)
}

/** A wildcard is asked as a name that nobody has, so its answer stands under the wildcard's own name. */
export function compareWithServers(records: readonly Intended[], servers: readonly ValueSets[]): ZoneDifference {
  const states = new Map<string, RecordState>()
  const known = new Map<string, Set<string>>()
  const wildcards = new Wildcards(records)
  for (const { id, name, type, value, enabled } of records) {
    const key = setKey(name, type)
    const values = known.get(key) ?? new Set<string>()
    known.set(key, values.add(value))
    const sets = servers.map(server => server.get(key)).filter(set => set !== null)
    const isServed = sets.some(set => set?.has(value))
    if (!enabled) states.set(id, isServed && !wildcards.isMade(name, type, value) ? 'extra' : 'disabled')
    else if (sets.length === 0) states.set(id, 'unknown')
    else if (sets.every(set => set?.has(value))) states.set(id, 'in_sync')
    else states.set(id, sets.some(set => !set?.has(value) && (set?.size ?? 0) > 0) ? 'different' : 'missing')
  }
  const unknown = new Map<string, ZoneDifference['unknown'][number]>()
  for (const server of servers)
    for (const [key, values] of server) {
      const [name = '', type = ''] = key.split(' ')
      for (const value of values ?? [])
        if (!known.get(key)?.has(value) && !wildcards.isMade(name, type, value))
          unknown.set(`${key} ${value}`, { name, type, value })
    }
  return { states, unknown: [...unknown.values()] }
}

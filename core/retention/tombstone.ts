// The tombstone of a purge: what was received of a company, or of a server of it, before the tombstone ended is dropped
// wherever it is met, also by a process that reads the bus again long after that (document 3 "Purge"; decision G-140).

/** `serverId` is null for a whole company. */
export type Tombstone = { readonly companyId: string; readonly serverId: string | null; readonly untilMs: number }

/** Whether what comes now of its tenant is dropped. */
export const isInForce = ({ untilMs }: Tombstone, nowMs: number): boolean => nowMs < untilMs

const nameOf = (companyId: string, serverId: string | null): string => `${companyId} ${serverId ?? ''}`

/** Both lists as one: of each tenant the tombstone that ends last. */
export function mergeTombstones(some: readonly Tombstone[], others: readonly Tombstone[]): Tombstone[] {
  const last = new Map<string, Tombstone>()
  for (const tombstone of [...some, ...others]) {
    const name = nameOf(tombstone.companyId, tombstone.serverId)
    const known = last.get(name)
    if (!known || known.untilMs < tombstone.untilMs) last.set(name, tombstone)
  }
  return [...last.values()]
}

/** Tombstones by their tenants: many are looked at as fast as one. */
export class TombstoneSet {
  private readonly until = new Map<string, number>()
  private lastUntilMs = Number.NEGATIVE_INFINITY

  constructor(tombstones: readonly Tombstone[]) {
    for (const { companyId, serverId, untilMs } of tombstones) {
      const name = nameOf(companyId, serverId)
      this.until.set(name, Math.max(untilMs, this.until.get(name) ?? untilMs))
      this.lastUntilMs = Math.max(this.lastUntilMs, untilMs)
    }
  }

  /** False when all of them had ended by then, which is cheap to ask. */
  mayCover(receivedAtMs: number): boolean {
    return receivedAtMs < this.lastUntilMs
  }

  /** True when what was received of this server then is to be dropped. */
  covers(companyId: string, serverId: string, receivedAtMs: number): boolean {
    const untilOf = (server: string | null): number =>
      this.until.get(nameOf(companyId, server)) ?? Number.NEGATIVE_INFINITY
    return receivedAtMs < untilOf(null) || receivedAtMs < untilOf(serverId)
  }
}

export const noTombstones = new TombstoneSet([])

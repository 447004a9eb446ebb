// What outlives the simulated process: the bus, and the store of the evaluation, in memory, with the point at which it
// dies.
import type { BusGroup, BusReader } from '../../apps/collector/bus/bus.ts'
import type { ShardStore } from '../../apps/collector/store/shard-store.ts'
import type { JournalRecord } from '../../core/alerting/durability/journal-record.ts'
import { isAllBound, type RuleChangeRecord } from '../../core/alerting/durability/rule-change-record.ts'
import type { AlertEvent } from '../../core/alerting/evaluate/event.ts'

/** The process died. */
export class Killed extends Error {}

/** Counts the durable operations down to the one at which the process dies, just before it or just after it. */
export class Fuse {
  private left: number | null = null
  private isAfter = false

  set(ops: number, isAfter: boolean): void {
    this.left = ops
    this.isAfter = isAfter
  }

  clear(): void {
    this.left = null
  }

  run<T>(operation: () => T): T {
    const dies = this.left === 0
    if (this.left !== null) this.left--
    if (dies) this.left = null
    if (dies && !this.isAfter) throw new Killed()
    const result = operation()
    if (dies) throw new Killed()
    return result
  }
}

export class MemoryBus implements BusReader {
  readonly partitions = [0]
  readonly groups: BusGroup[] = []
  /** Called with the group that is read next. */
  onRead: (group: BusGroup) => void = () => {}

  private last = 0

  publish(entries: readonly Uint8Array[]): void {
    const bytes = new Uint8Array(entries.reduce((sum, entry) => sum + entry.length, 0))
    let at = 0
    for (const entry of entries) {
      bytes.set(entry, at)
      at += entry.length
    }
    this.groups.push({ partition: 0, firstPosition: this.last + 1, count: entries.length, bytes })
    this.last += entries.length
  }

  /** Every consumer has passed `position`: what lies before it is gone. */
  trim(position: number): void {
    while (this.groups[0] && this.groups[0].firstPosition + this.groups[0].count - 1 <= position) this.groups.shift()
  }

  /** One group a read, so that every group may be the last before a death. */
  async read(_partition: number, position: number): Promise<BusGroup[]> {
    const group = this.groups.find(({ firstPosition, count }) => firstPosition + count - 1 > position)
    if (!group) return []
    this.onRead(group)
    return [group]
  }

  async lastPosition(): Promise<number> {
    return this.last
  }
  async passed(): Promise<number> {
    return 0
  }
  async pass(): Promise<void> {}
  async close(): Promise<void> {}
}

/** A store of the evaluation that dies with the fuse, and its outbox as the sender sees it. */
export type SimStore = ShardStore & {
  /** Called when these are durable. */
  onCommit: (events: readonly AlertEvent[]) => void
  onRules: () => void
  /** The process starts anew. */
  reopen: () => void
  /** The oldest events, as text. */
  nextEvents: (count: number) => string[]
  /** The hub took the oldest `count` events. */
  removeEvents: (count: number) => void
}

/** The store as `EvaluationStore` keeps it, without the disk; everything goes through JSON as there. */
export class MemoryStore implements SimStore {
  journalMark = 0
  private readonly outbox: string[] = []
  private readonly outboxIds = new Set<string>()
  private journal: { id: number; shard: number; position: number; record: string }[] = []
  private readonly snapshots = new Map<number, Uint8Array>()
  private readonly seriesKeys = new Map<number, Set<string>>()
  private notes: string[] = []

  onCommit: (events: readonly AlertEvent[]) => void = () => {}
  onRules: () => void = () => {}

  constructor(private readonly fuse: Fuse) {}

  commit(events: readonly AlertEvent[], journal: readonly JournalRecord[], position: number): void {
    this.fuse.run(() => {
      this.onCommit(events)
      for (const event of events) {
        if (this.outboxIds.has(event.event_id)) continue
        this.outboxIds.add(event.event_id)
        this.outbox.push(JSON.stringify(event))
      }
      for (const record of journal)
        this.journal.push({ id: ++this.journalMark, shard: record.shard, position, record: JSON.stringify(record) })
    })
  }

  reopen(): void {}

  nextEvents(count: number): string[] {
    return this.outbox.slice(0, count)
  }

  removeEvents(count: number): void {
    for (const text of this.outbox.splice(0, count)) this.outboxIds.delete((JSON.parse(text) as AlertEvent).event_id)
  }

  *journalAfter(shard: number, position: number, mark: number): Generator<{ position: number; record: JournalRecord }> {
    for (const row of this.journal)
      if (row.shard === shard && (row.position > position || row.id > mark))
        yield { position: row.position, record: JSON.parse(row.record) as JournalRecord }
  }

  keys(shard: number): string[] {
    return [...(this.seriesKeys.get(shard) ?? [])]
  }

  keepKeys(shard: number, keys: readonly string[]): void {
    if (keys.length === 0) return
    this.fuse.run(() => {
      this.seriesKeys.set(shard, new Set([...(this.seriesKeys.get(shard) ?? []), ...keys]))
    })
  }

  dropKeys(shard: number, keys: readonly string[]): void {
    if (keys.length === 0) return
    this.fuse.run(() => {
      for (const key of keys) this.seriesKeys.get(shard)?.delete(key)
    })
  }

  saveSnapshot(shard: number, bytes: Uint8Array, position: number, mark: number): void {
    this.fuse.run(() => this.snapshots.set(shard, bytes.slice()))
    this.fuse.run(() => {
      this.journal = this.journal.filter(row => row.shard !== shard || row.position > position || row.id > mark)
    })
  }

  loadSnapshot(shard: number): Uint8Array | null {
    return this.snapshots.get(shard)?.slice() ?? null
  }

  keepRules(_thread: number, notes: readonly RuleChangeRecord[]): void {
    this.fuse.run(() => {
      // That a sweep bound all servers is no change of rules; what was done until then counts.
      if (notes.every(isAllBound)) this.onCommit([])
      else this.onRules()
      for (const note of notes) this.notes.push(JSON.stringify(note))
    })
  }

  ruleChanges(): RuleChangeRecord[] {
    return this.notes.map(text => JSON.parse(text) as RuleChangeRecord)
  }

  passRules(_thread: number, position: number): void {
    const notes = this.ruleChanges()
    const last = new Map(notes.map((note, index) => [note.ruleId, index]))
    const kept = notes
      .filter((note, index) => note.position > position || last.get(note.ruleId) === index)
      .map(note => (note.position > position ? note : { ...note, position: 0, before: null }))
    if (JSON.stringify(kept) === JSON.stringify(notes)) return
    this.fuse.run(() => {
      this.notes = kept.map(note => JSON.stringify(note))
    })
  }
}

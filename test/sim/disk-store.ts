// The store that the worker uses, on disk, opened anew at every start of the simulated process; the fuse decides where
// it dies.
import { EvaluationStore } from '../../apps/collector/store/file-evaluation-store.ts'
import type { WrittenSnapshot } from '../../apps/collector/store/shard-store.ts'
import type { JournalRecord } from '../../core/alerting/durability/journal-record.ts'
import { isAllBound, type RuleChangeRecord } from '../../core/alerting/durability/rule-change-record.ts'
import type { AlertEvent } from '../../core/alerting/evaluate/event.ts'
import type { Fuse, SimStore } from './durable.ts'

export class DiskStore implements SimStore {
  onCommit: (events: readonly AlertEvent[]) => void = () => {}
  onRules: () => void = () => {}
  private inner: EvaluationStore

  constructor(
    private readonly fuse: Fuse,
    private readonly directory: string,
  ) {
    this.inner = new EvaluationStore(directory, directory)
  }

  get journalMark(): number {
    return this.inner.journalMark
  }

  reopen(): void {
    this.inner.close()
    this.inner = new EvaluationStore(this.directory, this.directory)
  }

  close(): void {
    this.inner.close()
  }

  commit(events: readonly AlertEvent[], journal: readonly JournalRecord[], position: number, nowMs: number): void {
    this.fuse.run(() => {
      this.onCommit(events)
      this.inner.commit(events, journal, position, nowMs)
    })
  }

  journalAfter(shard: number, position: number, mark: number): ReturnType<EvaluationStore['journalAfter']> {
    return this.inner.journalAfter(shard, position, mark)
  }

  keys(shard: number): string[] {
    return this.inner.keys(shard)
  }

  keepKeys(shard: number, keys: readonly string[]): void {
    this.fuse.run(() => this.inner.keepKeys(shard, keys))
  }

  dropKeys(shard: number, keys: readonly string[]): void {
    this.fuse.run(() => this.inner.dropKeys(shard, keys))
  }

  saveSnapshot(shard: number, bytes: Uint8Array, position: number, mark: number): void {
    this.fuse.run(() => this.inner.saveSnapshot(shard, bytes, position, mark))
  }

  /**
   * As the worker saves while it evaluates: the process may die before the file is written, and before it is in force.
   */
  async writeSnapshot(...args: Parameters<EvaluationStore['writeSnapshot']>): Promise<WrittenSnapshot> {
    this.fuse.run(() => {})
    const written = await this.inner.writeSnapshot(...args)
    return { ...written, publish: () => this.fuse.run(() => written.publish()) }
  }

  loadSnapshot(shard: number): Uint8Array | null {
    return this.inner.loadSnapshot(shard)
  }

  keepRules(thread: number, notes: readonly RuleChangeRecord[]): void {
    this.fuse.run(() => {
      // That a sweep bound all servers is no change of rules; what was done until then counts.
      if (notes.every(isAllBound)) this.onCommit([])
      else this.onRules()
      this.inner.keepRules(thread, notes)
    })
  }

  ruleChanges(thread: number): RuleChangeRecord[] {
    return this.inner.ruleChanges(thread)
  }

  passRules(thread: number, position: number): void {
    this.inner.passRules(thread, position)
  }

  nextEvents(count: number): string[] {
    return this.inner.nextEvents(count).map(row => JSON.stringify(row.event))
  }

  removeEvents(count: number): void {
    this.inner.removeEvents(this.inner.nextEvents(count).map(row => row.id))
  }
}

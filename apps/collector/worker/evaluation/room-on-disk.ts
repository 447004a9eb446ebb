// A disk without room: what evaluation cannot write waits, and is tried again after a pause. The operator is told once
// that it waits, and once that it goes on.
import { isNoRoom } from '../../../files/data-directory.ts'
import type { FromShardThread } from './shard-messages.ts'

const PAUSE_MS = 1_000

type Words = { readonly waits: string; readonly goesOn: string }

export class RoomOnDisk<K> {
  /** What found no room when it was tried last. */
  private readonly waiting = new Set<K>()
  private triedAtMs = 0

  constructor(
    private readonly words: Words,
    private readonly nowMs: () => number,
    private readonly tell: (message: FromShardThread) => void,
  ) {}

  /** Something found no room a moment ago. */
  get isPausing(): boolean {
    return this.waiting.size > 0 && Math.abs(this.nowMs() - this.triedAtMs) < PAUSE_MS
  }

  /** `what` could not be written. Throws the error where it is another than that there is no room. */
  missed(what: K, error: unknown): void {
    if (!isNoRoom(error)) throw error
    this.triedAtMs = this.nowMs()
    const isFirst = this.waiting.size === 0
    this.waiting.add(what)
    if (!isFirst) return
    const cause = error instanceof Error ? error.message : String(error)
    this.tell({ kind: 'log', level: 'error', message: this.words.waits, fields: { cause } })
  }

  /** `what` is written, or need not be. */
  found(what: K): void {
    if (!this.waiting.delete(what) || this.waiting.size > 0) return
    this.tell({ kind: 'log', level: 'info', message: this.words.goesOn, fields: {} })
  }
}

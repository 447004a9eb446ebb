// How a loop saves its shards (when: `turn` of shard-loop.ts): usually one after the other, in slices between which it
// reads the bus, so that evaluation never waits for a whole shard; or several synchronously when no entry may come in
// between (a purge, the stop).
import pTimeout from 'p-timeout'
import { encodeSnapshot, snapshotBytes, takeSnapshot } from '../../../../core/alerting/durability/snapshot.ts'
import type { EvaluationState } from '../../../../core/alerting/state/evaluation-state.ts'
import { assert } from '../../../../core/assert.ts'
import { limits } from '../../../../core/limits.ts'
import { isNoRoom } from '../../../files/data-directory.ts'
import type { ShardStore, WrittenSnapshot } from '../../store/shard-store.ts'
import { RoomOnDisk } from './room-on-disk.ts'
import type { FromShardThread, ShardLoopConfig } from './shard-messages.ts'

/** Keys that are written before the loop reads the bus again. */
const KEYS_A_SLICE = 1_000
/** The poll interval of the bus while a snapshot is written. */
const WRITING_POLL_MS = 5

const ROOM_WORDS = {
  waits: 'a snapshot finds no room on the disk: the one before stays in force, and it is tried again',
  goesOn: 'there is room for snapshots again',
}

/** Keys that were taken of a shard's dictionary, and go back into it where the shard cannot be saved. */
type TakenKeys = { learnt: readonly string[]; forgotten: readonly string[] }
const noKeys = (): TakenKeys => ({ learnt: [], forgotten: [] })

/** The loop that saves. */
type SavedLoop = {
  readonly config: Pick<ShardLoopConfig, 'shards' | 'threadIndex'>
  readonly evaluation: EvaluationState
  readonly store: ShardStore
  readonly nowMs: () => number
  readonly tell: (message: FromShardThread) => void
  /** The bus is evaluated up to here. */
  readonly position: () => number
  /** How many changes of rules were made at a position of the bus. */
  readonly ruleChangesAt: (position: number) => number
  /** Events and the states behind them become durable. False where there is no room for them. */
  readonly commit: () => boolean
  /** Evaluates what came on the bus meanwhile. */
  readonly consume: () => Promise<unknown>
}

export class ShardSaver {
  /** The bus position that each shard's snapshot reflects: entries up to there are skipped for it. */
  readonly savedAt = new Float64Array(limits.stateShards)
  /** Shards that have a snapshot; one that never had a server needs none. */
  readonly isSaved = new Uint8Array(limits.stateShards)
  /** The position up to which every shard is saved, as last reported. */
  private passedUpTo = 0
  seconds = 0
  bytes = 0
  private next = 0
  /** How often each shard was saved: a snapshot that was taken before a later save is discarded. */
  private readonly saves = new Uint32Array(limits.stateShards)
  private readonly room: RoomOnDisk<number>

  constructor(private readonly loop: SavedLoop) {
    this.room = new RoomOnDisk(ROOM_WORDS, loop.nowMs, loop.tell)
  }

  /** A shard found no room a moment ago. */
  get isPausing(): boolean {
    return this.room.isPausing
  }

  /** Saves the next shard in turn, so that all are saved once an interval. False where there was no room for it. */
  async saveNext(): Promise<boolean> {
    const { shards } = this.loop.config
    const shard = shards[this.next]!
    this.next = (this.next + 1) % shards.length
    const keys = noKeys()
    try {
      await this.saveInSlices(shard, keys)
      return true
    } catch (error) {
      this.missed(shard, keys, error)
      return false
    }
  }

  /**
   * Saves shards synchronously, so that nothing is evaluated meanwhile. Returns those that found no room: their
   * snapshots are those of before.
   */
  saveNow(shards: readonly number[]): number[] {
    // What is being written of them was taken before.
    for (const shard of shards) this.saves[shard] = this.saves[shard]! + 1
    if (!this.loop.commit()) return [...shards]
    const startedAt = performance.now()
    const savedAtMs = this.loop.nowMs()
    const missed = shards.filter(shard => !this.saveShardNow(shard, savedAtMs))
    this.passed((performance.now() - startedAt) / 1000)
    return missed
  }

  private saveShardNow(shard: number, savedAtMs: number): boolean {
    const { evaluation, store } = this.loop
    const { dictionary } = evaluation
    const position = this.positionOf(shard)
    const keys = noKeys()
    try {
      if (this.isNeeded(shard)) {
        keys.learnt = dictionary.takeLearnt(shard)
        store.keepKeys(shard, keys.learnt)
        const changes = this.loop.ruleChangesAt(position)
        const bytes = encodeSnapshot(evaluation, shard, position, store.journalMark, savedAtMs, changes)
        store.saveSnapshot(shard, bytes, position, store.journalMark)
        keys.forgotten = dictionary.takeForgotten(shard)
        this.noteSaved(shard, bytes, keys.forgotten)
      }
    } catch (error) {
      this.missed(shard, keys, error)
      return false
    }
    this.savedAt[shard] = position
    this.room.found(shard)
    return true
  }

  /**
   * The shard's snapshot stays the one before, and what is on the bus after that stays there: nothing is passed. Keys
   * that are stored twice, or removed later, change nothing.
   */
  private missed(shard: number, { learnt, forgotten }: TakenKeys, error: unknown): void {
    this.room.missed(shard, error)
    // It may have failed once it was in force, over the journal that it reflects.
    this.isSaved[shard] = 1
    this.loop.evaluation.dictionary.giveBack(shard, learnt, forgotten)
  }

  private async saveInSlices(shard: number, keys: TakenKeys): Promise<void> {
    const { evaluation, store, commit, consume, nowMs } = this.loop
    const { dictionary } = evaluation
    const startedAt = performance.now()
    // Checked before `takeLearnt`, so that learnt keys stay in their list until they are stored.
    if (!this.isNeeded(shard)) {
      if (!commit()) return
      this.savedAt[shard] = this.positionOf(shard)
      this.room.found(shard)
      this.passed((performance.now() - startedAt) / 1000)
      return
    }
    keys.learnt = dictionary.takeLearnt(shard)
    while (keys.learnt.length > KEYS_A_SLICE) {
      for (let from = 0; from < keys.learnt.length; from += KEYS_A_SLICE) {
        store.keepKeys(shard, keys.learnt.slice(from, from + KEYS_A_SLICE))
        await consume()
      }
      keys.learnt = dictionary.takeLearnt(shard)
    }
    // A snapshot must not be ahead of the events and the journal.
    if (!commit()) {
      dictionary.giveBack(shard, keys.learnt, [])
      return
    }
    const position = this.positionOf(shard)
    // Keys, states and keys to drop are taken at one instant.
    store.keepKeys(shard, keys.learnt)
    const mark = store.journalMark
    const taken = takeSnapshot(evaluation, shard, position, mark, nowMs(), this.loop.ruleChangesAt(position))
    keys.forgotten = dictionary.takeForgotten(shard)
    const saves = this.saves[shard]!
    await consume()
    const bytes = snapshotBytes(taken)
    const written = await this.writtenMeanwhile(shard, bytes, position, mark)
    // A purge came in between and saves the shard without the purged tenant: this snapshot is older.
    if (this.saves[shard] !== saves) {
      written.discard()
      dictionary.giveBack(shard, [], keys.forgotten)
      return
    }
    assert(position >= this.savedAt[shard]!, 'a snapshot takes the place of an older one')
    written.publish()
    this.noteSaved(shard, bytes, keys.forgotten)
    this.savedAt[shard] = position
    this.room.found(shard)
    this.passed((performance.now() - startedAt) / 1000)
  }

  /** Evaluates while a snapshot is written. A store without `writeSnapshot` writes synchronously at the end. */
  private async writtenMeanwhile(
    shard: number,
    bytes: Uint8Array,
    position: number,
    mark: number,
  ): Promise<WrittenSnapshot> {
    const { store, consume } = this.loop
    await consume()
    if (!store.writeSnapshot)
      return { publish: () => store.saveSnapshot(shard, bytes, position, mark), discard: () => {} }
    let isWriting = true
    const writing = store.writeSnapshot(shard, bytes, position, mark).finally(() => {
      isWriting = false
    })
    // Awaited below; until then a rejection would count as unhandled.
    writing.catch(() => {})
    while (isWriting) {
      await pTimeout(writing, { milliseconds: WRITING_POLL_MS, fallback: () => {} })
      await consume()
    }
    return writing
  }

  /** During a replay from the oldest snapshot, a shard's own snapshot may already be ahead of the loop's position. */
  private positionOf(shard: number): number {
    return Math.max(this.loop.position(), this.savedAt[shard]!)
  }

  private isNeeded(shard: number): boolean {
    return this.isSaved[shard] === 1 || this.loop.evaluation.servers.some(server => server?.shard === shard)
  }

  private noteSaved(shard: number, bytes: Uint8Array, forgotten: readonly string[]): void {
    this.isSaved[shard] = 1
    this.saves[shard] = this.saves[shard]! + 1
    this.loop.store.dropKeys(shard, forgotten)
    this.bytes = bytes.length
  }

  private passed(seconds: number): void {
    const { config, store, tell } = this.loop
    this.seconds = seconds
    const savedUpTo = Math.min(...config.shards.map(shard => this.savedAt[shard]!))
    assert(savedUpTo >= this.passedUpTo, 'what is saved of all shards only grows')
    this.passedUpTo = savedUpTo
    try {
      // At the position itself the rules may have changed after a snapshot was taken.
      store.passRules(config.threadIndex, Math.max(0, savedUpTo - 1))
    } catch (error) {
      // Changes of rules that all snapshots reflect count for nothing; they are removed after the next save.
      if (!isNoRoom(error)) throw error
    }
    tell({ kind: 'snapshot', position: savedUpTo })
  }
}

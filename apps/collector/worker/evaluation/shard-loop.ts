// The life of the shards of one loop: load the snapshots, apply the journal, replay the bus, then consume, sweep and
// save snapshots until stopped. Each shard has one owner, which gets messages and emits events through the outbox,
// without locks (document 2 "State persistence and restart").

import { applyJournal, takeJournal } from '../../../../core/alerting/durability/journal.ts'
import type { JournalRecord } from '../../../../core/alerting/durability/journal-record.ts'
import { encodeSnapshot, restoreSnapshot } from '../../../../core/alerting/durability/snapshot.ts'
import { sweepFlapping } from '../../../../core/alerting/evaluate/end-of-flapping.ts'
import { applyEntry } from '../../../../core/alerting/evaluate/evaluator.ts'
import type { AlertEvent } from '../../../../core/alerting/evaluate/event.ts'
import { leaveScope } from '../../../../core/alerting/evaluate/last-agent-revoked.ts'
import { compileSilences, type SilenceRecord } from '../../../../core/alerting/evaluate/suppression.ts'
import { sweepServers, sweepStates } from '../../../../core/alerting/evaluate/sweep.ts'
import type { RuleRecord } from '../../../../core/alerting/rules/rule.ts'
import { EvaluationState, type ServerAttributes } from '../../../../core/alerting/state/evaluation-state.ts'
import { dropUnseen, forgetServer } from '../../../../core/alerting/state/removal.ts'
import { assert } from '../../../../core/assert.ts'
import { EntryReader } from '../../../../core/bus/entry.ts'
import { shardOfServer } from '../../../../core/bus/shard-of-server.ts'
import { limits } from '../../../../core/limits.ts'
import { noTombstones, type Tombstone, TombstoneSet } from '../../../../core/retention/tombstone.ts'
import type { BusReader } from '../../bus/bus.ts'
import type { KnownShard, ShardStore } from '../../store/shard-store.ts'
import { RoomOnDisk } from './room-on-disk.ts'
import { RulesInForce } from './rules-in-force.ts'
import type { FromShardThread, ServerAttributesUpdate, ShardLoopConfig } from './shard-messages.ts'
import { ShardSaver } from './shard-saver.ts'

const READ_BYTES = 4 * 1024 * 1024
/** About so many events are committed at once: over Redis that is one call of a script, for which all others wait. */
const EVENTS_A_COMMIT = 2_000
/** Servers and states that are swept before the loop reads the bus again. */
const SERVERS_A_SLICE = 1_000
const STATES_A_SLICE = 20_000
/** What is due ends a sleep, though none is shorter: neither a short interval nor a clock that jumps makes it spin. */
const SLEEP_MIN_MS = 50

const ROOM_WORDS = {
  waits: 'there is no room left on the disk: what evaluation cannot store waits, and it goes no further',
  goesOn: 'there is room on the disk again: what waited is stored, evaluation goes on',
}

/** Events and the states behind them that found no room. */
type Uncommitted = { readonly events: AlertEvent[]; readonly journal: JournalRecord[] }

export class ShardLoop {
  readonly evaluation: EvaluationState
  private readonly reader = new EntryReader()
  private readonly owned = new Uint8Array(64)
  /** The bus is evaluated up to this position, for all shards of the loop. */
  position = 0
  private readonly saver: ShardSaver
  /** How many shards are still to be saved ahead of schedule, to make room on a full bus. */
  private forcedSnapshots = 0
  private tombstones = noTombstones
  /** Shards that must still be saved without servers that were purged from them. */
  private readonly toSave = new Set<number>()
  private replayUntil = 0
  private readonly rules: RulesInForce
  private pendingRules: { raw: readonly RuleRecord[]; since: number; waiting: (() => void)[] } | null = null
  /**
   * Servers whose last agent was revoked, with these agents. They are removed once the batches that were on the bus are
   * evaluated.
   */
  private readonly leaving = new Map<string, readonly string[]>()
  /** All entries that were on the bus at the start are evaluated. */
  private isCaughtUp = false
  /** The last position of the bus at the start; null = not known yet. */
  private caughtUpAt: number | null = null
  private startedAtMs: number
  /** When the last turn was. */
  private turnAtMs: number
  private wasLongTurn = false
  private nextSweepAtMs: number
  private nextSnapshotAtMs: number
  /** When the next check for series that are no longer sent is due. */
  private nextSeriesSweepAtMs: number
  /** Nothing more is read off the bus, swept or saved until this is committed; null = all is. */
  private uncommitted: Uncommitted | null = null
  private readonly room: RoomOnDisk<'events' | 'rules'>
  /** A sweep has bound some servers to the rules in force, and not yet all. */
  private isBinding = false
  private isStopping = false
  private drains = true
  private wakeUp: (() => void) | null = null
  /** Woken while it was at work. */
  private isAwake = false

  constructor(
    private readonly config: ShardLoopConfig,
    private readonly bus: BusReader,
    private readonly store: ShardStore,
    private readonly nowMs: () => number,
    private readonly tell: (message: FromShardThread) => void,
  ) {
    this.evaluation = new EvaluationState(config.settings)
    this.room = new RoomOnDisk(ROOM_WORDS, nowMs, tell)
    this.rules = new RulesInForce(this.evaluation, store, config.threadIndex, nowMs)
    this.saver = new ShardSaver({
      ...{ config, store, nowMs, tell, evaluation: this.evaluation },
      position: () => this.position,
      ruleChangesAt: position => this.rules.changesAt(position),
      commit: () => this.commit(),
      consume: () => this.consume(),
    })
    for (const shard of config.shards) this.owned[shard] = 1
    this.startedAtMs = nowMs()
    this.turnAtMs = this.startedAtMs
    // Spreads the saves of loops that have one shard each and were started together.
    const [first = 0] = config.shards
    this.nextSnapshotAtMs =
      this.startedAtMs + ((config.snapshotIntervalMs / config.shards.length) * (first + 1)) / limits.stateShards
    this.nextSweepAtMs = this.startedAtMs + config.sweepIntervalMs
    this.nextSeriesSweepAtMs = this.startedAtMs + config.seriesSweepIntervalMs
  }

  /**
   * Restores the rules under which the shards were evaluated when the process ended: the stored set, and the changes
   * that this loop activated after the set was stored. `since` is the feed cursor of the set.
   */
  startRules(raw: readonly RuleRecord[], since: number): void {
    // The replay ends under this set, even when the owner that recorded the changes had an older one.
    this.pendingRules = { raw: this.rules.start(raw, since), since, waiting: [] }
  }

  /**
   * Resolves once the set is in force: after everything that was received before this call is evaluated under the
   * previous set.
   */
  setRules(raw: readonly RuleRecord[], since: number): Promise<void> {
    return new Promise(resolve => {
      const waiting = this.pendingRules?.waiting ?? []
      this.pendingRules = { raw, since, waiting: [...waiting, resolve] }
      if (this.isCaughtUp) this.takeRules()
    })
  }

  /** Puts the pending set in force; never in the middle of a sweep, since a replay knows only of whole ones. */
  private takeRules(): void {
    if (!this.pendingRules || this.isBinding || this.room.isPausing || !this.commit()) return
    const { raw, since, waiting } = this.pendingRules
    try {
      this.rules.take(raw, since, this.position)
    } catch (error) {
      // The rules of before stay in force, and these are taken later.
      this.missed('rules', error)
      return
    }
    this.room.found('rules')
    this.pendingRules = null
    // When the store has lost its shard, flushed() rejects: another loop owns the shard now, and the callers need not
    // wait for this one.
    const resolveAll = () => {
      for (const resolve of waiting) resolve()
    }
    if (this.store.flushed) this.store.flushed().then(resolveAll, resolveAll)
    else resolveAll()
  }

  /** How long the last save took, and how large the last snapshot was. */
  get snapshotSeconds(): number {
    return this.saver.seconds
  }

  get snapshotBytes(): number {
    return this.saver.bytes
  }

  get partition(): number {
    return this.config.partition
  }

  setSilences(raw: readonly SilenceRecord[]): void {
    this.evaluation.silences = compileSilences(raw)
  }

  setAttributes(updates: readonly ServerAttributesUpdate[]): void {
    for (const update of updates) {
      const { serverId } = update
      if (update.attributes) {
        this.evaluation.attributes.set(serverId, update.attributes)
        this.leaving.delete(serverId)
      } else if (this.isCaughtUp) this.serverRemoved(serverId, update.revokedAgentIds)
      else this.leaving.set(serverId, update.revokedAgentIds)
    }
    this.commit()
  }

  /**
   * The last agent of a server was revoked: closes its alerts and ends its presence without an event (decision G-48).
   */
  protected serverRemoved(serverId: string, agentIds: readonly string[]): void {
    this.evaluation.attributes.delete(serverId)
    for (const server of this.evaluation.servers) {
      if (server?.serverId !== serverId) continue
      leaveScope(this.evaluation, server, agentIds, this.nowMs())
      this.commit()
    }
  }

  /** A purge: removes all state of the server or company without events. */
  forget(companyId: string, serverId: string | null): void {
    const isMeant = (tenant: { readonly companyId: string; readonly serverId: string }): boolean =>
      tenant.companyId === companyId && (serverId === null || tenant.serverId === serverId)
    const shards = new Set<number>()
    for (const server of this.evaluation.servers)
      if (server && isMeant(server)) {
        shards.add(server.shard)
        forgetServer(this.evaluation, server)
      }
    for (const [key, records] of this.evaluation.removedServers)
      if (records.some(isMeant)) {
        for (const { serverId } of records) shards.add(shardOfServer(serverId))
        this.evaluation.removedServers.delete(key)
      }
    if (this.uncommitted) {
      const { events, journal } = this.uncommitted
      this.uncommitted = {
        events: events.filter(event => !isMeant({ companyId: event.company_id, serverId: event.server_id })),
        journal: journal.filter(record => !isMeant(record)),
      }
    }
    // Saving a snapshot also deletes the journal, so these shards are saved even if they had no snapshot: otherwise a
    // restart would restore the purged state.
    for (const shard of shards) {
      this.saver.isSaved[shard] = 1
      this.toSave.add(shard)
    }
    this.saveForgotten()
  }

  /**
   * True while the replay has not passed the position of the journal, or has rule changes left. A snapshot taken now
   * would have states that are ahead of its bus position or its rules, without recording that.
   */
  private get isReplaying(): boolean {
    return this.replayUntil > 0 || this.rules.isReplaying
  }

  /** Saves the shards of purged servers, once the replay has passed the journal. */
  private saveForgotten(): void {
    if (this.isReplaying || this.toSave.size === 0 || this.saver.isPausing) return
    const missed = this.saver.saveNow([...this.toSave])
    this.toSave.clear()
    for (const shard of missed) this.toSave.add(shard)
  }

  setTombstones(tombstones: readonly Tombstone[]): void {
    this.tombstones = new TombstoneSet(tombstones)
  }

  /** True when the reader's current entry is of a purged tenant. */
  private isPurged(nowMs: number): boolean {
    const { reader, tombstones } = this
    const atMs = Math.min(reader.receivedAtMs, nowMs)
    return tombstones.mayCover(atMs) && tombstones.covers(reader.companyId(), reader.serverId(), atMs)
  }

  /**
   * The bus was full: grants agents a grace, and schedules snapshots of all shards, so that evaluated entries can be
   * removed from the bus.
   */
  overflowed(atMs: number): void {
    this.grantGrace(atMs)
    this.forcedSnapshots = this.config.shards.length
    this.wake()
  }

  private grantGrace(fromMs: number): void {
    this.startedAtMs = Math.max(this.startedAtMs, fromMs)
  }

  /** A full disk refuses the batches of agents too, and perhaps the note of that: their silence counts for nothing. */
  private missed(what: 'events' | 'rules', error: unknown): void {
    this.room.missed(what, error)
    this.grantGrace(this.nowMs())
  }

  private get isForced(): boolean {
    return this.forcedSnapshots > 0 && this.isCaughtUp && !this.isReplaying && this.uncommitted === null
  }

  wake(): void {
    this.isAwake = true
    this.wakeUp?.()
  }

  /**
   * Loads snapshots and journal. Returns the faults of snapshots that could not be read; their shards continue from the
   * journal alone.
   */
  restore(): string[] {
    const faults: string[] = []
    const snapshots = new Map<number, { position: number; ruleChanges: number }>()
    for (const shard of this.config.shards) {
      this.evaluation.dictionary.load(shard, this.store.keys(shard))
      let mark = 0
      let ruleChanges = 0
      const bytes = this.store.loadSnapshot(shard)
      if (bytes) {
        const restored = restoreSnapshot(this.evaluation, bytes, shard)
        if ('fault' in restored) faults.push(`snapshot of shard ${shard} is not used: ${restored.fault}`)
        else {
          this.saver.savedAt[shard] = restored.position
          mark = restored.journalMark
          // One of an earlier version does not say: those at its position count as reflected.
          ruleChanges = restored.ruleChanges ?? Number.POSITIVE_INFINITY
        }
        this.saver.isSaved[shard] = 1
      }
      snapshots.set(shard, { position: this.saver.savedAt[shard]!, ruleChanges })
      for (const { position, record } of this.store.journalAfter(shard, this.saver.savedAt[shard]!, mark)) {
        applyJournal(this.evaluation, record, position)
        this.replayUntil = Math.max(this.replayUntil, position)
      }
    }
    this.position = Math.min(...this.config.shards.map(shard => this.saver.savedAt[shard]!))
    this.rules.rollBack(snapshots)
    return faults
  }

  /** What is known of a shard, as a loop starts from it that begins a new bus; null where it has no server. */
  known(shard: number): Omit<KnownShard, 'endedAtMs'> | null {
    const { evaluation } = this
    if (!evaluation.servers.some(server => server?.shard === shard)) return null
    return {
      snapshot: encodeSnapshot(evaluation, shard, 0, 0, this.nowMs()),
      keys: evaluation.dictionary.keysOf(shard),
    }
  }

  /**
   * The bus ends at `last`. A saved position beyond it is of a bus that is lost, and its numbers are given out again:
   * what is on the bus is evaluated whole then, and a sample that was evaluated before is not newer than its series.
   * True in that case.
   */
  distrustAfter(last: number): boolean {
    if (this.position <= last) return false
    for (const shard of this.config.shards) this.saver.savedAt[shard] = 0
    this.position = 0
    return true
  }

  /** Runs until `stop`. */
  async run(): Promise<void> {
    while (!this.isStopping) {
      const hasReadAll = (await this.turn()) === 0 || this.isToldOfMore
      if (hasReadAll && !this.isStopping && !this.isForced) await this.sleep()
      else await new Promise(resolve => setImmediate(resolve))
    }
    while (this.drains && (await this.consume()) > 0);
    if (!this.isReplaying) this.snapshot()
    await this.store.flushed?.()
  }

  /** What is on the bus is evaluated, and what comes wakes the loop: it need not look again. */
  private get isToldOfMore(): boolean {
    return this.isCaughtUp && !this.isReplaying && this.bus.hasMore?.(this.config.partition) === false
  }

  /** Consumes, sweeps and saves what is due. Returns the number of entries read. */
  async turn(): Promise<number> {
    const consumed = await this.consume()
    if (this.uncommitted) return consumed
    const nowMs = this.nowMs()
    this.heedClock(nowMs)
    if (nowMs >= this.nextSweepAtMs && (consumed === 0 || this.isCaughtUp)) {
      this.nextSweepAtMs = nowMs + this.config.sweepIntervalMs
      // A bus that is never empty must not postpone the sweep for ever. The sweep then uses the receive time of the
      // last evaluated entry, so that lag does not count as silence.
      await this.sweep(consumed === 0 ? nowMs : Math.min(nowMs, this.reader.receivedAtMs))
    }
    const { isForced } = this
    if ((nowMs >= this.nextSnapshotAtMs && !this.isReplaying) || isForced) {
      this.nextSnapshotAtMs = nowMs + this.config.snapshotIntervalMs / this.config.shards.length
      if (isForced) this.forcedSnapshots--
      // Where there is no room for one, the others come when they are due.
      if (!(await this.saver.saveNext())) {
        this.forcedSnapshots = 0
        this.grantGrace(nowMs)
      }
    }
    await this.store.flushed?.()
    return consumed
  }

  /** What is due is so by the wall clock, which may be set back or leap, as over a pause of the host. */
  private heedClock(nowMs: number): void {
    const gapMs = nowMs - this.turnAtMs
    this.turnAtMs = nowMs
    // Turns that take so long one after another, as on a very slow disk, are no pauses: nobody would ever be lost.
    const isLong = gapMs > (this.config.pauseMs ?? Number.POSITIVE_INFINITY)
    if (isLong && !this.wasLongTurn) this.grantGrace(nowMs)
    this.wasLongTurn = isLong
    if (gapMs >= 0) return
    this.nextSweepAtMs += gapMs
    this.nextSnapshotAtMs += gapMs
    this.nextSeriesSweepAtMs += gapMs
    this.startedAtMs = Math.min(this.startedAtMs, nowMs)
  }

  /** Ends `run`. With `drains` it evaluates the rest of the bus first; else the next owner of the shards does. */
  stop(drains = true): void {
    this.isStopping = true
    this.drains = drains
    this.wake()
  }

  /** Until the next sweep or snapshot is due, and no longer than the poll interval. */
  private get sleepMs(): number {
    const dueInMs = Math.min(this.nextSweepAtMs, this.nextSnapshotAtMs) - this.nowMs()
    return Math.min(this.config.pollMs, Math.max(SLEEP_MIN_MS, dueInMs))
  }

  /** Ends at once after a wake-up during work: what it told of may have come behind what was read. */
  private async sleep(): Promise<void> {
    if (!this.isAwake)
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, this.sleepMs)
        this.wakeUp = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    this.wakeUp = null
    this.isAwake = false
  }

  /** Reads and evaluates the next entries of the bus; returns their number. */
  async consume(): Promise<number> {
    const { partition } = this.config
    if (!this.goesOn()) return 0
    this.caughtUpAt ??= await this.bus.lastPosition(partition)
    const groups = await this.bus.read(partition, this.position, READ_BYTES)
    // Something that came meanwhile found no room: what is left to commit is of this position.
    if (this.uncommitted) return 0
    // The bus has no entry up to its last position at the start, because all of them were removed. A shard without a
    // snapshot may skip to that position.
    if (groups.length === 0) this.position = Math.max(this.position, this.caughtUpAt)
    let entries = 0
    for (const group of groups) {
      const last = group.firstPosition + group.count - 1
      assert(last > this.position, 'the bus is read forwards')
      if (this.rules.isDue(group.firstPosition)) {
        if (!this.commit()) return entries
        this.rules.replay(group.firstPosition)
      }
      // Read once a group: for each batch the clock would cost a seventh of what evaluation does.
      const nowMs = this.nowMs()
      this.reader.open(group.bytes)
      let position = group.firstPosition
      while (this.reader.next()) {
        const { shard } = this.reader
        if (this.owned[shard] === 1 && position > this.saver.savedAt[shard]! && !this.isPurged(nowMs))
          applyEntry(this.evaluation, this.reader, position)
        position++
        entries++
      }
      assert(position === last + 1, 'a group of the bus holds the entries that it says')
      this.position = last
      if (this.evaluation.eventCount >= EVENTS_A_COMMIT && !this.commit()) return entries
    }
    // Once for all groups: a replay is as many commits as reads, each of which waits for the disk.
    if (!this.commit()) return entries
    // Entries that all consumers passed are removed. So when the bus has nothing more, the replay is complete even if
    // its position is lower than the journal's.
    const isEmpty = groups.length === 0
    if (this.replayUntil > 0 && (isEmpty || this.position >= this.replayUntil)) {
      this.replayUntil = 0
      this.evaluation.journaledUpTo.clear()
      this.evaluation.presenceJournaledUpTo.clear()
      this.evaluation.removedUpTo.clear()
    }
    if (!this.isCaughtUp && (isEmpty || this.position >= this.caughtUpAt)) {
      this.isCaughtUp = true
      this.rules.replay(Number.POSITIVE_INFINITY)
      for (const [serverId, agentIds] of this.leaving) this.serverRemoved(serverId, agentIds)
      this.leaving.clear()
      this.takeRules()
    }
    this.saveForgotten()
    return entries
  }

  /** What found no room before is committed, and the rules that waited for that are taken. False while it waits. */
  private goesOn(): boolean {
    if (this.uncommitted && !this.commit()) return false
    if (this.isCaughtUp) this.takeRules()
    return this.uncommitted === null
  }

  /** Commits events and the states behind them. False where there is no room: they are kept, and are tried again. */
  private commit(): boolean {
    const presence = this.evaluation.takeQuietPresence()
    if (presence.length > 0) this.store.keepPresence?.(presence)
    const { uncommitted } = this
    const events = [...(uncommitted?.events ?? []), ...this.evaluation.drainEvents()]
    const journal = [...(uncommitted?.journal ?? []), ...takeJournal(this.evaluation)]
    this.uncommitted = null
    if (events.length === 0 && journal.length === 0) {
      this.room.found('events')
      return true
    }
    for (const { shard } of journal) assert(this.owned[shard] === 1, 'a loop keeps what it knows of its own shards')
    const nowMs = this.nowMs()
    if (!this.stored({ events, journal }, nowMs)) return false
    this.tellOf(events, nowMs)
    return true
  }

  private stored(work: Uncommitted, nowMs: number): boolean {
    const isTried = !this.room.isPausing
    try {
      if (isTried) this.store.commit(work.events, work.journal, this.position, nowMs)
    } catch (error) {
      this.missed('events', error)
      this.uncommitted = work
      return false
    }
    if (isTried) this.room.found('events')
    else this.uncommitted = work
    return isTried
  }

  private tellOf(events: readonly AlertEvent[], nowMs: number): void {
    const types: Record<string, number> = {}
    const sampleToEventMs: number[] = []
    for (const event of events) {
      types[event.type] = (types[event.type] ?? 0) + 1
      if (event.type === 'alert.opened') sampleToEventMs.push(Math.max(0, nowMs - Date.parse(event.occurred_at)))
      if (event.type === 'agent.down' || event.type === 'agent.up')
        this.tell({
          kind: 'presence',
          serverId: event.server_id,
          companyId: event.company_id,
          state: event.type === 'agent.down' ? 'down' : 'up',
          atMs: Date.parse(event.occurred_at),
        })
    }
    this.tell({ kind: 'events', count: events.length, types, sampleToEventMs })
  }

  /** Sweeps in slices, and evaluates entries that arrive in between. Ends where there is no room: the next goes on. */
  async sweep(nowMs: number): Promise<void> {
    const { evaluation } = this
    const graceFromMs = this.startedAtMs + this.config.presenceGraceMinMs
    const isLook = nowMs >= this.nextSeriesSweepAtMs
    if (isLook) this.nextSeriesSweepAtMs = nowMs + this.config.seriesSweepIntervalMs
    this.isBinding = true
    for (let from = 0; from < evaluation.servers.length; from += SERVERS_A_SLICE) {
      sweepServers(evaluation, from, from + SERVERS_A_SLICE, graceFromMs, nowMs)
      if (isLook) dropUnseen(evaluation, from, from + SERVERS_A_SLICE)
      if (!this.commit()) break
      if (evaluation.servers.length > SERVERS_A_SLICE) await this.consume()
    }
    this.isBinding = false
    if (this.uncommitted) return
    if (this.isCaughtUp) {
      this.keepThatAllAreBound()
      this.takeRules()
    }
    for (let from = 0; from < evaluation.states.end; from += STATES_A_SLICE) {
      sweepStates(evaluation, from, from + STATES_A_SLICE, nowMs)
      if (!this.commit()) return
      if (evaluation.states.end > STATES_A_SLICE) await this.consume()
    }
    sweepFlapping(evaluation, nowMs)
    if (isLook) evaluation.dictionary.forgetUnused()
    this.commit()
  }

  /** Over a restart a rule that has left the set must begin anew when it comes back, as it does without one. */
  private keepThatAllAreBound(): void {
    if (this.room.isPausing || this.rules.isBoundKept) return
    try {
      this.rules.keepBound(this.position)
      this.room.found('rules')
    } catch (error) {
      this.missed('rules', error)
    }
  }

  /** Saves every shard. */
  snapshot(): void {
    this.saver.saveNow(this.config.shards)
  }

  attributesOf(serverId: string): ServerAttributes | undefined {
    return this.evaluation.attributes.get(serverId)
  }
}

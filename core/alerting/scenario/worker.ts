// A worker in memory: the bus, the outbox, the journal and the snapshots are lists, the evaluation is the real one. It
// does what a shard loop and the group sweep of a worker do, in their order, so that a scenario can stop, kill and
// start it at will.

import { assert } from '../../assert.ts'
import { EntryReader } from '../../bus/entry.ts'
import { applyJournal, takeJournal } from '../durability/journal.ts'
import type { JournalRecord } from '../durability/journal-record.ts'
import { encodeSnapshot, restoreSnapshot } from '../durability/snapshot.ts'
import { sweepFlapping } from '../evaluate/end-of-flapping.ts'
import { applyEntry } from '../evaluate/evaluator.ts'
import type { AlertEvent } from '../evaluate/event.ts'
import {
  type GroupDownState,
  newGroupDown,
  presenceChanged,
  presenceKnown,
  type SavedGroups,
  saveGroups,
  sweepGroups,
} from '../evaluate/group-down.ts'
import type { GroupParameters } from '../evaluate/group-parameters.ts'
import { leaveScope } from '../evaluate/last-agent-revoked.ts'
import { compileSilences, type RawSilence } from '../evaluate/suppression.ts'
import { sweepServers, sweepStates } from '../evaluate/sweep.ts'
import { compileRuleSet } from '../rules/compile-rule-set.ts'
import type { RawRule } from '../rules/rule.ts'
import { changedCompanies } from '../rules/rule-set.ts'
import { setRules } from '../rules/rule-slots.ts'
import { type EvaluationSettings, EvaluationState, type ServerAttributes } from '../state/evaluation-state.ts'

/** What outlives the process. */
export type Durable = {
  readonly bus: Uint8Array[]
  readonly emitted: { event: AlertEvent; atMs: number }[]
  journal: { id: number; shard: number; position: number; record: string }[]
  journalMark: number
  readonly snapshots: Map<number, { bytes: Uint8Array; position: number }>
  /** By shard. */
  readonly seriesKeys: Map<number, Set<string>>
  groups: string | null
  /** The set that was in force last. */
  rules: readonly RawRule[] | null
}

export const newDurable = (): Durable => ({
  bus: [],
  emitted: [],
  journal: [],
  journalMark: 0,
  snapshots: new Map(),
  seriesKeys: new Map(),
  groups: null,
  rules: null,
})

type WorkerInputs = {
  readonly settings: EvaluationSettings
  readonly rules: readonly RawRule[]
  readonly silences: readonly RawSilence[]
  readonly attributes: ReadonlyMap<string, ServerAttributes>
  readonly groupParametersOf: (companyId: string) => GroupParameters
  readonly isGroupEnabled: boolean
}

/** One life of the process, from its start to its stop. */
export class ScenarioWorker {
  readonly evaluation: EvaluationState
  private readonly reader = new EntryReader()
  private readonly restoredAt = new Float64Array(64)
  private readonly groups: GroupDownState
  private position = 0
  private replayUntil = 0
  private graceFromMs: number
  nowMs: number

  constructor(
    private readonly durable: Durable,
    private readonly inputs: WorkerInputs,
    nowMs: number,
  ) {
    this.nowMs = nowMs
    this.graceFromMs = nowMs
    this.evaluation = new EvaluationState(inputs.settings)
    setRules(this.evaluation, compileRuleSet(durable.rules ?? inputs.rules, this.evaluation.rules))
    this.setSilences(inputs.silences)
    for (const [serverId, attributes] of inputs.attributes) this.evaluation.attributes.set(serverId, attributes)
    this.restore()
    this.groups = newGroupDown(durable.groups === null ? null : (JSON.parse(durable.groups) as SavedGroups))
    this.consume()
    this.setRules(inputs.rules)
    presenceKnown(this.groups, this.lostServers())
  }

  private *lostServers(): Generator<readonly [string, number]> {
    for (const server of this.evaluation.servers)
      if (server?.presence.state === 'down') yield [server.serverId, server.presence.downSinceMs]
  }

  private restore(): void {
    for (const [shard, keys] of this.durable.seriesKeys) this.evaluation.dictionary.load(shard, [...keys])
    const marks = new Map<number, number>()
    for (const [shard, { bytes }] of this.durable.snapshots) {
      const restored = restoreSnapshot(this.evaluation, bytes, shard)
      assert(!('fault' in restored), 'a snapshot of the scenario can be read')
      this.restoredAt[shard] = restored.position
      marks.set(shard, restored.journalMark)
    }
    for (const { id, position, record } of this.durable.journal) {
      const parsed = JSON.parse(record) as JournalRecord
      if (position <= this.restoredAt[parsed.shard]! && id <= (marks.get(parsed.shard) ?? 0)) continue
      applyJournal(this.evaluation, parsed, position)
      this.replayUntil = Math.max(this.replayUntil, position)
    }
  }

  /**
   * Saves the companies concerned first, so that a replay never evaluates samples under rules that were activated after
   * them.
   */
  setRules(raw: readonly RawRule[]): void {
    const next = compileRuleSet(raw, this.evaluation.rules)
    const changed = changedCompanies(this.evaluation.rules, next)
    if (changed.size > 0) this.snapshot(changed)
    this.durable.rules = raw
    setRules(this.evaluation, next)
  }

  setSilences(raw: readonly RawSilence[]): void {
    this.evaluation.silences = compileSilences(raw)
  }

  setAttributes(serverId: string, attributes: ServerAttributes | null, agentId: string): void {
    if (attributes) {
      this.evaluation.attributes.set(serverId, attributes)
      return
    }
    this.evaluation.attributes.delete(serverId)
    presenceChanged(this.groups, serverId, 'up', this.nowMs)
    for (const server of this.evaluation.servers) {
      if (server?.serverId !== serverId) continue
      leaveScope(this.evaluation, server, [agentId], this.nowMs)
      this.commit()
    }
  }

  overflowed(): void {
    this.graceFromMs = this.nowMs
  }

  /** Evaluates all entries that are on the bus. */
  consume(): void {
    for (; this.position < this.durable.bus.length; this.commit()) {
      this.reader.open(this.durable.bus[this.position]!)
      this.position++
      while (this.reader.next())
        if (this.position > this.restoredAt[this.reader.shard]!) applyEntry(this.evaluation, this.reader, this.position)
    }
    if (this.replayUntil > 0 && this.position >= this.replayUntil) {
      this.replayUntil = 0
      this.evaluation.journaledUpTo.clear()
      this.evaluation.presenceJournaledUpTo.clear()
      this.evaluation.removedUpTo.clear()
    }
  }

  private commit(): void {
    const events = this.evaluation.drainEvents()
    for (const record of takeJournal(this.evaluation))
      this.durable.journal.push({
        id: ++this.durable.journalMark,
        shard: record.shard,
        position: this.position,
        record: JSON.stringify(record),
      })
    this.emit(events)
    for (const event of events)
      if (event.type === 'agent.down' || event.type === 'agent.up')
        presenceChanged(
          this.groups,
          event.server_id,
          event.type === 'agent.down' ? 'down' : 'up',
          Date.parse(event.occurred_at),
        )
  }

  /** Adds events to the outbox, which keeps each event id once. */
  private emit(events: readonly AlertEvent[]): void {
    for (const event of events) this.durable.emitted.push({ event, atMs: this.nowMs })
  }

  sweep(): void {
    const { evaluation, nowMs } = this
    sweepServers(evaluation, 0, evaluation.servers.length, this.graceFromMs, nowMs)
    this.commit()
    sweepStates(evaluation, 0, evaluation.states.end, nowMs)
    this.commit()
    sweepFlapping(evaluation, nowMs)
    this.commit()
    this.emit(
      sweepGroups(this.groups, {
        attributes: evaluation.attributes,
        parametersOf: this.inputs.groupParametersOf,
        suppressionOf: (companyId, serverId, atMs) => evaluation.suppressionOf(companyId, serverId, [], atMs),
        isEnabled: this.inputs.isGroupEnabled,
        nowMs,
      }),
    )
    this.durable.groups = JSON.stringify(saveGroups(this.groups))
  }

  /** Saves every shard, or those that have servers of the companies. */
  snapshot(companies: ReadonlySet<string> | null = null): void {
    this.commit()
    const { seriesKeys } = this.durable
    const shards = new Set(companies ? [] : this.durable.snapshots.keys())
    for (const server of this.evaluation.servers)
      if (server && (companies === null || companies.has(server.companyId))) shards.add(server.shard)
    for (const shard of shards) {
      const learnt = this.evaluation.dictionary.takeLearnt(shard)
      seriesKeys.set(shard, new Set([...(seriesKeys.get(shard) ?? []), ...learnt]))
      const bytes = encodeSnapshot(this.evaluation, shard, this.position, this.durable.journalMark, this.nowMs)
      this.durable.snapshots.set(shard, { bytes, position: this.position })
      this.restoredAt[shard] = this.position
    }
    const { journalMark } = this.durable
    this.durable.journal = this.durable.journal.filter(
      ({ id, position, shard }) => !shards.has(shard) || position > this.position || id > journalMark,
    )
  }
}

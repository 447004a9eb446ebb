// Everything that one thread knows for evaluation, and nothing that it does: the functions beside this file change it.

import type { LeftRecord, StateRecord } from '../durability/journal-record.ts'
import type { EvaluatedRule } from '../evaluate/evaluate-sample.ts'
import type { AlertEvent, SuppressReason } from '../evaluate/event.ts'
import type { FlapSettings, FlapState } from '../evaluate/flapping.ts'
import { emptySilenceSet, type SilenceSet, suppressReason } from '../evaluate/suppression.ts'
import { type CompanyRules, emptyCompanyRules, emptyRuleSet, type RuleSet } from '../rules/rule-set.ts'
import { SeriesDictionary } from './series-dictionary.ts'
import { ServerSeries } from './server-series.ts'
import { FLAG_NO_DATA, StateTable } from './state-table.ts'

export type EvaluationSettings = {
  readonly noDataAfterMs: number
  readonly flapping: FlapSettings
}

/** What the agent registry says of a server (document 2 "Agent-record attributes"). */
export type ServerAttributes = {
  readonly companyId: string
  /** maintenance, decommissioned or empty. */
  readonly status: string
  readonly subnetId: string
  readonly datacenter: string
  readonly hostname: string
  /** The managed interval, seconds; 0 = none. */
  readonly intervalSeconds: number
}

/** A rule that states point to; the newest form of it. The slot of an id never changes. */
export type RuleSlot = {
  readonly id: string
  companyId: string
  rule: EvaluatedRule
  /** Number of the present signature, and the texts by number. */
  signature: number
  readonly signatures: string[]
}

/** A change of an agent's presence that no event tells; `unknown`: nothing is known of the agent any more. */
export type QuietPresence = { readonly agentId: string; readonly state: 'up' | 'unknown'; readonly atMs: number }

export class EvaluationState {
  readonly states = new StateTable()
  readonly dictionary = new SeriesDictionary()
  /** By the 16 bytes of the server id, and by index. */
  readonly serversByKey = new Map<string, ServerSeries>()
  readonly servers: (ServerSeries | null)[] = []
  readonly flapping = new Map<number, FlapState>()
  /** Every rule that a state points to, and its index by id. */
  readonly slots: RuleSlot[] = []
  readonly slotOfRule = new Map<string, number>()
  readonly attributes = new Map<string, ServerAttributes>()
  rules: RuleSet = emptyRuleSet
  silences: SilenceSet = emptySilenceSet
  /** Rows whose event left since the last `drainEvents`: their state belongs into the journal. */
  readonly touchedRows = new Set<number>()
  readonly touchedServers = new Set<ServerSeries>()
  /** Rows whose journalled state already reflects the bus up to this position (after a crash). */
  readonly journaledUpTo = new Map<number, number>()
  /** Servers that left: the bus up to there is not theirs any more (after a crash). */
  readonly leftUpTo = new Map<string, number>()
  readonly presenceJournaledUpTo = new Map<ServerSeries, number>()
  /** States that were removed with an event: the journal says so. */
  removed: StateRecord[] = []
  /** Servers that lost their last agent, by key: what their revoked agents had on its way does not count. */
  readonly left = new Map<string, LeftRecord[]>()
  /** Those since the last `takeJournal`. */
  removedServers: LeftRecord[] = []
  private events: AlertEvent[] = []
  private quietPresence: QuietPresence[] = []
  /** Each company id once, however many servers name it. */
  private readonly companyIds = new Map<string, string>()
  evaluations = 0
  samples = 0

  constructor(readonly settings: EvaluationSettings) {}

  /** The events since the last call, in order. */
  drainEvents(): AlertEvent[] {
    const events = this.events
    this.events = []
    return events
  }

  push(event: AlertEvent): void {
    this.events.push(event)
  }

  /** Agents that were seen for the first time, or are not looked at any more, since the last call, in order. */
  takeQuietPresence(): QuietPresence[] {
    const { quietPresence } = this
    if (quietPresence.length > 0) this.quietPresence = []
    return quietPresence
  }

  noteQuietPresence(agentId: string, state: 'up' | 'unknown', atMs: number): void {
    if (agentId !== '') this.quietPresence.push({ agentId, state, atMs })
  }

  /** Why an event of this host at that time is not told to people, or null. */
  suppressionOf(companyId: string, serverId: string, occurredAtMs: number): SuppressReason | null {
    return suppressReason(this.silences, companyId, serverId, this.attributes.get(serverId)?.status ?? '', occurredAtMs)
  }

  noteLeft(record: LeftRecord): void {
    this.left.set(record.key, [...(this.left.get(record.key) ?? []), record])
  }

  companyRules(companyId: string): CompanyRules {
    return this.rules.companies.get(companyId) ?? emptyCompanyRules
  }

  server(key: string, companyId: string, serverId: string, shard: number, agentId: string): ServerSeries {
    const ownCompanyId = this.companyIds.get(companyId) ?? companyId
    this.companyIds.set(ownCompanyId, ownCompanyId)
    const server = new ServerSeries(key, ownCompanyId, serverId, shard, this.servers.length, agentId)
    this.servers.push(server)
    this.serversByKey.set(key, server)
    return server
  }

  isNoData(row: number): boolean {
    return (this.states.flags[row]! & FLAG_NO_DATA) !== 0
  }
}

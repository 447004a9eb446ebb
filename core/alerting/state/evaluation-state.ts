// All state that evaluation keeps in one thread. It has no behaviour of its own: the functions in evaluate/, rules/ and
// durability/ change it.

import type { RemovedServerRecord, StateRecord } from '../durability/journal-record.ts'
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
  /** `maintenance`, `decommissioned` or empty. */
  readonly status: string
  readonly subnetId: string
  readonly datacenter: string
  readonly hostname: string
  /** The managed interval, seconds; 0 = none. */
  readonly intervalSeconds: number
}

/** A rule that states point to, in its newest version. The slot of a rule id never changes. */
export type RuleSlot = {
  readonly id: string
  companyId: string
  rule: EvaluatedRule
  /** The number of the present signature, and all signatures by number. */
  signature: number
  readonly signatures: string[]
}

/** A change of an agent's presence for which no event is emitted. `unknown`: evaluation has dropped the agent. */
export type QuietPresence = { readonly agentId: string; readonly state: 'up' | 'unknown'; readonly atMs: number }

export class EvaluationState {
  readonly states = new StateTable()
  readonly dictionary = new SeriesDictionary()
  /** Servers by the 16 bytes of their id (`EntryReader.serverKey`), and by index. */
  readonly serversByKey = new Map<string, ServerSeries>()
  readonly servers: (ServerSeries | null)[] = []
  readonly flapping = new Map<number, FlapState>()
  /** Every rule that a state points to, and the index of its slot by rule id. */
  readonly slots: RuleSlot[] = []
  readonly slotOfRule = new Map<string, number>()
  readonly attributes = new Map<string, ServerAttributes>()
  rules: RuleSet = emptyRuleSet
  silences: SilenceSet = emptySilenceSet
  /** Rows that emitted an event since the last `drainEvents`: their states must go into the journal. */
  readonly touchedRows = new Set<number>()
  readonly touchedServers = new Set<ServerSeries>()
  /** During a replay: rows that the journal restored, each with the bus position that its record already reflects. */
  readonly journaledUpTo = new Map<number, number>()
  /** During a replay: removed servers, each with the bus position up to which its batches are ignored. */
  readonly removedUpTo = new Map<string, number>()
  readonly presenceJournaledUpTo = new Map<ServerSeries, number>()
  /** States that were removed and had emitted an event: the journal must record the removal. */
  removed: StateRecord[] = []
  /** Removed servers by key. Batches of their revoked agents that are still on the bus are ignored. */
  readonly removedServers = new Map<string, RemovedServerRecord[]>()
  /** Servers removed since the last `takeJournal`. */
  newlyRemovedServers: RemovedServerRecord[] = []
  private events: AlertEvent[] = []
  private quietPresence: QuietPresence[] = []
  /** One copy of each company id, shared by all its servers. */
  private readonly companyIds = new Map<string, string>()
  evaluations = 0
  samples = 0

  constructor(readonly settings: EvaluationSettings) {}

  /** Returns the events emitted since the last call, in order, and clears the list. */
  drainEvents(): AlertEvent[] {
    const events = this.events
    this.events = []
    return events
  }

  /** Events that `drainEvents` would return. */
  get eventCount(): number {
    return this.events.length
  }

  push(event: AlertEvent): void {
    this.events.push(event)
  }

  /** Returns the agents that were first seen or were dropped since the last call, in order, and clears the list. */
  takeQuietPresence(): QuietPresence[] {
    const { quietPresence } = this
    if (quietPresence.length > 0) this.quietPresence = []
    return quietPresence
  }

  noteQuietPresence(agentId: string, state: 'up' | 'unknown', atMs: number): void {
    if (agentId !== '') this.quietPresence.push({ agentId, state, atMs })
  }

  /** Why people are not notified of an event of this server and these rules at that time; null when they are. */
  suppressionOf(
    companyId: string,
    serverId: string,
    ruleIds: readonly string[],
    occurredAtMs: number,
  ): SuppressReason | null {
    const status = this.attributes.get(serverId)?.status ?? ''
    return suppressReason(this.silences, companyId, serverId, ruleIds, status, occurredAtMs)
  }

  noteRemovedServer(record: RemovedServerRecord): void {
    this.removedServers.set(record.key, [...(this.removedServers.get(record.key) ?? []), record])
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

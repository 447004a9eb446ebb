// The evaluation of the machines that one thread owns: bus entries in, events out (document 2). Nothing here reads a clock: a
// sample is evaluated at the receive time of its batch, a sweep at the time it is given, so that a replay repeats what was.
import type { EntryReader } from '../bus/entry.ts'
import { bindNewSeries, rebindServer, slotOf } from './binding.ts'
import { type EvaluatedRule, evaluateReturned, evaluateSample } from './evaluate.ts'
import type { AlertEvent, SuppressReason } from './event.ts'
import { type EventFacts, seriesEvent } from './event-maker.ts'
import { type FlapSettings, type FlapState, newFlapState, recordTransition } from './flapping.ts'
import { batchSeen } from './presence.ts'
import { type CompanyRules, emptyCompanyRules, emptyRuleSet, type RuleSet } from './rule-set.ts'
import { SeriesDictionary } from './series-dictionary.ts'
import { ServerSeries } from './server-series.ts'
import { FIRING, FLAG_NO_DATA, NO_ROW, StateTable } from './state-table.ts'
import { emptySilenceSet, type SilenceSet, suppressReason } from './suppression.ts'

export type EvaluationSettings = {
  readonly noDataAfterMs: number
  readonly flapping: FlapSettings
}

/** What the agent registry says of a machine (document 2 "Agent-record attributes"). */
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

/** A rule in use, and the number of its present signature. The slot of an id never changes. */
export type RuleSlot = {
  rule: EvaluatedRule | null
  signature: number
  signatureText: string
  readonly id: string
  companyId: string
}

/** Series that a machine may keep without a state before they are given up. */
const IDLE_SERIES_MAX = 2000

export class Evaluator {
  readonly states = new StateTable()
  readonly dictionary = new SeriesDictionary()
  /** By the 16 bytes of the server id, and by index. */
  readonly serversByKey = new Map<string, ServerSeries>()
  readonly servers: (ServerSeries | null)[] = []
  readonly flapping = new Map<number, FlapState>()
  readonly slots: RuleSlot[] = []
  readonly slotOfRule = new Map<string, number>()
  readonly attributes = new Map<string, ServerAttributes>()
  rules: RuleSet = emptyRuleSet
  silences: SilenceSet = emptySilenceSet
  /** Rows whose event left since the last `takeEvents`: their state belongs into the journal. */
  readonly touchedRows = new Set<number>()
  readonly touchedServers = new Set<ServerSeries>()
  /** Rows whose journalled state already reflects the bus up to this position (after a crash). */
  readonly settledUpTo = new Map<number, number>()
  readonly presenceSettledUpTo = new Map<ServerSeries, number>()
  private events: AlertEvent[] = []
  evaluations = 0
  samples = 0

  constructor(readonly settings: EvaluationSettings) {}

  /** The events since the last call, in order. */
  takeEvents(): AlertEvent[] {
    const events = this.events
    this.events = []
    return events
  }

  push(event: AlertEvent): void {
    this.events.push(event)
  }

  /** Why an event of this machine at that time is not told to people, or null. */
  suppressionOf(companyId: string, serverId: string, occurredAtMs: number): SuppressReason | null {
    return suppressReason(this.silences, companyId, serverId, this.attributes.get(serverId)?.status ?? '', occurredAtMs)
  }

  companyRules(companyId: string): CompanyRules {
    return this.rules.companies.get(companyId) ?? emptyCompanyRules
  }

  /** Takes over a new rule set. Machines are bound to it lazily: at their next batch or the next sweep. */
  setRules(rules: RuleSet): void {
    for (const [companyId, ofCompany] of rules.companies)
      if (this.rules.companies.get(companyId) !== ofCompany)
        for (const compiled of ofCompany.byId.values()) slotOf(this, compiled)
    this.rules = rules
  }

  server(key: string, companyId: string, serverId: string, shard: number, agentId: string): ServerSeries {
    const server = new ServerSeries(companyId, serverId, shard, this.servers.length, agentId)
    this.servers.push(server)
    this.serversByKey.set(key, server)
    return server
  }

  /** Evaluates the entry that the reader stands on; `position` is its place on the bus. */
  apply(reader: EntryReader, position: number): void {
    const key = reader.serverKey()
    let server = this.serversByKey.get(key)
    if (!server) server = this.server(key, reader.companyId(), reader.serverId(), reader.shard, reader.agentId())
    const nowMs = reader.receivedAtMs
    batchSeen(this, server, reader, position)
    if (reader.pointCount === 0) return
    const rules = this.companyRules(server.companyId)
    if (server.boundTo !== rules) rebindServer(this, server, rules, nowMs)
    reader.eachDefinition((_, fullKey) => this.dictionary.learn(fullKey))
    server.startBatch()
    const { u32, f64, idsAt, seriesCount, hasCounts, hasTimes } = reader
    const isReplay = this.settledUpTo.size > 0
    let point = 0
    for (let series = 0; series < seriesCount; series++) {
      const lo = u32[idsAt + series * 2]!
      const hi = u32[idsAt + series * 2 + 1]!
      const count = hasCounts ? u32[reader.countsAt + series]! : 1
      let index = server.find(lo, hi)
      if (index < 0) {
        index = server.add(lo, hi)
        bindNewSeries(this, server, index, nowMs)
      } else if (server.undefinedSeries?.has(index)) bindNewSeries(this, server, index, nowMs)
      const row = server.head[index]!
      if (row !== NO_ROW) {
        if (count === 1 && !isReplay) {
          const tsMs = hasTimes ? f64[reader.timesAt + point]! : reader.commonTsMs
          this.samplePoint(row, tsMs, f64[reader.valuesAt + point]!, nowMs)
        } else this.samplePoints(row, reader, point, count, position)
      }
      point += count
    }
    this.samples += point
    if (server.count > IDLE_SERIES_MAX && server.stateCount * 2 < server.count) this.dropIdleSeries(server)
  }

  /** One point of a series, for every state of the series. */
  private samplePoint(head: number, tsMs: number, value: number, nowMs: number): void {
    const { states } = this
    let row = head
    while (row !== NO_ROW) {
      const next = states.next[row]!
      states.lastReceivedMs[row] = nowMs
      if (tsMs > states.lastTsMs[row]!) this.evaluate(row, tsMs, value, tsMs, nowMs)
      row = next
    }
  }

  /** Several points of a series: in time order (decision G-73), with the newest known beforehand. */
  private samplePoints(head: number, reader: EntryReader, first: number, count: number, position: number): void {
    const { f64, valuesAt, timesAt, hasTimes, receivedAtMs } = reader
    const time = (point: number) => (hasTimes ? f64[timesAt + point]! : reader.commonTsMs)
    const order = Array.from({ length: count }, (_, offset) => first + offset)
    order.sort((a, b) => time(a) - time(b) || a - b)
    const newestTsMs = time(order[count - 1]!)
    let row = head
    while (row !== NO_ROW) {
      const next = this.states.next[row]!
      if ((this.settledUpTo.get(row) ?? 0) < position) {
        this.states.lastReceivedMs[row] = receivedAtMs
        for (const point of order)
          if (time(point) > this.states.lastTsMs[row]!)
            this.evaluate(row, time(point), f64[valuesAt + point]!, newestTsMs, receivedAtMs)
      }
      row = next
    }
  }

  private evaluate(row: number, tsMs: number, value: number, newestTsMs: number, nowMs: number): void {
    const { states } = this
    const slot = this.slots[states.rule[row]!]!
    const rule = slot.rule
    if (rule === null) return
    this.evaluations++
    const transition = evaluateSample(states, row, rule, tsMs, value, newestTsMs, this.settings.noDataAfterMs)
    if (transition !== 'none') this.transition(row, rule, transition, tsMs, value, newestTsMs, nowMs)
    else if (states.phase[row] === FIRING && rule.compiled.renotifyMs > 0 && newestTsMs - tsMs <= rule.staleMs)
      this.remind(row, rule, nowMs)
  }

  private transition(
    row: number,
    rule: EvaluatedRule,
    transition: 'opened' | 'recovered' | 'returned',
    tsMs: number,
    value: number,
    newestTsMs: number,
    nowMs: number,
  ): void {
    if (transition === 'opened') {
      this.opened(row, rule, tsMs, nowMs, value)
      return
    }
    this.closed(row, rule, tsMs, nowMs, transition === 'returned' ? 'data_returned' : 'recovered', value)
    if (transition === 'returned' && evaluateReturned(this.states, row, rule, newestTsMs) === 'opened')
      this.opened(row, rule, tsMs, nowMs, value)
  }

  /** The state went to FIRING: tells it, as far as flapping lets it. `occurredAtMs` is sample time, or the sweep's for no data. */
  opened(row: number, rule: EvaluatedRule, occurredAtMs: number, nowMs: number, value: number): void {
    const { states } = this
    states.notifiedAtMs[row] = nowMs
    const flap = this.flapOf(row)
    const verdict = recordTransition(flap, this.settings.flapping, occurredAtMs, nowMs)
    this.touchedRows.add(row)
    if (verdict === 'withhold') return
    flap.toldOpenedTsMs = occurredAtMs
    this.emit(row, rule, { type: 'alert.opened', occurredAtMs, value })
    if (verdict === 'enter') this.enterFlapping(row, rule, flap, occurredAtMs, value)
  }

  /** The state went from FIRING to OK by samples or no data. */
  closed(
    row: number,
    rule: EvaluatedRule,
    occurredAtMs: number,
    nowMs: number,
    reason: 'recovered' | 'data_returned' | 'no_data',
    value: number,
  ): void {
    const flap = this.flapOf(row)
    const verdict = recordTransition(flap, this.settings.flapping, occurredAtMs, nowMs)
    flap.closedTsMs = occurredAtMs
    this.touchedRows.add(row)
    if (verdict === 'tell') {
      this.emit(row, rule, { type: 'alert.resolved', reason, occurredAtMs, value })
      return
    }
    flap.peak = this.states.peak[row]!
    if (verdict === 'enter') this.enterFlapping(row, rule, flap, occurredAtMs, value)
  }

  private enterFlapping(row: number, rule: EvaluatedRule, flap: FlapState, occurredAtMs: number, value: number): void {
    const transitions = flap.transitionsTsMs.length
    this.emit(row, rule, { type: 'alert.flapping', reason: 'entered', transitions, occurredAtMs, value })
  }

  private flapOf(row: number): FlapState {
    let flap = this.flapping.get(row)
    if (!flap) {
      flap = newFlapState()
      this.flapping.set(row, flap)
    }
    return flap
  }

  /** A reminder, when it is due and the series is not flapping. Wall time (decision G-76). */
  remind(row: number, rule: EvaluatedRule, nowMs: number): void {
    const { states } = this
    if (nowMs - states.notifiedAtMs[row]! < rule.compiled.renotifyMs || this.flapping.get(row)?.isFlapping) return
    states.notifiedAtMs[row] = nowMs
    this.emit(row, rule, { type: 'alert.reminder', occurredAtMs: nowMs, value: states.lastValue[row]! })
  }

  /** Makes the next event of a state's key. */
  emit(row: number, rule: EvaluatedRule, facts: EventFacts): void {
    this.touchedRows.add(row)
    this.events.push(seriesEvent(this, row, rule, facts))
  }

  isNoData(row: number): boolean {
    return (this.states.flags[row]! & FLAG_NO_DATA) !== 0
  }

  /** Unlinks and frees a state. */
  removeState(row: number): void {
    const { states } = this
    const server = this.servers[states.server[row]!]!
    const series = states.series[row]!
    if (server.head[series] === row) server.head[series] = states.next[row]!
    else {
      let before = server.head[series]!
      while (states.next[before] !== row) before = states.next[before]!
      states.next[before] = states.next[row]!
    }
    server.stateCount--
    this.flapping.delete(row)
    this.settledUpTo.delete(row)
    this.touchedRows.delete(row)
    states.remove(row)
  }

  /** Gives up the series of a machine that no rule is bound to; those it still sends come again. */
  private dropIdleSeries(server: ServerSeries): void {
    const kept: { lo: number; hi: number; head: number }[] = []
    for (let index = 0; index < server.count; index++)
      if (server.head[index] !== NO_ROW)
        kept.push({ lo: server.lo(index), hi: server.hi(index), head: server.head[index]! })
    server.count = 0
    server.undefinedSeries = null
    for (const { lo, hi, head } of kept) {
      const index = server.add(lo, hi)
      server.head[index] = head
      for (let row = head; row !== NO_ROW; row = this.states.next[row]!) this.states.series[row] = index
    }
  }

  /** Forgets everything of a machine without an event (purge). */
  forgetServer(server: ServerSeries): void {
    for (let index = 0; index < server.count; index++)
      while (server.head[index] !== NO_ROW) this.removeState(server.head[index]!)
    this.servers[server.index] = null
    this.touchedServers.delete(server)
    this.presenceSettledUpTo.delete(server)
    for (const [key, held] of this.serversByKey) if (held === server) this.serversByKey.delete(key)
  }
}

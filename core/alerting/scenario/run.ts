// Runs a scenario: its simulatedServers send batches over the bus entry format, its worker evaluates, sweeps, saves and
// restarts, on a clock of its own. Nothing of the evaluation is imitated here.
import { encodeEntry } from '../../bus/entry.ts'
import { limits } from '../../limits.ts'
import { SampleBatch } from '../../series/sample-batch.ts'
import { fullSeriesKey, parseSeriesKey, seriesId } from '../../series/series-key.ts'
import { agentDownRuleId, groupDownRuleId } from '../evaluate/event.ts'
import { type GroupOverride, groupParameters, type HubGroupSettings } from '../evaluate/group-parameters.ts'
import type { RawSilence } from '../evaluate/suppression.ts'
import type { RawRule } from '../rules/rule.ts'
import type { EvaluationSettings, ServerAttributes } from '../state/evaluation-state.ts'
import { differences, type EmittedEvent, envelopeFaults, type ScenarioNames } from './event-text.ts'
import type { GroupField, Scenario, ScenarioAction, ScenarioRule, ScenarioSeries, ScenarioSilence } from './scenario.ts'
import { type Durable, newDurable, ScenarioWorker } from './worker.ts'

/** Instant 0 of every scenario: 2026-01-01T00:00:00Z. */
const START_MS = 1_767_225_600_000

/** What a run came to: the faults, one line each, and all that was emitted. */
type ScenarioResult = { readonly faults: readonly string[]; readonly emitted: readonly EmittedEvent[] }

export function runScenario(scenario: Scenario): ScenarioResult {
  const run = new ScenarioRun(scenario)
  run.run()
  const emitted = run.emitted()
  return { faults: [...differences(scenario, run, emitted), ...envelopeFaults(emitted)], emitted }
}

type SimulatedServer = {
  readonly id: string
  readonly companyId: string
  agentId: string
  interval: number
  seq: number
  attributes: ServerAttributes | null
  status: string
  subnet: string
  datacenter: string
  readonly announced: Set<string>
}

class ScenarioRun implements ScenarioNames {
  readonly startMs = START_MS
  private readonly names = new Map<string, string>([
    [agentDownRuleId, agentDownRuleId],
    [groupDownRuleId, groupDownRuleId],
  ])
  private readonly ids = new Map<string, string>()
  private readonly simulatedServers = new Map<string, SimulatedServer>()
  private readonly rules = new Map<string, { rule: ScenarioRule; version: number; isThere: boolean }>()
  private readonly silences = new Map<string, ScenarioSilence>()
  private readonly hubGroups = new Map<string, Partial<Record<GroupField, number | null>>>()
  private readonly configGroups = new Map<string, GroupOverride>()
  private syncVersion = 0
  private readonly durable: Durable = newDurable()
  private worker: ScenarioWorker | null = null
  private startsAtMs = 0
  private nowMs = START_MS

  constructor(private readonly scenario: Scenario) {
    for (const server of scenario.servers) {
      const simulated: SimulatedServer = {
        id: this.idOf('server', server.name),
        companyId: this.idOf('company', server.company),
        agentId: this.idOf('agent', `${server.name}#1`),
        interval: server.intervalSeconds,
        seq: 0,
        attributes: null,
        status: server.status,
        subnet: server.subnet,
        datacenter: server.datacenter,
        announced: new Set(),
      }
      this.simulatedServers.set(server.name, simulated)
      this.describe(server.name, simulated)
    }
  }

  readonly nameOf = (id: string): string => this.names.get(id) ?? id

  /** Ids in the order of appearance: of two servers, the one named first has the smaller id. */
  private idOf(kind: 'company' | 'server' | 'rule' | 'agent' | 'silence', name: string): string {
    const known = this.ids.get(`${kind} ${name}`)
    if (known) return known
    const digit = { company: 'c', server: '5', rule: '1', agent: 'a', silence: '9' }[kind]
    const id = `${digit}0000000-0000-4000-8000-${String(this.ids.size + 1).padStart(12, '0')}`
    this.ids.set(`${kind} ${name}`, id)
    this.names.set(id, name)
    return id
  }

  private describe(name: string, simulated: SimulatedServer): void {
    simulated.attributes = {
      companyId: simulated.companyId,
      status: simulated.status,
      subnetId: simulated.subnet,
      datacenter: simulated.datacenter,
      hostname: name,
      intervalSeconds: simulated.interval,
    }
  }

  emitted(): EmittedEvent[] {
    return this.durable.emitted.map(({ event, atMs }) => ({ event, emittedAtMs: atMs - START_MS }))
  }

  run(): void {
    const { steps, untilMs, settings } = this.scenario
    let next = 0
    for (let atMs = 0; atMs <= untilMs; ) {
      this.nowMs = START_MS + atMs
      if (this.worker) this.worker.nowMs = this.nowMs
      else if (atMs >= this.startsAtMs && atMs > 0) this.start()
      const now: ScenarioAction[] = []
      for (; next < steps.length && steps[next]!.atMs <= atMs; next++) now.push(steps[next]!.action)
      for (const action of now) if (action.kind !== 'stop' && action.kind !== 'snapshot') this.apply(action)
      if (atMs === 0) this.start()
      if (this.worker) {
        this.worker.consume()
        if (atMs % limits.presenceSweepMs === 0) this.worker.sweep()
        const isDue = settings.snapshotIntervalMs > 0 && atMs > 0 && atMs % settings.snapshotIntervalMs === 0
        if (isDue || now.some(action => action.kind === 'snapshot')) this.worker.snapshot()
      }
      for (const action of now) if (action.kind === 'stop') this.stop(action.isCrash, atMs + action.downMs)
      const sweepMs = (Math.floor(atMs / limits.presenceSweepMs) + 1) * limits.presenceSweepMs
      const startsMs = this.worker ? sweepMs : this.startsAtMs
      atMs = Math.min(sweepMs, startsMs, steps[next]?.atMs ?? sweepMs)
    }
  }

  private start(): void {
    const { settings } = this.scenario
    const evaluation: EvaluationSettings = {
      noDataAfterMs: settings.noDataAfterMs,
      flapping: {
        windowMs: settings.flapWindowMs,
        transitions: settings.flapTransitions,
        stableMs: settings.flapStableMs,
      },
    }
    const attributes = new Map<string, ServerAttributes>()
    for (const simulated of this.simulatedServers.values())
      if (simulated.attributes) attributes.set(simulated.id, simulated.attributes)
    this.worker = new ScenarioWorker(
      this.durable,
      {
        settings: evaluation,
        rules: this.rawRules(),
        silences: this.rawSilences(),
        attributes,
        groupParametersOf: companyId => this.groupParameters(companyId),
        isGroupEnabled: settings.groupEnabled,
      },
      this.nowMs,
    )
  }

  private stop(isCrash: boolean, startsAtMs: number): void {
    if (!isCrash) this.worker?.snapshot()
    this.worker = null
    this.startsAtMs = startsAtMs
    if (startsAtMs <= this.nowMs - START_MS) this.start()
  }

  private groupParameters(companyId: string) {
    const { groupWindowMs, groupMin, groupRatio } = this.scenario.settings
    const hub: HubGroupSettings = this.hubGroups.get(companyId) ?? {}
    const defaults = { windowMs: groupWindowMs, min: groupMin, ratio: groupRatio }
    return groupParameters(hub, this.configGroups.get(companyId), defaults)
  }

  private apply(action: Exclude<ScenarioAction, { kind: 'stop' | 'snapshot' }>): void {
    switch (action.kind) {
      case 'batch':
        this.publish(action.server, action.series)
        return
      case 'rule': {
        const version = (this.rules.get(action.rule.name)?.version ?? 0) + 1
        this.rules.set(action.rule.name, { rule: action.rule, version, isThere: true })
        this.rulesChanged()
        return
      }
      case 'rule-end':
      case 'rule-enable': {
        const held = this.rules.get(action.rule)
        if (held)
          this.rules.set(action.rule, { ...held, version: held.version + 1, isThere: action.kind === 'rule-enable' })
        this.rulesChanged()
        return
      }
      case 'silence':
        this.silences.set(action.silence.name, action.silence)
        this.worker?.setSilences(this.rawSilences())
        return
      case 'unsilence':
        this.silences.delete(action.name)
        this.worker?.setSilences(this.rawSilences())
        return
      case 'attribute':
      case 'revoke':
      case 'enroll':
        this.applyServer(action)
        return
      case 'overflow':
        this.worker?.overflowed()
        return
      case 'group-setting': {
        const companyId = this.idOf('company', action.company)
        this.setGroup(companyId, action.source, action.field, action.value)
      }
    }
  }

  private setGroup(companyId: string, source: 'hub' | 'config', field: GroupField, value: number | null): void {
    if (source === 'hub') this.hubGroups.set(companyId, { ...this.hubGroups.get(companyId), [field]: value })
    else {
      const name = { group_down_min: 'min', group_down_ratio: 'ratio', group_down_window_seconds: 'windowMs' }[field]
      const scaled = field === 'group_down_window_seconds' && value !== null ? value * 1000 : value
      this.configGroups.set(companyId, { ...this.configGroups.get(companyId), [name]: scaled })
    }
  }

  private applyServer(action: Extract<ScenarioAction, { kind: 'attribute' | 'revoke' | 'enroll' }>): void {
    const simulated = this.simulatedServers.get(action.server)!
    if (action.kind === 'revoke') simulated.attributes = null
    else {
      if (action.kind === 'attribute') simulated[action.field] = action.value
      else {
        simulated.agentId = this.idOf('agent', `${action.server}#${this.ids.size}`)
        simulated.announced.clear()
      }
      this.describe(action.server, simulated)
    }
    this.worker?.setAttributes(simulated.id, simulated.attributes, simulated.agentId)
  }

  private rulesChanged(): void {
    this.syncVersion++
    this.worker?.setRules(this.rawRules())
  }

  private rawRules(): RawRule[] {
    const raw: RawRule[] = []
    for (const [name, { rule, version, isThere }] of this.rules) {
      if (!isThere) continue
      const serverIds = rule.serverNames.map(server => this.idOf('server', server))
      raw.push({
        ...rule.fields,
        id: this.idOf('rule', name),
        version,
        sync_version: this.syncVersion,
        company_id: this.idOf('company', rule.company),
        name,
        scope: { all: rule.scopeAll, server_ids: serverIds, tags: [], environments: [], roles: [], datacenters: [] },
        resolved_server_ids: rule.resolvedNames.map(server => this.idOf('server', server)),
        enabled: true,
        deleted: false,
      })
    }
    return raw
  }

  private rawSilences(): RawSilence[] {
    return [...this.silences].map(([name, silence]) => {
      const ids = silence.serverNames.map(server => this.idOf('server', server))
      return {
        id: this.idOf('silence', name),
        company_id: this.idOf('company', silence.company),
        sync_version: 1,
        scope: {
          all: silence.all,
          ...(silence.place === 'scope' ? { server_ids: ids } : {}),
          ...(silence.place === 'resolved' ? { resolved_server_ids: ids } : {}),
        },
        ...(silence.place === 'top' ? { resolved_server_ids: ids } : {}),
        ...(silence.ruleNames.length > 0 ? { rule_ids: silence.ruleNames.map(rule => this.idOf('rule', rule)) } : {}),
        starts_at: new Date(START_MS + silence.fromMs).toISOString(),
        ends_at: new Date(START_MS + silence.untilMs).toISOString(),
      }
    })
  }

  /** A batch of the simulated reaches the bus now. */
  private publish(server: string, series: readonly ScenarioSeries[]): void {
    const simulated = this.simulatedServers.get(server)!
    const batch = new SampleBatch()
    for (const { key, points } of series) {
      const { metric, labels } = parseSeriesKey(key)
      const full = fullSeriesKey(metric, labels)
      const { lo, hi } = seriesId(full)
      const index = batch.seriesCount++
      batch.idLo[index] = lo
      batch.idHi[index] = hi
      batch.pointStart[index] = batch.pointCount
      for (const { tsMs, value } of points) {
        if (batch.pointCount === batch.tsMs.length) batch.growPoints()
        batch.tsMs[batch.pointCount] = START_MS + tsMs
        batch.value[batch.pointCount++] = value
      }
      batch.pointStart[index + 1] = batch.pointCount
      if (!simulated.announced.has(full)) batch.definitions.push({ seriesIndex: index, key: full })
      simulated.announced.add(full)
    }
    const { companyId, agentId, interval } = simulated
    const header = {
      companyId,
      serverId: simulated.id,
      agentId,
      receivedAtMs: this.nowMs,
      seq: ++simulated.seq,
      intervalSeconds: interval,
    }
    this.durable.bus.push(encodeEntry(header, batch))
  }
}

// What must happen, written from document 2 and its decisions alone: slow, naive, every sample kept, every question
// answered by looking back at them. It shares no code with the evaluation; from core it takes types.

import type { RawSilence } from '../../core/alerting/evaluate/suppression.ts'
import type { RawRule } from '../../core/alerting/rules/rule.ts'
import type { EvaluationSettings, ServerAttributes } from '../../core/alerting/state/evaluation-state.ts'
import type { SimBatch } from './plan.ts'

export type OracleStep =
  | { readonly kind: 'started'; readonly atMs: number }
  | { readonly kind: 'overflow'; readonly atMs: number }
  | { readonly kind: 'rules'; readonly rules: readonly RawRule[] }
  | { readonly kind: 'silences'; readonly silences: readonly RawSilence[] }
  | {
      readonly kind: 'attributes'
      readonly atMs: number
      readonly serverId: string
      /** Of the agent that was revoked, with null. */
      readonly agentId: string
      readonly attributes: ServerAttributes | null
    }
  | { readonly kind: 'batch'; readonly batch: SimBatch }
  | { readonly kind: 'sweep'; readonly part: SweepPart; readonly atMs: number }
export type SweepPart = 'servers' | 'states' | 'flapping'

/** An event without what identifies it: everything that the documents say of its content. */
export type OracleEvent = {
  readonly key: string
  readonly type: string
  readonly atMs: number
  readonly value: number | null
  readonly threshold: number | null
  readonly severity: string
  readonly version: number
  readonly suppressed: string | null
  readonly reason: string | null
  readonly durationSeconds: number | null
  readonly peak: number | null
  readonly transitions: number | null
  readonly isNoData: boolean
}

type Sample = { tsMs: number; value: number; isViolating: boolean; isRecovered: boolean }
type Flap = { transitionsMs: number[]; isFlapping: boolean; since: number; lastAtMs: number; closedAtMs: number }
/** One (rule, server, series). */
type Watch = {
  readonly ruleId: string
  readonly ruleKey: number
  readonly serverId: string
  readonly companyId: string
  readonly seriesKey: string
  readonly samples: Sample[]
  /** Samples before this index do not count for continuity: an opening, a closing, a silence lies between. */
  barrier: number
  isFiring: boolean
  isNoData: boolean
  lastReceivedMs: number
  notifiedAtMs: number
  /** Of the alert as the hub was told. */
  openedAtMs: number
  peaks: number[]
  readonly flap: Flap
}
type Server = {
  readonly companyId: string
  agentId: string
  state: 'unknown' | 'up' | 'down'
  lastSeenMs: number
  lastBatchMs: number
  intervalSeconds: number
  downSinceMs: number
}

const METRICS = ['cpu_usage_percent', 'disk_used_percent', 'mem_used_percent']
const seconds = (ms: number): number => Math.max(0, Math.floor(ms / 1000))

export class Oracle {
  readonly events: OracleEvent[] = []
  private readonly watches = new Map<string, Watch>()
  private readonly servers = new Map<string, Server>()
  private readonly goneAgents = new Set<string>()
  private readonly replacedAgents = new Set<string>()
  private readonly attributes = new Map<string, ServerAttributes>()
  private rules = new Map<string, RawRule>()
  /** The last form of each rule, and how often its signature changed. */
  private readonly lastForm = new Map<string, RawRule>()
  private readonly signatures = new Map<string, { text: string; count: number }>()
  private silences: readonly RawSilence[] = []
  private graceFromMs = 0

  constructor(private readonly settings: EvaluationSettings) {}

  take(step: OracleStep): void {
    switch (step.kind) {
      case 'started':
        // A fresh process knows of servers what it is given: one without an agent has no status (decision G-93).
        this.attributes.clear()
        this.graceFromMs = step.atMs
        return
      case 'overflow':
        this.graceFromMs = step.atMs
        return
      case 'rules':
        this.takeRules(step.rules)
        return
      case 'silences':
        this.silences = step.silences
        return
      case 'attributes':
        if (step.attributes) this.attributes.set(step.serverId, step.attributes)
        else this.serverRemoved(step.serverId, step.agentId, step.atMs)
        return
      case 'batch':
        this.takeBatch(step.batch)
        return
      case 'sweep':
        this.sweep(step.part, step.atMs)
    }
  }

  /** Keys whose alert is open at the hub. */
  open(): string[] {
    const open: string[] = []
    for (const [key, watch] of this.watches) if (watch.isFiring || watch.flap.isFlapping) open.push(key)
    for (const [serverId, server] of this.servers)
      if (server.state === 'down') open.push(`${serverId}|agent_down|agent:${server.agentId}`)
    return open.sort()
  }

  /** The hub resolves agent.down of a revoked agent itself (decision G-48): such an agent's key does not count. */
  isOfGoneAgent(key: string): boolean {
    return [...this.goneAgents, ...this.replacedAgents].some(agentId => key.endsWith(`|agent:${agentId}`))
  }

  private takeRules(rules: readonly RawRule[]): void {
    this.rules = new Map()
    for (const rule of rules) {
      if (!METRICS.includes(rule.metric ?? '')) continue
      this.rules.set(rule.id, rule)
      this.lastForm.set(rule.id, rule)
      const text = JSON.stringify([rule.company_id, rule.metric, rule.matchers, rule.scope.all])
      const known = this.signatures.get(rule.id)
      if (known?.text !== text) this.signatures.set(rule.id, { text, count: (known?.count ?? 0) + 1 })
    }
  }

  private covers(rule: RawRule, serverId: string): boolean {
    return rule.scope.all || rule.scope.server_ids.includes(serverId) || rule.resolved_server_ids.includes(serverId)
  }

  /** Document 2 "Rule changes": lazily, at an evaluation or a sweep of the server. */
  private settleRules(serverId: string, atMs: number): void {
    for (const [key, watch] of this.watches) {
      if (watch.serverId !== serverId) continue
      const rule = this.rules.get(watch.ruleId)
      const isSame = rule && this.signatures.get(rule.id)!.count === watch.ruleKey
      const reason = !rule
        ? 'rule_removed'
        : !isSame
          ? 'rule_changed'
          : !this.covers(rule, serverId)
            ? 'out_of_scope'
            : null
      if (!reason) continue
      this.endForRule(watch, reason, atMs)
      this.watches.delete(key)
    }
  }

  private endForRule(watch: Watch, reason: string, atMs: number): void {
    if (watch.isFiring || watch.flap.isFlapping) this.resolved(watch, reason, atMs)
  }

  private serverRemoved(serverId: string, agentId: string, atMs: number): void {
    this.attributes.delete(serverId)
    const server = this.servers.get(serverId)
    if (server?.agentId !== agentId) return
    for (const [key, watch] of this.watches)
      if (watch.serverId === serverId) {
        this.endForRule(watch, 'out_of_scope', atMs)
        this.watches.delete(key)
      }
    this.servers.delete(serverId)
    this.goneAgents.add(agentId)
  }

  private takeBatch(batch: SimBatch): void {
    const { serverId, companyId, agentId, receivedAtMs } = batch
    if (this.goneAgents.has(agentId)) return
    this.seen(batch)
    if (batch.series.length === 0) return
    this.settleRules(serverId, receivedAtMs)
    for (const { key: seriesKey, points } of batch.series) {
      const ordered = [...points].sort((a, b) => a[0] - b[0])
      const newestMs = ordered.at(-1)![0]
      const metric = seriesKey.split('{')[0]!
      const mount = /mount="([^"]*)"/.exec(seriesKey)?.[1] ?? ''
      for (const rule of this.rules.values()) {
        if (rule.company_id !== companyId || rule.metric !== metric || !this.covers(rule, serverId)) continue
        const wanted = rule.matchers?.mount
        if (wanted !== undefined && wanted !== mount) continue
        const watch = this.watchOf(rule, serverId, companyId, seriesKey)
        watch.lastReceivedMs = receivedAtMs
        for (const [tsMs, value] of ordered) {
          const lastMs = watch.samples.at(-1)?.tsMs ?? Number.NEGATIVE_INFINITY
          if (tsMs > lastMs) this.evaluate(watch, rule, tsMs, value, newestMs, receivedAtMs)
        }
      }
    }
  }

  private watchOf(rule: RawRule, serverId: string, companyId: string, seriesKey: string): Watch {
    const key = `${serverId}|${rule.id}|${seriesKey}`
    const held = this.watches.get(key)
    if (held) return held
    const watch: Watch = {
      ruleId: rule.id,
      ruleKey: this.signatures.get(rule.id)!.count,
      serverId,
      companyId,
      seriesKey,
      samples: [],
      barrier: 0,
      isFiring: false,
      isNoData: false,
      lastReceivedMs: 0,
      notifiedAtMs: 0,
      openedAtMs: 0,
      peaks: [],
      flap: { transitionsMs: [], isFlapping: false, since: 0, lastAtMs: 0, closedAtMs: 0 },
    }
    this.watches.set(key, watch)
    return watch
  }

  /** Since when `holds` is true without a break or a gap, seen from the last sample; null when it is not. */
  private heldSince(watch: Watch, holds: (sample: Sample) => boolean): number | null {
    let sinceMs: number | null = null
    for (let at = watch.samples.length - 1; at >= watch.barrier; at--) {
      const sample = watch.samples[at]!
      if (!holds(sample)) break
      if (sinceMs !== null && sinceMs - sample.tsMs > this.settings.noDataAfterMs) break
      sinceMs = sample.tsMs
    }
    return sinceMs
  }

  private evaluate(watch: Watch, rule: RawRule, tsMs: number, value: number, newestMs: number, nowMs: number): void {
    const threshold = rule.threshold!
    const isViolating = {
      '>': value > threshold,
      '>=': value >= threshold,
      '<': value < threshold,
      '<=': value <= threshold,
      '==': value === threshold,
      '!=': value !== threshold,
    }[rule.operator!]
    const limit = rule.recover_threshold
    const isBeyond =
      limit === null || rule.operator === '==' || rule.operator === '!='
        ? true
        : rule.operator === '>' || rule.operator === '>='
          ? value < limit
          : value > limit
    watch.samples.push({ tsMs, value, isViolating, isRecovered: !isViolating && isBeyond })
    if (watch.isFiring && watch.isNoData) {
      watch.isFiring = false
      watch.barrier = watch.samples.length - 1
      this.transition(watch, 'close', tsMs, nowMs, 'data_returned')
      watch.isNoData = false
    }
    const staleMs = Math.max(rule.for_seconds! * 1000, 120_000)
    const isStale = newestMs - tsMs > staleMs
    if (!watch.isFiring) {
      const sinceMs = this.heldSince(watch, sample => sample.isViolating)
      if (sinceMs === null || tsMs - sinceMs < rule.for_seconds! * 1000 || isStale) return
      watch.isFiring = true
      watch.barrier = watch.samples.length
      this.transition(watch, 'open', tsMs, nowMs, null)
      watch.peaks.push(value)
      return
    }
    if (isViolating) watch.peaks.push(value)
    const sinceMs = this.heldSince(watch, sample => sample.isRecovered)
    if (sinceMs !== null && tsMs - sinceMs >= rule.recover_for_seconds! * 1000) {
      watch.isFiring = false
      watch.barrier = watch.samples.length
      this.transition(watch, 'close', tsMs, nowMs, 'recovered')
    } else if (!isStale) this.remind(watch, rule, nowMs)
  }

  private remind(watch: Watch, rule: RawRule, nowMs: number): void {
    const everyMs = rule.renotify_seconds! * 1000
    if (!watch.isFiring || everyMs === 0 || watch.flap.isFlapping || nowMs - watch.notifiedAtMs < everyMs) return
    watch.notifiedAtMs = nowMs
    this.tell(watch, { type: 'alert.reminder', atMs: nowMs })
  }

  /** Document 2 "Flapping" 1 to 3. */
  private transition(watch: Watch, to: 'open' | 'close', atMs: number, nowMs: number, reason: string | null): void {
    const { flap } = watch
    const limit = this.settings.flapping.transitions
    flap.lastAtMs = nowMs
    if (to === 'close') flap.closedAtMs = atMs
    else watch.notifiedAtMs = nowMs
    if (flap.isFlapping) {
      flap.since++
      return
    }
    const { windowMs } = this.settings.flapping
    flap.transitionsMs = [...flap.transitionsMs, atMs].filter(earlier => atMs - earlier <= windowMs)
    const enters = limit > 0 && flap.transitionsMs.length >= Math.max(2, limit)
    if (to === 'open') {
      watch.openedAtMs = atMs
      watch.peaks = []
      this.tell(watch, { type: 'alert.opened', atMs })
    } else if (!enters) this.resolved(watch, reason!, atMs)
    if (!enters) return
    flap.isFlapping = true
    flap.since = 0
    this.tell(watch, { type: 'alert.flapping', atMs, reason: 'entered', transitions: flap.transitionsMs.length })
  }

  private resolved(watch: Watch, reason: string, atMs: number): void {
    const { operator } = this.lastForm.get(watch.ruleId)!
    const peak =
      watch.peaks.length === 0
        ? null
        : operator === '>' || operator === '>='
          ? Math.max(...watch.peaks)
          : operator === '<' || operator === '<='
            ? Math.min(...watch.peaks)
            : watch.peaks.at(-1)!
    this.tell(watch, { type: 'alert.resolved', atMs, reason, durationSeconds: seconds(atMs - watch.openedAtMs), peak })
  }

  private tell(watch: Watch, facts: Partial<OracleEvent> & { type: string; atMs: number }): void {
    const rule = this.lastForm.get(watch.ruleId)!
    this.events.push({
      key: `${watch.serverId}|${watch.ruleId}|${watch.seriesKey}`,
      value: watch.samples.at(-1)?.value ?? null,
      threshold: watch.isNoData ? null : rule.threshold,
      severity: rule.severity,
      version: rule.version,
      suppressed: this.suppression(watch.companyId, watch.serverId, watch.ruleId, facts.atMs),
      reason: null,
      durationSeconds: null,
      peak: null,
      transitions: null,
      isNoData: watch.isNoData,
      ...facts,
    })
  }

  /** `ruleId` null: an event of no rule. No world has a rule of kind agent_down. */
  private suppression(companyId: string, serverId: string, ruleId: string | null, atMs: number): string | null {
    const status = this.attributes.get(serverId)?.status
    if (status === 'decommissioned' || status === 'maintenance') return status
    const isSilent = this.silences.some(
      silence =>
        silence.company_id === companyId &&
        (silence.scope.all || silence.scope.server_ids?.includes(serverId)) &&
        (silence.rule_ids === undefined || (ruleId !== null && silence.rule_ids.includes(ruleId))) &&
        atMs >= Date.parse(silence.starts_at) &&
        atMs < Date.parse(silence.ends_at),
    )
    return isSilent ? 'silence' : null
  }

  private intervalSeconds(serverId: string, server: Server): number {
    const isValid = (interval: number) => interval >= 10 && interval <= 300
    if (isValid(server.intervalSeconds)) return server.intervalSeconds
    const managed = this.attributes.get(serverId)?.intervalSeconds ?? 0
    return isValid(managed) ? managed : 30
  }

  private seen({ serverId, companyId, agentId, intervalSeconds, receivedAtMs }: SimBatch): void {
    let server = this.servers.get(serverId)
    if (!server) {
      server = {
        companyId,
        agentId,
        state: 'unknown',
        lastSeenMs: 0,
        lastBatchMs: 0,
        intervalSeconds: 0,
        downSinceMs: 0,
      }
      this.servers.set(serverId, server)
    }
    if (server.agentId !== agentId) {
      this.replacedAgents.add(server.agentId)
      server.agentId = agentId
      server.state = 'unknown'
    }
    this.replacedAgents.delete(agentId)
    server.lastBatchMs = receivedAtMs
    if (server.state === 'down')
      this.agentEvent(serverId, server, 'agent.up', receivedAtMs, 0, seconds(receivedAtMs - server.downSinceMs))
    server.state = 'up'
    server.lastSeenMs = Math.max(server.lastSeenMs, receivedAtMs)
    server.intervalSeconds = intervalSeconds
  }

  private agentEvent(
    serverId: string,
    server: Server,
    type: string,
    atMs: number,
    value: number,
    durationSeconds: number | null,
  ): void {
    this.events.push({
      key: `${serverId}|agent_down|agent:${server.agentId}`,
      type,
      atMs,
      value,
      threshold: Math.max(3 * this.intervalSeconds(serverId, server), 90),
      severity: 'critical',
      version: 0,
      suppressed: this.suppression(server.companyId, serverId, null, atMs),
      reason: null,
      durationSeconds,
      peak: null,
      transitions: null,
      isNoData: false,
    })
  }

  private sweep(part: SweepPart, nowMs: number): void {
    if (part === 'servers')
      for (const [serverId, server] of this.servers) {
        this.sweepPresence(serverId, server, nowMs)
        this.settleRules(serverId, nowMs)
      }
    else
      for (const watch of this.watches.values())
        part === 'states' ? this.sweepState(watch, nowMs) : this.sweepFlap(watch, nowMs)
  }

  private sweepPresence(serverId: string, server: Server, nowMs: number): void {
    const interval = this.intervalSeconds(serverId, server)
    const isGrace = nowMs < this.graceFromMs + 2 * interval * 1000
    if (server.state !== 'up' || isGrace || server.lastSeenMs >= nowMs - Math.max(3 * interval, 90) * 1000) return
    server.state = 'down'
    server.downSinceMs = nowMs
    this.agentEvent(serverId, server, 'agent.down', nowMs, seconds(nowMs - server.lastSeenMs), null)
  }

  /** Document 2 "No-data sweep", then reminders. */
  private sweepState(watch: Watch, nowMs: number): void {
    const rule = this.rules.get(watch.ruleId)
    const server = this.servers.get(watch.serverId)
    if (!rule || !server) return
    const interval = this.intervalSeconds(watch.serverId, server)
    const isSilent =
      nowMs - watch.lastReceivedMs > this.settings.noDataAfterMs &&
      server.state === 'up' &&
      server.lastBatchMs > watch.lastReceivedMs &&
      nowMs - server.lastBatchMs <= Math.max(3 * interval, 90) * 1000
    if (isSilent) {
      if (!watch.isFiring) watch.barrier = watch.samples.length
      if (rule.no_data === 'alert' && !watch.isFiring) {
        watch.isFiring = true
        watch.isNoData = true
        this.transition(watch, 'open', nowMs, nowMs, null)
      } else if (rule.no_data === 'resolve' && watch.isFiring) {
        watch.isFiring = false
        watch.barrier = watch.samples.length
        this.transition(watch, 'close', nowMs, nowMs, 'no_data')
        watch.isNoData = false
      }
    }
    this.remind(watch, rule, nowMs)
  }

  /** Document 2 "Flapping" 4. */
  private sweepFlap(watch: Watch, nowMs: number): void {
    const { flap } = watch
    if (!flap.isFlapping || nowMs - flap.lastAtMs < this.settings.flapping.stableMs) return
    flap.isFlapping = false
    flap.transitionsMs = []
    this.tell(watch, { type: 'alert.flapping', atMs: nowMs, reason: 'exited', transitions: flap.since })
    watch.notifiedAtMs = nowMs
    if (!watch.isFiring) this.resolved(watch, 'recovered', flap.closedAtMs)
  }
}

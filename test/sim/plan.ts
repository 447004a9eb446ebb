// A simulated world as a list of what happens in it, made from a seed. It is data, so that a failing world can be
// shrunk.

import type { RawSilence } from '../../core/alerting/evaluate/suppression.ts'
import type { RawRule } from '../../core/alerting/rules/rule.ts'
import type { EvaluationSettings, ServerAttributes } from '../../core/alerting/state/evaluation-state.ts'
import { type Random, randomOf } from './random.ts'

export const START_MS = 1_767_225_600_000

export type SimSeries = { readonly key: string; readonly points: readonly (readonly [tsMs: number, value: number])[] }
export type SimBatch = {
  readonly companyId: string
  readonly serverId: string
  readonly agentId: string
  readonly intervalSeconds: number
  readonly receivedAtMs: number
  readonly series: readonly SimSeries[]
}

export type SimAction =
  | { readonly kind: 'batch'; readonly batch: SimBatch }
  | { readonly kind: 'rules'; readonly rules: readonly RawRule[] }
  | { readonly kind: 'silences'; readonly silences: readonly RawSilence[] }
  | {
      readonly kind: 'attributes'
      readonly serverId: string
      readonly agentId: string
      readonly attributes: ServerAttributes | null
    }
  | { readonly kind: 'overflow' }
  /**
   * The process dies at the (ops + 1)th durable operation from now, just before or just after it; 0 and before: at
   * once.
   */
  | { readonly kind: 'kill'; readonly ops: number; readonly isAfter: boolean; readonly downMs: number }
  | { readonly kind: 'stop'; readonly downMs: number }
  | { readonly kind: 'hub'; readonly isUp: boolean }

/** `isQuiet`: the worker does not get to run at this instant, so that work piles up. */
export type TimedAction = { readonly atMs: number; readonly isQuiet: boolean; readonly action: SimAction }
export type Plan = {
  readonly seed: number
  readonly settings: EvaluationSettings
  readonly snapshotIntervalMs: number
  readonly endMs: number
  readonly actions: readonly TimedAction[]
}

type Server = {
  readonly serverId: string
  readonly companyId: string
  readonly intervalMs: number
  agentNumber: number
  status: string
  isGone: boolean
}

const uuid = (digit: string, number: number): string =>
  `${digit}0000000-0000-4000-8000-${String(number).padStart(12, '0')}`
const SECOND = 1000
const MINUTE = 60_000
const SERIES = [
  'cpu_usage_percent',
  'disk_used_percent{mount="/"}',
  'disk_used_percent{mount="/home"}',
  'mem_used_percent',
]

class PlanMaker {
  readonly random: Random
  readonly actions: TimedAction[] = []
  readonly servers: Server[] = []
  readonly rules = new Map<string, RawRule>()
  readonly lastForm = new Map<string, RawRule>()
  readonly silences: RawSilence[] = []
  readonly endMs: number
  syncVersion = 0

  constructor(readonly seed: number) {
    this.random = randomOf(seed)
    this.endMs = START_MS + this.random.between(15, 50) * MINUTE
  }

  add(atMs: number, action: SimAction): void {
    if (atMs <= this.endMs) this.actions.push({ atMs: Math.floor(atMs), isQuiet: this.random.chance(0.15), action })
  }

  make(): Plan {
    const { random } = this
    const count = random.between(1, 3)
    for (let index = 0; index < count; index++)
      this.servers.push({
        serverId: uuid('5', index + 1),
        companyId: uuid('c', random.chance(0.8) ? 1 : 2),
        intervalMs: random.pick([10, 30, 30, 60]) * SECOND,
        agentNumber: index + 1,
        status: random.chance(0.1) ? 'maintenance' : '',
        isGone: false,
      })
    for (const server of this.servers) this.describe(START_MS, server)
    for (let index = random.between(1, 4); index > 0; index--) this.rule(`${index}`)
    this.rulesChange(START_MS)
    this.control()
    for (const server of this.servers) this.traffic(server)
    this.failures()
    const order = this.actions.map((action, index) => ({ action, index }))
    order.sort((a, b) => a.action.atMs - b.action.atMs || a.index - b.index)
    return {
      seed: this.seed,
      settings: {
        noDataAfterMs: random.pick([1, 2, 5]) * MINUTE,
        flapping: {
          windowMs: random.pick([2, 5, 30]) * MINUTE,
          transitions: random.pick([0, 2, 3, 4]),
          stableMs: random.pick([1, 3]) * MINUTE,
        },
      },
      snapshotIntervalMs: random.pick([30, 60, 240]) * SECOND,
      endMs: this.endMs,
      actions: order.map(({ action }) => action),
    }
  }

  private describe(atMs: number, { serverId, companyId, status, intervalMs, isGone, agentNumber }: Server): void {
    const attributes: ServerAttributes | null = isGone
      ? null
      : { companyId, status, subnetId: '', datacenter: '', hostname: '', intervalSeconds: intervalMs / SECOND }
    this.add(atMs, { kind: 'attributes', serverId, agentId: uuid('a', agentNumber), attributes })
  }

  /** A new or changed rule, also one that was deleted; operator and company of an id stay, its signature may not. */
  private rule(name: string): void {
    const { random } = this
    const id = uuid('1', Number(name))
    const held = this.lastForm.get(id)
    const operator = held?.operator ?? random.pick(['>', '>', '>', '<', '>=', '==', '!='] as const)
    const isLow = operator === '<'
    const isNewSignature = !held || random.chance(0.3)
    const metric = isNewSignature ? random.pick(['cpu_usage_percent', 'disk_used_percent']) : held.metric
    const isAll = isNewSignature ? random.chance(0.6) : held.scope.all
    const ids = this.servers.filter(() => random.chance(0.6)).map(server => server.serverId)
    const threshold = isLow ? 20 : random.pick([90, 90, 95, 50])
    const rule: RawRule = {
      id,
      version: (held?.version ?? 0) + 1,
      sync_version: ++this.syncVersion,
      company_id: held?.company_id ?? uuid('c', random.chance(0.85) ? 1 : 2),
      name,
      kind: 'threshold',
      scope: { all: isAll, server_ids: isAll ? [] : ids, tags: [], environments: [], roles: [], datacenters: [] },
      resolved_server_ids: [],
      metric: random.chance(0.03) ? 'no_such_metric' : metric,
      matchers: isNewSignature
        ? metric === 'disk_used_percent' && random.chance(0.5)
          ? { mount: '/' }
          : {}
        : held.matchers,
      operator,
      threshold,
      for_seconds: random.pick([0, 0, 30, 60, 120]),
      recover_threshold: random.chance(0.4) ? (isLow ? 30 : threshold - 10) : null,
      recover_for_seconds: random.pick([0, 0, 30, 60]),
      severity: random.pick(['info', 'warning', 'critical']),
      no_data: random.pick(['ignore', 'alert', 'alert', 'resolve']),
      renotify_seconds: random.pick([0, 60, 120, 300]),
      enabled: true,
      deleted: false,
    }
    this.rules.set(id, rule)
    this.lastForm.set(id, rule)
  }

  private rulesChange(atMs: number): void {
    this.add(atMs, { kind: 'rules', rules: [...this.rules.values()] })
  }

  /** What people do: rules, silences, status, agents. */
  private control(): void {
    const { random } = this
    for (let atMs = START_MS; atMs < this.endMs; atMs += random.between(20, 400) * SECOND) {
      const server = random.pick(this.servers)
      const choice = random.between(0, 9)
      if (choice <= 3) this.rule(`${random.between(1, 4)}`)
      else if (choice === 4) this.rules.delete(uuid('1', random.between(1, 4)))
      if (choice <= 4) this.rulesChange(atMs)
      else if (choice <= 6) this.silence(atMs)
      else if (choice === 7) {
        server.status = random.pick(['', 'maintenance', 'decommissioned'])
        this.describe(atMs, server)
      } else if (choice === 8 && random.chance(0.6)) this.add(atMs, { kind: 'overflow' })
    }
  }

  private silence(atMs: number): void {
    const { random, silences } = this
    if (silences.length > 0 && random.chance(0.3)) silences.splice(random.between(0, silences.length - 1), 1)
    else {
      const startsAtMs = atMs + random.between(-300, 300) * SECOND
      const isAll = random.chance(0.5)
      silences.push({
        id: uuid('9', silences.length + 1),
        company_id: uuid('c', random.between(1, 2)),
        sync_version: 1,
        scope: { all: isAll, server_ids: isAll ? [] : [random.pick(this.servers).serverId] },
        ...(random.chance(0.3) ? { rule_ids: [uuid('1', random.between(1, 4)), uuid('1', random.between(1, 4))] } : {}),
        starts_at: new Date(startsAtMs).toISOString(),
        ends_at: new Date(startsAtMs + random.between(30, 900) * SECOND).toISOString(),
      })
    }
    this.add(atMs, { kind: 'silences', silences: [...silences] })
  }

  /**
   * What the agent of a server sends: regular, silent and back-filled, late, doubled; its last agent may be revoked.
   */
  private traffic(server: Server): void {
    const { random } = this
    const levels = new Map<string, number>()
    let silentUntilMs = 0
    let buffered: Map<string, [number, number][]> | null = null
    const absentUntilMs = new Map<string, number>()
    for (let atMs = START_MS + random.between(0, 9000); atMs < this.endMs; atMs += server.intervalMs) {
      if (random.chance(0.01) && !server.isGone) this.replaceAgent(atMs, server)
      if (silentUntilMs <= atMs && random.chance(0.02)) {
        silentUntilMs = atMs + random.between(1, 12) * MINUTE
        buffered = random.chance(0.6) ? new Map() : null
      }
      const points = this.sample(atMs, levels, absentUntilMs)
      if (atMs < silentUntilMs) {
        if (buffered) for (const [key, point] of points) buffered.set(key, [...(buffered.get(key) ?? []), point])
        continue
      }
      const series = this.shuffled(points, buffered)
      buffered = null
      this.send(server, series, atMs)
    }
  }

  private replaceAgent(atMs: number, server: Server): void {
    const { random } = this
    this.describe(atMs, { ...server, isGone: true })
    server.agentNumber += 10
    this.describe(atMs + random.between(1, 30) * SECOND, server)
  }

  private sample(
    atMs: number,
    levels: Map<string, number>,
    absentUntilMs: Map<string, number>,
  ): Map<string, [number, number]> {
    const { random } = this
    const points = new Map<string, [number, number]>()
    for (const key of SERIES) {
      if (random.chance(0.25)) levels.set(key, random.pick([10, 25, 50, 50, 85, 88, 92, 96, 96, 99]))
      if (random.chance(0.015)) absentUntilMs.set(key, atMs + random.between(30, 600) * SECOND)
      if ((absentUntilMs.get(key) ?? 0) > atMs) continue
      points.set(key, [atMs - random.between(0, 3) * 100, levels.get(key) ?? 50])
    }
    return points
  }

  /** The series of a batch, with what was buffered, sometimes out of order. */
  private shuffled(
    points: ReadonlyMap<string, [number, number]>,
    buffered: ReadonlyMap<string, [number, number][]> | null,
  ): SimSeries[] {
    const series: SimSeries[] = []
    for (const key of SERIES) {
      const own = [...(buffered?.get(key) ?? []), ...(points.has(key) ? [points.get(key)!] : [])]
      if (this.random.chance(0.2)) own.reverse()
      if (own.length > 0) series.push({ key, points: own })
    }
    return series
  }

  private send(server: Server, series: readonly SimSeries[], atMs: number): void {
    const { random } = this
    const { companyId, serverId, agentNumber, intervalMs } = server
    const batch: SimBatch = {
      companyId,
      serverId,
      agentId: uuid('a', agentNumber),
      intervalSeconds: random.chance(0.9) ? intervalMs / SECOND : 0,
      receivedAtMs: Math.floor(
        atMs + random.between(0, 400) + (random.chance(0.08) ? random.between(1, 90) * SECOND : 0),
      ),
      series: random.chance(0.03) ? [] : series,
    }
    this.add(batch.receivedAtMs, { kind: 'batch', batch })
    if (!random.chance(0.08)) return
    const again = batch.receivedAtMs + random.between(1, 120) * SECOND
    this.add(again, { kind: 'batch', batch: { ...batch, receivedAtMs: again } })
  }

  private failures(): void {
    const { random } = this
    const rate = random.pick([0, 60, 150, 400])
    for (let atMs = START_MS; rate > 0 && atMs < this.endMs; atMs += random.between(5, rate) * SECOND) {
      const downMs = random.chance(0.7) ? random.between(0, 5) * SECOND : random.between(5, 240) * SECOND
      if (random.chance(0.15)) this.add(atMs, { kind: 'stop', downMs })
      else this.add(atMs, { kind: 'kill', ops: random.between(0, 5), isAfter: random.chance(0.5), downMs })
    }
    for (let atMs = START_MS; atMs < this.endMs; atMs += random.between(60, 600) * SECOND)
      this.add(atMs, { kind: 'hub', isUp: random.chance(0.5) })
  }
}

export const planOf = (seed: number): Plan => new PlanMaker(seed).make()

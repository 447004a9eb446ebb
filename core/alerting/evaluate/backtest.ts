// Would a rule have fired? The backtest runs stored samples of one server through the same evaluation as a worker does:
// the same batches, sweeps and flapping. So it finds the events that a worker would have emitted. It runs in the hub
// and in browsers, and therefore without regular expressions: the caller has matched the labels.
import { EntryEncoder, EntryReader } from '../../bus/entry.ts'
import { limits } from '../../limits.ts'
import type { Labels } from '../../series/labels.ts'
import { SampleBatch } from '../../series/sample-batch.ts'
import { fullSeriesKey, seriesId } from '../../series/series-key.ts'
import { compileEverywhere, type RawRule } from '../rules/rule.ts'
import { setOfOne } from '../rules/rule-set.ts'
import { setRules } from '../rules/rule-slots.ts'
import { EvaluationState } from '../state/evaluation-state.ts'
import { sweepFlapping } from './end-of-flapping.ts'
import { applyEntry } from './evaluator.ts'
import type { AlertEvent } from './event.ts'
import { FLAP_DEFAULTS } from './flapping.ts'
import { sweepServers, sweepStates } from './sweep.ts'

/** Points in time order: [milliseconds, value]. */
export type ReplayedSeries = { readonly labels: Labels; readonly points: readonly (readonly [number, number])[] }

type Replay = {
  /** Valid; its scope and matchers are not looked at. */
  readonly rule: RawRule
  readonly serverId: string
  readonly series: readonly ReplayedSeries[]
  /**
   * When the server sent a batch, ascending: a series that is absent from one has no data, while nothing is known of
   * the series of a server that is silent. Without it, only points of the series say that the server sent.
   */
  readonly heardAtMs?: ArrayLike<number>
  /** The server's reporting interval, estimated from its samples. */
  readonly stepMs: number
  readonly toMs: number
}

/** A span in which an alert would have been open. */
export type Firing = {
  readonly seriesKey: string
  readonly openedAtMs: number
  /** Null: still open at the end. */
  readonly resolvedAtMs: number | null
  readonly reason: string | null
  readonly value: number | null
  /** The worst value; null while it is open. */
  readonly peakValue: number | null
}

const SWEEP_MS = limits.presenceSweepMs
const settings = {
  noDataAfterMs: limits.noDataAfterMs,
  flapping: FLAP_DEFAULTS,
}

/** Turns the series of a server into batches: one batch for each point in time. */
class Batches {
  private readonly next: number[]
  private nextHeard = 0
  private readonly ids: readonly { readonly full: string; readonly lo: number; readonly hi: number }[]
  private readonly batch = new SampleBatch()
  private readonly encoder = new EntryEncoder()

  constructor(private readonly replay: Replay) {
    this.next = replay.series.map(() => 0)
    this.ids = replay.series.map(({ labels }) => {
      const full = fullSeriesKey(replay.rule.metric ?? '', labels)
      return { full, ...seriesId(full) }
    })
  }

  /** The earliest time that no batch has taken yet; null when none is left. */
  private nextTsMs(): number | null {
    let earliest: number | null = this.replay.heardAtMs?.[this.nextHeard] ?? null
    this.replay.series.forEach(({ points }, index) => {
      const tsMs = points[this.next[index] ?? 0]?.[0]
      if (tsMs !== undefined && (earliest === null || tsMs < earliest)) earliest = tsMs
    })
    return earliest
  }

  /** The next batch; its entry is valid until the next call. */
  take(): { readonly tsMs: number; readonly entry: Uint8Array } | null {
    const tsMs = this.nextTsMs()
    if (tsMs === null) return null
    const { batch } = this
    batch.clear()
    while (this.replay.heardAtMs?.[this.nextHeard] === tsMs) this.nextHeard++
    this.replay.series.forEach(({ points }, index) => {
      const at = this.next[index] ?? 0
      const point = points[at]
      const id = this.ids[index]
      if (!point || !id || point[0] !== tsMs) return
      this.next[index] = at + 1
      const place = batch.seriesCount++
      if (place === batch.idLo.length) batch.growSeries()
      if (batch.pointCount === batch.tsMs.length) batch.growPoints()
      batch.idLo[place] = id.lo
      batch.idHi[place] = id.hi
      batch.pointStart[place] = batch.pointCount
      batch.tsMs[batch.pointCount] = tsMs
      batch.value[batch.pointCount++] = point[1]
      batch.pointStart[place + 1] = batch.pointCount
      if (at === 0) batch.definitions.push({ seriesIndex: place, key: id.full })
    })
    const { rule, serverId, stepMs } = this.replay
    const header = {
      companyId: rule.company_id,
      serverId,
      agentId: serverId,
      receivedAtMs: tsMs,
      seq: 0,
      intervalSeconds: Math.round(stepMs / 1000),
    }
    return { tsMs, entry: this.encoder.encode(header, batch) }
  }
}

/**
 * All events that the rule would have emitted for the server's samples, in order, without reminders. A worker sweeps
 * every 10 s; here that is each full 10 s, so what time alone does (no data) is up to 10 s off.
 */
export function replayRule(replay: Replay): AlertEvent[] {
  const evaluation = new EvaluationState(settings)
  setRules(evaluation, setOfOne(compileEverywhere({ ...replay.rule, renotify_seconds: 0 })))
  const reader = new EntryReader()
  const batches = new Batches(replay)
  const events: AlertEvent[] = []
  let nowMs = Number.NaN
  let startedAtMs = Number.NaN
  const sweepUntil = (endMs: number): void => {
    for (; nowMs <= endMs; nowMs += SWEEP_MS) {
      sweepServers(evaluation, 0, evaluation.servers.length, startedAtMs, nowMs)
      sweepStates(evaluation, 0, evaluation.states.end, nowMs)
      sweepFlapping(evaluation, nowMs)
    }
    events.push(...evaluation.drainEvents())
    evaluation.touchedRows.clear()
  }
  let position = 0
  for (let batch = batches.take(); batch !== null; batch = batches.take()) {
    if (Number.isNaN(nowMs)) {
      nowMs = Math.ceil(batch.tsMs / SWEEP_MS) * SWEEP_MS
      startedAtMs = batch.tsMs
    }
    sweepUntil(batch.tsMs - 1)
    reader.open(batch.entry)
    while (reader.next()) applyEntry(evaluation, reader, ++position)
  }
  if (!Number.isNaN(nowMs)) sweepUntil(replay.toMs)
  return events.filter(event => event.type.startsWith('alert.'))
}

/** The spans from each opened event to the event that ended it, oldest first. */
export function firingsOf(events: readonly AlertEvent[]): Firing[] {
  const open = new Map<string, Firing>()
  const firings: Firing[] = []
  for (const event of events) {
    const atMs = Date.parse(event.occurred_at)
    const known = open.get(event.series_key)
    if (event.type === 'alert.opened' && !known)
      open.set(event.series_key, {
        seriesKey: event.series_key,
        openedAtMs: atMs,
        resolvedAtMs: null,
        reason: null,
        value: event.value,
        peakValue: null,
      })
    if (event.type !== 'alert.resolved' || !known) continue
    open.delete(event.series_key)
    const { peak_value: peakValue = null, reason = null } = event
    firings.push({ ...known, resolvedAtMs: atMs, reason, peakValue })
  }
  return [...firings, ...open.values()].sort((a, b) => a.openedAtMs - b.openedAtMs)
}

// Stands in for the collector's admin API, and counts what is asked of it: newest values of a whole fleet, and the
// series of any server. A server's values change once in thirty seconds, each at a moment of its own, as agents send.
import { adminPrefix } from '../../core/admin-api/envelope.ts'
import { packValues } from '../../core/admin-api/values.ts'
import { metrics } from '../../core/series/catalogue.ts'
import { seededId } from '../hub-seed.ts'

const INTERVAL_MS = 30_000
const POINTS = 500
const CHARTS = 30
export const ADMIN_TOKEN = 'adm_bench'
const rootDisk: Readonly<Record<string, string>> = { mount: '/', device: 'sda1', fstype: 'ext4' }
const noLabels: Readonly<Record<string, string>> = {}

/** Thirty charts of a server: metrics without labels, and of its disk. */
const charted = [
  ...metrics.filter(({ labels }) => labels.length === 0),
  ...metrics.filter(({ labels }) => labels[0] === 'mount'),
].slice(0, CHARTS)

const labelsOf = (metric: string): Readonly<Record<string, string>> =>
  metric.startsWith('disk_') ? rootDisk : noLabels

/** From 0 to 1, alike for the same numbers and like chance for others. */
function mixed(one: number, other: number): number {
  let hash = Math.imul(one + 1, 2_654_435_761) ^ Math.imul(other + 1, 1_597_334_677)
  hash = Math.imul(hash ^ (hash >>> 15), 2_246_822_519)
  return ((hash ^ (hash >>> 13)) >>> 0) / 2 ** 32
}

/** A level that is the server's own, and what has been added in its newest interval. */
function newestValue(server: number, metric: string, nowMs: number): readonly [value: number, tsMs: number] {
  const slot = Math.floor((nowMs + ((server * 7919) % INTERVAL_MS)) / INTERVAL_MS)
  const tsMs = slot * INTERVAL_MS - ((server * 7919) % INTERVAL_MS)
  const level = 70 * mixed(server, metric.length)
  return [Math.round(100 * (level + 20 * mixed(server, slot))) / 100, tsMs]
}

type Point = readonly [tsMs: number, value: number]

function pointsOf(
  search: URLSearchParams,
  place: number,
): { points: Point[]; fromMs: number; toMs: number; step: number } {
  const instant = (text: string | null): number =>
    /^[\d.]+$/.test(text ?? '') ? Number(text) * 1000 : Date.parse(text ?? '')
  const [fromMs, toMs] = [instant(search.get('from')), search.has('to') ? instant(search.get('to')) : Date.now()]
  const stepMs = search.has('step')
    ? Number(search.get('step')) * 1000
    : Math.max(INTERVAL_MS, Math.ceil((toMs - fromMs) / POINTS / 1000) * 1000)
  const points: Point[] = []
  for (let at = Math.ceil(fromMs / stepMs) * stepMs; at <= toMs; at += stepMs)
    points.push([at, 45 + 30 * Math.sin(at / 3_600_000 + place) + ((at / stepMs) % 3)])
  return { points, fromMs, toMs, step: stepMs / 1000 }
}

function seriesResponse(search: URLSearchParams, asked: readonly string[]) {
  const { fromMs, toMs, step } = pointsOf(search, 0)
  const found = asked.map((metric, place) => ({
    metric,
    series: [{ labels: labelsOf(metric), points: pointsOf(search, place).points }],
  }))
  const range = {
    from: new Date(fromMs).toISOString(),
    to: new Date(toMs).toISOString(),
    step_seconds: step,
    agg: 'avg',
  }
  return { ...range, metrics: found, left_out: [], series: found[0]?.series ?? [] }
}

export class StubCollector {
  /** Questions so far, by their kind. */
  readonly asked = new Map<string, number>()
  answeredBytes = 0
  private readonly server: ReturnType<typeof Bun.serve>
  private readonly ids: readonly string[]

  constructor(servers: number) {
    this.ids = Array.from({ length: servers }, (_, index) => seededId('server', index + 1))
    this.server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: request => this.answer(new URL(request.url)) })
  }

  get url(): string {
    return `http://127.0.0.1:${this.server.port}`
  }

  get askedCount(): number {
    return [...this.asked.values()].reduce((sum, count) => sum + count, 0)
  }

  stop(): Promise<void> {
    return this.server.stop(true)
  }

  private answer({ pathname, searchParams }: URL): Response {
    const [noun = '', , ...rest] = pathname.slice(adminPrefix.length + 1).split('/')
    const call = `${noun}/${rest.join('/')}`
    this.asked.set(call, (this.asked.get(call) ?? 0) + 1)
    const data = this.dataOf(call, searchParams)
    if (data === null) return Response.json({ error: { code: 'not_found', message: call } }, { status: 404 })
    const text = JSON.stringify({ data })
    this.answeredBytes += text.length
    return new Response(text, { headers: { 'content-type': 'application/json' } })
  }

  private dataOf(call: string, search: URLSearchParams): object | null {
    const nowMs = Date.now()
    switch (call) {
      case 'companies/values':
        return this.valuesOf(search.get('metric') ?? '', nowMs)
      case 'servers/metrics':
        return { metrics: charted.map(({ name }) => ({ metric: name, labels: [labelsOf(name)] })), truncated: false }
      case 'servers/series':
        return seriesResponse(search, [search.get('metric') ?? ''])
      case 'servers/series/by-metric':
        return seriesResponse(search, search.get('metrics')?.split(',') ?? charted.map(({ name }) => name))
      case 'servers/alerting':
        return { series: [], rules: [] }
      case 'servers/status':
        return { state: 'online', last_seen: new Date(nowMs).toISOString(), metrics: {} }
      default:
        return null
    }
  }

  private valuesOf(metric: string, nowMs: number): object {
    const newest = this.ids.map((_, index) => newestValue(index, metric, nowMs))
    const columns = packValues({
      server_ids: this.ids,
      values: newest.map(([value]) => value),
      ts_ms: newest.map(([, tsMs]) => tsMs),
      labels: this.ids.map(() => labelsOf(metric)),
    })
    return { metric, ...columns, truncated: false }
  }
}

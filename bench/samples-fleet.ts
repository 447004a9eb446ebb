// A fleet made from the recording of one real server, for figures of size and speed: values are drawn again from the
// recorded ones as whole counts (ticks, bytes, operations), so that they have the grain that an agent would report, and
// no two servers or hours repeat each other byte by byte.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { reportedValue } from '../core/agent/reported-value.ts'
import { parseSeriesKey } from '../core/series/series-key.ts'
import { randomFrom } from '../test/support/random.ts'

export const INTERVAL_MS = 30_000
/** Ticks of 10 ms that two cores have in an interval. */
const TICKS = 6_000

type Recording = {
  readonly intervalSeconds: number
  readonly series: readonly { readonly key: string; readonly values: readonly (number | null)[] }[]
}
export type FleetSeries = { readonly key: string; readonly values: Float64Array }

/** Seconds between the values of the recording. */
const RECORDED_SECONDS = 10

function isSeries(value: unknown): value is Recording['series'][number] {
  return (
    typeof value === 'object' &&
    value !== null &&
    'key' in value &&
    typeof value.key === 'string' &&
    'values' in value &&
    Array.isArray(value.values)
  )
}

/** The recording: one series a line, with its values in the order of time, null where one is missing. */
export function readRecording(): Recording {
  const lines = readFileSync(join(import.meta.dir, 'recording.jsonl'), 'utf8')
    .trim()
    .split('\n')
  const series = lines.map((line): Recording['series'][number] => {
    const value: unknown = JSON.parse(line)
    if (!isSeries(value)) throw new Error('recording.jsonl is not a recording')
    return value
  })
  return { intervalSeconds: RECORDED_SECONDS, series }
}

/** A further disk or interface of a server, by the labels that it gets; the recorded one is the first. */
type Unit = { readonly labels: Readonly<Record<string, string>>; readonly scale: number }

/**
 * How many further file systems with a disk, and interfaces, a server has beside the recorded ones: about 110 series
 * with all.
 */
const DISKS = 3
const INTERFACES = 2

const keyWith = (name: string, labels: Readonly<Record<string, string>>): string => {
  const inner = Object.keys(labels)
    .sort()
    .map(label => `${label}="${labels[label]}"`)
  return inner.length > 0 ? `${name}{${inner.join(',')}}` : name
}

/**
 * Where in the recording a server is at each of its intervals: pieces of 5 to 30 minutes, from random places, each
 * scaled anew.
 */
function pieces(random: () => number, count: number, recorded: number, stride: number) {
  const at = new Uint32Array(count)
  const scale = new Float64Array(count)
  for (let turn = 0; turn < count; ) {
    const length = Math.min(count - turn, 10 + Math.floor(random() * 50))
    let from = Math.floor(random() * recorded)
    const factor = Math.exp((random() - 0.5) * 0.8)
    for (let end = turn + length; turn < end; turn++) {
      at[turn] = from
      scale[turn] = factor
      from = (from + stride) % recorded
    }
  }
  return { at, scale }
}

/**
 * The value of a series once more as an agent would see it: counted in the metric's grain, a little apart from the
 * recorded one.
 */
function drawn(name: string, value: number, factor: number, seconds: number, random: () => number): number {
  const noisy = value * factor * (0.97 + random() * 0.06)
  if (value === 0) return 0
  if (/^cpu_.*_percent$/.test(name)) {
    const ticks = TICKS + Math.round((random() - 0.5) * 20)
    return (100 * Math.round((Math.min(noisy, 99) / 100) * ticks)) / ticks
  }
  if (name.startsWith('cpu_load')) return Math.round(noisy * 100) / 100
  if (name === 'load_per_core_5m') return Math.round(noisy * 200) / 200
  if (name.endsWith('_bytes_per_second')) return Math.round((noisy * seconds) / 512) * (512 / seconds)
  if (name.endsWith('_per_second')) return Math.round(noisy * seconds) / seconds
  if (name.startsWith('disk_inodes_used_percent') || name.endsWith('_percent')) return Math.min(100, noisy)
  if (name.endsWith('_bytes')) return Math.round(noisy / 4096) * 4096
  if (name.endsWith('_seconds') && name !== 'uptime_seconds') return noisy
  return Math.round(noisy)
}

/** Levels (memory, disks) keep their place on a server; they move by what moved in the recording. */
const isLevel = (name: string): boolean => /^(mem|disk_(used|free|inodes))/.test(name)

/**
 * The series of server `index` over `count` intervals. `isRounded` is whether values are as agents report them, or with
 * every digit of the division they come from.
 */
export function serverSeries(recording: Recording, index: number, count: number, isRounded = true): FleetSeries[] {
  const random = randomFrom(index * 7919 + 17)
  const stride = Math.round(INTERVAL_MS / 1000 / recording.intervalSeconds)
  const units = (kind: string, names: readonly Unit[]) => ({ kind, names })
  const disks = units('device', [
    { labels: {}, scale: 1 },
    ...Array.from({ length: DISKS }, (_, unit) => ({
      labels: { device: `sd${'bcdef'[unit]}`, mount: `/srv/data${unit}`, fstype: 'xfs' },
      scale: unit === 0 ? 0.3 : unit === 1 ? 0.05 : 0,
    })),
  ])
  const interfaces = units('interface', [
    { labels: {}, scale: 1 },
    ...Array.from({ length: INTERFACES }, (_, unit) => ({
      labels: { interface: `eth${unit + 1}` },
      scale: unit === 0 ? 0.5 : 0,
    })),
  ])
  const size = 2 ** Math.floor(random() * 5 - 1)
  const out: FleetSeries[] = []
  for (const { key, values } of recording.series) {
    const known = values.filter(value => value !== null)
    if (known.length === 0) continue
    const { metric, labels } = parseSeriesKey(key)
    const kind = 'interface' in labels ? interfaces : 'device' in labels ? disks : null
    for (const unit of kind?.names ?? [{ labels: {}, scale: 1 }]) {
      const named = Object.fromEntries(
        Object.entries({ ...labels, ...unit.labels }).filter(([label]) => label in labels),
      )
      const series = new Float64Array(count)
      fill(series, metric, known, { random, size, scale: unit.scale, stride, isRounded })
      out.push({ key: keyWith(metric, named), values: series })
    }
  }
  return out
}

function fill(
  series: Float64Array,
  name: string,
  known: readonly number[],
  by: { random: () => number; size: number; scale: number; stride: number; isRounded: boolean },
): void {
  const { random, size, scale, stride, isRounded } = by
  const shown = (value: number): number => (isRounded ? reportedValue(name, value) : value)
  const first = known[0]!
  if (name === 'uptime_seconds') {
    const start = Math.floor(random() * 1e7)
    for (let turn = 0; turn < series.length; turn++)
      series[turn] = shown(start + turn * 30 + Math.floor(random() * 3) / 100)
    return
  }
  if (known.every(value => value === first)) {
    series.fill(shown(name.endsWith('_total_bytes') ? first * size : first))
    return
  }
  const { at, scale: factors } = pieces(random, series.length, known.length, stride)
  if (isLevel(name)) {
    let level = first * (name.endsWith('percent') ? 1 : size)
    for (let turn = 0; turn < series.length; turn++) {
      const place = at[turn]!
      const moved = scale === 0 ? 0 : known[(place + stride) % known.length]! - known[place]!
      const next = level + (Math.abs(moved) > first * 0.2 ? 0 : moved * scale)
      level = next > 0 && next < first * size * 2 ? next : level
      series[turn] = shown(name.endsWith('percent') ? level : Math.round(level / 4096) * 4096)
    }
    return
  }
  for (let turn = 0; turn < series.length; turn++) {
    const seconds = 30 + (random() - 0.5) * 0.02
    series[turn] = shown(drawn(name, known[at[turn]!]! * scale, factors[turn]!, seconds, random))
  }
}

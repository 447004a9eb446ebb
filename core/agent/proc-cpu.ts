// CPU, load and uptime of a Linux host, from the text of /proc/stat, /proc/loadavg and /proc/uptime (metrics.md 1-15,
// 53).
import { type CounterReading, counterDeltas, fieldsOfLines, numbersFrom, windowSeconds } from './counter-rates.ts'
import { plain, type Sample } from './requests-of-cycles.ts'

/** user, nice, system, idle, iowait, irq, softirq, steal. Guest time is already included in user and nice. */
const MODE_COUNT = 8
const IDLE = 3
const IOWAIT = 4
const MODE_METRICS = [
  'cpu_user_percent',
  'cpu_nice_percent',
  'cpu_system_percent',
  'cpu_idle_percent',
  'cpu_iowait_percent',
  'cpu_irq_percent',
  'cpu_softirq_percent',
  'cpu_steal_percent',
]

export type CpuReading = CounterReading & { readonly cores: number; readonly bootAtMs: number | null }

/** Ticks of /proc/stat: the whole host under '', each core under its number. */
export function parseProcStat(text: string, elapsedMs: number): CpuReading {
  const bySubject = new Map<string, number[]>()
  let bootAtMs: number | null = null
  for (const fields of fieldsOfLines(text)) {
    const name = fields[0]!
    if (name === 'btime') bootAtMs = Number(fields[1]) * 1000
    const core = /^cpu(\d*)$/.exec(name)
    if (!core) continue
    const ticks = numbersFrom(fields, 1).slice(0, MODE_COUNT)
    // Kernels before 2.6.11 have fewer columns.
    while (ticks.length < MODE_COUNT) ticks.push(0)
    bySubject.set(core[1]!, ticks)
  }
  return { elapsedMs, bySubject, cores: Math.max(0, bySubject.size - 1), bootAtMs }
}

/** Ticks that passed per mode. Idle and iowait of a busy kernel may step back a little: that is 0, not a reset. */
function ticksPassed(previous: CounterReading, current: CounterReading, subject: string): readonly number[] | null {
  const before = previous.bySubject.get(subject)
  const after = current.bySubject.get(subject)
  if (!before || !after) return null
  const level = (ticks: readonly number[]) =>
    ticks.map((value, mode) => (mode === IDLE || mode === IOWAIT ? Math.max(value, before[mode]!) : value))
  const leveled: CounterReading = { ...current, bySubject: new Map([[subject, level(after)]]) }
  return counterDeltas(previous, leveled, subject)
}

/**
 * Sums the busy modes instead of subtracting idle from the total, since a difference of large numbers may fall just
 * below zero.
 */
function usedShare(ticks: readonly number[], total: number): number {
  const used = ticks.reduce((sum, count, mode) => (mode === IDLE || mode === IOWAIT ? sum : sum + count), 0)
  return (100 * used) / total
}

/** cpu_*_percent between two readings, cpu_cores, and each core when asked for. */
export function cpuSamples(previous: CpuReading | null, current: CpuReading, perCore: boolean): Sample[] {
  const samples: Sample[] = current.cores > 0 ? [plain('cpu_cores', current.cores)] : []
  if (previous === null || windowSeconds(previous, current) === null) return samples
  const ticks = ticksPassed(previous, current, '')
  const total = ticks?.reduce((sum, mode) => sum + mode, 0) ?? 0
  if (ticks && total > 0) {
    samples.push(plain('cpu_usage_percent', usedShare(ticks, total)))
    MODE_METRICS.forEach((metric, mode) => {
      samples.push(plain(metric, (100 * ticks[mode]!) / total))
    })
  }
  if (!perCore) return samples
  for (const core of current.bySubject.keys()) {
    const coreTicks = core === '' ? null : ticksPassed(previous, current, core)
    const coreTotal = coreTicks?.reduce((sum, mode) => sum + mode, 0) ?? 0
    if (!coreTicks || coreTotal === 0) continue
    samples.push({ name: 'cpu_core_usage_percent', labels: { core }, value: usedShare(coreTicks, coreTotal) })
  }
  return samples
}

/** cpu_load1, cpu_load5, cpu_load15 and load_per_core_5m; nothing from text that is no load average. */
export function loadSamples(loadavg: string, cores: number): Sample[] {
  const [load1, load5, load15] = loadavg.trim().split(/\s+/).slice(0, 3).map(Number)
  if (load1 === undefined || load5 === undefined || load15 === undefined) return []
  if (![load1, load5, load15].every(Number.isFinite)) return []
  const samples = [plain('cpu_load1', load1), plain('cpu_load5', load5), plain('cpu_load15', load15)]
  if (cores > 0) samples.push(plain('load_per_core_5m', load5 / cores))
  return samples
}

/** uptime_seconds from /proc/uptime. */
export function uptimeSamples(text: string): Sample[] {
  const seconds = Number(text.trim().split(/\s+/)[0])
  return text.trim() !== '' && Number.isFinite(seconds) && seconds >= 0 ? [plain('uptime_seconds', seconds)] : []
}

/** Model, physical cores and threads from /proc/cpuinfo. ARM names neither model nor cores: threads stand in. */
export function parseCpuInfo(text: string): { model: string; cores: number; threads: number } {
  const cores = new Set<string>()
  let model = ''
  let threads = 0
  let package_ = ''
  for (const line of text.split('\n')) {
    const colon = line.indexOf(':')
    if (colon < 0) continue
    const key = line.slice(0, colon).trim()
    const value = line.slice(colon + 1).trim()
    if (key === 'processor') threads++
    else if ((key === 'model name' || key === 'Model' || key === 'cpu model') && model === '') model = value
    else if (key === 'physical id') package_ = value
    else if (key === 'core id') cores.add(`${package_}:${value}`)
  }
  return { model, cores: cores.size || threads, threads }
}

// A fleet that a collector has never seen, all servers at once, as after a move to another collector: seconds until all
// batches are acknowledged, until all is evaluated and stored or held; CPU and memory meanwhile. Then a start after
// kill -9 with all agents known: seconds until it answers agents, until all of it has started, and until each agent has
// had a batch acknowledged.
// Usage: bun bench/first-sight.ts [AGENTS] [CONNECTIONS]. Prints one JSON line.
import { readFileSync } from 'node:fs'
import { startCollectorProcess } from './collector-process.ts'
import { cpuSeconds, rssMb, threadUse, usedBetween } from './process-cpu.ts'

const [agents = 100_000, connections = 1_000] = process.argv.slice(2).map(Number)
const SERIES = 150
const tenths = (value: number): number => Math.round(value * 10) / 10
const secondsOf = async (act: () => Promise<unknown>): Promise<number> => {
  const startedAt = performance.now()
  await act()
  return tenths((performance.now() - startedAt) / 1000)
}

const collector = await startCollectorProcess(agents)
const load = (startMs: number) =>
  collector.load('--rounds', '1', '--connections', String(connections), '--start-ms', String(startMs))
const peakMb = (): number =>
  Math.round(Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${collector.pid}/status`, 'utf8'))![1]) / 1024)
try {
  const nowMs = Date.now()
  const before = threadUse(collector.pid)
  const cpuBefore = cpuSeconds(collector.pid)
  const sent = await load(nowMs - 60_000)
  const drainedSeconds = await secondsOf(collector.untilDrained)
  const byThread = [...usedBetween(before, threadUse(collector.pid)).values()]
    .map(({ name, cpuNs }): [string, number] => [name, tenths(cpuNs / 1e9)])
    .filter(([, seconds]) => seconds >= 1)
    .sort((a, b) => b[1] - a[1])
  const first = {
    refused: sent.refused,
    acknowledged_seconds: tenths(sent.seconds),
    ack_p50_ms: sent.p50_ms,
    ack_p99_ms: sent.p99_ms,
    seen_seconds: tenths(sent.seconds + drainedSeconds),
    cpu_seconds: tenths(cpuSeconds(collector.pid) - cpuBefore),
    cpu_seconds_by_thread: Object.fromEntries(byThread),
    rss_mb: rssMb(collector.pid),
    peak_rss_mb: peakMb(),
  }
  const restartSeconds = await secondsOf(collector.restart)
  const again = await load(nowMs - 30_000)
  const restart = {
    answers_seconds: tenths(collector.answersSeconds),
    started_seconds: restartSeconds,
    acknowledged_seconds: tenths(again.seconds),
    refused: again.refused,
    drained_seconds: await secondsOf(collector.untilDrained),
  }
  const series = agents * SERIES
  console.log(JSON.stringify({ bench: 'first-sight', agents, series, connections, ...first, after_kill: restart }))
} finally {
  await collector.stop()
}

// What it costs the whole collector that each agent announces its series again every hour: CPU of rounds in which every
// batch announces all of them, because the clock of ingest went on by an hour, against rounds in which none does, in
// turn. Usage: bun bench/announcements.ts [AGENTS] [ROUNDS]. Prints one JSON line.
import { startCollectorProcess } from './collector-process.ts'
import { cpuSeconds } from './process-cpu.ts'

const [agents = 2_000, rounds = 10] = process.argv.slice(2).map(Number)
const ROUND_MS = 30_000
const HOUR_HEARD_MS = 50

const collector = await startCollectorProcess(agents)
try {
  let startMs = Date.now() - 2 * 3_600_000
  const round = async (announces: boolean): Promise<number> => {
    const before = cpuSeconds(collector.pid)
    if (announces) process.kill(collector.pid, 'SIGUSR2')
    await Bun.sleep(HOUR_HEARD_MS)
    startMs += ROUND_MS
    const sent = await collector.load('--rounds', '1', '--start-ms', String(startMs))
    if (sent.batches !== agents) throw new Error(`${sent.refused} batches were refused`)
    await collector.untilDrained()
    return cpuSeconds(collector.pid) - before
  }
  for (const announces of [false, true, false, true, false]) await round(announces)
  const used = { plain: 0, announcing: 0 }
  for (let turn = 0; turn < rounds; turn++) {
    used.plain += await round(false)
    used.announcing += await round(true)
  }
  const batches = agents * rounds
  const usOf = (seconds: number): number => Math.round((seconds * 1e6) / batches)
  console.log(
    JSON.stringify({
      bench: 'announcements',
      agents,
      batches,
      plain_us_a_batch: usOf(used.plain),
      announcing_us_a_batch: usOf(used.announcing),
      cpu_ms_an_agent_an_hour: Math.round(((used.announcing - used.plain) * 1e5) / batches) / 100,
    }),
  )
} finally {
  await collector.stop()
}

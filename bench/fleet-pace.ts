// What a batch costs the collector when a fleet sends in its interval, instead of as fast as it is answered: CPU us a
// batch by thread, wake-ups, time to the acknowledgement. Usage: bun bench/fleet-pace.ts [BATCHES_A_SECOND…]
// [--interval-ms 3000] [--warm-up-s 6] [--seconds 24] [--share unsteady=0.5 …]. 333 batches a second are 10,000 servers
// that send every 30 s; so that a run is short, a tenth as many agents send every 3 s here. A share of the agents may
// behave in another way (fleet-agents.ts): the times to the acknowledgement are those of the others. --tls: over TLS.
// Prints a JSON line for each rate, each of a collector of its own.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { CertificateMaker } from '../test/support/certificates.ts'
import { startCollectorProcess } from './collector-process.ts'
import { rssMb, threadUse, usABatch, usedBetween } from './process-cpu.ts'

/** The interval of the servers that a rate stands for. */
const SERVERS_INTERVAL_S = 30
/** Sent at once before the pace, so that the runtime has compiled what is hot. */
const COMPILING_BATCHES = 20_000
const COMPILING_SPAN_MS = 1_200_000

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    'interval-ms': { type: 'string', default: '3000' },
    'warm-up-s': { type: 'string', default: '6' },
    seconds: { type: 'string', default: '24' },
    share: { type: 'string', multiple: true, default: [] },
    tls: { type: 'boolean', default: false },
  },
})
const intervalMs = Number(values['interval-ms'])
const roundsIn = (seconds: string): string => String(Math.ceil((Number(seconds) * 1000) / intervalMs))

const folder = mkdtempSync(join(tmpdir(), 'svc-bench-tls-'))
const tlsSettings = (): Record<string, string> => {
  const { certFile, keyFile } = new CertificateMaker(folder).make({ subject: '/CN=bench', sans: 'IP:127.0.0.1' })
  return { 'tls.cert_file': certFile, 'tls.key_file': keyFile }
}

async function measure(batchesASecond: number): Promise<void> {
  const agents = Math.round((batchesASecond * intervalMs) / 1000)
  const collector = await startCollectorProcess(agents, values.tls ? tlsSettings() : {})
  try {
    const { pid } = collector
    const shares = values.share.flatMap(share => ['--share', share])
    const load = (rounds: string) => collector.load('--rounds', rounds, '--interval-ms', String(intervalMs), ...shares)
    const startMs = String(Date.now() - COMPILING_SPAN_MS)
    await collector.load('--rounds', String(Math.ceil(COMPILING_BATCHES / agents) + 1), '--start-ms', startMs)
    await load(roundsIn(values['warm-up-s']))
    const before = threadUse(pid)
    const sent = await load(roundsIn(values.seconds))
    const used = usedBetween(before, threadUse(pid))
    const { total, byThread } = usABatch(used, sent.batches)
    const wakeUps = [...used.values()].reduce((sum, thread) => sum + thread.wakeUps, 0)
    console.log(
      JSON.stringify({
        bench: 'fleet-pace',
        ...(values.tls && { tls: true }),
        servers_at_30_s: batchesASecond * SERVERS_INTERVAL_S,
        batches_per_second: Math.round(sent.batches / sent.seconds),
        cores: Math.round((total * sent.batches) / sent.seconds / 1e3) / 1000,
        cpu_us_a_batch: total,
        us_by_thread: byThread,
        wake_ups_per_second: Math.round(wakeUps / sent.seconds),
        ack_p50_ms: sent.p50_ms,
        ack_p99_ms: sent.p99_ms,
        refused: sent.refused,
        rss_mb: rssMb(pid),
      }),
    )
  } finally {
    await collector.stop()
  }
}

for (const rate of positionals.length > 0 ? positionals : ['333', '1667', '3333']) await measure(Number(rate))
rmSync(folder, { recursive: true })

// One scan in a process that has loaded the whole agent and idles, as the agent does it: collected, hashed, compressed.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { startAgent } from '../../apps/agent/agent.ts'
import { resolveAgentOptions } from '../../apps/agent/config.ts'
import { ScanRound } from '../../apps/agent/scan/scan-round.ts'
import { StateDir } from '../../apps/agent/state/state-dir.ts'
import { ScriptedMatcher } from '../../test/agent/scan/scripted-matcher.ts'
import { pause } from '../../test/support/until.ts'
import { resetPeak, residentMb } from '../process-cpu.ts'

const root = process.argv[2] ?? '/'
const stateDir = mkdtempSync(join(tmpdir(), 'bench-scan-'))
const matcher = new ScriptedMatcher()
const log = pino({ level: 'silent' })
const optionsWith = (keys: Record<string, unknown>) =>
  resolveAgentOptions({ file: undefined, environment: {}, options: keys, readSecretFile: () => '' }).options

// Nobody listens at the collector's address: the agent idles between its tries.
const agent = await startAgent({
  options: optionsWith({ state_dir: stateDir, collector_url: 'http://127.0.0.1:1', license: 'lic_bench' }),
  log,
})
await pause(500)
Bun.gc(true)
await pause(200)

const dir = new StateDir(mkdtempSync(join(stateDir, 'scan-')))
const options = optionsWith({ state_dir: dir.path, 'scan.matcher_url': matcher.url, 'scan.enrol_code': 'bench' })
const { signal } = new AbortController()
const round = new ScanRound({ options, dir, log, now: () => Date.now(), random: () => 1, signal, root })

let last = performance.now()
let longestMs = 0
const watch = setInterval(() => {
  const now = performance.now()
  longestMs = Math.max(longestMs, now - last)
  last = now
}, 1)
resetPeak()
const idle = residentMb().now
const before = process.cpuUsage()
last = performance.now()
// The first that this process makes. The matcher's side, which checks signatures and inflates, is counted too.
const { isTaken } = await round.scanAndDeliver({ matcherUrl: matcher.url, code: 'bench', isRemote: false })
const { user, system } = process.cpuUsage(before)
const { peak } = residentMb()
clearInterval(watch)
if (!isTaken) throw new Error('the report was not taken')
const sent = matcher.of('/report')[0]!.body.length
console.log(
  JSON.stringify({
    packages: matcher.reports[0]?.packages?.name.length,
    cpu_ms: Math.round((user + system) / 1000),
    longest_slice_ms: Math.round(longestMs),
    above_idle_mb: Math.round((peak - idle) * 10) / 10,
    report_bytes: sent,
  }),
)
await agent.stop()
await matcher.stop()
rmSync(stateDir, { recursive: true, force: true })
process.exit(0)

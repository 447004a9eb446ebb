// Kills the executables matcher and hub as often as it is told, and prints a summary. `faults` must be 0; what differs
// goes to standard error, and the exit code is 1.
//
//   bun test/sim/kill-matcher.ts [KILLS of the matcher] [KILLS of the hub] [SEED]
import { stopPostgres } from '../support/postgres.ts'
import { runKills } from './security-kills.ts'

const [matcherKills = 200, hubKills = 100, seed = 1] = process.argv.slice(2).map(Number)
/** Some 400 hosts in a run of 200 kills. */
const BETWEEN_HOSTS_MS = 10_000

let exitCode = 1
try {
  const began = performance.now()
  const { faults, ...summary } = await runKills({ matcherKills, hubKills, seed, betweenHostsMs: BETWEEN_HOSTS_MS })
  const seconds = Math.round((performance.now() - began) / 1000)
  console.log(JSON.stringify({ seed, matcherKills, hubKills, ...summary, seconds, faults: faults.length }))
  for (const fault of faults.slice(0, 20)) console.error(fault)
  exitCode = faults.length === 0 && summary.findings > 0 ? 0 : 1
} catch (error) {
  console.error(error)
}
await stopPostgres()
process.exit(exitCode)

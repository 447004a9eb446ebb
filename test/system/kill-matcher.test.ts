// kill -9 of the executables matcher and hub at random moments, the database of the vulnerabilities being switched. The
// seed is printed; KILLS and SEED change the run, and test/sim/kill-matcher.ts is the long one.
import { afterAll, expect, test } from 'bun:test'
import { runKills } from '../sim/security-kills.ts'
import { stopPostgres } from '../support/postgres.ts'

const KILLS = Number(process.env.KILLS ?? 3)
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000)
afterAll(stopPostgres)

test('[MAT-172] matcher and hub are killed at random moments: what is open at the hub is what the last reports say', async () => {
  console.log(`seed ${SEED}`)
  const plan = { matcherKills: KILLS, hubKills: Math.ceil(KILLS / 2), seed: SEED, betweenHostsMs: 1_000 }
  const { faults, findings, reports } = await runKills(plan)
  expect(faults).toEqual([])
  expect(reports).toBeGreaterThan(0)
  expect(findings).toBeGreaterThan(0)
}, 180_000)

// The fleet of the benchmark, small: what MAT-185 says of 100,000 hosts holds for the share of each host. Time is not
// looked at, but CPU that a host of a re-match may take, the disk, and which hosts are read at all.
import { expect, setDefaultTimeout, test } from 'bun:test'
import { benchFleet } from '../../../bench/security/fleet.ts'

setDefaultTimeout(120_000)
const HOSTS = 300
/** 6 GB and 600 s of 100,000 hosts. */
const DISK_MB_A_HOST = 6_000 / 100_000
const REMATCH_CPU_MS_A_HOST = (600 * 1000) / 100_000
/** The instances of a small fleet are not shared by many hosts: each takes this at most. */
const DISK_MB_AN_INSTANCE = 0.001

test('[MAT-185] [MAT-182] a fleet takes the disk and the re-matches the CPU that its hosts have a share of', async () => {
  const lines = await benchFleet({ shape: { hosts: HOSTS, packages: 200 } })
  const line = (question: string): Record<string, number> => {
    const found = lines.find(each => each.question === question)
    if (!found) throw new Error(`nothing is said of: ${question}`)
    return found as Record<string, number>
  }
  const { instances = 0, findings_per_host: findings } = line('first reports')
  expect(findings).toBeGreaterThan(10)
  for (const question of ['daily change of the database', 'whole re-match']) {
    const { keys = 0, hosts_read = Infinity, hosts_changed = 0, cpu_ms_a_host_read = Infinity } = line(question)
    expect(keys).toBeGreaterThan(0)
    expect(hosts_read).toBeLessThanOrEqual(HOSTS)
    expect(hosts_changed).toBeGreaterThan(0)
    expect(cpu_ms_a_host_read).toBeLessThan(REMATCH_CPU_MS_A_HOST)
  }
  const { disk_mb = Infinity, disk_mb_of_the_log = 0 } = line('start')
  expect(disk_mb - disk_mb_of_the_log).toBeLessThan(HOSTS * DISK_MB_A_HOST + instances * DISK_MB_AN_INSTANCE)
})

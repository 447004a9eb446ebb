// What full-disk.test.ts runs on a file system of its own that is small (TMPDIR): the disk is full while hosts are
// matched again, and has room again later. Prints what there was to see, as one JSON object.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fillDisk } from '../../support/full-disk.ts'
import { until } from '../../support/until.ts'
import { advisories, differingKeys, rule } from './advisories.ts'
import { companyId, FleetSite, report, scanHost, serverId } from './fleet-site.ts'

const HOSTS = 200
const FIRST = 2026112200
const packages = ['bash 5.2', 'curl 8.0', 'zlib 1.0']
const before = { 'debian:12 bash': [rule('CVE-1', '5.3')] }
const after = { 'debian:12 bash': [rule('CVE-1', '5.4')], 'debian:12 curl': [rule('CVE-2', null)] }

const at = new FleetSite()
const numbers = Array.from({ length: HOSTS }, (_, host) => host + 1)
await at.state.switchTo(advisories(FIRST, before), [])
await at.hosts(...numbers.map(host => scanHost(host)))
await Promise.all(numbers.map(host => at.send(host, report(packages))))
await at.deliver()
const delivered = at.told.length

await at.state.switchTo(advisories(FIRST + 1, after), differingKeys(before, after))
// Nothing was awaited since: the re-match has written nothing yet.
const filler = join(at.dir, 'filler')
fillDisk(filler)
await until('the re-match to fail', () => at.failed.includes('cannot match hosts again; it is tried again'))
const page = { q: null, after: null, limit: 100 }
const full = {
  errors: [...new Set(at.errors.map(String))],
  refused: await at.send(1, report([...packages, 'perl 5.36'])).then(
    ({ outcome }) => outcome,
    error => String(error),
  ),
  packages: at.state.packages(companyId(1), serverId(1), page)?.items.map(({ name }) => name),
  summary: at.state.summary(companyId(1)).open_findings,
  waiting: at.state.companiesWaiting().length,
  rematch: at.state.rematch().state,
}
rmSync(filler)
await at.state.rematched()
const events = await at.deliver()
const perHost = new Map<string, string[]>()
for (const { host_id: host, type } of events) perHost.set(host, [...(perHost.get(host) ?? []), type])
console.log(
  JSON.stringify({
    delivered,
    full,
    hostsTold: perHost.size,
    toldOfAHost: [...new Set([...perHost.values()].map(types => types.toSorted().join()))],
    seqs: new Set(at.told.map(({ host_id: host, seq }) => `${host} ${seq}`)).size - at.told.length,
    summary: at.state.summary(companyId(1)).open_findings,
    report: (await at.send(1, report([...packages, 'perl 5.36']))).outcome,
    rematch: at.state.rematch().state,
  }),
)
await at.state.close()

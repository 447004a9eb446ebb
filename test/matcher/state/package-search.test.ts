// Packages of a server and servers with a package, page by page, and never of another company.
import { expect, spyOn, test } from 'bun:test'
import type { MatcherState, PackagePosition, SearchQuery } from '../../../apps/matcher/state/state-types.ts'
import { advisories } from './advisories.ts'
import { companyId, FleetSite, report, scanHost, serverId } from './fleet-site.ts'

const query = (name: string, more: Partial<SearchQuery> = {}): SearchQuery => ({
  name,
  versionGte: null,
  versionLt: null,
  ecosystem: null,
  after: null,
  limit: 100,
  deadlineMs: 4_000,
  ...more,
})

type Page = NonNullable<ReturnType<MatcherState['packages']>>

async function site(): Promise<FleetSite> {
  const at = new FleetSite()
  at.state.startWith(advisories(0, {}), null)
  await at.hosts(scanHost(1), scanHost(2), scanHost(3, { companyId: companyId(2) }), scanHost(4, { serverId: null }))
  return at
}

const found = async (at: FleetSite, company: number, asked: SearchQuery): Promise<string[] | string> => {
  const result = await at.state.search(companyId(company), asked)
  return result === 'invalid_bound'
    ? result
    : result.items.map(row => `${row.server_id.slice(-1)} ${row.name} ${row.version}`)
}

test('[MAT-201] [MAT-202] pages go on behind the last row when a new report comes between them', async () => {
  const at = await site()
  const names = Array.from(
    { length: 20_000 },
    (_, number) => `lib${String(number).padStart(5, '0')} 1.0 Source${number % 3}`,
  )
  await at.send(1, report(names))
  const rows: string[] = []
  let after: PackagePosition | null = null
  do {
    const page: Page = at.state.packages(companyId(1), serverId(1), { q: null, after, limit: 500 })!
    rows.push(...page.items.map(({ name }) => name))
    after = page.next
    if (rows.length === 500) await at.send(1, report(['aaa 1.0', ...names.slice(0, 19_900)]))
  } while (after !== null)
  expect(rows).toEqual(names.slice(0, 19_900).map(text => text.split(' ')[0]!))
  const some = at.state.packages(companyId(1), serverId(1), { q: 'SOURCE1', after: null, limit: 2 })
  expect(some?.items.map(({ name }) => name)).toEqual(['lib00001', 'lib00004'])
  expect(at.state.packages(companyId(1), serverId(1), { q: '%', after: null, limit: 9 })?.items).toEqual([])
  await at.state.close()
})

test('[MAT-203] [MAT-204] the lowest version within the bounds of each server, by binary or source name', async () => {
  const at = await site()
  await at.send(1, report(['libssl3 3.0 openssl', 'libssl1 1.1 openssl', 'bash 5.2']))
  await at.send(2, report(['libssl3 3.1 openssl']))
  await at.send(4, report(['libssl3 3.1 openssl']))
  expect(await found(at, 1, query('openssl'))).toEqual(['1 libssl1 1.1', '2 libssl3 3.1'])
  expect(await found(at, 1, query('openssl', { versionGte: '2.0' }))).toEqual(['1 libssl3 3.0', '2 libssl3 3.1'])
  expect(await found(at, 1, query('libssl3', { versionLt: '3.1' }))).toEqual(['1 libssl3 3.0'])
  expect(await found(at, 1, query('openssl', { ecosystem: 'debian:11' }))).toEqual([])
  expect(await found(at, 1, query('openssl', { versionLt: 'not a version' }))).toBe('invalid_bound')
  const first = await at.state.search(companyId(1), query('openssl', { limit: 1 }))
  if (first === 'invalid_bound') throw new Error('no bound was given')
  expect(first.nextAfter).toBe(serverId(1))
  expect(await found(at, 1, query('openssl', { limit: 1, after: first.nextAfter }))).toEqual(['2 libssl3 3.1'])
  await at.state.close()
})

test('[MAT-203] bounds are compared as the package system of each server has it: dpkg, rpm, apk', async () => {
  const at = await site()
  const os = (id: string, version_id: string) => ({ id, version_id, codename: '', id_like: [], cpe_name: '' })
  // In each system the first is the lower one, and as text it is not.
  const systems = [
    { system: 'dpkg', os: os('debian', '12'), lower: '2.0~rc1-1', higher: '2.0-1' },
    { system: 'rpm', os: os('almalinux', '9.4'), lower: '9.0-1.el9', higher: '1:1.0-1.el9' },
    { system: 'apk', os: os('alpine', '3.20.1'), lower: '2.0_rc1-r0', higher: '2.0-r0' },
  ] as const
  for (const { system, os, lower, higher } of systems) {
    await at.send(1, report([`x ${lower}`], { system, os }))
    await at.send(2, report([`x ${higher}`], { system, os }))
    const rows = async (more: Partial<SearchQuery>) => [system, await found(at, 1, query('x', more))]
    expect(await rows({ versionLt: higher })).toEqual([system, [`1 x ${lower}`]])
    expect(await rows({ versionGte: higher })).toEqual([system, [`2 x ${higher}`]])
    expect(await rows({ versionGte: lower, versionLt: higher })).toEqual([system, [`1 x ${lower}`]])
    expect(await rows({ versionGte: lower })).toEqual([system, [`1 x ${lower}`, `2 x ${higher}`]])
    expect(await rows({ versionLt: lower })).toEqual([system, []])
  }
  await at.state.close()
})

test('[MAT-189] [MAT-200] equal packages in two companies: no answer shows the other', async () => {
  const at = await site()
  await at.send(1, report(['bash 5.2', 'shared 1.0']))
  await at.send(3, report(['bash 5.2', 'shared 1.0', 'secret 1.0']))
  for (const isLoaded of [true, false]) {
    expect(await found(at, 1, query('bash'))).toEqual(['1 bash 5.2'])
    expect(await found(at, 2, query('bash'))).toEqual(['3 bash 5.2'])
    expect(await found(at, 1, query('secret'))).toEqual([])
    expect(await found(at, 3, query('bash'))).toEqual([])
    expect(at.state.packages(companyId(1), serverId(3), { q: null, after: null, limit: 9 })).toBeNull()
    expect(at.state.packages(companyId(2), serverId(3), { q: null, after: null, limit: 9 })?.items).toHaveLength(3)
    expect(at.state.summary(companyId(1))).toMatchObject({ servers: 1, ecosystems: { 'debian:12': 1 } })
    // Opened again, the first answers come before the index is loaded.
    if (isLoaded) await at.reopen()
  }
  expect(at.errors).toEqual([])
})

test('[MAT-189] [MAT-205] packages of one name that another company made up cost a search no turn of others', async () => {
  const at = await site()
  await at.hosts(scanHost(5, { companyId: companyId(2) }))
  await at.send(1, report(['openssl 1.5']))
  await at.send(2, report(['openssl 1.4']))
  for (const host of [3, 5])
    await at.send(host, report(Array.from({ length: 18_000 }, (_, row) => `part${row} 1.${host}.${row} openssl`)))
  expect(await found(at, 1, query('openssl', { versionGte: '1.0' }))).toEqual(['1 openssl 1.5', '2 openssl 1.4'])
  let turns = 0
  let isOver = false
  const count = (): void => {
    turns++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  // On a clock that goes on by 10 ms with each look at it, so that the host's speed is not what is asserted.
  let nowMs = performance.now()
  const clock = spyOn(performance, 'now').mockImplementation(() => (nowMs += 10))
  // All are read, and none is kept.
  const answer = await found(at, 1, query('openssl', { versionGte: '9.0', deadlineMs: 1e9 }))
  clock.mockRestore()
  expect(answer).toEqual([])
  isOver = true
  expect(turns).toBeGreaterThan(10)
  await at.state.close()
})

test('[MAT-205] a search whose time is up says what it has and where to go on, and its pages miss nobody', async () => {
  const at = await site()
  const hosts = [10, 11, 12, 13]
  await at.hosts(...hosts.map(host => scanHost(host)))
  for (const host of hosts) await at.send(host, report(['openssl 3.0']))
  // As behind a start, before the index of packages is read: hosts are gone through one by one.
  await at.reopen()
  const pages: string[][] = []
  let after: string | null = null
  do {
    const page = await at.state.search(companyId(1), query('openssl', { after, deadlineMs: -1 }))
    if (page === 'invalid_bound') throw new Error('no bound was given')
    pages.push(page.items.map(row => row.server_id))
    after = page.nextAfter
  } while (after !== null && pages.length < 20)
  // The first page is that of one host; further ones too, until the index is there.
  expect(pages[0]).toEqual(hosts.map(serverId).toSorted().slice(0, 1))
  expect(pages.length).toBeGreaterThan(1)
  expect(pages.flat()).toEqual(hosts.map(serverId).toSorted())
  await at.state.close()
})

// The job of who is asked "is this server safe?", in a real browser: its page says what was found and what the last
// scan did not see, and never calls what nobody looked at good.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { type Json, type Tenant, TestHub } from '../../api/hub-harness.ts'
import { MatcherListener } from '../../api/matcher-listener.ts'
import { enroll, eventOf, findingPayload, type Host, opened, scannedPayload, send } from '../../api/security-event.ts'
import { until } from '../../support/until.ts'
import { closeContexts, violationsOf, visitAs } from '../browser.ts'
import { treeFault } from '../page-trees.ts'
import { askView, logIn, newPerson } from '../visitor.ts'

/** Markup, and too long for a line of any screen. */
const HOSTILE = `lib<img src="x" onerror="alert(1)">${'x'.repeat(200)}`
const matcher = new MatcherListener()

let hub: TestHub
let tenant: Tenant
let matcherCalls: Awaited<ReturnType<TestHub['matcher']>>['call']

beforeAll(async () => {
  hub = await TestHub.start({
    ...{ 'rate.session_per_minute': 100_000, 'rate.web_per_minute': 100_000 },
    ...{ 'matcher.url': matcher.url, 'matcher.token': 'token-of-the-matcher' },
  })
  tenant = await hub.tenant(undefined, { planCode: 'business' })
  matcherCalls = (await hub.matcher()).call
}, 120_000)
afterAll(async () => {
  await closeContexts()
  await hub?.stop()
  await matcher.stop()
}, 120_000)

const visit = (path: string, companyId = tenant.companyId, rights?: readonly string[]): Promise<Page> =>
  visitAs(hub, path, companyId, rights)

async function expectWellMade(page: Page): Promise<void> {
  expect(await violationsOf(page)).toEqual([])
  await page.emulateMedia({ colorScheme: 'dark' })
  expect(await violationsOf(page, 'colour')).toEqual([])
  await page.setViewportSize({ width: 360, height: 800 })
  const over = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
  expect(await page.evaluate<number>(over)).toBeLessThanOrEqual(0)
  const fresh = await page.context().newPage()
  await fresh.setViewportSize({ width: 360, height: 800 })
  await fresh.goto(page.url())
  const place = await fresh.getByRole('tab', { selected: true }).boundingBox()
  expect((place?.x ?? 360) + (place?.width ?? 0)).toBeLessThanOrEqual(360)
  await fresh.close()
  await page.setViewportSize({ width: 1280, height: 900 })
  await page.emulateMedia({ colorScheme: 'light' })
}

const newServer = async (name: string): Promise<string> =>
  (await tenant.call('POST', '/servers', { name })).body.data.id
const scanned = (host: Host, change: Json) =>
  send(matcherCalls, [
    eventOf(host, 'server.scanned', scannedPayload({ scanned_at: new Date().toISOString(), ...change })),
  ])

test('[SECU-004] the page of a server says what the last scan found, what it did not see, and why nothing may be known', async () => {
  const serverId = await newServer('web-1')
  const page = await visit(`/servers/${serverId}`)
  await page.getByRole('tab', { name: 'Security' }).click()
  await page.getByText('This server has never been scanned').waitFor()
  expect(await page.getByRole('heading', { name: 'Open findings' }).count()).toBe(0)

  const host = await enroll(tenant, matcherCalls, { serverId })
  await page.getByText('A scanner is enrolled, and no report of it has come yet.').waitFor()
  await page.getByText('For the reasons above that is not to say that there is none.').waitFor()

  await scanned(host, { match_status: 'no_db', db_version: 0 })
  await page.getByText('There was no vulnerability database for debian 12 at the last scan').waitFor()

  const found = [
    { vuln_id: 'CVE-2026-0001' },
    { vuln_id: 'CVE-2026-0002', kev: true, cvss_score: 9.8, severity_label: 'critical', package_key: HOSTILE },
  ]
  await scanned(host, { error_codes: ['third_party_packages'] })
  await send(
    matcherCalls,
    found.map(finding => opened(host, findingPayload(finding))),
  )
  const rows = page.getByRole('row').filter({ has: page.getByRole('link', { name: /^CVE-/ }) })
  await rows.nth(1).waitFor()
  await rows.filter({ hasText: HOSTILE }).waitFor()
  await page.getByText('packages of other vendors are not compared').waitFor()
  await expectWellMade(page)

  await scanned(host, { error_codes: ['packages_unreadable'], package_count: 0 })
  await page.getByText('The last scan failed: what is shown is what was known before it.').waitFor()
  await page.getByText('packages_unreadable').waitFor()

  await page.getByRole('link', { name: 'All findings of this server' }).click()
  await rows.nth(1).waitFor()
  expect(await page.getByText('server:web-1').count()).toBeGreaterThan(0)
}, 240_000)

test('a scanner that has no place in the plan, was revoked or detached is said to be so, and an empty list is not called good', async () => {
  const serverId = await newServer('web-4')
  const host = await enroll(tenant, matcherCalls, { serverId })
  await scanned(host, {})
  const page = await visit(`/servers/${serverId}?tab=security`)
  await page.getByRole('heading', { name: 'Open findings' }).waitFor()
  const doubted = async (text: string): Promise<void> => {
    await page.reload()
    await page.getByText(text).waitFor()
    await page.getByText('For the reasons above that is not to say that there is none.').waitFor()
  }
  await hub.hub.database.client`update scan_hosts set inactive_at = now() where host_id = ${host.hostId}`
  await doubted('The plan has no place for this server')
  await tenant.call('POST', `/security/scan-hosts/${host.hostId}/revoke`)
  await doubted('The scanner of this server was revoked')
  const other = await newServer('web-5')
  const attached = await enroll(tenant, matcherCalls, { serverId: other })
  await scanned(attached, {})
  await tenant.call('POST', `/security/scan-hosts/${attached.hostId}/attach`, { server_id: null })
  await page.goto(page.url().replace(serverId, other))
  // The scan goes with its scanner: nothing is known of the server by then.
  await page.getByText('no scanner is enrolled for it').waitFor()
  expect(await page.getByRole('heading', { name: 'Open findings' }).count()).toBe(0)
}, 120_000)

test('[SECU-005] packages of a server are found by name and paged, and a matcher that has none is said to have none', async () => {
  const serverId = await newServer('web-2')
  const item = (name: string) => ({
    ...{ server_id: serverId, name, version: '3.0.1-1', arch: 'amd64' },
    ...{ source_name: 'openssl', source_version: '3.0.1', ecosystem: 'debian:12' },
  })
  const page = await visit(`/servers/${serverId}?tab=packages`)
  await page.getByText('The matcher has no packages of this server').waitFor()

  matcher.answers(({ path, search }) => {
    if (!path.endsWith('/packages')) return { status: 404, body: {} }
    if (search.get('cursor') === 'on')
      return { status: 200, body: { data: { items: [item('zlib1g')], next_cursor: null } } }
    const items = [item('libssl3'), item(HOSTILE)].filter(({ name }) => name.includes(search.get('q') ?? ''))
    return { status: 200, body: { data: { items, next_cursor: search.get('q') === 'lib' ? 'on' : null } } }
  })
  const find = page.getByRole('searchbox', { name: 'Find a package' })
  await find.fill('libssl')
  await page.getByRole('rowheader', { name: 'libssl3' }).waitFor()
  expect(await page.getByRole('rowheader').count()).toBe(1)
  expect(await treeFault('packages', page)).toEqual([])
  await expectWellMade(page)
  await find.fill('nothing-like-it')
  await page.getByText('No package matches.').waitFor()
  await find.fill('lib')
  await page.getByRole('rowheader', { name: HOSTILE }).waitFor()
  await page.getByRole('button', { name: 'Next packages' }).click()
  await page.getByRole('rowheader', { name: 'zlib1g' }).waitFor()
  await page.getByRole('button', { name: 'From the first' }).click()
  await page.getByRole('rowheader', { name: 'libssl3' }).waitFor()
  // Back undoes the search in the field too.
  await page.evaluate("history.pushState(null, '', location.pathname + '?tab=packages&q=zlib')")
  await page.goBack()
  await page.goForward()
  await until('the field says what is searched', async () => (await find.inputValue()) === 'zlib')
  const session = await logIn(hub.url, (await newPerson(hub, tenant.companyId)).email)
  const cursor = 'c'.repeat(4_000)
  let asked: string | null = null
  matcher.answers(({ search }) => {
    asked = search.get('cursor')
    return { status: 404, body: {} }
  })
  await askView(hub.url, session, 'server-packages', `&server=${serverId}&cursor=${cursor}`)
  expect(asked as string | null).toBe(cursor)
  await tenant.call('DELETE', `/servers/${serverId}`)
  await page.getByText('This server was deleted: its packages are not known any more.').waitFor()
}, 240_000)

test('who may not see findings has no tab of them, and another company gets nothing of the server', async () => {
  const serverId = await newServer('web-3')
  const viewer = await visit(`/servers/${serverId}?tab=security`, tenant.companyId, ['monitoring.view', 'servers.view'])
  await viewer.getByRole('tab', { name: 'Metrics', selected: true }).waitFor()
  expect(await viewer.getByRole('tab', { name: /Security|Packages/ }).count()).toBe(0)
  const statusOf = async (companyId: string, rights: readonly string[], view: string): Promise<number> => {
    const session = await logIn(hub.url, (await newPerson(hub, companyId, rights)).email)
    return (await askView(hub.url, session, view, `&server=${serverId}`)).status
  }
  const other = await hub.tenant(undefined, { planCode: 'business' })
  for (const view of ['server-security', 'server-packages'])
    expect([
      await statusOf(tenant.companyId, ['*'], view),
      await statusOf(tenant.companyId, ['monitoring.view', 'servers.view'], view),
      await statusOf(other.companyId, ['*'], view),
    ]).toEqual([200, 403, 404])
}, 120_000)

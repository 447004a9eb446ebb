// The job of who answers for security, in a real browser, by role and accessible name: what is worst, what mends it,
// whom else it concerns, and a risk that one person asks to accept and another approves.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { addUpFindingCounts } from '../../../apps/hub/security/findings/finding-page.ts'
import { parseFilter, termText } from '../../../apps/hub/web/address/filter-language.ts'
import { type Json, type Tenant, TestHub, until } from '../../api/hub-harness.ts'
import { enroll, eventOf, findingPayload, type Host, opened, scannedPayload, send } from '../../api/security-event.ts'
import { closeContexts, violationsOf, visitAs } from '../browser.ts'
import { treeFault } from '../page-trees.ts'
import { askView, logIn, newPerson, slugOf } from '../visitor.ts'

const DESCRIPTION = `A <b>crafted</b> file. ${'word '.repeat(2000)}the end.`
const HOSTILE = `lib<img src="x" onerror="alert(1)">`

let hub: TestHub
let tenant: Tenant
let serverId: string
let host: Host
let matcherCalls: Awaited<ReturnType<TestHub['matcher']>>['call']

beforeAll(async () => {
  hub = await TestHub.start({ 'rate.session_per_minute': 100_000, 'rate.web_per_minute': 100_000 })
  tenant = await hub.tenant(undefined, { planCode: 'business' })
  serverId = (await tenant.call('POST', '/servers', { name: 'web-1' })).body.data.id
  const { call } = await hub.matcher()
  matcherCalls = call
  const items = [
    { vuln_id: 'CVE-2026-0001', title: '' },
    {
      ...{ vuln_id: 'CVE-2026-0002', title: 'Heap overflow in a parser', description: DESCRIPTION },
      ...{ severity: 'critical', kev: true, references: ['https://example.test/advisory', 'javascript:alert(1)'] },
    },
  ]
  const stored = await call('PUT', '/vulnerabilities', { items })
  expect([stored.status, stored.body.error]).toEqual([200, undefined])
  host = await enroll(tenant, call, { serverId })
  const found = [
    { vuln_id: 'CVE-2026-0001' },
    {
      ...{ vuln_id: 'CVE-2026-0002', kev: true, cvss_score: 9.8, severity_label: 'critical', package_key: HOSTILE },
      first_seen_at: new Date().toISOString(),
    },
    { vuln_id: 'CVE-2026-0003', cvss_score: 2, severity_label: 'low', fix_status: 'no_fix', fixed_version: '' },
  ]
  await send(call, [
    eventOf(host, 'server.scanned', scannedPayload()),
    ...found.map(finding => opened(host, findingPayload(finding))),
  ])
}, 120_000)
afterAll(async () => {
  await closeContexts()
  await hub?.stop()
}, 120_000)

const visit = (path: string, companyId = tenant.companyId, rights?: readonly string[]): Promise<Page> =>
  visitAs(hub, path, companyId, rights)

/** Nothing that axe-core knows to be wrong in either scheme, and nothing over the edge on a screen and a phone. */
async function expectWellMade(page: Page): Promise<void> {
  expect(await violationsOf(page)).toEqual([])
  await page.emulateMedia({ colorScheme: 'dark' })
  expect(await violationsOf(page, 'colour')).toEqual([])
  await page.setViewportSize({ width: 360, height: 800 })
  expect(await violationsOf(page)).toEqual([])
  const over = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
  expect(await page.evaluate<number>(over)).toBeLessThanOrEqual(0)
  await page.setViewportSize({ width: 1280, height: 900 })
  await page.emulateMedia({ colorScheme: 'light' })
}

const idOf = async (cve: string): Promise<string> =>
  (await tenant.call('GET', `/security/findings?vuln_id=${cve}`)).body.data[0].id

test('[SECU-007] the worst finding is read first with what mends it, and a risk is accepted once somebody else approves', async () => {
  const page = await visit('/')
  await page.getByRole('link', { name: 'Findings' }).click()
  const rows = page.getByRole('row').filter({ has: page.getByRole('link', { name: /^CVE-/ }) })
  await rows.nth(2).waitFor()
  expect(await rows.getByRole('link', { name: /^CVE-/ }).allTextContents()).toEqual([
    'CVE-2026-0002',
    'CVE-2026-0001',
    'CVE-2026-0003',
  ])
  await rows.first().getByText(HOSTILE).waitFor()
  // Found just now, so due in a week; the second one was found long ago.
  expect(await rows.nth(0).textContent()).toMatch(/in [67] days/)
  expect(await rows.nth(1).textContent()).toMatch(/Overdue \d+ days ago/)
  await page.getByText('1 of 1 server scanned').waitFor()
  await expectWellMade(page)

  await page.getByRole('link', { name: '1 Exploited' }).click()
  await rows.nth(1).waitFor({ state: 'detached' })
  await page.getByRole('link', { name: 'CVE-2026-0002' }).click()
  await page.getByRole('heading', { name: 'CVE-2026-0002' }).waitFor()
  await page.getByText(`Upgrade ${HOSTILE} from 3.0.1-1 to 3.0.1-2 on web-1. It is exploited.`).waitFor()
  await page.getByText('A <b>crafted</b> file.').waitFor()
  // What is long is whole once it is asked for.
  expect(await page.getByText('the end.').count()).toBe(0)
  await page.getByRole('button', { name: 'Whole text' }).click()
  await page.getByText('the end.').waitFor()
  // It is of p1: a week from now, and not late.
  const due = page.locator('dl.facts dt', { hasText: /^Due$/ }).locator('xpath=following-sibling::dd[1]')
  expect(await due.textContent()).toMatch(/^in [67] days$/)
  await page.getByRole('link', { name: 'https://example.test/advisory' }).waitFor()
  expect(await page.getByRole('link', { name: 'javascript:alert(1)' }).count()).toBe(0)
  await expectWellMade(page)

  await page.getByRole('link', { name: 'Findings' }).click()
  const filter = page.getByRole('combobox', { name: 'Filter' })
  await filter.fill('server:WEB-1 -priority:p1 ')
  await rows.filter({ hasText: 'CVE-2026-0002' }).waitFor({ state: 'detached' })
  const [matching, reason] = [await rows.count(), 'Behind a firewall']
  expect(matching).toBe(2)
  await page.getByRole('button', { name: `Select all ${matching} that match` }).click()
  // One that is taken out again is not asked for. What is not selected yet could not be taken out.
  await page.getByRole('checkbox', { name: /^Select CVE-2026-0003/, checked: true }).uncheck()
  await page.getByRole('button', { name: 'Accept risk' }).click()
  const dialog = page.getByRole('dialog', { name: 'Accept risk' })
  await dialog.getByLabel('Reason').fill(reason)
  await dialog.getByRole('button', { name: 'Ask for approval' }).click()
  await dialog.waitFor({ state: 'detached' })
  await page.getByText('Asked for; it waits for approval.').waitFor()

  await page.getByRole('link', { name: 'Exceptions' }).click()
  await page.getByRole('button', { name: `Reject “${reason}”` }).waitFor()
  expect(await page.getByRole('button', { name: `Approve “${reason}”` }).count()).toBe(0)
  await expectWellMade(page)

  const approver = await visit('/exceptions')
  await approver.getByRole('button', { name: `Approve “${reason}”` }).click()
  await approver.getByRole('row').filter({ hasText: reason }).getByText('Approved').waitFor()
  await approver.getByRole('link', { name: 'Findings' }).click()
  await approver.getByRole('link', { name: 'Accepted ones' }).click()
  const accepted = approver.getByRole('row').filter({ has: approver.getByRole('link', { name: /^CVE-/ }) })
  // Those that are open stand there until the answer comes.
  await accepted.filter({ hasText: 'Accepted' }).first().waitFor()
  expect(await accepted.getByRole('link', { name: /^CVE-/ }).allTextContents()).toEqual(['CVE-2026-0001'])
  await accepted.first().getByText('Accepted').waitFor()
}, 240_000)

test('findings are read by vulnerability: on which servers it is open, what to do there, whatever is not added up yet', async () => {
  const page = await visit('/findings')
  await page.getByLabel('Group by').selectOption('cve')
  const group = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'CVE-2026-0002' }) })
  await group.getByText('Heap overflow in a parser').waitFor()
  await group.getByText('for all').waitFor()
  await expectWellMade(page)
  await group.getByRole('link', { name: 'CVE-2026-0002' }).click()
  await page.getByText('Open on 1 server. It is exploited.').waitFor()
  await page.getByText(`Upgrade ${HOSTILE} to 3.0.1-2.`).waitFor()
  await page.getByRole('row').getByRole('link', { name: 'web-1' }).waitFor()
  expect(await treeFault('vulnerability', page)).toEqual([])
  await expectWellMade(page)
  const { client } = hub.hub.database
  await client`update security_findings set sla_due_at = now() - interval '1 day' where vuln_id = 'CVE-2026-0003'`
  const late = await visit(
    new URL(page.url()).pathname.replace(/^.c.[^/]+/, '').replace('CVE-2026-0002', 'cve-2026-0003'),
  )
  await late.getByRole('heading', { name: 'CVE-2026-0003' }).waitFor()
  await late.getByText('The first is overdue, it was due').waitFor()
  await page.getByRole('link', { name: 'All findings of CVE-2026-0002' }).click()
  await page.getByRole('rowheader', { name: 'CVE-2026-0002' }).waitFor()
}, 240_000)

test('what mends a vulnerability is told as far as it helps most, and how much there is besides', async () => {
  const other = await hub.tenant(undefined, { planCode: 'business' })
  const [first, second] = [await enroll(other, matcherCalls), await enroll(other, matcherCalls)]
  const of = (at: number) => findingPayload({ vuln_id: 'CVE-2026-0050', package_key: `package-${at}` })
  await send(matcherCalls, [...Array.from({ length: 52 }, (_, at) => opened(first, of(at))), opened(second, of(51))])
  const session = await logIn(hub.url, (await newPerson(hub, other.companyId)).email)
  const view = (await (await askView(hub.url, session, 'vulnerability', '&cve=CVE-2026-0050')).json()) as Json
  expect([view.remedies.length, view.moreRemedies]).toEqual([50, 2])
  expect(view.remedies[0]).toMatchObject({ packageKey: 'package-51', servers: 2 })
  const page = await visit('/by-cve/CVE-2026-0050', other.companyId)
  await page.getByText('and 2 more, on fewer servers').waitFor()
}, 120_000)

test('groups hold the findings that the list has, of one server as of all, in order and page by page', async () => {
  const session = await logIn(hub.url, (await newPerson(hub, tenant.companyId)).email)
  const groupsOf = async (search: string): Promise<Json> =>
    (await (await askView(hub.url, session, 'findings', `&group=cve${search}`)).json()) as Json
  const all = 'q=state:open+state:accepted'
  const brief = ({ groups }: Json) =>
    groups.map(({ key, findings, fixed, packages }: Json) => [key, findings, fixed, packages])
  const expected = [
    ['CVE-2026-0002', 1, 1, 1],
    ['CVE-2026-0001', 1, 1, 1],
    ['CVE-2026-0003', 1, 0, 1],
  ]
  expect(brief(await groupsOf(`&${all}`))).toEqual(expected)
  expect(brief(await groupsOf(`&${all}+server:web-1`))).toEqual(expected)
  await addUpFindingCounts(hub.hub.database.db)
  expect(brief(await groupsOf(`&${all}`))).toEqual(expected)
  expect(brief(await groupsOf(`&${all}+-priority:p4`)).length).toBeLessThanOrEqual(3)
  const last = await groupsOf(`&${all}&offset=900`)
  expect([last.matching, last.offset, brief(last)]).toEqual([3, 2, expected.slice(2)])
  expect(brief(await groupsOf('&q=server:no-such-server'))).toEqual([])
  const { groups } = await groupsOf('&q=state:accepted')
  expect(groups.map(({ findings, open }: Json) => [findings, open])).toEqual([[1, 0]])
  // A vulnerability has one page, in whatever case its name is typed; what is past its term is told as such there.
  const typed = await (await askView(hub.url, session, 'vulnerability', '&cve=cve-2026-0002')).json()
  expect(typed).toMatchObject({ vulnId: 'CVE-2026-0002', moreRemedies: 0 })
  for (const value of ['<b>', '>=5', '"a" b', 'x', 'server:y', '-z'])
    for (const key of ['server', null]) {
      const term = { key, isExcluded: false, operator: '=', value } as const
      expect(parseFilter(termText(term))).toEqual([term])
    }
  const other = await hub.tenant(undefined, { planCode: 'business' })
  const stranger = await logIn(hub.url, (await newPerson(hub, other.companyId)).email)
  const theirs = await askView(hub.url, stranger, 'findings', '&group=cve')
  expect(((await theirs.json()) as Json).groups).toEqual([])
  expect((await askView(hub.url, stranger, 'vulnerability', '&cve=CVE-2026-0002')).status).toBe(404)
}, 120_000)

test('findings are read by package and by server, and a group leads to the very findings that it counts', async () => {
  const other = await hub.tenant(undefined, { planCode: 'business' })
  const name = 'web "one" \u202e<b>é🙂'
  const { id } = (await other.call('POST', '/servers', { name })).body.data
  const [attached, loose] = [await enroll(other, matcherCalls, { serverId: id }), await enroll(other, matcherCalls)]
  const of = (vuln_id: string, package_key: string, about: Json = {}) =>
    findingPayload({ vuln_id, package_key, ...about })
  await send(matcherCalls, [
    opened(attached, of('CVE-2026-0061', HOSTILE)),
    opened(attached, of('CVE-2026-0062', HOSTILE, { fix_status: 'no_fix', fixed_version: '' })),
    opened(attached, of('CVE-2026-0061', `${HOSTILE}-dev`)),
    opened(loose, of('CVE-2026-0061', HOSTILE)),
  ])
  const session = await logIn(hub.url, (await newPerson(hub, other.companyId)).email)
  const asked = async (view: string, search: string): Promise<Json> =>
    (await (await askView(hub.url, session, view, search)).json()) as Json
  const brief = ({ groups }: Json) =>
    groups.map((group: Json) => [group.key, group.findings, group.fixed, group.vulnerabilities, group.packages])
  const byPackage = [
    [HOSTILE, 3, 2, 2, 1],
    [`${HOSTILE}-dev`, 1, 1, 1, 1],
  ]
  expect(brief(await asked('findings', '&group=package'))).toEqual(byPackage)
  await addUpFindingCounts(hub.hub.database.db)
  expect(brief(await asked('findings', '&group=package'))).toEqual(byPackage)
  const byServer = await asked('findings-by-server', '&group=server')
  expect(brief(byServer)).toEqual([
    [id, 3, 2, 2, 2],
    ['', 1, 1, 1, 1],
  ])
  expect(byServer.groups[0].title).toBe(name)
  const theirs = await asked('findings-by-server', '&group=server&q=attached:maybe')
  expect([theirs.matching, theirs.groups]).toEqual([0, []])
  // A package that others only begin like is not that package, and an export that cannot say it is none.
  const exact = await asked('findings', `&q=${encodeURIComponent(`package:"${HOSTILE.replaceAll('"', '""')}"`)}`)
  expect([exact.matching, exact.rows.length, exact.exported]).toEqual([3, 3, null])

  const page = await visit('/findings?q=fix:fixed', other.companyId)
  const rows = page.getByRole('row').filter({ has: page.getByRole('link', { name: /^CVE-/ }) })
  const [group, chosen] = [page.getByLabel('Group by'), page.getByRole('rowheader').getByRole('link')]
  await rows.nth(2).waitFor()
  await group.selectOption('package')
  await page.getByRole('columnheader', { name: 'Vulnerabilities' }).waitFor()
  await expectWellMade(page)
  expect(await chosen.allTextContents()).toEqual([HOSTILE, `${HOSTILE}-dev`])
  await chosen.first().click()
  await rows.nth(1).waitFor()
  expect(await rows.count()).toBe(2)
  await group.selectOption('server')
  await page.getByRole('rowheader').getByRole('link', { name: 'no server' }).waitFor()
  expect((await chosen.allTextContents()).sort()).toEqual(['no server', name])
  await expectWellMade(page)
  await chosen.filter({ hasText: 'no server' }).click()
  await rows.first().waitFor()
  expect([await rows.count(), await rows.getByText('no server').count()]).toEqual([1, 1])
  // The package stays chosen; of the server there are two, and one of them has no fix.
  await page.goBack()
  await chosen.filter({ hasText: name }).click()
  await rows.first().waitFor()
  expect([await rows.count(), await rows.getByText(name).count()]).toEqual([1, 1])
}, 240_000)

test('[SECU-009] what matches is exported from the page: it says that the file is made, then where it is, and what fails', async () => {
  const viewer = await visit('/findings', tenant.companyId, ['security.view'])
  await viewer.getByRole('rowheader').first().waitFor()
  expect(await viewer.getByRole('button', { name: 'Export CSV' }).count()).toBe(0)

  const page = await visit('/findings?q=exploited:yes')
  const csv = page.getByRole('button', { name: 'Export CSV' })
  await page.getByRole('rowheader', { name: 'CVE-2026-0002' }).waitFor()
  const running = { state: 'running', findings: null, expiresAtMs: Date.now() }
  let goOn: () => void = () => {}
  const isSeen = new Promise<void>(resolve => {
    goOn = resolve
  })
  // The hub is fast: the first answer is of before, and the stream is let through once that was seen.
  await page.route('**/web/view/findings-export*', route => route.fulfill({ json: running }))
  await page.route('**/web/live*', async route => {
    await isSeen
    await route.continue()
  })
  await csv.click()
  await page.getByText('The file is being made …').waitFor()
  goOn()
  await page.getByText(/^1 finding until/).waitFor()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Download CSV' }).click(),
  ])
  expect(download.suggestedFilename()).toMatch(/^findings-.*\.csv$/)
  expect(await Bun.file(await download.path()).text()).toContain('CVE-2026-0002')
  const path = new URL(download.url()).pathname
  const other = await hub.tenant(undefined, { planCode: 'business' })
  const stranger = await logIn(hub.url, (await newPerson(hub, other.companyId)).email)
  const asked = await fetch(`${hub.url}${path}?company=${slugOf(stranger)}`, { headers: { cookie: stranger.cookie } })
  expect(asked.status).toBe(404)
  const reader = await logIn(hub.url, (await newPerson(hub, tenant.companyId, ['security.view'])).email)
  const refused = await fetch(`${hub.url}${path}?company=${slugOf(reader)}`, { headers: { cookie: reader.cookie } })
  expect(refused.status).toBe(403)

  await page.unroute('**/web/view/findings-export*')
  await page.route('**/web/view/findings-export*', async route => {
    const sql = hub.hub.database.client
    // Once it is made, since what makes it would say so afterwards.
    const inWork = () => sql`select id from security_exports where status in ('queued', 'running')`
    await until('the export to be over', async () => (await inWork()).length === 0)
    await sql`update security_exports set status = 'failed'`
    await route.continue()
  })
  await csv.click()
  await page.getByRole('alert').getByText('The file could not be made.').waitFor()
  // What an export cannot say is not exported as something else.
  await page.getByRole('combobox', { name: 'Filter' }).fill('state:open state:accepted ')
  await page.getByRole('rowheader', { name: 'CVE-2026-0001' }).waitFor()
  expect(await csv.isDisabled()).toBe(true)
}, 240_000)

test('findings are shown to nobody of another company and to nobody without the right, whatever the address', async () => {
  const id = await idOf('CVE-2026-0002')
  const other = await hub.tenant(undefined, { planCode: 'business' })
  const stranger = await visit(`/findings/${id}`, other.companyId)
  await stranger
    .getByRole('heading', { name: 'There is nothing here' })
    .or(stranger.getByRole('alert'))
    .first()
    .waitFor()
  expect(await stranger.getByText('CVE-2026-0002').count()).toBe(0)
  const viewer = await visit('/findings', tenant.companyId, ['monitoring.view', 'servers.view'])
  await viewer.getByText('security.view').first().waitFor()
  expect(await viewer.getByText('CVE-2026-0002').count()).toBe(0)
  expect(await viewer.getByRole('link', { name: 'Findings' }).count()).toBe(0)
}, 120_000)

test('columns keep their widths while somebody is at the rows: what grows is not seen by a move, what is new waits', async () => {
  const page = await visit('/findings?q=state:open+state:accepted')
  const row = page.getByRole('row').filter({ hasText: 'CVE-2026-0001' })
  const widths = () => page.evaluate<string>(`document.querySelector('table').style.getPropertyValue('--columns')`)
  await row.hover()
  const before = await widths()
  expect(before).toMatch(/^\d/)
  const longer = '3.0.1-1+with-a-backport-that-is-longer-than-its-column'
  const { data } = (await tenant.call('GET', '/security/findings?vuln_id=CVE-2026-0001')).body
  const changed = { vuln_id: 'CVE-2026-0001', finding_key: data[0].finding_key, installed_version: longer }
  await send(matcherCalls, [
    eventOf(host, 'finding.updated', findingPayload(changed)),
    opened(host, findingPayload({ vuln_id: 'CVE-2026-0009', package_key: longer })),
  ])
  await row.getByText(longer).waitFor()
  const waiting = page.getByRole('button', { name: '1 new' })
  await waiting.waitFor()
  expect(await widths()).toBe(before)
  await waiting.click()
  await page.getByRole('rowheader', { name: 'CVE-2026-0009' }).waitFor()
}, 120_000)

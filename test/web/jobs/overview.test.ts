// The first page in a real browser: who has just started a site sees this host live and the next step; who has many
// servers sees what needs somebody, now and soon.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import type { Browser, Page } from 'playwright-core'
import { notificationsIdle } from '../../api/alert-event.ts'
import { type Json, type Tenant, TestHub } from '../../api/hub-harness.ts'
import { SimulatedAgent } from '../../support/simulated-agent.ts'
import { type SiteProcess, startSiteProcess } from '../../support/site.ts'
import { closeContexts, sharedBrowser, signIn, violationsOf } from '../browser.ts'
import { logIn, newPerson, slugOf } from '../visitor.ts'

let hub: TestHub
let browser: Browser
let site: SiteProcess

beforeAll(async () => {
  const started = [
    TestHub.start({ 'rate.session_per_minute': 100_000, 'rate.web_per_minute': 100_000 }),
    startSiteProcess({ args: ['--no-local-agent'] }),
    sharedBrowser(),
  ] as const
  ;[hub, site, browser] = await Promise.all(started)
}, 120_000)
afterAll(async () => {
  await closeContexts()
  await hub?.stop()
  await site?.stop()
}, 120_000)

test('who has only begun sees that values are to come, then charts of the one server by themselves, and the next step', async () => {
  await site.api('POST', '/api/v1/servers', { name: 'my-host', hostname: 'my-host' })
  const agent = await SimulatedAgent.enroll(site.facts.agent_url, site.facts.license, 'my-host')
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en-GB' })
  const page = await context.newPage()
  const problems: string[] = []
  page.on('pageerror', error => problems.push(String(error)))
  await page.goto(site.facts.hub_url)
  await signIn(page, site)
  await page.waitForURL(/\/c\//)
  await page.getByText('The first values come within half a minute').waitFor()
  await page.getByRole('button', { name: 'Live', exact: true }).waitFor()
  expect(await page.getByRole('figure').count()).toBe(0)
  const nowMs = Date.now()
  const points = [
    [nowMs - 30_000, 12.5],
    [nowMs, 12.5],
  ] as const
  const disk = { mount: '/', device: 'sda1', fstype: 'ext4' }
  await agent.send([
    { name: 'cpu_usage_percent', points },
    { name: 'disk_used_percent', labels: disk, points },
  ])
  await page.getByRole('figure', { name: 'CPU usage' }).getByRole('cell', { name: '12.5 %' }).first().waitFor()
  await page.getByRole('figure', { name: 'Disk usage' }).getByRole('row', { name: '/' }).first().waitFor()
  expect(await violationsOf(page)).toEqual([])
  await page.getByRole('link', { name: 'Add a server' }).click()
  await page.getByRole('heading', { name: '1. Which servers?' }).waitFor()
  expect(problems).toEqual([])
  await context.close()
}, 120_000)

async function open(tenant: Tenant, permissions: readonly string[] = ['*']): Promise<Page> {
  const { email } = await newPerson(hub, tenant.companyId, permissions)
  const session = await logIn(hub.url, email)
  const [name = '', value = ''] = session.cookie.split('=')
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en-GB' })
  await context.addCookies([{ name, value, url: hub.url }])
  const page = await context.newPage()
  await page.goto(`${hub.url}/c/${slugOf(session)}/`)
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  return page
}

/** An alert of a rule of this severity on a server. */
async function newAlert(
  tenant: Tenant,
  collector: Json,
  serverId: string,
  severity: string,
  name = `CPU ${severity}`,
): Promise<void> {
  const rule = (
    await tenant.call('POST', '/monitoring/rules', {
      ...{ name, kind: 'threshold', scope: { server_ids: [serverId] } },
      ...{ metric: 'cpu_usage_percent', operator: '>', threshold: 90, severity },
    })
  ).body.data
  const event = {
    ...{ event_id: crypto.randomUUID(), type: 'alert.opened', seq: 1, occurred_at: new Date().toISOString() },
    ...{ company_id: tenant.companyId, server_id: serverId, rule_id: rule.id, rule_version: rule.version },
    ...{ series_key: 'cpu_usage_percent', severity, value: 97.25, threshold: 90, labels: {} },
    ...{ suppressed: false, suppress_reason: null, group_key: null },
  }
  expect((await collector.call('POST', '/events', { events: [event] })).body.data.accepted).toHaveLength(1)
}

const tile = (page: Page, state: string) => page.getByRole('link').filter({ hasText: new RegExp(`^\\d+${state}$`) })

test('the overview counts what nobody is on, and says what ends soon, what is old and what is full', async () => {
  const collector = await hub.collector()
  const tenant = await hub.tenant({ agent_quota: 4 })
  const { db } = hub.hub.database
  const ids: string[] = []
  for (const name of ['one', 'two', 'three'])
    ids.push((await tenant.call('POST', '/servers', { name, hostname: name })).body.data.id)
  const expires_at = new Date(Date.now() + 5 * 86_400_000).toISOString()
  const made = await tenant.call('POST', '/monitoring/licenses', { name: 'Spring', max_uses: 4, expires_at })
  for (const hostname of ['one', 'two', 'three'])
    await collector.call('POST', '/enroll', { license: made.body.token, hostname, machine_id: hostname })
  await db.execute(sql`update monitoring_agents set agent_version = case hostname when 'one' then '1.0.0' else '1.2.0' end
    where company_id = ${tenant.companyId}`)
  await hub.hub.database
    .client`update companies set plan_overrides = plan_overrides || '{"agent_quota": 3}' where id = ${tenant.companyId}`
  await newAlert(tenant, collector, ids[0] ?? '', 'critical')
  await newAlert(tenant, collector, ids[1] ?? '', 'warning')
  const page = await open(tenant)
  expect(await tile(page, 'Critical').textContent()).toBe('1Critical')
  expect(await tile(page, 'Warning').textContent()).toBe('1Warning')
  await page.getByText(/^2 alerts opened in 30 days, .*today 2\.$/).waitFor()
  const soon = page.getByRole('region', { name: 'Soon' })
  await soon.getByText('The plan has room for 0 more of 3 agents.').waitFor()
  await soon.getByText(/^Licence Spring ends in [45]/).waitFor()
  await soon.getByText('1 agent is older than 1.2.0.').waitFor()
  await soon.getByText('No collector has reported yet.').waitFor()
  await page.getByText('As a table').click()
  const table = page.getByRole('region', { name: 'Alerts a day, 30 days' }).getByRole('table')
  expect(await table.getByRole('row').nth(1).getByRole('cell').allTextContents()).toEqual(['2', '0'])
  // Three servers are no beginning any more.
  expect(await page.getByRole('link', { name: 'Add a server' }).count()).toBe(0)
  expect(await violationsOf(page)).toEqual([])
  await tile(page, 'Critical').click()
  await page.getByRole('row', { name: /CPU critical/ }).waitFor()
  expect(await page.getByRole('row', { name: /CPU warning/ }).count()).toBe(0)
  await page.context().close()
}, 120_000)

/** Two lost servers that are one incident. */
async function newIncident(tenant: Tenant, collector: Json, serverIds: readonly string[]): Promise<void> {
  const base = {
    ...{ occurred_at: new Date().toISOString(), company_id: tenant.companyId, rule_version: 0, severity: 'critical' },
    ...{ value: 95, threshold: 90, suppressed: false, labels: {}, seq: 1 },
  }
  const events: Json[] = []
  for (const server_id of serverIds) {
    const made = await tenant.call('POST', '/monitoring/licenses', { name: server_id, server_id })
    const { agent_id } = (
      await collector.call('POST', '/enroll', { license: made.body.token, hostname: server_id, machine_id: server_id })
    ).body.data
    const down = { type: 'agent.down', server_id, rule_id: 'agent_down', series_key: `agent:${agent_id}` }
    events.push({ ...base, ...down, event_id: crypto.randomUUID() })
  }
  const group = { type: 'group_down', server_id: serverIds[0], rule_id: 'group_down', series_key: 'subnet:gone' }
  const members = { group_key: 'subnet:gone', group_total: serverIds.length, member_server_ids: serverIds }
  events.push({ ...base, ...group, ...members, event_id: crypto.randomUUID() })
  expect((await collector.call('POST', '/events', { events })).body.data.accepted).toHaveLength(events.length)
}

test('alerts of seven days stand by day and severity, of all and of each group; an incident is one group with its parts', async () => {
  const collector = await hub.collector()
  const tenant = await hub.tenant()
  const ids: string[] = []
  for (const name of ['one', 'two'])
    ids.push((await tenant.call('POST', '/servers', { name, hostname: name })).body.data.id)
  await newAlert(tenant, collector, ids[0] ?? '', 'critical')
  await newAlert(tenant, collector, ids[1] ?? '', 'warning')
  await newIncident(tenant, collector, ids)
  // Who opens the page is somebody else, and is told of what comes later.
  await notificationsIdle(hub)
  await hub.hub.database.db.execute(sql`update monitoring_alerts set opened_at = opened_at - interval '3 days'
    where company_id = ${tenant.companyId} and severity = 'warning'`)
  const page = await open(tenant)
  await page.goto(`${page.url()}alerts?group=rule`)
  const row = (name: string) => page.getByRole('row').filter({ has: page.getByRole('link', { name }) })
  await row('CPU warning')
    .getByRole('img', { name: '1 alert opened in 7 days: 0 critical, 1 warning, 0 info.' })
    .waitFor()
  const week = page.getByRole('region', { name: 'Alerts a day, 7 days' })
  await week.getByText('5 alerts opened in 7 days: 4 critical, 1 warning, 0 info.').last().click()
  const days = await week.getByRole('row').all()
  const counts = await Promise.all(days.map(day => day.getByRole('cell').allTextContents()))
  expect(counts.filter(([, warning]) => warning === '1')).toEqual([['0', '1', '0']])
  expect(days).toHaveLength(8)
  expect(await violationsOf(page)).toEqual([])
  // Groups within groups; one of them is the list with a term for each.
  await page.getByLabel('then by').selectOption({ label: 'server' })
  await row('two').getByRole('link').click()
  expect(new URL(page.url()).searchParams.get('q')).toBe('rule:"CPU warning" server:two')
  await row('CPU warning').getByText('in 1 inbox').waitFor()
  await page.goBack()
  await page.getByLabel('Group by').selectOption({ label: 'incident' })
  const incident = row('2 servers down at once · subnet:gone')
  await incident.waitFor()
  // The incident and its two parts; who takes the incident takes them all.
  expect((await incident.getByRole('cell').allTextContents()).slice(2, 5)).toEqual(['3', '1', '2'])
  expect((await row('(no incident)').getByRole('cell').allTextContents()).slice(2, 5)).toEqual(['2', '2', '2'])
  await row('(no incident)').getByRole('link').click()
  await page.getByRole('link', { name: 'CPU critical' }).waitFor()
  expect(await page.getByRole('link', { name: '2 servers down at once' }).count()).toBe(0)
  await page.goBack()
  await incident.getByRole('link', { name: '2 servers down at once' }).click()
  const map = page.getByRole('region', { name: 'Map of the incident' })
  await map.getByText('2 of 2 servers still down.').waitFor()
  await map.getByRole('application').focus()
  await page.keyboard.press('ArrowRight')
  await map.getByRole('status').getByRole('link', { name: 'two' }).waitFor()
  expect(await violationsOf(page)).toEqual([])
  await page.context().close()
}, 120_000)

test('[HUB-031] companies below this one stand as rows, those that the viewer may work in and no others', async () => {
  const tenant = await hub.tenant()
  const [granted, hidden] = [
    await hub.tenant(undefined, { parentId: tenant.companyId }),
    await hub.tenant(undefined, { parentId: tenant.companyId }),
  ]
  await granted.call('POST', '/servers', { name: 'theirs', hostname: 'theirs' })
  const { db } = hub.hub.database
  const person = await newPerson(hub, tenant.companyId)
  await db.execute(
    sql`insert into user_company_grants (user_id, company_id) values (${person.userId}, ${granted.companyId})`,
  )
  const nameOf = async ({ companyId }: Tenant): Promise<string> =>
    (await db.execute<{ name: string }>(sql`select name from companies where id = ${companyId}`))[0]?.name ?? ''
  const session = await logIn(hub.url, person.email)
  const [name = '', value = ''] = session.cookie.split('=')
  const context = await browser.newContext({ viewport: { width: 360, height: 900 }, locale: 'en-GB' })
  await context.addCookies([{ name, value, url: hub.url }])
  const page = await context.newPage()
  await page.goto(`${hub.url}/c/${slugOf(session)}/`)
  const table = page.getByRole('region', { name: 'Companies below this one' }).getByRole('table')
  const row = table.getByRole('row').filter({ hasText: await nameOf(granted) })
  await row.getByRole('cell', { name: '1', exact: true }).first().waitFor()
  expect(await table.getByRole('row').count()).toBe(2)
  expect(await page.getByText(await nameOf(hidden)).count()).toBe(0)
  expect(await violationsOf(page)).toEqual([])
  await row.getByRole('link').click()
  await page.waitForURL(url => !url.pathname.startsWith(session.base))
  await context.close()
}, 120_000)

/** A name without a place to break it. */
const WIDE = 'W'.repeat(200)

test('names as long as they may be push no column of a list off the screen', async () => {
  const collector = await hub.collector()
  const tenant = await hub.tenant()
  const { data } = (await tenant.call('POST', '/servers', { name: WIDE, hostname: WIDE, role: WIDE.slice(0, 60) })).body
  await newAlert(tenant, collector, data.id, 'critical', `High ${WIDE}`)
  const page = await open(tenant)
  for (const list of ['Alerts', 'Servers', 'Rules']) {
    await page.getByRole('navigation').getByRole('link', { name: list, exact: true }).click()
    await page.getByRole('table', { name: list }).getByRole('row', { name: /WWW/ }).waitFor()
    const heads = page.locator('main thead th:visible')
    const last = (await heads.nth((await heads.count()) - 1).boundingBox())!
    expect([list, last.width > 40, last.x + last.width <= 1280]).toEqual([list, true, true])
    expect([list, await page.evaluate('document.documentElement.scrollWidth <= innerWidth')]).toEqual([list, true])
  }
  await page.context().close()
}, 120_000)

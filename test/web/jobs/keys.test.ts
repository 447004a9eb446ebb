// The interface by keys alone, in a real browser: the command palette, single keys and their switch; and what the tab
// itself says.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { Browser, Page } from 'playwright-core'
import { type Tenant, TestHub } from '../../api/hub-harness.ts'
import { until } from '../../support/until.ts'
import { closeContexts, sharedBrowser } from '../browser.ts'
import { logIn, newPerson, slugOf } from '../visitor.ts'

const AXE = readFileSync(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir), 'utf8')

let hub: TestHub
let browser: Browser
let tenant: Tenant
let alertId = ''

let collector: Awaited<ReturnType<TestHub['collector']>>
let seq = 0

/** An open alert of a new rule of that name. */
async function newAlert(serverId: string, rule: string, severity: string): Promise<void> {
  const { id, version } = (
    await tenant.call('POST', '/monitoring/rules', {
      ...{ name: rule, kind: 'threshold', scope: { server_ids: [serverId] }, metric: 'cpu_usage_percent' },
      ...{ operator: '>', threshold: 90, severity },
    })
  ).body.data
  const event = {
    ...{ event_id: crypto.randomUUID(), type: 'alert.opened', seq: ++seq, occurred_at: new Date().toISOString() },
    ...{ company_id: tenant.companyId, server_id: serverId, rule_id: id, rule_version: version },
    ...{ series_key: 'cpu_usage_percent', severity, value: 97.25, threshold: 90, labels: {} },
    ...{ suppressed: false, suppress_reason: null, group_key: null },
  }
  expect((await collector.call('POST', '/events', { events: [event] })).body.data.accepted).toHaveLength(1)
}

const newServer = async (name: string): Promise<string> =>
  (await tenant.call('POST', '/servers', { name, hostname: `${name}.example.test`, role: 'shop' })).body.data.id

let databaseId = ''
beforeAll(async () => {
  hub = await TestHub.start({ 'rate.session_per_minute': 100_000, 'rate.web_per_minute': 100_000 })
  collector = await hub.collector()
  tenant = await hub.tenant()
  browser = await sharedBrowser()
  databaseId = await newServer('shop-db-1')
  await newServer('shop-web-1')
  await newAlert(databaseId, 'Orders are late', 'critical')
  alertId = (await tenant.call('GET', '/monitoring/alerts')).body.data[0].id
}, 120_000)
afterAll(async () => {
  await closeContexts()
  await hub?.stop()
}, 120_000)

async function visit(path: string, { companyId } = tenant, permissions?: readonly string[]): Promise<Page> {
  const session = await logIn(hub.url, (await newPerson(hub, companyId, permissions)).email)
  const [name = '', value = ''] = session.cookie.split('=')
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en-GB' })
  await context.addCookies([{ name, value, url: hub.url }])
  const page = await context.newPage()
  await page.goto(`${hub.url}/c/${slugOf(session)}${path}`)
  await page.locator('.connection[data-state="live"]').waitFor()
  return page
}

const pathOf = (page: Page): string => new URL(page.url()).pathname.replace(/^\/c\/[^/]+/, '')
const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name, exact: true })
const palette = (page: Page) => page.getByRole('dialog', { name: 'Search and commands' })

const violations = async (page: Page): Promise<unknown> => {
  await page.evaluate(AXE)
  return page.evaluate(
    "axe.run(document, { resultTypes: ['violations'] }).then(found => found.violations.map(each => each.id + ' ' + each.nodes[0]?.html))",
  )
}

test('the palette finds pages, servers, alerts, rules and actions by what is typed, and leads there', async () => {
  const page = await visit('/')
  const choose = async (typed: string, text: string): Promise<void> => {
    await page.keyboard.press('Control+k')
    await palette(page).getByRole('combobox').fill(typed)
    await palette(page).getByRole('option', { name: text, selected: true }).waitFor()
    await page.keyboard.press('Enter')
    await palette(page).waitFor({ state: 'detached' })
  }
  await choose('silen', 'Silences')
  await heading(page, 'Silences').waitFor()
  await choose('db-1', 'shop-db-1')
  await heading(page, 'shop-db-1').waitFor()
  await choose('late', 'Orders are late · shop-db-1')
  await until('the alert', () => pathOf(page) === `/alerts/${alertId}`)
  await page.keyboard.press('Control+k')
  await palette(page).getByRole('combobox').fill('orders')
  await palette(page).getByRole('option', { name: 'Orders are late Rule' }).waitFor()
  expect(await violations(page)).toEqual([])
  await page.keyboard.press('Escape')
  await choose('dark', 'Use dark colours')
  await until('the page is dark', () => page.evaluate<boolean>("document.documentElement.dataset.theme === 'dark'"))
  await page.context().close()
}, 120_000)

test('the palette finds subnets, zones and people that the viewer may see, and leads to their pages', async () => {
  const { data: subnet } = (await tenant.call('POST', '/subnets', { name: 'quiet corner', cidr: '10.44.0.0/24' })).body
  await tenant.call('POST', '/dns/zones', { name: 'quiet.example.test' })
  const page = await visit('/')
  const find = async (typed: string): Promise<void> => {
    await page.keyboard.press('Control+k')
    await palette(page).getByRole('combobox').fill(typed)
  }
  const option = (name: string) => palette(page).getByRole('option', { name })
  await find('quiet')
  await option('quiet.example.test').waitFor()
  await option('quiet corner').waitFor()
  await palette(page).getByRole('combobox').fill('10.44.0.0/24')
  await option('quiet corner').waitFor()
  await page.keyboard.press('Enter')
  await until('the subnet', () => pathOf(page) === `/infrastructure/subnet/${subnet.id}`)
  await find('test user')
  await option('Test user').first().click()
  await until('the people', () => pathOf(page) === '/people')
  await page.context().close()
  const reader = await visit('/', tenant, ['monitoring.view', 'dns.view'])
  await reader.keyboard.press('Control+k')
  await palette(reader).getByRole('combobox').fill('quiet')
  await palette(reader).getByRole('option', { name: 'quiet.example.test' }).waitFor()
  expect(await palette(reader).getByRole('option', { name: 'quiet corner' }).count()).toBe(0)
  await reader.context().close()
}, 120_000)

test('keys lead to pages, through rows, into an object and back; never while somebody types, nor once switched off', async () => {
  const page = await visit('/')
  await page.keyboard.press('g')
  await page.keyboard.press('s')
  await heading(page, 'Servers').waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('shop')
  await page.getByText('2 of 2').waitFor()
  // The keys of a word lead nowhere: `s` after `g`, `?`, `x`.
  await page.keyboard.type(' gs?x')
  await page.getByText('Nothing matches this filter.').waitFor()
  expect(pathOf(page)).toBe('/servers')
  await page.getByRole('button', { name: 'Clear filter' }).first().click()
  await page.getByRole('link', { name: 'shop-web-1' }).waitFor()
  await page.keyboard.press('j')
  await page.keyboard.press('j')
  await page.keyboard.press('x')
  await page.getByText('1 selected').waitFor()
  await page.keyboard.press('Enter')
  await heading(page, 'shop-web-1').waitFor()
  await page.keyboard.press('Escape')
  await heading(page, 'Servers').waitFor()
  await page.keyboard.press('?')
  const help = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
  await help.getByText('Select the row').waitFor()
  expect(await violations(page)).toEqual([])
  await help.getByRole('button', { name: 'Switch single keys off' }).click()
  await help.getByText('Single keys are switched off for this browser.').waitFor()
  await page.keyboard.press('Escape')
  await help.waitFor({ state: 'detached' })
  await page.keyboard.press('?')
  await page.keyboard.press('g')
  await page.keyboard.press('a')
  await page.keyboard.press('Control+k')
  // The palette comes, so that the keys before it have been seen, and have opened nothing.
  await palette(page).waitFor()
  expect([await help.count(), pathOf(page)]).toEqual([0, '/servers'])
  await page.context().close()
}, 120_000)

test('the title and the icon of the tab carry the worst severity that nobody is on, in every tab', async () => {
  const page = await visit('/rules')
  const other = await page.context().newPage()
  await other.goto(page.url().replace('/rules', '/silences'))
  const iconOf = (tab: Page) => tab.locator('link[rel=icon]').getAttribute('href')
  for (const tab of [page, other]) {
    await until('the tab says it', async () => (await tab.title()).startsWith('1 critical · '))
    expect(await iconOf(tab)).toBe('/web/icon-critical.svg')
  }
  const icon = await fetch(`${hub.url}/web/icon-critical.svg`)
  expect([icon.status, icon.headers.get('content-type')]).toEqual([200, 'image/svg+xml'])
  expect((await tenant.call('POST', `/monitoring/alerts/${alertId}/acknowledge`, {})).status).toBe(200)
  for (const tab of [page, other]) {
    await until('somebody is on it', async () => !(await tab.title()).includes('critical'))
    expect(await iconOf(tab)).toBe('/web/icon.svg')
  }
  await page.context().close()
}, 120_000)

test('rows do not move under the pointer or the focus: new ones wait behind a button, values change in place', async () => {
  const page = await visit('/alerts')
  const titles = () => page.locator('main .table tbody th').allTextContents()
  await page.getByRole('link', { name: 'Orders are late' }).waitFor()
  expect(await titles()).toEqual(['Orders are late'])
  await page.getByRole('link', { name: 'Orders are late' }).hover()
  await newAlert(databaseId, 'Carts are full', 'critical')
  const waiting = page.getByRole('button', { name: '1 new' })
  await waiting.waitFor()
  expect(await titles()).toEqual(['Orders are late'])
  await waiting.click()
  await page.getByRole('link', { name: 'Carts are full' }).waitFor()
  expect(await titles()).toEqual(['Carts are full', 'Orders are late'])
  // The focus holds as the pointer does, and lets go when it leaves.
  await page.mouse.move(0, 0)
  await page.getByRole('link', { name: 'Carts are full' }).focus()
  await newAlert(databaseId, 'Mails are late', 'critical')
  await waiting.waitFor()
  expect(await titles()).toEqual(['Carts are full', 'Orders are late'])
  await page.getByRole('combobox', { name: 'Filter' }).focus()
  await page.getByRole('link', { name: 'Mails are late' }).waitFor()
  await waiting.waitFor({ state: 'detached' })
  await page.context().close()
}, 120_000)

test('End leads to the last row of a list that is longer than an answer, Home back to the first', async () => {
  const wide = await hub.tenant()
  await hub.hub.database.client`
    insert into servers (id, company_id, name)
    select gen_random_uuid(), ${wide.companyId}, 'node-' || lpad(n::text, 3, '0') from generate_series(1, 300) n`
  const page = await visit('/servers', wide)
  await page.locator('tbody').getByText('node-001', { exact: true }).waitFor()
  const isAtEnd = () =>
    page.evaluate<boolean>('scrollY > 0 && scrollY + innerHeight >= document.documentElement.scrollHeight - 1')
  for (let time = 0; time < 2; time++) {
    await page.keyboard.press('End')
    await page.locator('tbody').getByText('node-300', { exact: true }).waitFor()
    await until('the page stands at its end', isAtEnd)
    expect(await page.locator('tbody tr[data-key]').count()).toBeLessThanOrEqual(100)
    await page.keyboard.press('Home')
    await page.locator('tbody').getByText('node-001', { exact: true }).waitFor()
  }
  await page.context().close()
}, 120_000)

test('a space after a word of the filter stays while the answer comes, and what is typed on is kept', async () => {
  const page = await visit('/servers')
  await page.keyboard.press('/')
  await page.keyboard.type('role:shop ')
  await page.waitForURL(/q=role(:|%3A)shop$/)
  await page.getByRole('button', { name: 'Remove role:shop' }).waitFor()
  expect(await page.locator('#filter').inputValue()).toBe('role:shop ')
  await page.keyboard.type('db')
  await page.waitForURL(/q=role(:|%3A)shop(\+|%20)db$/)
  await until('one is left', async () => (await page.locator('tbody tr[data-key]').count()) === 1)
  expect(await page.locator('#filter').inputValue()).toBe('role:shop db')
  await page.context().close()
}, 120_000)

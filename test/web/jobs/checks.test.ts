// Checks in a real browser, by role and accessible name; the collector is one that answers what the test says.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { AdminListener } from '../../api/admin-listener.ts'
import { type Json, TestHub } from '../../api/hub-harness.ts'
import { until } from '../../support/until.ts'
import { closeContexts, sharedBrowser } from '../browser.ts'
import { logIn, newPerson, slugOf } from '../visitor.ts'

const HOUR_MS = 3_600_000

let hub: TestHub
let browser: Browser
let admin: AdminListener

beforeAll(async () => {
  hub = await TestHub.start({ 'rate.session_per_minute': 100_000, 'rate.web_per_minute': 100_000 })
  admin = new AdminListener()
  await hub.collector(admin.url)
  browser = await sharedBrowser()
}, 120_000)
afterAll(async () => {
  await closeContexts()
  await hub?.stop()
  await admin?.stop()
}, 120_000)

test('a check is made, its faults stand at its fields, its day is drawn with what is not known, and it goes by its name', async () => {
  const tenant = await hub.tenant()
  await tenant.call('POST', '/servers', { name: 'web-1' })
  const endMs = Math.ceil(Date.now() / HOUR_MS) * HOUR_MS
  admin.answer = ({ path }) => {
    if (!path.endsWith('/series/by-metric')) return { status: 200, body: { data: {} } }
    const labels = { target: 'https://www.example.net/' }
    // It fails now, of which no alert tells yet.
    const isWell = (hour: number): boolean => hour !== 3 && hour !== 9
    const points = Array.from({ length: 10 }, (_, hour) => [endMs - (10 - hour) * HOUR_MS, isWell(hour) ? 1 : 0.5])
    const metrics = [
      { metric: 'http_up', series: [{ labels, points }] },
      { metric: 'http_duration_seconds', series: [{ labels, points: [[endMs - HOUR_MS, 0.25]] }] },
    ]
    const range = { from: new Date(0).toISOString(), to: new Date(endMs).toISOString(), step_seconds: 3600 }
    return { status: 200, body: { data: { ...range, metrics, left_out: [] } } }
  }
  const session = await logIn(hub.url, (await newPerson(hub, tenant.companyId)).email)
  const [name = '', value = ''] = session.cookie.split('=')
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
  await context.addCookies([{ name, value, url: hub.url }])
  const page = await context.newPage()
  await page.goto(`${hub.url}/c/${slugOf(session)}/checks`)
  await page.getByText('Nothing is checked yet.').waitFor()

  await page.getByRole('button', { name: 'New check' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('Front page')
  await dialog.getByLabel('Target').fill('not an address')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await dialog.getByLabel('Target').and(page.locator('[aria-invalid=true]')).waitFor()
  expect(await dialog.getByLabel('Name').inputValue()).toBe('Front page')
  await dialog.getByLabel('Target').fill('https://www.example.net/')
  await dialog.getByRole('button', { name: 'Create' }).click()
  // Made, it is shown on its servers, where its results come in.
  await page.getByRole('heading', { name: 'Front page' }).waitFor()
  await page.getByRole('img', { name: '8 hours well, 2 with failures, 14 not known' }).waitFor()
  await page.getByRole('cell', { name: '0.25 s' }).waitFor()

  await page.getByRole('link', { name: 'Checks' }).last().click()
  // The list says the same of all its servers, without opening it.
  const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'Front page' }) })
  await row.getByRole('img', { name: '8 hours well, 2 with failures, 14 not known' }).waitFor()
  await row.getByRole('cell', { name: '0.25 s' }).waitFor()
  await row.getByText('(0 ok, 1 failing)').waitFor()
  await row.getByText('Failed on 1 in the last hour').waitFor()
  await row.getByRole('cell', { name: /^Web page.*https:/ }).waitFor()
  const checks = async (): Promise<Json[]> => (await tenant.call('GET', '/monitoring/checks')).body.data
  await page.getByRole('button', { name: 'Turn off Front page' }).click()
  await until('it is off', async () => (await checks())[0]?.enabled === false)
  await page.getByRole('button', { name: 'Take it back' }).click()
  await until('it is on again', async () => (await checks())[0]?.enabled === true)
  // A copy has a target of its own.
  await page.getByRole('button', { name: 'Duplicate Front page' }).click()
  await dialog.getByLabel('Target').fill('https://www.example.net/login')
  await dialog.getByRole('button', { name: 'Duplicate' }).click()
  await page.getByRole('heading', { name: 'Front page (copy)' }).waitFor()
  // It is changed on its page, where the rules that tell of it are named.
  await page.getByRole('link', { name: /Front page.*down/ }).waitFor()
  await page.getByRole('button', { name: 'Edit' }).click()
  await dialog.getByLabel('Expected status').fill('99')
  await dialog.getByLabel('Every').fill('300')
  await dialog.getByLabel('Which servers').selectOption('by name')
  await dialog.getByRole('combobox', { name: 'Add a server' }).fill('web')
  await dialog.getByRole('option', { name: /web-1/ }).click()
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.getByLabel('Expected status').and(page.locator('[aria-invalid=true]')).waitFor()
  await dialog.getByLabel('Expected status').fill('401')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'detached' })
  await page.getByText('every 5m').waitFor()
  const copy = (await checks()).find(each => each.name === 'Front page (copy)')
  expect(copy).toMatchObject({ interval_seconds: 300, enabled: false, resolved_server_count: 1 })
  expect(copy.target).toEqual({ url: 'https://www.example.net/login', expect_status: 401 })
  await page.getByRole('button', { name: 'Turn on' }).click()
  await until('the copy is on', async () => (await checks()).every(each => each.enabled))
  await page.getByRole('link', { name: 'Checks' }).last().click()
  await page.getByRole('button', { name: 'Delete Front page', exact: true }).click()
  await page.getByLabel('Type Front page to go on').fill('Front page')
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await until('one is left', async () => (await checks()).length === 1)
  await context.close()
}, 120_000)

// Whom a company tells by mail, in a real browser, by role and accessible name: group addresses and deliveries.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { type Json, type Tenant, TestHub } from '../../api/hub-harness.ts'
import { type MailServer, startMailServer } from '../../support/mail-server.ts'
import { until } from '../../support/until.ts'
import { closeContexts, sharedBrowser } from '../browser.ts'
import { logIn, newPerson, type Person, slugOf } from '../visitor.ts'

let hub: TestHub
let browser: Browser
let tenant: Tenant
let mailServer: MailServer

beforeAll(async () => {
  mailServer = await startMailServer()
  hub = await TestHub.start({
    ...{ 'rate.session_per_minute': 100_000, 'rate.web_per_minute': 100_000 },
    ...{ 'smtp.url': mailServer.url, 'mail.from': 'Hub <hub@example.test>' },
  })
  tenant = await hub.tenant()
  browser = await sharedBrowser()
}, 120_000)
afterAll(async () => {
  await closeContexts()
  await hub?.stop()
  await mailServer?.stop()
}, 120_000)

async function visit(path: string, person: Person, height = 1600): Promise<Page> {
  const session = await logIn(hub.url, person.email)
  const [name = '', value = ''] = session.cookie.split('=')
  const context = await browser.newContext({ viewport: { width: 1280, height }, locale: 'en-GB' })
  await context.addCookies([{ name, value, url: hub.url }])
  const page = await context.newPage()
  await page.goto(`${hub.url}/c/${slugOf(session)}${path}`)
  return page
}
const visitor = (permissions: readonly string[] = ['*']): Promise<Person> =>
  newPerson(hub, tenant.companyId, permissions, 'Visitor')
/** In the dialog that is open. */
const save = (page: Page) => page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const data = async (path: string): Promise<Json> => (await tenant.call('GET', path)).body.data

test('a group address is added, tested, changed and deleted; a delivery that failed is seen and sent again', async () => {
  const page = await visit('/notifications', await visitor())
  await page.getByText('There are none.').waitFor()
  await press(page, 'Add a group address')
  const dialog = page.getByRole('dialog', { name: 'Add a group address' })
  await dialog.getByLabel('Name').fill('Night shift')
  await dialog.getByLabel('E-mail').fill(`${'x'.repeat(70)}@example.test`)
  await dialog.getByLabel('From severity').selectOption({ label: 'Warning' })
  await dialog.getByLabel('Which servers').selectOption({ label: 'by environment' })
  await dialog.getByLabel('Value').fill('prod, edge')
  await save(page)
  await dialog.getByLabel('E-mail').and(page.locator('[aria-invalid=true]')).waitFor()
  await dialog.getByLabel('E-mail').fill('night@example.test')
  await save(page)
  const row = page.getByRole('table', { name: 'Group addresses' }).getByRole('row', { name: /Night shift/ })
  await row.getByText('Not confirmed').waitFor()
  const [channel] = await data('/notifications/channels')
  expect(channel).toMatchObject({ name: 'Night shift', min_severity: 'warning', enabled: true })
  expect(channel.scope).toMatchObject({ all: false, environments: ['edge', 'prod'] })

  mailServer.refuse(550)
  await press(page, 'Send a test to Night shift')
  const sent = page.getByRole('table', { name: 'Deliveries' }).getByRole('row', { name: /night@example\.test/ })
  await sent.getByText('Failed').first().waitFor()
  mailServer.refuse(0)
  await page.getByRole('combobox', { name: 'State' }).selectOption({ label: 'Delivered' })
  await page.getByText('None stands so.').waitFor()
  await page.goBack()
  await sent.getByRole('button', { name: 'Send ping again' }).first().click()
  await until('the mail arrives', () => mailServer.mails.length > 0)
  expect(mailServer.mails[0]?.to).toEqual(['night@example.test'])
  await sent.getByText('Delivered').first().waitFor()

  await press(page, 'Edit Night shift')
  const edit = page.getByRole('dialog', { name: 'Edit Night shift' })
  await edit.getByLabel('Enabled').uncheck()
  await save(page)
  await row.getByText('Disabled').waitFor()
  const [changed] = await data('/notifications/channels')
  expect(changed).toMatchObject({ enabled: false, min_severity: 'warning', scope: channel.scope })
  await press(page, 'Delete Night shift')
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('There are none.').waitFor()
  expect(await page.getByRole('dialog').count()).toBe(0)
  expect(await data('/notifications/channels')).toEqual([])
}, 120_000)

test('a list that is not the last of its page is scrolled past: the page has an end', async () => {
  await hub.hub.database.client`
    insert into notification_channels (id, company_id, name, type, address)
    select gen_random_uuid(), ${tenant.companyId}, 'Address ' || n, 'email', 'address-' || n || '@example.test'
    from generate_series(1, 150) n`
  const page = await visit('/notifications', await visitor(), 700)
  await page.getByRole('row', { name: /^Address 1 / }).waitFor()
  const height = (): Promise<number> => page.evaluate<number>('document.documentElement.scrollHeight')
  const before = await height()
  for (let presses = 0; presses < 40; presses++) await page.keyboard.press('PageDown')
  await page.getByRole('heading', { name: 'Deliveries' }).waitFor()
  expect(await height()).toBeWithin(before - 2_000, before + 2_000)
  await hub.hub.database.client`delete from notification_channels where company_id = ${tenant.companyId}`
}, 120_000)

test('without the right to change them group addresses are read alone; without that to see them there is no page', async () => {
  await tenant.call('POST', '/notifications/channels', { name: 'Office', address: 'office@example.test' })
  const reader = await visit('/notifications', await visitor(['notifications.view']))
  await reader.getByRole('table', { name: 'Group addresses' }).getByText('office@example.test').waitFor()
  expect(await reader.getByRole('button', { name: /^(Add|Edit|Delete|Send)/ }).count()).toBe(0)
  const other = await hub.tenant()
  await other.call('POST', '/notifications/channels', { name: 'Theirs', address: 'theirs@example.test' })
  expect(await reader.getByText('theirs@example.test').count()).toBe(0)
  const stranger = await visit('/notifications', await visitor(['monitoring.view']))
  await stranger.getByText('notifications.view').waitFor()
}, 120_000)

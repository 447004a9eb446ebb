// Collectors, queues and maintenance in a real browser, by role and accessible name: what a super administrator sees
// and does, and what others see of it.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import type { Browser, Page } from 'playwright-core'
import { users } from '../../../apps/hub/platform/db/schema-identity.ts'
import { type Json, type Tenant, TestHub } from '../../api/hub-harness.ts'
import { until } from '../../support/until.ts'
import { closeContexts, sharedBrowser } from '../browser.ts'
import { logIn, newPerson, type Person, slugOf } from '../visitor.ts'

let hub: TestHub
let browser: Browser
let tenant: Tenant
let root: Omit<Tenant, 'companyId'>

beforeAll(async () => {
  hub = await TestHub.start({
    ...{ 'rate.session_per_minute': 100_000, 'rate.web_per_minute': 100_000, 'webhooks.allow_private': true },
  })
  tenant = await hub.tenant()
  root = await hub.user(tenant.companyId, ['*'], { superAdmin: true })
  browser = await sharedBrowser()
}, 120_000)
afterAll(async () => {
  await closeContexts()
  await hub?.stop()
}, 120_000)

async function person(permissions: readonly string[], superAdmin = false): Promise<Person> {
  const made = await newPerson(hub, tenant.companyId, permissions, 'Visitor')
  await hub.hub.database.db.update(users).set({ superAdmin }).where(eq(users.id, made.userId))
  return made
}

async function visit(path: string, { email }: Person): Promise<Page> {
  const session = await logIn(hub.url, email)
  const [name = '', value = ''] = session.cookie.split('=')
  const context = await browser.newContext({ viewport: { width: 1280, height: 2000 }, locale: 'en-GB' })
  await context.addCookies([{ name, value, url: hub.url }])
  const page = await context.newPage()
  await page.goto(`${hub.url}/c/${slugOf(session)}${path}`)
  return page
}
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()

const QUEUE = 'notifications.webhook'

/** A ping whose job has failed; its queue stays paused, so that nothing is tried by itself. */
async function failedPing(): Promise<void> {
  await root.call('POST', `/queues/${QUEUE}/pause`, { minutes: 30, confirm: true })
  const hook = await tenant.call('POST', '/webhooks', { name: 'hook', url: 'http://127.0.0.1:1/' })
  await tenant.call('POST', `/webhooks/${hook.body.data.id}/test`)
  await hub.hub.database.client`
    update pgboss.job set state = 'failed', completed_on = now(), output = '{"message": "refused"}'
    where name = ${QUEUE}`
}
const failedJobs = async (): Promise<Json[]> => (await root.call('GET', '/queues/failed')).body.data

test('collectors, queues and failed jobs are seen, and a job is tried again and forgotten', async () => {
  const collector = await hub.collector()
  await collector.call('POST', '/heartbeat', {
    ...{ collector_id: collector.id, version: '9.9.9', agent_count: 1234, ingest_rps: 41, outbox_depth: 3 },
  })
  await failedPing()
  const page = await visit('/system', await person(['*'], true))
  const collectors = page.getByRole('table', { name: 'Collectors' })
  await collectors.getByText('1,234').waitFor()
  await collectors.getByText('Online').waitFor()
  await page.getByText(/^PostgreSQL /).waitFor()
  const queue = page.getByRole('table', { name: 'Queues' }).getByRole('row', { name: QUEUE })
  await queue.getByText('Paused').waitFor()
  await press(page, `Try again: ${QUEUE}`)
  await page.getByText('Nothing has failed.').waitFor()
  await until('it waits again', async () => (await failedJobs()).length === 0)

  await failedPing()
  await press(page, 'Refresh')
  await page
    .getByRole('button', { name: `Forget: ${QUEUE}` })
    .first()
    .click()
  await page.getByRole('dialog').getByRole('button', { name: 'Forget' }).click()
  await until('one is forgotten, and one is left', async () => (await failedJobs()).length === 1)
  await press(page, 'Try all again')
  await page.getByText('Nothing has failed.').waitFor()
}, 120_000)

test('maintenance is begun and ended', async () => {
  const page = await visit('/system', await person(['*'], true))
  await page.getByText('No maintenance').waitFor()
  await press(page, 'Begin maintenance')
  const dialog = page.getByRole('dialog', { name: 'Begin maintenance' })
  await dialog.getByLabel('Minutes').fill('-5')
  await dialog.getByRole('button', { name: 'Begin maintenance' }).click()
  await dialog.getByLabel('Minutes').and(page.locator('[aria-invalid=true]')).waitFor()
  await dialog.getByLabel('Minutes').fill('100000000000000')
  await dialog.getByRole('button', { name: 'Begin maintenance' }).click()
  await dialog.getByLabel('Minutes').and(page.locator('[aria-invalid=true]')).waitFor()
  await dialog.getByLabel('Minutes').fill('30')
  await dialog.getByLabel('What people are told, in English').fill('New disks')
  await dialog.getByRole('button', { name: 'Begin maintenance' }).click()
  await page.getByText('Maintenance: only super administrators can change anything').waitFor()
  await page.getByText('New disks').waitFor()
  expect((await root.call('GET', '/system/maintenance')).body.data).toMatchObject({
    ...{ mode: 'read_only', message: { en: 'New disks', vi: null } },
  })
  await press(page, 'End maintenance')
  await page.getByText('No maintenance').waitFor()
}, 120_000)

test('others see what is theirs: no collector, no other company; without a key for it there is no page', async () => {
  const page = await visit('/system', await person(['queues.view', 'system.settings.view']))
  await page.getByRole('table', { name: 'Queues' }).waitFor()
  await page.getByText('No maintenance').waitFor()
  expect(await page.getByRole('heading', { name: 'Collectors' }).count()).toBe(0)
  expect(await page.getByText(/^PostgreSQL /).count()).toBe(0)
  expect(await page.getByRole('button', { name: /^(Begin|Try|Forget)/ }).count()).toBe(0)
  const stranger = await visit('/system', await person(['monitoring.view']))
  await stranger.getByText('queues.view').waitFor()
}, 120_000)

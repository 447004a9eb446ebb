// Licences and agents in a real browser, by role and accessible name.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { type Json, type Tenant, TestHub } from '../../api/hub-harness.ts'
import { until } from '../../support/until.ts'
import { closeContexts, sharedBrowser } from '../browser.ts'
import { logIn, newPerson, slugOf } from '../visitor.ts'

let hub: TestHub
let browser: Browser
let tenant: Tenant
let collector: Awaited<ReturnType<TestHub['collector']>>

beforeAll(async () => {
  hub = await TestHub.start({ 'rate.session_per_minute': 100_000, 'rate.web_per_minute': 100_000 })
  collector = await hub.collector()
  tenant = await hub.tenant()
  browser = await sharedBrowser()
}, 120_000)
afterAll(async () => {
  await closeContexts()
  await hub?.stop()
}, 120_000)

async function visit(path: string, permissions: readonly string[] = ['*']) {
  const session = await logIn(hub.url, (await newPerson(hub, tenant.companyId, permissions)).email)
  const [name = '', value = ''] = session.cookie.split('=')
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
  await context.addCookies([{ name, value, url: hub.url }])
  const page = await context.newPage()
  await page.goto(`${hub.url}/c/${slugOf(session)}${path}`)
  return page
}
const license = async (name: string): Promise<Json> =>
  (await tenant.call('POST', '/monitoring/licenses', { name, max_uses: 5 })).body
const statusOf = async (id: string): Promise<string> =>
  (await tenant.call('GET', `/monitoring/licenses/${id}`)).body.data.status

test('licences: a new key is shown once, one is revoked by its name, several by their number', async () => {
  const [one, two, three] = [await license('first'), await license('second'), await license('third')]
  const page = await visit('/licenses')
  const table = page.getByRole('table', { name: 'Licences' })
  await table.getByRole('row').filter({ hasText: 'first' }).getByText('0 of 5').waitFor()

  // One that is used up gets more uses; what the hub refuses stands at its field, and nothing that was typed is lost.
  await page.getByRole('button', { name: 'Edit third' }).click()
  const edit = page.getByRole('dialog', { name: 'Edit third' })
  await edit.getByLabel('Expires').fill('2020-01-01T00:00')
  await edit.getByLabel('Servers that may use it').fill('7')
  await edit.getByRole('button', { name: 'Save' }).click()
  await edit.getByLabel('Expires').and(page.locator('[aria-invalid=true]')).waitFor()
  expect(await edit.getByLabel('Servers that may use it').inputValue()).toBe('7')
  await edit.getByLabel('Expires').fill('')
  await edit.getByRole('button', { name: 'Save' }).click()
  await table.getByRole('row').filter({ hasText: 'third' }).getByText('0 of 7').waitFor()

  await page.getByRole('button', { name: 'New key for first' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'New key' }).click()
  const key = (await page.getByRole('dialog').getByRole('code').textContent()) ?? ''
  expect(key).toMatch(/^lic_\w+$/)
  expect(await statusOf(one.data.id)).toBe('superseded')
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
  await table.getByText('Replaced').waitFor()

  await page.getByRole('button', { name: 'Revoke second' }).click()
  const confirm = page.getByRole('dialog').getByRole('button', { name: 'Revoke' })
  expect(await confirm.isDisabled()).toBe(true)
  await page.getByLabel('Type second to go on').fill('second')
  await confirm.click()
  await until('it is revoked', async () => (await statusOf(two.data.id)) === 'revoked')

  const fourth = await license('fourth')
  await page.getByRole('checkbox', { name: 'Select third' }).check()
  await page.getByRole('checkbox', { name: 'Select fourth' }).check()
  await page.getByRole('button', { name: 'Revoke 2 selected' }).click()
  await page.getByLabel('Type 2 to go on').fill('2')
  // None is answered before all have been asked for: one after the other they would never be. One is refused.
  const asked: string[] = []
  const all = Promise.withResolvers<void>()
  await page.route(/\/monitoring\/licenses\/[^/]+\/revoke$/, async route => {
    asked.push(route.request().url())
    if (asked.length === 2) all.resolve()
    await all.promise
    if (!route.request().url().includes(three.data.id)) return route.continue()
    await route.fulfill({ status: 409, json: { message: 'It is in use.' } })
  })
  await confirm.click()
  await page.getByText('Not done: Done 1; refused: It is in use.').waitFor()
  expect([await statusOf(three.data.id), await statusOf(fourth.data.id)]).toEqual(['active', 'revoked'])
  expect(asked).toHaveLength(2)
  await page.context().close()
}, 120_000)

test('agents: an outdated one is marked, moved to another server, revoked and deleted; a viewer has no acts', async () => {
  for (const name of ['old', 'new', 'spare']) await tenant.call('POST', '/servers', { name, hostname: name })
  const { token } = await license('agents')
  const enroll = async (hostname: string, agent_version: string): Promise<string> =>
    (
      await collector.call('POST', '/enroll', {
        ...{ license: token, hostname, machine_id: hostname, collector_id: collector.id, agent_version },
      })
    ).body.data.agent_id
  const old = await enroll('old', '0.9.1')
  await enroll('new', '0.10.0')
  const page = await visit('/agents')
  await page.getByText('newest: 0.10.0 · 1 outdated').waitFor()
  await page.getByRole('combobox', { name: 'Filter' }).fill('state:outdated ')
  const table = page.getByRole('table', { name: 'Agents' })
  await until('one is left', async () => (await table.getByRole('row').count()) === 2)

  await page.getByRole('button', { name: 'Move old to another server' }).click()
  await page.getByLabel('Name of the server').fill('spare')
  const choice = page.getByRole('dialog').getByLabel('Server', { exact: true })
  await until('spare is chosen', async () => (await choice.textContent()) === 'spare')
  await page.getByRole('dialog').getByRole('button', { name: 'Move' }).click()
  await table.getByRole('link', { name: 'spare' }).waitFor()

  await page.getByRole('button', { name: 'Revoke old' }).click()
  await page.getByLabel('Type old to go on').fill('old')
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
  const stateOf = async () => (await tenant.call('GET', `/monitoring/agents/${old}`)).body.data?.state ?? 'gone'
  await until('it is revoked', async () => (await stateOf()) === 'revoked')
  // Nobody types behind a dialog.
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.getByRole('combobox', { name: 'Filter' }).fill('state:revoked ')
  await page.getByRole('button', { name: 'Delete old' }).click()
  await page.getByLabel('Type old to go on').fill('old')
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await until('it is gone', async () => (await stateOf()) === 'gone')
  await page.context().close()

  // From a licence to the agents that enrolled by it, and to no other.
  const { token: other } = await license('other')
  const body = { license: other, hostname: 'spare', machine_id: 'third', collector_id: collector.id }
  expect((await collector.call('POST', '/enroll', { ...body, agent_version: '0.10.0' })).body.error).toBe(undefined)
  const licenses = await visit('/licenses')
  await licenses.getByRole('row').filter({ hasText: 'other' }).getByRole('link', { name: '1 of 5' }).click()
  await licenses.getByText('1 of 2', { exact: true }).waitFor()
  await licenses.getByRole('table', { name: 'Agents' }).getByRole('rowheader', { name: 'spare' }).waitFor()
  await licenses.context().close()

  const viewer = await visit('/agents', ['monitoring.view', 'servers.view'])
  await viewer.getByRole('table', { name: 'Agents' }).waitFor()
  expect(await viewer.getByRole('button', { name: /Revoke|Move|Delete/ }).count()).toBe(0)
  expect(await viewer.getByRole('checkbox').count()).toBe(0)
  await viewer.context().close()
}, 120_000)

test('agents: what waits in a buffer and the last warning stand in the list and with the server, hostile text as text', async () => {
  for (const name of ['backlog', 'full']) await tenant.call('POST', '/servers', { name, hostname: name })
  const { token } = await license('says')
  const at = new Date().toISOString()
  const says: Readonly<Record<string, Json>> = {
    backlog: { buffer_bytes: 3 * 1024 * 1024, buffer_batches: 12 },
    full: {
      ...{ buffer_bytes: 40 * 1024 * 1024, buffer_batches: 160, last_warning_at: at },
      last_warning: `<img src=x onerror="document.title='bad'">\u0000\u202e ${'w'.repeat(10_000)}`,
    },
  }
  let serverId = ''
  for (const [hostname, said] of Object.entries(says)) {
    const body = { license: token, hostname, machine_id: `says-${hostname}`, collector_id: collector.id }
    const { data } = (await collector.call('POST', '/enroll', body)).body
    serverId = data.server_id
    const agents = [{ agent_id: data.agent_id, last_seen_at: at, ...said }]
    expect((await collector.call('POST', '/agents/seen', { agents })).status).toBe(200)
  }
  const page = await visit('/agents')
  const row = (name: string) => page.getByRole('table', { name: 'Agents' }).getByRole('row').filter({ hasText: name })
  await row('backlog').getByText('3.0 MiB', { exact: true }).waitFor()
  expect(await row('backlog').locator('[data-state=warning]').count()).toBe(0)
  const mark = row('full').locator('[data-state=warning]')
  expect(await mark.textContent()).toBe('40.0 MiB')
  await row('full').getByText('<img src=x onerror="document.title=\'bad\'">').waitFor()
  const isFound = async (text: string, name: string) => {
    await page.getByRole('combobox', { name: 'Filter' }).fill(text)
    await until(`only ${name}`, async () => (await page.getByRole('rowheader').allTextContents()).join() === name)
  }
  await isFound('state:warned ', 'full')
  await isFound('state:buffering ', 'full,backlog')
  expect(await page.locator('main img').count()).toBe(0)

  await page.setViewportSize({ width: 360, height: 780 })
  await mark.waitFor()
  await row('full').getByText('<img src=x onerror="document.title=\'bad\'">').waitFor()
  const tab = await visit(`/servers/${serverId}?tab=agents`)
  await tab.getByTitle('160 batches').getByText('40.0 MiB').waitFor()
  await tab.setViewportSize({ width: 360, height: 780 })
  const warning = tab.getByText('<img src=x')
  // Read whole, and over no edge.
  expect((await warning.textContent())?.length).toBe(500)
  const over = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
  for (const each of [page, tab]) expect(await each.evaluate<number>(over)).toBeLessThanOrEqual(0)
  expect(await tab.evaluate<boolean>('document.title.includes("bad")')).toBe(false)
  for (const each of [page, tab]) await each.context().close()
}, 120_000)

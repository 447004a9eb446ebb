// Adding servers in a real browser, by role and accessible name: names, licence, command, and who arrives.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { type Json, type Tenant, TestHub } from '../../api/hub-harness.ts'
import { until } from '../../support/until.ts'
import { closeContexts, sharedBrowser } from '../browser.ts'
import { logIn, newPerson, PASSWORD, slugOf } from '../visitor.ts'

let hub: TestHub
let browser: Browser
let collector: Awaited<ReturnType<TestHub['collector']>>

beforeAll(async () => {
  hub = await TestHub.start({ 'rate.session_per_minute': 100_000, 'rate.web_per_minute': 100_000 })
  collector = await hub.collector()
  browser = await sharedBrowser()
}, 120_000)
afterAll(async () => {
  await closeContexts()
  await hub?.stop()
}, 120_000)

type Visit = { readonly page: Page; readonly context: BrowserContext; readonly at: string; readonly problems: string[] }

/** A page of the company in a browser of its own, and what the browser complains of. */
async function visit(tenant: Tenant, path: string, permissions: readonly string[] = ['*']): Promise<Visit> {
  const { email } = await newPerson(hub, tenant.companyId, permissions)
  const session = await logIn(hub.url, email)
  const [name = '', value = ''] = session.cookie.split('=')
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
  await context.addCookies([{ name, value, url: hub.url }])
  const page = await context.newPage()
  const problems: string[] = []
  page.on('pageerror', error => problems.push(String(error)))
  page.on('console', message => {
    // A refusal of the API is an answer, which the page shows.
    if (message.type() === 'error' && !message.text().includes('(Unprocessable Content)')) problems.push(message.text())
  })
  const at = `${hub.url}/c/${slugOf(session)}`
  await page.goto(at + path)
  return { page, context, at, problems }
}

const enroll = async (license: string, hostname: string, more: Json = {}) =>
  (
    await collector.call('POST', '/enroll', {
      license,
      hostname,
      machine_id: hostname,
      collector_id: collector.id,
      ...more,
    })
  ).body
const seen = (...agentIds: string[]) =>
  collector.call('POST', '/agents/seen', {
    agents: agentIds.map(agent_id => ({ agent_id, last_seen_at: new Date().toISOString() })),
  })

/** The number in the tile of a state. */
const tile = (page: Page, state: string) =>
  page.getByRole('region', { name: '4. Arrivals' }).getByRole('listitem').filter({ hasText: state })
const counts = async (page: Page): Promise<Record<string, number>> => {
  const states = ['Waiting', 'Enrolled', 'Reporting', 'Refused']
  const texts = await Promise.all(states.map(state => tile(page, state).textContent()))
  return Object.fromEntries(states.map((state, index) => [state, Number.parseInt(texts[index] ?? '', 10)]))
}
const countsBecome = (page: Page, expected: Record<string, number>) =>
  until(`the arrivals become ${JSON.stringify(expected)}`, async () => Bun.deepEquals(await counts(page), expected))
const row = (page: Page, name: string) =>
  page
    .getByRole('table', { name: '4. Arrivals' })
    .getByRole('row')
    .filter({ has: page.getByRole('rowheader', { name, exact: true }) })

describe('the wizard', () => {
  test('a list of names, one licence, arrivals live with refusals, reasons and remedies, and the same after a reload', async () => {
    const tenant = await hub.tenant({ agent_quota: 12 })
    const { page, context, problems } = await visit(tenant, '/servers')
    await page.getByRole('link', { name: 'Add servers' }).first().click()
    await page.getByRole('radio', { name: 'A list of names' }).check()
    const names = Array.from({ length: 11 }, (_, index) => `web-${index + 1}`)
    await page.getByLabel('Names, one a line').fill(names.join('\n'))
    await page.getByRole('button', { name: 'Try without adding' }).click()
    await page.getByText('It would work: 11 new, 0 changed, 0 known already.').waitFor()
    expect((await tenant.call('GET', '/servers')).body.meta.total).toBe(0)

    // More than the plan has: refused at its field, and nothing is lost; sent again nobody is added twice.
    expect(await page.getByLabel('Servers that may use it').inputValue()).toBe('11')
    await page.getByText('The plan has 12 left.').waitFor()
    await page.getByLabel('Servers that may use it').fill('13')
    await page.getByRole('button', { name: 'Add and make the licence' }).click()
    await page.getByLabel('Servers that may use it').and(page.locator('[aria-invalid=true]')).waitFor()
    await page.getByLabel('Servers that may use it').and(page.locator(':focus')).waitFor()
    expect(await page.getByLabel('Names, one a line').inputValue()).toBe(names.join('\n'))
    await page.getByLabel('Servers that may use it').fill('12')
    await page.getByRole('button', { name: 'Add and make the licence' }).click()

    const command = page.getByRole('region', { name: '3. Run this on each server' }).getByRole('code')
    const key = /lic_\w+/.exec((await command.textContent()) ?? '')?.[0] ?? ''
    expect(await command.textContent()).toContain('sudo ./agent install --collector-url')
    // The address of this site is of its own host, which the command would not say on another.
    await page.getByText('is of the host of the collector alone').waitFor()
    await countsBecome(page, { Waiting: 11, Enrolled: 0, Reporting: 0, Refused: 0 })

    const joined = await Promise.all(names.slice(0, 9).map(name => enroll(key, name)))
    await enroll(key, 'stranger', { ip_addresses: ['192.0.2.99'] })
    await countsBecome(page, { Waiting: 2, Enrolled: 9, Reporting: 0, Refused: 1 })
    await seen(...joined.slice(0, 8).map(({ data }) => data.agent_id))
    await hub.hub.database
      .client`update companies set plan_overrides = plan_overrides || '{"agent_quota": 9}' where id = ${tenant.companyId}`
    expect((await enroll(key, 'web-10')).error.code).toBe('quota_exceeded')

    const isAsItWas = async () => {
      await countsBecome(page, { Waiting: 1, Enrolled: 1, Reporting: 8, Refused: 2 })
      expect(await row(page, 'stranger').textContent()).toContain('Unknown to the hub')
      expect(await row(page, 'web-10').textContent()).toContain('No room in the plan')
      expect(await row(page, 'web-11').textContent()).toContain('Waiting')
      const remedies = await page.getByRole('region', { name: 'Refused, and what to do' }).textContent()
      expect(remedies).toContain('Add it under this name')
      expect(remedies).toContain('Revoke one that is not needed')
    }
    await isAsItWas()
    await page.reload()
    await isAsItWas()
    // The key was shown once; a new one replaces it, and what came before stays in the list.
    expect(await page.getByText(key).count()).toBe(0)
    await page.getByRole('button', { name: 'Make a new key' }).click()
    await until('another key is shown', async () => /lic_\w+/.test((await command.textContent()) ?? ''))
    expect(await command.textContent()).not.toContain(key)
    await isAsItWas()
    expect(problems).toEqual([])
    await context.close()
  }, 120_000)

  test('two hundred names and one licence: 190 report, ten are refused with reason and remedy, and so after a reload', async () => {
    const tenant = await hub.tenant({ agent_quota: 200 })
    const { page, context, problems } = await visit(tenant, '/servers/add')
    await page.getByRole('radio', { name: 'A list of names' }).check()
    const names = Array.from({ length: 200 }, (_, index) => `node-${index + 1}`)
    await page.getByLabel('Names, one a line').fill(names.join('\n'))
    await page.getByRole('button', { name: 'Add and make the licence' }).click()
    const command = page.getByRole('region', { name: '3. Run this on each server' }).getByRole('code')
    const key = /lic_\w+/.exec((await command.textContent()) ?? '')?.[0] ?? ''
    await countsBecome(page, { Waiting: 200, Enrolled: 0, Reporting: 0, Refused: 0 })
    const joined: string[] = []
    for (let at = 0; at < 190; at += 10) {
      const answers = await Promise.all(names.slice(at, at + 10).map(name => enroll(key, name)))
      joined.push(...answers.map(({ data }) => data.agent_id))
    }
    for (let stranger = 1; stranger <= 5; stranger++)
      await enroll(key, `stranger-${stranger}`, { ip_addresses: [`192.0.2.${100 + stranger}`] })
    await hub.hub.database
      .client`update companies set plan_overrides = plan_overrides || '{"agent_quota": 190}' where id = ${tenant.companyId}`
    for (const name of names.slice(190, 195)) expect((await enroll(key, name)).error.code).toBe('quota_exceeded')
    await seen(...joined)
    const isAsItWas = async () => {
      await countsBecome(page, { Waiting: 5, Enrolled: 0, Reporting: 190, Refused: 10 })
      const remedies = page.getByRole('region', { name: 'Refused, and what to do' })
      await remedies.getByText('Unknown to the hub (5)').waitFor()
      await remedies.getByText('No room in the plan (5)').waitFor()
      expect(await row(page, 'stranger-3').textContent()).toContain('Unknown to the hub')
      expect(await row(page, 'node-193').textContent()).toContain('No room in the plan')
    }
    await isAsItWas()
    await page.reload()
    await isAsItWas()
    expect(problems).toEqual([])
    await context.close()
  }, 90_000)

  test('for one server alone, a new one or one that is known: the licence enrolls it by whatever name, and nobody else', async () => {
    const tenant = await hub.tenant()
    await tenant.call('POST', '/servers', { name: 'db-1', hostname: 'db-1' })
    const { page, context, at, problems } = await visit(tenant, '/servers/add')
    const command = page.getByRole('region', { name: '3. Run this on each server' }).getByRole('code')
    const key = async () => /lic_\w+/.exec((await command.textContent()) ?? '')?.[0] ?? ''
    const [{ id: known }] = (await tenant.call('GET', '/servers')).body.data

    await page.getByLabel('Name of the server').fill('db-1')
    await page.getByLabel('The licence is for this server alone').check()
    await page.getByRole('button', { name: 'Add and make the licence' }).click()
    // The name is taken: what was typed stays, and another one is typed.
    const name = page.getByLabel('Name of the server').and(page.locator('[aria-invalid=true]'))
    await name.fill('web-1')
    await page.getByLabel('Servers that may use it').fill('0')
    await page.getByRole('button', { name: 'Add and make the licence' }).click()
    // The licence is refused after the server was added: the next try does not add it again.
    await page.getByLabel('Servers that may use it').and(page.locator('[aria-invalid=true]')).fill('2')
    await page.getByRole('button', { name: 'Add and make the licence' }).click()
    await page.getByText('for web-1 alone').waitFor()
    await countsBecome(page, { Waiting: 1, Enrolled: 0, Reporting: 0, Refused: 0 })
    const bound = (await enroll(await key(), 'called-otherwise')).data
    const { data: web } = (await tenant.call('GET', `/servers/${bound.server_id}`)).body
    expect(web.name).toBe('web-1')
    expect((await enroll(await key(), 'db-1')).error.code).toBe('already_enrolled')

    // From the server's own page, where it has no agent yet; the choice can be made anew.
    await page.goto(`${at}/servers/${known}?tab=agents`)
    await page.getByRole('link', { name: 'Make a licence for this server alone' }).click()
    await page.getByRole('radio', { name: 'One that is known' }).and(page.locator(':checked')).waitFor()
    await page.getByRole('button', { name: 'Another one' }).click()
    expect(await page.getByRole('button', { name: 'Make the licence' }).isDisabled()).toBe(true)
    await page.getByRole('combobox', { name: 'The server' }).fill('db')
    await page.getByRole('option', { name: 'db-1' }).click()
    await page.getByRole('button', { name: 'Make the licence' }).click()
    await page.getByText('for db-1 alone').waitFor()
    expect((await enroll(await key(), 'no-name-of-it')).data.server_id).toBe(known)
    await countsBecome(page, { Waiting: 0, Enrolled: 1, Reporting: 0, Refused: 0 })
    expect(problems).toEqual([])
    await context.close()
  }, 120_000)

  test('who is known already stays as it is, by one name and by a list; a file changes it when that is asked for', async () => {
    const tenant = await hub.tenant()
    await tenant.call('POST', '/servers', { name: 'db-1', hostname: 'db-1.example.net', ip_address: '192.0.2.1' })
    const record = async () => (await tenant.call('GET', '/servers?search=db-1')).body.data[0]
    const before = await record()
    const { page, context, at, problems } = await visit(tenant, '/servers/add')
    const tryOut = page.getByRole('button', { name: 'Try without adding' })
    const add = page.getByRole('button', { name: 'Add and make the licence' })
    const isMade = () => page.getByRole('region', { name: '3. Run this on each server' }).waitFor()

    await page.getByRole('radio', { name: 'A list of names' }).check()
    await page.getByLabel('Names, one a line').fill('DB-1, 192.0.2.99\nweb-1, 192.0.2.2')
    await tryOut.click()
    await page.getByText('It would work: 1 new, 0 changed, 1 known already.').waitFor()
    expect(await page.getByLabel('Servers that may use it').inputValue()).toBe('2')
    await add.click()
    await isMade()
    expect(await record()).toEqual(before)
    await row(page, 'web-1').waitFor()

    await page.goto(`${at}/servers/add`)
    await page.getByLabel('Name of the server').fill('db-1')
    await add.click()
    await isMade()
    expect(await record()).toEqual(before)

    await page.goto(`${at}/servers/add`)
    await page.getByRole('radio', { name: 'A CSV file' }).check()
    await page.getByLabel('Its content').fill('name,role\ndb-1,database\n')
    await tryOut.click()
    await page.getByText('It would work: 0 new, 0 changed, 1 known already.').waitFor()
    await page.getByLabel('Change servers that are known already').check()
    await tryOut.click()
    await page.getByText('It would work: 0 new, 1 changed, 0 known already.').waitFor()
    expect(await record()).toEqual(before)
    await add.click()
    await isMade()
    expect(await record()).toMatchObject({ role: 'database', hostname: 'db-1.example.net' })
    expect((await tenant.call('GET', '/servers')).body.meta.total).toBe(2)
    expect(problems).toEqual([])
    await context.close()
  }, 120_000)

  test('as they come: unknown servers are let in as drafts and approved together', async () => {
    const tenant = await hub.tenant()
    const { page, context, problems } = await visit(tenant, '/servers/add')
    await page.getByRole('radio', { name: 'As they come' }).check()
    await page.getByRole('button', { name: 'Let them in as drafts' }).click()
    await page.getByText('This company refuses servers').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Make the licence' }).click()
    const command = page.getByRole('region', { name: '3. Run this on each server' }).getByRole('code')
    const key = /lic_\w+/.exec((await command.textContent()) ?? '')?.[0] ?? ''
    await page.getByText('Nobody has come yet.').waitFor()
    await enroll(key, 'new-1')
    await enroll(key, 'new-2')
    await page.getByText('2 drafts wait for approval.').waitFor()
    await page.getByRole('button', { name: 'Approve all' }).click()
    await page.getByText('drafts wait for approval').waitFor({ state: 'detached' })
    await countsBecome(page, { Waiting: 0, Enrolled: 2, Reporting: 0, Refused: 0 })
    expect((await tenant.call('GET', '/servers?status=active')).body.meta.total).toBe(2)
    expect(problems).toEqual([])
    await context.close()
  }, 120_000)

  test('faults of a file stand at it by line, and a session that ends costs nothing that was typed', async () => {
    const tenant = await hub.tenant()
    const { page, context } = await visit(tenant, '/servers/add')
    await page.getByRole('radio', { name: 'A CSV file' }).check()
    await page.getByLabel('File', { exact: true }).setInputFiles({
      name: 'a.csv',
      mimeType: 'text/csv',
      buffer: Buffer.from('name,ip_address\na,192.0.2.1\nb,none\n'),
    })
    await page.getByRole('button', { name: 'Try without adding' }).click()
    await page.getByText('3.ip_address').waitFor()
    await page.getByLabel('Its content').fill('name\nonly\n')
    await context.clearCookies()
    await page.getByRole('button', { name: 'Add and make the licence' }).click()
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await countsBecome(page, { Waiting: 1, Enrolled: 0, Reporting: 0, Refused: 0 })
    expect((await tenant.call('GET', '/servers')).body.meta.total).toBe(1)
    await context.close()
  }, 120_000)

  test('without monitoring.manage the page names the key, and nothing leads to it', async () => {
    const tenant = await hub.tenant()
    const { page, context, at } = await visit(tenant, '/servers', ['monitoring.view', 'servers.view'])
    await page.getByRole('heading', { name: 'Servers' }).waitFor()
    expect(await page.getByRole('link', { name: 'Add servers' }).count()).toBe(0)
    await page.goto(`${at}/servers/add`)
    await page.getByText('It needs the permission monitoring.manage.').waitFor()
    await context.close()
  }, 120_000)
})

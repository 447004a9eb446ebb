// People, roles, webhooks, the audit log and settings in a real browser, by role and accessible name.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { type Json, type Tenant, TestHub } from '../../api/hub-harness.ts'
import { until } from '../../support/until.ts'
import { closeContexts, sharedBrowser } from '../browser.ts'
import { logIn, newPerson, slugOf } from '../visitor.ts'

let hub: TestHub
let browser: Browser
let tenant: Tenant
let receiver: ReturnType<typeof Bun.serve>
/** What the receiver of webhooks answers. */
let answerStatus = 204

beforeAll(async () => {
  hub = await TestHub.start({
    ...{ 'rate.session_per_minute': 100_000, 'rate.web_per_minute': 100_000, 'webhooks.allow_private': true },
  })
  tenant = await hub.tenant()
  browser = await sharedBrowser()
  receiver = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response(null, { status: answerStatus }) })
}, 120_000)
afterAll(async () => {
  await closeContexts()
  await hub?.stop()
  await receiver?.stop(true)
}, 120_000)

async function visit(path: string, permissions: readonly string[] = ['*']): Promise<Page> {
  const session = await logIn(hub.url, (await newPerson(hub, tenant.companyId, permissions, 'Visitor')).email)
  const [name = '', value = ''] = session.cookie.split('=')
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en-GB' })
  await context.addCookies([{ name, value, url: hub.url }])
  const page = await context.newPage()
  await page.goto(`${hub.url}/c/${slugOf(session)}${path}`)
  return page
}
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const data = async (path: string): Promise<Json> => (await tenant.call('GET', path)).body.data

test('a role is made and given, a team is joined, and somebody is disabled, enabled and deleted', async () => {
  const person = await newPerson(hub, tenant.companyId, [], 'Ada Byron')
  const page = await visit('/roles')
  await press(page, 'Add a role')
  const role = page.getByRole('dialog', { name: 'Add a role' })
  await role.getByLabel('Name').fill('Name servers')
  await role.getByLabel('dns.view').check()
  await role.getByLabel('dns.manage').check()
  await press(page, 'Save')
  await page.getByRole('button', { name: 'Edit Name servers' }).waitFor()
  const made = (await data('/roles')).find((each: Json) => each.name === 'Name servers')
  expect(made.permissions.toSorted()).toEqual(['dns.manage', 'dns.view'])

  await page.goto(page.url().replace(/\/roles$/, '/people'))
  await press(page, 'Add a team')
  await page.getByRole('dialog', { name: 'Add a team' }).getByLabel('Name').fill('Network team')
  await press(page, 'Save')
  await page.getByRole('button', { name: 'Edit Network team' }).waitFor()
  await press(page, 'Edit Ada Byron')
  const edit = page.getByRole('dialog', { name: 'Edit Ada Byron' })
  await edit.getByLabel('Name servers').check()
  await edit.getByLabel('Network team').check()
  await press(page, 'Save')
  await until('role and team', async () => {
    const { roles } = await data(`/users/${person.userId}`)
    const [team] = await data('/teams')
    return roles[0]?.name === 'Name servers' && team.members[0]?.name === 'Ada Byron'
  })
  expect(await data(`/users/${person.userId}/permissions`)).toEqual(expect.arrayContaining(['dns.manage', 'dns.view']))

  // A role that somebody holds stays, and the reason is said.
  await page.goto(page.url().replace(/\/people.*/, '/roles'))
  await press(page, 'Delete Name servers')
  await page.getByLabel('Type Name servers').fill('Name servers')
  await press(page, 'Delete')
  await page.getByRole('dialog').getByRole('alert').waitFor()
  expect((await data('/roles')).some((each: Json) => each.id === made.id)).toBe(true)

  await page.goto(page.url().replace(/\/roles.*/, '/people?q=Ada'))
  await press(page, 'Disable Ada Byron')
  await press(page, 'Disable')
  await page.getByRole('button', { name: 'Enable Ada Byron' }).waitFor()
  expect((await data(`/users/${person.userId}`)).enabled).toBe(false)
  await press(page, 'Enable Ada Byron')
  await press(page, 'Enable')
  await page.getByRole('button', { name: 'Disable Ada Byron' }).waitFor()
  await press(page, 'Delete Ada Byron')
  const isReady = page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true })
  expect(await isReady.isDisabled()).toBe(true)
  await page.getByLabel('Type Ada Byron').fill('Ada Byron')
  await isReady.click()
  await until('the user is gone', async () => (await tenant.call('GET', `/users/${person.userId}`)).status === 404)
}, 120_000)

test('somebody is invited by a link that works, and an invitation is withdrawn', async () => {
  const page = await visit('/people')
  await press(page, 'Invite')
  const dialog = page.getByRole('dialog', { name: 'Invite' })
  await dialog.getByLabel('E-mail').fill('grace@example.test')
  await dialog.getByLabel('viewer').check()
  await dialog.getByRole('button', { name: 'Invite' }).click()
  const link = (await page.getByRole('dialog').locator('code').textContent()) ?? ''
  expect((await fetch(new URL(new URL(link).pathname + new URL(link).search, hub.url))).status).toBe(200)
  await page.keyboard.press('Escape')
  await page.getByRole('table', { name: 'Invitations' }).getByText('viewer').waitFor()
  await press(page, 'Withdraw the invitation of grace@example.test')
  await press(page, 'Withdraw')
  await until('no invitation', async () => (await data('/invitations')).length === 0)
}, 120_000)

test('who may only see people sees no way to change them; who may not is told the key; other companies are not shown', async () => {
  const other = await hub.tenant()
  const stranger = await newPerson(hub, other.companyId, [], 'Somebody else')
  const page = await visit('/people', ['identity.view'])
  await page.getByRole('table', { name: 'People' }).waitFor()
  expect(await page.getByRole('button', { name: /^(Invite|Edit|Disable|Delete|Add)/ }).count()).toBe(0)
  expect(await page.getByText(stranger.email).count()).toBe(0)
  await page.goto(page.url().replace('/people', '/audit'))
  await page.getByText('audit.view').waitFor()
  const hook = await other.call('POST', '/webhooks', { name: 'theirs', url: `http://127.0.0.1:${receiver.port}/` })
  const theirs = await visit(`/webhooks/${hook.body.data.id}`)
  await theirs.getByRole('heading', { name: 'There is nothing here' }).waitFor()
}, 120_000)

test('a webhook is made, its secret shown once, a failed delivery is seen and sent again', async () => {
  const page = await visit('/webhooks')
  await press(page, 'Add a webhook')
  const dialog = page.getByRole('dialog', { name: 'Add a webhook' })
  await dialog.getByLabel('Name').fill('Chat')
  await dialog.getByLabel('Address').fill('ftp://127.0.0.1/')
  await press(page, 'Save')
  await dialog.getByLabel('Address').and(page.locator('[aria-invalid=true]')).waitFor()
  await dialog.getByLabel('Address').fill(`http://127.0.0.1:${receiver.port}/`)
  await dialog.getByLabel('alert.opened').check()
  await press(page, 'Save')
  const secret = (await page.getByRole('dialog', { name: 'Chat' }).locator('code').textContent()) ?? ''
  expect(secret.length).toBeGreaterThan(20)
  await page.keyboard.press('Escape')
  await page.getByRole('link', { name: 'Chat' }).click()
  await page.getByRole('heading', { name: 'Chat', level: 1 }).waitFor()
  const [hook] = await data('/webhooks')
  expect(hook).toMatchObject({ name: 'Chat', events: ['alert.opened'], enabled: true })

  answerStatus = 410
  await press(page, 'Send a ping')
  const row = page.getByRole('table', { name: 'Deliveries' }).getByRole('row', { name: /ping/ })
  await row.getByText('410').first().waitFor()
  answerStatus = 204
  await row.getByRole('button', { name: 'Send ping again' }).first().click()
  await until('it arrives', async () =>
    (await data(`/webhooks/${hook.id}/deliveries`)).some((each: Json) => each.state === 'delivered'),
  )
  await row.getByText('Delivered').first().waitFor()

  await press(page, 'New secret')
  await page.getByRole('dialog').getByRole('button', { name: 'New secret' }).click()
  const next = (await page.getByRole('dialog', { name: 'Chat' }).locator('code').textContent()) ?? ''
  expect(next).not.toBe(secret)
  await page.keyboard.press('Escape')
  await press(page, 'Delete')
  await page.getByLabel('Type Chat').fill('Chat')
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('There are no webhooks yet.').waitFor()
}, 120_000)

test('the audit log is read by what was done, by whom and when; what changed is shown', async () => {
  const server = await tenant.call('POST', '/servers', { name: 'audited' })
  await tenant.call('PATCH', `/servers/${server.body.data.id}`, { name: 'audited twice' })
  const page = await visit('/audit?q=server.update')
  await page.getByRole('button', { name: 'Changes of server.update' }).first().click()
  const dialog = page.getByRole('dialog', { name: 'Changes of server.update' })
  await dialog.getByText('audited twice').waitFor()
  await page.keyboard.press('Escape')
  const search = async (q: string): Promise<void> => {
    await page.goto(`${page.url().replace(/\?.*/, '')}?${q}`)
    await page.locator('.connection[data-state="live"]').waitFor()
  }
  await search('q=subject:server')
  await page.getByRole('table', { name: 'Audit log' }).getByText('server.create').first().waitFor()
  await search('q=actor:nobody')
  await page.getByText('Nothing matches').waitFor()
  await search('to=2020-01-01T00:00:00Z')
  await page.getByText('Nothing matches').waitFor()
  for (const odd of ['from=275760-09-13T00:00:00Z', 'from=x', 'q=actor:%27', 'offset=1e300', 'q=action:constructor']) {
    await search(odd)
    expect([odd, await page.getByRole('heading', { name: 'Audit log', level: 1 }).count()]).toEqual([odd, 1])
  }
}, 120_000)

test('settings count the agents of the plan, one of them as one', async () => {
  const collector = await hub.collector()
  const { token } = (await tenant.call('POST', '/monitoring/licenses', { name: 'one', max_uses: 1 })).body
  await tenant.call('POST', '/servers', { name: 'counted', hostname: 'counted' })
  const asked = { license: token, hostname: 'counted', machine_id: 'counted', collector_id: collector.id }
  expect((await collector.call('POST', '/enroll', asked)).status).toBeLessThan(300)
  const { client } = hub.hub.database
  await client`update companies set plan_overrides = '{"agent_quota": 1}' where id = ${tenant.companyId}`
  const page = await visit('/settings')
  await page.getByText(/, 1 of 1 agent$/).waitFor()
}, 60_000)

test('settings of the company are changed by field; what is refused stands at its field', async () => {
  const page = await visit('/settings')
  await page.getByLabel('Interval of agents, seconds').fill('45')
  await page.getByLabel('and this share of a group, percent').fill('150')
  await press(page, 'Save')
  await page.getByLabel('and this share of a group, percent').and(page.locator('[aria-invalid=true]')).waitFor()
  await page.getByLabel('and this share of a group, percent').fill('30')
  await press(page, 'Save')
  await page.getByText('Saved', { exact: true }).waitFor()
  expect(await data('/monitoring/settings')).toMatchObject({ default_interval: 45, group_down_ratio: 0.3 })
  const seen = await visit('/settings', ['monitoring.view'])
  await seen.getByText('45', { exact: true }).waitFor()
  expect(await seen.getByRole('button', { name: 'Save' }).count()).toBe(0)
}, 120_000)

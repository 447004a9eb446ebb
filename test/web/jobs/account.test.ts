// One's own account in a real browser, by role and accessible name.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { type Tenant, TestHub } from '../../api/hub-harness.ts'
import { until } from '../../support/until.ts'
import { closeContexts, sharedBrowser } from '../browser.ts'
import { logIn, newPerson, type Person, slugOf } from '../visitor.ts'

let hub: TestHub
let tenant: Tenant

beforeAll(async () => {
  hub = await TestHub.start({ 'rate.session_per_minute': 100_000, 'rate.web_per_minute': 100_000 })
  tenant = await hub.tenant()
}, 120_000)
afterAll(async () => {
  await closeContexts()
  await hub?.stop()
}, 120_000)

async function visit(person: Person): Promise<Page> {
  const session = await logIn(hub.url, person.email)
  const [name = '', value = ''] = session.cookie.split('=')
  const context = await (await sharedBrowser()).newContext({
    ...{ viewport: { width: 1280, height: 1800 }, locale: 'en-GB' },
  })
  await context.addCookies([{ name, value, url: hub.url }])
  const page = await context.newPage()
  await page.goto(`${hub.url}/c/${slugOf(session)}/account`)
  return page
}
const button = (page: Page, within: string) => page.locator('section', { hasText: within }).getByRole('button')

test('one changes how one is called and told, ends a session elsewhere, and sees what one did', async () => {
  const person = await newPerson(hub, tenant.companyId, [], 'Ada Byron')
  const elsewhere = await logIn(hub.url, person.email)
  const page = await visit(person)
  await page.getByLabel('Name').fill('Ada Lovelace')
  await page.getByLabel('Language of messages').selectOption({ label: 'Vietnamese' })
  await page.getByLabel('Time zone of messages').fill('Europe/Nowhere')
  await button(page, 'Profile').click()
  await page.getByLabel('Time zone of messages').and(page.locator('[aria-invalid=true]')).waitFor()
  await page.getByLabel('Time zone of messages').fill('Europe/Berlin')
  await button(page, 'Profile').click()
  await page.getByText('Saved', { exact: true }).waitFor()
  const [row] = await hub.hub.database.client`
    select name, language, time_zone from users where id = ${person.userId}`
  expect({ ...row }).toEqual({ name: 'Ada Lovelace', language: 'vi', time_zone: 'Europe/Berlin' })

  const sessions = page.getByRole('table', { name: 'Sessions' })
  await sessions.getByText('This one').waitFor()
  await sessions.getByRole('button', { name: /^End: / }).click()
  await until('the other session is over', async () => {
    const response = await fetch(`${hub.url}/api/v1/me`, { headers: { cookie: elsewhere.cookie } })
    return response.status === 401
  })
  await sessions.getByRole('button', { name: /^End: / }).waitFor({ state: 'detached' })
  await page.reload()
  await page.getByRole('table', { name: 'What you did last' }).getByText('user.update').waitFor()
  expect(await page.getByLabel('Name').inputValue()).toBe('Ada Lovelace')
}, 120_000)

test('one sees what one was told, page by page, marks it as read, and says from which severity on', async () => {
  const person = await newPerson(hub, tenant.companyId, ['monitoring.view'], 'Grace Hopper')
  const page = await visit(person)
  await page.getByText('You were told nothing yet.').waitFor()
  await hub.hub.database.client`
    insert into notifications (id, user_id, company_id, type, title, body)
    select gen_random_uuid(), ${person.userId}, ${tenant.companyId}, 'alert.opened', 'Message ' || n, 'Body ' || n
    from generate_series(1, 17) n`
  await page.reload()
  const messages = page.getByRole('table', { name: 'Your messages' })
  await messages.getByText('Message 17', { exact: true }).waitFor()
  await page.getByText('17 unread').waitFor()
  await messages.getByRole('button', { name: 'Mark as read: Message 17' }).click()
  await page.getByText('16 unread').waitFor()
  await page.getByRole('button', { name: 'Earlier' }).click()
  await messages.getByText('Message 2', { exact: true }).waitFor()
  expect(await page.getByRole('button', { name: 'Earlier' }).count()).toBe(0)
  await page.getByRole('button', { name: 'Mark all as read' }).click()
  await page.getByText(/ unread$/).waitFor({ state: 'detached' })

  await page.getByLabel('By e-mail, from severity').selectOption({ label: 'Nothing' })
  await button(page, 'What you are told').click()
  await page.getByText('Saved', { exact: true }).waitFor()
  await page.reload()
  expect(await page.getByLabel('By e-mail, from severity').inputValue()).toBe('off')
}, 120_000)

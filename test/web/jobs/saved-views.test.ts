// Saved views as a person uses them, in a real browser and by keys: kept, found by the palette, shared, changed,
// deleted and had back.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { type Tenant, TestHub } from '../../api/hub-harness.ts'
import { closeContexts, sharedBrowser, violationsOf } from '../browser.ts'
import { logIn, newPerson, type Person, slugOf } from '../visitor.ts'

let hub: TestHub
let browser: Browser
let tenant: Tenant

beforeAll(async () => {
  hub = await TestHub.start({ 'rate.session_per_minute': 100_000, 'rate.web_per_minute': 100_000 })
  tenant = await hub.tenant()
  for (const [name, tags] of [
    ['db-1', ['db']],
    ['web-1', ['web']],
    ['web-2', ['web']],
  ] as const)
    await tenant.call('POST', '/servers', { name, hostname: `${name}.example.test`, tags })
  browser = await sharedBrowser()
}, 120_000)
afterAll(async () => {
  await closeContexts()
  await hub?.stop()
}, 120_000)

async function visit(path: string, { email }: Person, width = 1280): Promise<Page> {
  const session = await logIn(hub.url, email)
  const [name = '', value = ''] = session.cookie.split('=')
  const context = await browser.newContext({ viewport: { width, height: 900 }, locale: 'en-GB' })
  await context.addCookies([{ name, value, url: hub.url }])
  const page = await context.newPage()
  await page.goto(`${hub.url}/c/${slugOf(session)}${path}`)
  await page.locator('.connection[data-state="live"]').waitFor()
  return page
}

const viewsOf = (page: Page) => page.getByRole('dialog', { name: 'Saved views' })
const searchOf = (page: Page): string => decodeURIComponent(new URL(page.url()).search)

test('what is shown is saved by keys alone, and the palette leads to it from elsewhere', async () => {
  const ada = await newPerson(hub, tenant.companyId, ['*'], 'Ada')
  const page = await visit('/servers?q=tag:web&sort=-name', ada)
  await page.keyboard.press('v')
  await viewsOf(page).getByText('Nothing is saved for this page yet.').waitFor()
  const name = viewsOf(page).getByLabel('Name')
  await name.focus()
  // A single key leads nowhere while one types; Enter saves.
  await page.keyboard.type('web, from v')
  await page.keyboard.press('Enter')
  await viewsOf(page).getByText('Saved: web, from v.').waitFor()
  await viewsOf(page).getByText('tag:web · sort=-name · shown now').waitFor()
  expect(await violationsOf(page)).toEqual([])
  await page.keyboard.press('Escape')
  await viewsOf(page).waitFor({ state: 'detached' })
  await page.keyboard.press('g')
  await page.keyboard.press('o')
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  await page.keyboard.press('Control+k')
  const palette = page.getByRole('dialog', { name: 'Search and commands' })
  // The field has the focus: what is typed stands in it.
  await palette.getByRole('combobox').and(page.locator(':focus')).waitFor()
  await page.keyboard.type('from v')
  await palette.getByRole('option', { name: 'web, from v Servers · Saved view', selected: true }).waitFor()
  await page.keyboard.press('Enter')
  await page.getByText('2 of 3').waitFor()
  expect(searchOf(page)).toBe('?q=tag:web&sort=-name')
  await page.context().close()
}, 120_000)

test('a shared view is there for others, who change nothing of it; deleted, it can be had back', async () => {
  const [ada, bob] = await Promise.all([
    newPerson(hub, tenant.companyId, ['*'], 'Ada'),
    newPerson(hub, tenant.companyId, ['monitoring.view', 'servers.view'], 'Bob'),
  ])
  const page = await visit('/servers?view=map&group=dc', ada)
  await page.getByRole('button', { name: 'Saved views' }).click()
  const views = viewsOf(page)
  await views.getByLabel('Name').fill('Map of all')
  await views.getByRole('checkbox', { name: /^Everybody in Company/ }).check()
  await views.getByRole('button', { name: 'Save', exact: true }).click()
  await views.getByText('group=dc · view=map · shared · shown now').waitFor()

  const other = await visit('/servers?q=tag:db', bob, 360)
  await other.getByRole('button', { name: 'Saved views' }).click()
  await viewsOf(other).getByText('shared by Ada').waitFor()
  expect(await viewsOf(other).getByRole('button', { name: 'Delete Map of all' }).count()).toBe(0)
  expect(await viewsOf(other).getByRole('checkbox').count()).toBe(0)
  expect(await violationsOf(other)).toEqual([])
  await viewsOf(other).getByRole('link', { name: 'Map of all' }).click()
  await other.getByRole('application', { name: /^Map of 3 servers/ }).waitFor()
  await other.context().close()

  // Changed: another name, and what is shown now in it.
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Table', exact: true }).click()
  await page.getByRole('table', { name: 'Servers' }).waitFor()
  await page.getByRole('button', { name: 'Saved views' }).click()
  await views.getByRole('button', { name: 'Change Map of all' }).click()
  await views.getByLabel('Name').fill('Table of all')
  await views.getByRole('checkbox', { name: 'Keep what is shown now in it: group=dc' }).check()
  await views.getByRole('button', { name: 'Save', exact: true }).click()
  await views.getByText('group=dc · shared · shown now').waitFor()
  await views.getByRole('button', { name: 'Delete Table of all' }).click()
  await views.getByText('Deleted: Table of all.').waitFor()
  await views.getByRole('button', { name: 'Bring it back' }).click()
  await views.getByRole('link', { name: 'Table of all' }).waitFor()
  // A name that is taken is said at its field, and what was typed stays.
  await views.getByLabel('Name').fill('table of all')
  await views.getByRole('button', { name: 'Save', exact: true }).click()
  await views.getByText('is already taken').waitFor()
  expect(await views.getByLabel('Name').inputValue()).toBe('table of all')
  await page.context().close()
}, 120_000)

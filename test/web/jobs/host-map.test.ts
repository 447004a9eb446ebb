// The servers as a map, and beside each other, in a real browser: what the address says is what is shown, keys lead
// from cell to cell and open, Back undoes each step, and a table says the same.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { Browser, Page } from 'playwright-core'
import { SimulatedAgent } from '../../support/simulated-agent.ts'
import { type SiteProcess, startSiteProcess } from '../../support/site.ts'
import { until } from '../../support/until.ts'
import { closeContexts, sharedBrowser, signIn, violationsOf } from '../browser.ts'

const AXE = readFileSync(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir), 'utf8')

/** Name, data centre, role, tags, CPU, fullest disk; null: it never sent. */
const fleet = [
  ['db-1', 'fra', 'db', ['db'], 20, 97],
  ['web-1', 'ams', 'web', ['web'], 40, 30],
  ['web-2', 'fra', 'web', ['web'], 60, 40],
  ['web-3', 'fra', 'web', ['web'], null, null],
] as const

let site: SiteProcess
let browser: Browser
const ids: Record<string, string> = {}

beforeAll(async () => {
  browser = await sharedBrowser()
  site = await startSiteProcess({ args: ['--no-local-agent'], config: 'rate:\n  default_per_minute: 100000\n' })
  for (const [name, datacenter, role, tags, cpu, disk] of fleet) {
    const body = { name, hostname: `${name}.example.test`, datacenter, role, tags }
    ids[name] = (await site.api('POST', '/api/v1/servers', body)).body.data.id
    if (cpu === null) continue
    const agent = await SimulatedAgent.enroll(site.facts.agent_url, site.facts.license, `${name}.example.test`)
    const series = (metric: string, value: number, labels: Record<string, string> = {}) => ({
      name: metric,
      labels,
      points: Array.from({ length: 20 }, (_, step) => [Date.now() - (19 - step) * 30_000, value] as const),
    })
    await agent.send([
      series('cpu_usage_percent', cpu),
      series('disk_used_percent', disk, { mount: '/var', device: 'sda1', fstype: 'ext4' }),
    ])
  }
  await until('the full disk has its alerts', async () => {
    const { body } = await site.api('GET', '/api/v1/monitoring/alerts?state=open&severity=critical')
    return body.meta.total > 0 ? true : null
  })
}, 120_000)
afterAll(async () => {
  await closeContexts()
  await site?.stop()
}, 120_000)

async function visit(path: string): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en-GB' })
  const page = await context.newPage()
  await page.goto(site.facts.hub_url)
  await signIn(page, site)
  await page.waitForURL(/\/c\//)
  await page.goto((/^.*\/c\/[^/]+/.exec(page.url())?.[0] ?? '') + path)
  return page
}

const mapOf = (page: Page, count: number, metric: string) =>
  page.getByRole('application', { name: new RegExp(`^Map of ${count} servers? by ${metric}`) })
const searchOf = (page: Page): string => decodeURIComponent(new URL(page.url()).search)

test('a map opened by its address shows that grouping, fill and filter; the keys lead from cell to cell and open the server', async () => {
  const page = await visit('/servers?view=map&group=dc,role&fill=disk_used_percent&q=-tag:none')
  await mapOf(page, 4, 'Disk usage').focus()
  const said = page.locator('#map-cell')
  // Groups stand in the order of their keys, servers by name: ams web; fra db, web.
  await said.getByRole('link', { name: 'web-1' }).waitFor()
  await said.getByText('Disk usage: 30.0 % mount=/var').waitFor()
  await said.getByText('ams · web').waitFor()
  await page.keyboard.press('ArrowRight')
  await said.getByRole('link', { name: 'db-1' }).waitFor()
  await said
    .getByText('Critical')
    .or(said.getByText(/open alert/))
    .first()
    .waitFor()
  await page.keyboard.press('End')
  await said.getByRole('link', { name: 'web-3' }).waitFor()
  await said.getByText('Disk usage: –').waitFor()
  await page.keyboard.press('PageUp')
  await said.getByRole('link', { name: 'db-1' }).waitFor()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'db-1', level: 1 }).waitFor()
  expect(new URL(page.url()).pathname).toEndWith(`/servers/${ids['db-1']}`)
  await page.context().close()
}, 120_000)

test('each step on the map is in the address, and Back undoes it', async () => {
  const page = await visit('/servers')
  await page.getByRole('button', { name: 'Map', exact: true }).click()
  await mapOf(page, 4, 'CPU usage').waitFor()
  await page.getByLabel('Group by').selectOption({ label: 'Data centre' })
  await page.getByLabel('then by').selectOption({ label: 'Role' })
  await page.getByLabel('Fill by').selectOption({ label: 'Disk usage' })
  await mapOf(page, 4, 'Disk usage').waitFor()
  expect(searchOf(page)).toBe('?view=map&group=dc,role&fill=disk_used_percent')
  // The name of a group filters by its keys: the first in the picture is that of ams.
  await mapOf(page, 4, 'Disk usage').click({ position: { x: 8, y: 8 } })
  await mapOf(page, 1, 'Disk usage').waitFor()
  expect(searchOf(page)).toBe('?view=map&group=dc,role&fill=disk_used_percent&q=dc:ams')
  for (const before of [
    '?view=map&group=dc,role&fill=disk_used_percent',
    '?view=map&group=dc,role',
    '?view=map&group=dc',
    '?view=map',
    '',
  ]) {
    await page.goBack()
    expect(searchOf(page)).toBe(before)
  }
  await page.getByRole('table', { name: 'Servers' }).waitFor()
  await page.context().close()
}, 120_000)

test('the table of a map has its rows with the same values, and neither breaks a rule of accessibility', async () => {
  const page = await visit('/servers?view=map&group=dc&fill=cpu_usage_percent')
  await mapOf(page, 4, 'CPU usage').waitFor()
  const judged = async (): Promise<unknown> => {
    await page.evaluate(AXE)
    return page.evaluate(
      "axe.run(document, { resultTypes: ['violations'] }).then(found => found.violations.map(each => each.id + ' ' + each.nodes[0]?.html))",
    )
  }
  expect(await judged()).toEqual([])
  await page.getByRole('button', { name: 'Show as table' }).click()
  const row = (name: string) => page.getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) })
  await row('web-1').getByText('40.0 %').waitFor()
  await row('web-2').getByText('60.0 %').waitFor()
  await row('web-3').getByText('–').waitFor()
  expect(await page.getByRole('row').count()).toBe(5)
  expect(await judged()).toEqual([])
  await page.context().close()
}, 120_000)

test('selected servers are compared, a chart each or as lines of one; one alone stands beside those that are highest', async () => {
  const page = await visit('/servers')
  for (const name of ['web-1', 'web-2']) await page.getByRole('checkbox', { name: `Select ${name}` }).check()
  await page.getByRole('button', { name: 'Compare', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: 'Compare servers' }).waitFor()
  expect(searchOf(page)).toBe(`?servers=${ids['web-1']},${ids['web-2']}`)
  const figure = (name: string) => page.getByRole('figure', { name, exact: true })
  await figure('web-1')
    .getByRole('row', { name: /40.0 %/ })
    .waitFor()
  await figure('web-2')
    .getByRole('row', { name: /60.0 %/ })
    .waitFor()
  expect(await page.getByRole('figure').count()).toBe(2)
  await page.getByLabel('Metric').selectOption({ label: 'Disk usage' })
  await figure('web-2')
    .getByRole('row', { name: /\/var.*40.0 %/ })
    .waitFor()
  await page.getByRole('button', { name: 'One chart' }).click()
  await figure('Disk usage')
    .getByRole('row', { name: /web-1.*30.0 %/ })
    .waitFor()
  await figure('Disk usage')
    .getByRole('row', { name: /web-2.*40.0 %/ })
    .waitFor()
  await page.getByRole('button', { name: 'Leave web-1 out' }).click()
  await figure('Disk usage')
    .getByRole('row', { name: /db-1.*97.0 %/ })
    .waitFor()
  await page.getByText('beside the 2 with the highest newest value, of 4').waitFor()
  await page.goBack()
  await figure('Disk usage').getByRole('row', { name: /db-1/ }).waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'A chart each' }).click()
  await figure('web-2').getByRole('link', { name: 'Open web-2' }).click()
  await page.getByRole('heading', { level: 1, name: 'web-2' }).waitFor()
  await page.getByRole('link', { name: 'Compare with other servers Disk usage' }).click()
  await figure('db-1')
    .getByRole('row', { name: /97.0 %/ })
    .waitFor()
  await page.context().close()
}, 120_000)

test('columns of the table are chosen and stand in the address, metrics among them; a server is added to a comparison by its name', async () => {
  const page = await visit('/servers')
  const head = (name: string) => page.getByRole('columnheader', { name, exact: true })
  await head('Memory').waitFor()
  const dialog = page.getByRole('dialog', { name: 'Columns' })
  const press = (name: string) => dialog.getByRole('button', { name, exact: true }).click()
  await page.getByRole('button', { name: 'Columns' }).click()
  // The name of a server is always there.
  expect(await dialog.getByLabel('Name').isDisabled()).toBe(true)
  await dialog.getByLabel('Memory').uncheck()
  await dialog.getByLabel('CPU, 3 hours').check()
  await dialog.getByLabel('Add a metric').selectOption({ label: 'Disk usage' })
  await dialog.getByRole('checkbox', { name: 'Disk usage' }).waitFor()
  await press('Done')
  await dialog.waitFor({ state: 'detached' })
  await head('Memory').waitFor({ state: 'detached' })
  await head('Disk usage').waitFor()
  await page.getByRole('row').filter({ hasText: 'db-1' }).getByRole('cell').last().getByText(/^97/).waitFor()
  await page.getByRole('img', { name: 'CPU in the last 3 hours: 20.0 % to 20.0 %' }).waitFor()
  expect(await violationsOf(page)).toEqual([])
  const cols = new URL(page.url()).searchParams.get('cols')?.split(',') ?? []
  expect([cols.at(-1), cols.includes('memory'), cols.includes('cpu')]).toEqual(['disk_used_percent', false, true])
  await page.getByRole('button', { name: 'Columns' }).click()
  await press('The usual ones')
  await press('Done')
  await head('Memory').waitFor()
  expect(searchOf(page)).toBe('')

  await page.goto(`${page.url()}/compare?servers=${ids['web-1']}`)
  const add = page.getByRole('combobox', { name: 'Add a server' })
  await add.fill('web-1')
  await page.getByText('No server is called that.').waitFor()
  await add.fill('db')
  await page.getByRole('option', { name: 'db-1' }).waitFor()
  await add.press('Enter')
  await page.getByRole('button', { name: 'Leave db-1 out' }).waitFor()
  expect(searchOf(page)).toBe(`?servers=${ids['web-1']},${ids['db-1']}`)
  await page
    .getByRole('figure', { name: 'db-1', exact: true })
    .getByRole('row', { name: /20.0 %/ })
    .waitFor()
  await page.context().close()
}, 120_000)

test('what a filter names is silenced as a scope, or server by server; what is done with servers is taken back; columns stand still', async () => {
  const page = await visit('/servers?q=tag:web')
  const silence = page.getByRole('dialog', { name: 'New silence' })
  await page.getByRole('button', { name: 'Silence what matches…' }).click()
  await silence.getByText(/^Silences 3 servers/).waitFor()
  expect([await silence.getByLabel('Servers').inputValue(), await silence.getByLabel('Value').inputValue()]).toEqual([
    'tag',
    'web',
  ])
  await page.keyboard.press('Escape')
  // A scope tells cases apart, a filter does not.
  await page.goto(page.url().replace(/q=.*/, 'q=dc:FRA'))
  await page.getByRole('button', { name: 'Silence what matches…' }).click()
  await silence.getByText(/^Silences [1-9]\d* servers? with/).waitFor()
  expect([await silence.getByLabel('Servers').inputValue(), await silence.getByLabel('Value').inputValue()]).toEqual([
    'dc',
    'fra',
  ])
  await page.keyboard.press('Escape')
  // What fails is said.
  await page.route(/matching-servers/, route => route.fulfill({ status: 503, json: { message: 'Not now.' } }), {
    times: 1,
  })
  await page.getByRole('button', { name: 'Silence what matches…' }).click()
  await page.getByRole('alert').getByText('Not done: Not now.').waitFor()
  await page.goto(page.url().replace(/q=.*/, 'q=tag:web'))
  // A scope names one of several, and cannot say this.
  await page.goto(`${page.url()}%20dc:fra`)
  await page.getByRole('button', { name: 'Silence what matches…' }).click()
  await silence.getByText(/^Silences 2 servers/).waitFor()
  expect(await silence.getByLabel('Servers').inputValue()).toBe('given')
  await page.keyboard.press('Escape')

  const records = async (): Promise<readonly { name: string; status: string; tags: readonly string[] }[]> =>
    (await site.api('GET', '/api/v1/servers')).body.data
  const before = JSON.stringify((await records()).map(({ name, status, tags }) => [name, status, tags]))
  const act = async (name: string, fill: () => Promise<void>): Promise<void> => {
    const looks = (): Promise<string> =>
      page.evaluate<string>("getComputedStyle(document.querySelector('main tbody tr[data-key]')).backgroundColor")
    await page.locator('table[data-kept]').waitFor()
    const plain = await looks()
    await page.getByRole('button', { name: 'Select all 2 that match' }).click()
    await until('a selected row is seen to be', async () => (await looks()) !== plain)
    await page.getByRole('button', { name, exact: true }).click()
    await fill()
    await page.getByRole('dialog').getByRole('button', { name, exact: true }).click()
    await page.getByText('2 of 2 done').waitFor()
  }
  const inMaintenance = async () => (await records()).filter(({ status }) => status === 'maintenance').length
  await act('Set status', async () => {})
  expect(await inMaintenance()).toBe(2)
  await page.getByRole('button', { name: 'Take it back' }).click()
  await until('both are in service again', async () => (await inMaintenance()) === 0)
  // Only what the act has changed is changed back, and what is refused then is not said to be.
  await site.api('PATCH', `/api/v1/servers/${ids['web-2']}`, { status: 'maintenance' })
  await page.getByRole('row').filter({ hasText: 'web-2' }).getByText('Maintenance').first().waitFor()
  await act('Set status', async () => {})
  const refused = { done: [], refused: [{ id: ids['web-3'], errors: { status: 'It is locked.' } }] }
  const back = page.waitForRequest(/bulk\/status$/)
  await page.route(/bulk\/status$/, route => route.fulfill({ status: 200, json: refused }), { times: 1 })
  await page.getByRole('button', { name: 'Take it back' }).click()
  await page.getByText('Not taken back: It is locked.').waitFor()
  expect((await back).postDataJSON().server_ids).toEqual([ids['web-3']])
  for (const name of ['web-2', 'web-3']) await site.api('PATCH', `/api/v1/servers/${ids[name]}`, { status: 'active' })
  // One of the tags they had before, and keep.
  await act('Change tags', () => page.getByLabel('Add tags').fill('web, blue'))
  expect((await records()).filter(({ tags }) => tags.includes('blue')).length).toBe(2)
  await page.getByRole('button', { name: 'Take it back' }).click()
  await until(
    'all is as before',
    async () => JSON.stringify((await records()).map(({ name, status, tags }) => [name, status, tags])) === before,
  )

  const widths = (): Promise<string> =>
    page.evaluate<string>(
      "JSON.stringify([...document.querySelectorAll('main thead th')].map(head => head.getBoundingClientRect().width))",
    )
  const found = await widths()
  await site.api('PATCH', `/api/v1/servers/${ids['web-2']}`, { name: 'web-2-with-a-much-longer-name-than-before' })
  await page.getByRole('link', { name: 'web-2-with-a-much-longer-name-than-before' }).waitFor()
  expect(await widths()).toBe(found)
  // Whatever `display` its elements have, they are those of a table.
  const parts = 'table[role=table] > tbody[role=rowgroup] > tr[role=row]'
  for (const part of ['rowheader', 'cell']) await page.locator(`${parts} > [role=${part}]`).first().waitFor()
  await page.context().close()
}, 120_000)

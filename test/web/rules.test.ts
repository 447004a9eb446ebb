// The pages of rules as an operator uses them, in a real browser: by role and accessible name only.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { firingsOf, replayRule } from '../../core/alerting/evaluate/backtest.ts'
import { AdminListener } from '../api/admin-listener.ts'
import { type Json, type Tenant, TestHub } from '../api/hub-harness.ts'
import { ruleRecord } from '../support/rule-record.ts'
import { until } from '../support/until.ts'
import { closeContexts, sharedBrowser } from './browser.ts'
import { newPerson, PASSWORD } from './visitor.ts'

const STEP_MS = 30_000

let hub: TestHub
let tenant: Tenant
let admin: AdminListener
let browser: Browser
let page: Page
let slug = ''
/** What must not happen: errors of the script, refusals of the policy. */
const faults: string[] = []

const nowMs = () => Math.floor(Date.now() / STEP_MS) * STEP_MS

type Mount = { readonly mount: string; readonly points: readonly (readonly [number, number])[] }

/** A day of two disks: the one rises above 85 in the middle of each of the last four hours, the other stays low. */
function disks(fromMs: number, toMs: number): Mount[] {
  const endMs = nowMs()
  const times = Array.from({ length: 2880 }, (_, at) => endMs - at * STEP_MS).filter(at => at >= fromMs && at <= toMs)
  const isHigh = (at: number): boolean => endMs - at < 4 * 3_600_000 && Math.floor((endMs - at) / 900_000) % 4 === 2
  return ['/', '/var'].map(mount => ({
    mount,
    points: times
      .toReversed()
      .map(at => [at, mount === '/var' && isHigh(at) ? 93 : mount === '/var' ? 60 : 20] as const),
  }))
}

const labelsOf = (mount: string) => ({ device: 'sda1', fstype: 'ext4', mount })

/** What a collector says of these disks. */
function collectorSays(asked: { path: string; query: URLSearchParams }): { status: number; body: Json } {
  const [fromMs, toMs] = ['from', 'to'].map(name => Number(asked.query.get(name)) * 1000) as [number, number]
  const series = (metric: string) =>
    metric === 'disk_used_percent'
      ? disks(fromMs, toMs).map(({ mount, points }) => ({ labels: labelsOf(mount), points }))
      : [{ labels: {}, points: disks(fromMs, toMs)[0]?.points ?? [] }]
  if (asked.path.endsWith('/series'))
    return { status: 200, body: { data: { series: series(asked.query.get('metric') ?? '') } } }
  if (asked.path.endsWith('/series/by-metric')) {
    const metrics = (asked.query.get('metrics') ?? '').split(',').map(metric => ({ metric, series: series(metric) }))
    return { status: 200, body: { data: { from: 'x', to: 'x', step_seconds: 30, metrics, left_out: [] } } }
  }
  return { status: 200, body: { data: {} } }
}

beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
  admin = new AdminListener()
  admin.answer = collectorSays
  await hub.collector(admin.url)
  for (const [name, tags] of [
    ['db-1', ['db']],
    ['web-1', ['web']],
  ] as const)
    await tenant.call('POST', '/servers', { name, tags })
  slug = (await tenant.call('GET', '/companies')).body.data[0]?.slug
  const person = await newPerson(hub, tenant.companyId)
  browser = await sharedBrowser()
  page = await browser.newPage({ viewport: { width: 1280, height: 900 }, locale: 'en-GB' })
  page.setDefaultTimeout(20_000)
  page.on('pageerror', error => faults.push(`script: ${error.message}`))
  page.on('console', message => {
    if (message.type() === 'error' && !message.text().includes('422')) faults.push(`console: ${message.text()}`)
  })
  await page.goto(`${hub.url}/login`)
  await page.getByLabel('E-mail').fill(person.email)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(/\/c\//)
}, 120_000)
afterAll(async () => {
  await closeContexts()
  await admin?.stop()
  await hub?.stop()
}, 120_000)

const open = (path: string) => page.goto(`${hub.url}/c/${slug}${path}`)
const rules = async (): Promise<Json[]> => (await tenant.call('GET', '/monitoring/rules?per_page=15')).body.data
const named = async (name: string): Promise<Json> => (await rules()).find(rule => rule.name === name)
const diskRule = () => named('Disk filling')

/** The alerts that the evaluation finds on the disk that rises. */
function toldAbove(threshold: number): number {
  const series = disks(nowMs() - 86_400_000, nowMs()).map(({ mount, points }) => ({ labels: labelsOf(mount), points }))
  const rule = ruleRecord({ metric: 'disk_used_percent', operator: '>', threshold, for_seconds: 300 })
  return firingsOf(replayRule({ rule, serverId: crypto.randomUUID(), series, stepMs: STEP_MS, toMs: nowMs() })).length
}

test('the list says each rule as a sentence, and disables, enables and copies', async () => {
  await open('/rules')
  const row = page.getByRole('row', { name: /High CPU/ })
  await row.getByText('CPU usage over 90.0 % for 10m, until below 80.0 %').waitFor()
  await row.getByText('All servers').waitFor()
  await page.getByRole('button', { name: 'Disable High CPU' }).click()
  await row.getByText('disabled', { exact: true }).waitFor()
  expect((await named('High CPU')).enabled).toBe(false)
  await page.getByRole('button', { name: 'Take it back' }).click()
  await row.getByText('disabled', { exact: true }).waitFor({ state: 'detached' })
  expect((await named('High CPU')).enabled).toBe(true)
  await page.getByRole('button', { name: 'Disable High CPU' }).click()
  await row.getByText('disabled', { exact: true }).waitFor()

  await page.getByRole('checkbox', { name: 'Select High CPU' }).check()
  await page.getByRole('checkbox', { name: 'Select High RAM' }).check()
  await page.getByRole('button', { name: 'Enable', exact: true }).first().click()
  await page.getByText('2 of 2 done').waitFor()
  expect((await named('High CPU')).enabled).toBe(true)
  // Only the one that was off before is off again.
  await page.getByRole('button', { name: 'Take it back' }).click()
  await row.getByText('disabled', { exact: true }).waitFor()
  expect([(await named('High CPU')).enabled, (await named('High RAM')).enabled]).toEqual([false, true])
  await page.getByRole('button', { name: 'Enable High CPU' }).click()
  await row.getByText('disabled', { exact: true }).waitFor({ state: 'detached' })

  await page.getByRole('button', { name: 'Duplicate High load' }).click()
  await page.getByRole('heading', { name: 'Edit High load (copy)' }).waitFor()
  expect((await named('High load (copy)')).enabled).toBe(false)
})

test('selected rules are told as another severity, silenced together, and deleted by their number', async () => {
  for (const name of ['Old one', 'Old two'])
    await tenant.call('POST', '/monitoring/rules', {
      ...{ name, scope: { all: true }, metric: 'cpu_usage_percent', operator: '>', threshold: 90, severity: 'info' },
    })
  await open('/rules')
  const select = async () => {
    for (const name of ['Old one', 'Old two']) await page.getByRole('checkbox', { name: `Select ${name}` }).check()
  }
  await select()
  await page.getByRole('button', { name: 'Severity…' }).click()
  const severity = page.getByRole('dialog', { name: 'Severity of 2 rules' })
  await severity.getByLabel('Severity').selectOption('critical')
  await severity.getByRole('button', { name: 'Save' }).click()
  await page.getByText('2 of 2 done').waitFor()
  const severities = async () => [(await named('Old one')).severity, (await named('Old two')).severity]
  expect(await severities()).toEqual(['critical', 'critical'])
  await page.getByRole('button', { name: 'Take it back' }).click()
  await page.getByText('Taken back.').waitFor()
  expect(await severities()).toEqual(['info', 'info'])

  await select()
  await page.getByRole('button', { name: 'Silence…' }).click()
  const silence = page.getByRole('dialog', { name: 'New silence' })
  await silence.getByLabel('Only alerts of the rules “Old one, Old two”').and(page.locator(':checked')).waitFor()
  await silence.getByRole('button', { name: 'Cancel' }).click()

  // One is refused: the other goes, and tried again it is asked for no more.
  await page.getByRole('button', { name: 'Delete…' }).click()
  const remove = page.getByRole('dialog', { name: 'Delete 2 rules?' })
  await remove.getByLabel('Type 2 to delete').fill('2')
  const { id } = await named('Old two')
  const asked: string[] = []
  await page.route(/\/monitoring\/rules\/[^/]+$/, route => {
    asked.push(route.request().url().split('/').at(-1) ?? '')
    return asked.includes(id) && asked.length <= 2 && asked.at(-1) === id
      ? route.fulfill({ status: 422, json: { message: 'It is in use.' } })
      : route.continue()
  })
  await remove.getByRole('button', { name: 'Delete' }).click()
  await remove.getByText('Not done: 1 refused: It is in use.').waitFor()
  await page.unroute(/\/monitoring\/rules\/[^/]+$/)
  await remove.getByRole('button', { name: 'Delete' }).click()
  await remove.waitFor({ state: 'detached' })
  expect((await rules()).filter(rule => rule.name.startsWith('Old'))).toEqual([])
})

test('[HRL-003] the editor draws what a draft would have told; a moved threshold asks for nothing', async () => {
  const { id } = await diskRule()
  await open(`/rules/${id}/edit`)
  await page.getByText(/would have told \d+ times, longest/).waitFor()
  await page.getByRole('img', { name: /web-1 .*\/var: \d+ would-be alerts, highest 93/ }).waitFor()
  const choices = page.getByLabel('Without data')
  const boxWidth = async () => (await choices.boundingBox())?.width ?? 0
  const given = await boxWidth()
  expect(given).toBeGreaterThan(0)
  const widen = (maxWidth: string, width: string) =>
    choices.evaluate(({ style }, size) => Object.assign(style, size), { maxWidth, width })
  await widen('none', 'max-content')
  expect(await boxWidth(), 'the longest choice has its place').toBeLessThanOrEqual(given)
  await widen('', '')
  const sentence = page.getByText(/^On the \d+ worst series/)
  const expected = toldAbove(85) * 2
  expect(expected).toBeGreaterThan(4)
  await until(
    'the alerts of both servers',
    async () => (await sentence.textContent())?.includes(`told ${expected} times`) === true,
  )

  const asked: string[] = []
  page.on('request', request => {
    if (request.url().includes('rule-preview')) asked.push(request.url())
  })
  const slider = page.getByRole('slider', { name: 'Threshold in the chart' })
  await slider.fill('95')
  await page.getByText(/worst series: would have told nothing/).waitFor()
  await page.getByText(new RegExp(`As saved \\(version \\d+\\): ${expected} times`)).waitFor()
  expect(await page.getByLabel('Threshold', { exact: true }).inputValue()).toBe('95')
  expect(asked).toEqual([])

  // Dragged in the picture, whose height is 100 %.
  const box = await page
    .getByRole('img', { name: /would-be/ })
    .first()
    .boundingBox()
  if (!box) throw new Error('the chart is not shown')
  await page.mouse.move(box.x + box.width / 2, box.y + box.height * 0.4)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width / 2, box.y + box.height * 0.3)
  await page.mouse.up()
  const dragged = Number(await page.getByLabel('Threshold', { exact: true }).inputValue())
  expect(dragged).toBeGreaterThan(65)
  expect(dragged).toBeLessThan(75)
  await page
    .getByText(new RegExp(`told ${toldAbove(dragged) * 2} times`))
    .first()
    .waitFor()
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByRole('heading', { name: 'Disk filling', exact: true }).waitFor()
  expect((await diskRule()).threshold).toBe(dragged)
})

test('a rule shows whom it covers, whom not and why, and its versions with what differs', async () => {
  const { id, threshold } = await diskRule()
  await tenant.call('PATCH', `/monitoring/rules/${id}`, { scope: { tags: ['db'] } })
  await open(`/rules/${id}`)
  const covered = page.getByRole('region', { name: /Servers covered/ })
  await covered.getByRole('row', { name: /db-1/ }).getByText('No agent reports for it').waitFor()
  const uncovered = page.getByRole('region', { name: /Servers not covered/ })
  await uncovered.getByText('The scope names tags db; these servers have none of it.').waitFor()
  await uncovered.getByText('web-1').waitFor()
  const versions = page.getByRole('region', { name: 'Versions' })
  await versions.getByRole('row', { name: `Threshold 85.0 % ${threshold.toFixed(1)} %` }).waitFor()
  await versions.getByRole('row', { name: 'Scope All servers tags db' }).waitFor()
})

test('what is typed is kept over a reload, until it is discarded', async () => {
  const { id } = await diskRule()
  await open(`/rules/${id}/edit`)
  await page.getByLabel('Holds for').fill('7m')
  await page.reload()
  await page.getByText(/Your draft of .* is here again/).waitFor()
  expect(await page.getByLabel('Holds for').inputValue()).toBe('7m')
  await page.getByRole('button', { name: 'Discard' }).click()
  await until('the saved time', async () => (await page.getByLabel('Holds for').inputValue()) === '5m')
})

test('a rule that somebody else saves meanwhile is shown beside the draft, and only a decision overwrites it', async () => {
  const { id } = await diskRule()
  await open(`/rules/${id}/edit`)
  await page.getByLabel('Holds for').fill('8m')
  await tenant.call('PATCH', `/monitoring/rules/${id}`, { for_seconds: 120 })
  const alert = page.getByRole('alert').filter({ hasText: 'Somebody else has saved' })
  await alert.getByRole('row', { name: 'Holds for 8m 2m' }).waitFor()
  expect(await page.getByRole('button', { name: 'Save', exact: true }).isDisabled()).toBe(true)
  await alert.getByRole('button', { name: 'Keep mine and overwrite' }).click()
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByRole('heading', { name: 'Disk filling', exact: true }).waitFor()
  expect((await diskRule()).for_seconds).toBe(480)
})

test('a new rule: labels match as they are typed, the hub says what is wrong with a field, saved disabled it does not run', async () => {
  await open('/rules/new?metric=disk_used_percent')
  await page.getByLabel('Name').fill('Var is full')
  await page.getByLabel('How mount matches').selectOption({ label: 'matches (RE2)' })
  await page.getByLabel('Value of mount').fill('/v.*')
  await page.getByText('Meets 2 series of 2 servers looked at.').waitFor()
  await page.getByLabel('Value of mount').fill('(')
  await page.getByRole('button', { name: 'Save disabled' }).click()
  await page
    .getByText(/not valid RE2/)
    .first()
    .waitFor()
  await page.getByLabel('Value of mount').fill('/var')
  await page.getByLabel('Threshold', { exact: true }).fill('a lot')
  await page.getByText('Write a number.').waitFor()
  await page.getByLabel('Threshold', { exact: true }).fill('80')
  await page.getByRole('button', { name: 'Save disabled' }).click()
  await page.getByRole('heading', { name: 'Var is full', exact: true }).waitFor()
  const saved = await named('Var is full')
  expect([saved.enabled, saved.threshold, saved.matchers]).toEqual([false, 80, { mount: { regex: '/var' } }])
})

test('a rule from a chart has its metric, the labels of its series and the server, and a silence of a rule names it alone', async () => {
  const { body } = await tenant.call('GET', '/servers?search=web-1')
  const server = body.data[0]
  const labels = 'label=mount:/var&label=device:sda1&label=fstype:ext4&label=nonsense:x'
  await open(`/rules/new?metric=disk_used_percent&server=${server.id}&${labels}`)
  expect(await page.getByLabel('Value of mount').inputValue()).toBe('/var')
  await page.getByText('Meets 1 series of 1 server looked at.').waitFor()
  await page.getByLabel('Name').fill('Var of web-1')
  await page.reload()
  await until('the draft', async () => (await page.getByLabel('Name').inputValue()) === 'Var of web-1')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByRole('heading', { name: 'Var of web-1', exact: true }).waitFor()
  const made = await named('Var of web-1')
  expect([made.metric, made.matchers, made.scope.all, made.scope.server_ids]).toEqual([
    ...['disk_used_percent', { mount: '/var' }, false],
    [server.id],
  ])
  // What was typed for that chart is no draft of another new rule.
  await open('/rules/new')
  expect(await page.getByLabel('Name').inputValue()).toBe('')

  await open(`/rules/${made.id}`)
  await page.getByRole('button', { name: 'Silence…' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText(/^Silences 2 servers/).waitFor()
  await dialog.getByLabel('Reason').fill('Being moved')
  await dialog.getByRole('button', { name: 'Silence', exact: true }).click()
  const silences = page.getByRole('region', { name: 'Silences' })
  await silences.getByText('Being moved').waitFor()
  const [silence] = (await tenant.call('GET', '/monitoring/silences')).body.data
  expect([silence.scope.all, silence.rule_ids]).toEqual([true, [made.id]])
})

test('a scenario of the rule runs in the page, and differences name their line', async () => {
  const { id } = await diskRule()
  await open(`/rules/${id}/edit`)
  await page.getByRole('tab', { name: 'Scenario' }).click()
  await page.getByRole('button', { name: 'Run' }).click()
  const results = page.getByRole('status', { name: 'Results' })
  await results.getByText('passed').waitFor()
  const text = page.getByLabel('Scenarios')
  await text.fill((await text.inputValue()).replace(/expect (\d+)s alert.opened/, 'expect 1s alert.opened'))
  await page.getByRole('button', { name: 'Run' }).click()
  await results.getByText(/line \d+: missing/).waitFor()
})

test('a phone shows all of it without sideways scrolling, and nothing was refused', async () => {
  const { id } = await diskRule()
  await page.setViewportSize({ width: 360, height: 740 })
  for (const path of ['/rules', `/rules/${id}`, `/rules/${id}/edit`]) {
    await open(path)
    await page.getByRole('heading', { level: 1 }).waitFor()
    const [wide, seen] = await page.evaluate<[number, number]>('[document.documentElement.scrollWidth, innerWidth]')
    expect([path, wide <= seen]).toEqual([path, true])
  }
  await open('/rules')
  const cards = page.locator('tr[data-key]')
  await cards.first().waitFor()
  await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)')
  await until('the last card is in sight', async () => {
    const total = await page.getByRole('table').getAttribute('aria-rowcount')
    const box = await page
      .locator(`tr[aria-rowindex="${total}"]`)
      .boundingBox({ timeout: 1_000 })
      .catch(() => null)
    return box !== null && box.y >= 0 && box.y < 740
  })
  expect(faults).toEqual([])
})

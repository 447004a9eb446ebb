// Acting on alerts in a real browser, by role and accessible name: one is acknowledged, one is silenced, a session that
// ends costs nothing, and a lost stream is said and found again.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { sql } from 'drizzle-orm'
import type { Browser, Page } from 'playwright-core'
import { packValues } from '../../../core/admin-api/values.ts'
import { AdminListener } from '../../api/admin-listener.ts'
import { type Json, type Tenant, TestHub } from '../../api/hub-harness.ts'
import { until } from '../../support/until.ts'
import { closeContexts, sharedBrowser, violationsOf } from '../browser.ts'
import { logIn, newPerson, PASSWORD, slugOf } from '../visitor.ts'

let hub: TestHub
let browser: Browser
let tenant: Tenant
let collector: Awaited<ReturnType<TestHub['collector']>>
let way: Way
let admin: AdminListener

/** The way from the browser to the hub, which can be cut: what is open breaks, and nothing new comes through. */
class Way {
  private readonly sockets = new Set<Socket>()
  isCut = false

  private constructor(private readonly server: Server) {}

  static async to(hubUrl: string): Promise<Way> {
    const { hostname: host, port } = new URL(hubUrl)
    const server = createServer()
    const way = new Way(server)
    server.on('connection', near => {
      if (way.isCut) return near.destroy()
      const far = connect({ host, port: Number(port) })
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        way.sockets.add(from)
        from.on('error', () => {})
        from.on('close', () => {
          way.sockets.delete(from)
          to.destroy()
        })
        from.pipe(to)
      }
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    return way
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  cut(): void {
    this.isCut = true
    for (const socket of this.sockets) socket.destroy()
  }

  mend(): void {
    this.isCut = false
  }

  stop(): void {
    this.cut()
    this.server.close()
  }
}

beforeAll(async () => {
  hub = await TestHub.start({ 'rate.session_per_minute': 100_000, 'rate.web_per_minute': 100_000 })
  admin = new AdminListener()
  collector = await hub.collector(admin.url)
  tenant = await hub.tenant()
  way = await Way.to(hub.url)
  browser = await sharedBrowser()
}, 120_000)
afterAll(async () => {
  await closeContexts()
  way?.stop()
  await hub?.stop()
  await admin?.stop()
}, 120_000)

let seq = 0
/** A server of this name with an open alert of a rule of this name. */
async function newAlert(name: string, more: Json = {}): Promise<{ readonly alert: Json; readonly serverId: string }> {
  const serverId = (await tenant.call('POST', '/servers', { name, hostname: name })).body.data.id
  const rule = (
    await tenant.call('POST', '/monitoring/rules', {
      ...{ name: `CPU of ${name}`, kind: 'threshold', scope: { server_ids: [serverId] }, metric: 'cpu_usage_percent' },
      ...{ operator: '>', threshold: 90, severity: 'critical', ...more },
    })
  ).body.data
  const event = {
    ...{ event_id: crypto.randomUUID(), type: 'alert.opened', seq: ++seq, occurred_at: new Date().toISOString() },
    ...{ company_id: tenant.companyId, server_id: serverId, rule_id: rule.id, rule_version: rule.version },
    ...{ series_key: 'cpu_usage_percent', severity: 'critical', value: 97.25, threshold: 90, labels: {} },
    ...{ suppressed: false, suppress_reason: null, group_key: null },
  }
  expect((await collector.call('POST', '/events', { events: [event] })).body.data.accepted).toHaveLength(1)
  const { body } = await tenant.call('GET', `/monitoring/alerts?server_id=${serverId}`)
  expect(body.data).toHaveLength(1)
  return { alert: body.data[0], serverId }
}

type Visit = { readonly page: Page; readonly userId: string; readonly base: string }

async function visit(path: string, url = hub.url, rights: readonly string[] = ['*']): Promise<Visit> {
  const { userId, email } = await newPerson(hub, tenant.companyId, rights, 'Ada')
  const session = await logIn(hub.url, email)
  const [name = '', value = ''] = session.cookie.split('=')
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en-GB' })
  await context.addCookies([{ name, value, url }])
  const page = await context.newPage()
  const base = `${url}/c/${slugOf(session)}`
  await page.goto(base + path)
  return { page, userId, base }
}

test('an alert is acknowledged with a comment from the list of alerts, which then says by whom', async () => {
  const { alert } = await newAlert('taken')
  await newAlert('left')
  const { page } = await visit('/alerts')
  await page.getByRole('checkbox', { name: 'Select CPU of taken · taken' }).check()
  await page.getByRole('button', { name: 'Acknowledge', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'Acknowledge' })
  await dialog.getByText('CPU of taken · taken').waitFor()
  await dialog.getByLabel('Comment').fill('Looking at it')
  await dialog.getByRole('button', { name: 'Acknowledge' }).click()
  await dialog.waitFor({ state: 'detached' })
  const row = (name: string) => page.getByRole('row').filter({ has: page.getByRole('link', { name }) })
  await row('CPU of taken').getByText('Acknowledged by Ada').waitFor()
  await row('CPU of left').getByText('Acknowledged').waitFor({ state: 'detached' })
  const { data } = (await tenant.call('GET', `/monitoring/alerts/${alert.id}`)).body
  expect(data.state).toBe('acknowledged')
  expect(data.comments.map((each: Json) => each.comment)).toEqual(['Looking at it'])
  await page.context().close()
}, 120_000)

test('what is selected is acted on, as alerts or as groups of them, and what is taken out again is not', async () => {
  const ids = new Map<string, string>()
  for (const name of ['grp-1', 'grp-2', 'grp-3']) ids.set((await newAlert(name)).alert.id, name)
  const { page, base } = await visit('/alerts?q=grp-&group=severity,rule')
  const acknowledged = async (): Promise<(string | undefined)[]> =>
    (await tenant.call('GET', '/monitoring/alerts?state=acknowledged')).body.data
      .map((each: Json) => ids.get(each.id))
      .filter((name: string | undefined) => name !== undefined)
      .sort()
  const acknowledge = async (about: string): Promise<void> => {
    await page.getByRole('button', { name: 'Acknowledge', exact: true }).click()
    const dialog = page.getByRole('dialog', { name: 'Acknowledge' })
    await dialog.getByText(about).waitFor()
    await dialog.getByRole('button', { name: 'Acknowledge' }).click()
    await dialog.waitFor({ state: 'detached' })
  }
  await page.getByRole('checkbox', { name: 'Select CPU of grp-2' }).check()
  await page.getByText('1 group selected').waitFor()
  await acknowledge('CPU of grp-2 · grp-2')
  expect(await acknowledged()).toEqual(['grp-2'])
  // A group and one within it: each alert once.
  await page.getByRole('checkbox', { name: 'Select CPU of grp-1' }).check()
  await page.getByRole('checkbox', { name: 'Select Critical' }).check()
  await page.getByText('2 groups selected').waitFor()
  await page.getByRole('button', { name: 'Silence', exact: true }).click()
  const silence = page.getByRole('dialog', { name: 'New silence' })
  await silence.getByText('Silences 3 servers with 3 open alerts.').waitFor()
  await page.keyboard.press('Escape')
  // A silence is of servers: what says more than which is not silenced whole.
  const whole = page.getByRole('button', { name: 'Silence what matches…' })
  await page.goto(`${base}/alerts?q=server:grp-1`)
  await whole.click()
  await silence.getByText('Silences 1 server with 1 open alert.').waitFor()
  await page.keyboard.press('Escape')
  await page.goto(`${base}/alerts?q=grp-`)
  await page.getByRole('button', { name: 'Select all 3 that match' }).click()
  await page.getByText('3 selected').waitFor()
  expect(await whole.count()).toBe(0)
  await page.getByRole('checkbox', { name: 'Select CPU of grp-3 · grp-3' }).uncheck()
  await page.getByText('2 selected').waitFor()
  await acknowledge('CPU of grp-1')
  expect(await acknowledged()).toEqual(['grp-1', 'grp-2'])
  await page.context().close()
}, 120_000)

test('an alert is silenced from its page: what it covers is shown first, and then it is so', async () => {
  const { alert, serverId } = await newAlert('noisy')
  const { page } = await visit(`/alerts/${alert.id}`)
  await page.getByRole('button', { name: 'Silence', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'New silence' })
  await dialog.getByText('Silences 1 server with 1 open alert.').waitFor()
  await dialog.getByText('Servers: noisy').waitFor()
  const silences = async (): Promise<Json[]> => (await tenant.call('GET', '/monitoring/silences')).body.data
  expect(await silences()).toEqual([])
  await dialog.getByRole('checkbox', { name: 'Only alerts of the rule “CPU of noisy”' }).check()
  await dialog.getByLabel('Reason').fill('Known load')
  await dialog.getByRole('button', { name: 'Silence' }).click()
  await dialog.waitFor({ state: 'detached' })
  const [made, ...others] = await silences()
  expect(others).toEqual([])
  expect(made.reason).toBe('Known load')
  expect(made.scope.server_ids).toEqual([serverId])
  expect(made.rule_ids).toEqual([alert.rule.id])
  expect(Date.parse(made.ends_at) - Date.parse(made.starts_at)).toBeWithin(3.9 * 3_600_000, 4.1 * 3_600_000)
  await page.getByRole('button', { name: 'Take it back' }).click()
  await page.getByText('Taken back.').waitFor()
  expect((await silences()).map(({ status }) => status)).toEqual(['cancelled'])
  await page.context().close()
}, 120_000)

test('a silence is found by its server, is ended, and is made again as it was', async () => {
  const serverId = (await tenant.call('POST', '/servers', { name: 'swapped', hostname: 'swapped' })).body.data.id
  const ends_at = new Date(Date.now() + 3_600_000).toISOString()
  const rule_ids: string[] = []
  for (const name of ['Zone of load', 'Area of load', 'Load that was']) {
    const load = {
      ...{ kind: 'threshold', scope: { all: true }, metric: 'cpu_usage_percent' },
      ...{ operator: '>', severity: 'warning' },
    }
    rule_ids.push((await tenant.call('POST', '/monitoring/rules', { ...load, name, threshold: 90 })).body.data.id)
  }
  for (const [reason, scope, of] of [
    ['Change of a disk', { server_ids: [serverId] }, rule_ids],
    ['Patches of the month', { tags: ['patched'] }, []],
  ])
    expect((await tenant.call('POST', '/monitoring/silences', { scope, reason, ends_at, rule_ids: of })).status).toBe(
      201,
    )
  expect((await tenant.call('DELETE', `/monitoring/rules/${rule_ids[2]}`)).status).toBe(204)
  const { page } = await visit('/silences')
  const row = (reason: string) => page.getByRole('row').filter({ hasText: reason })
  await row('Patches of the month').waitFor()
  const filter = page.getByRole('combobox', { name: 'Filter' })
  await filter.fill('tag:patched ')
  await row('Change of a disk').waitFor({ state: 'detached' })
  expect(await row('Patches of the month').count()).toBe(1)
  await filter.fill('state:active server:Swapped ')
  await row('Patches of the month').waitFor({ state: 'detached' })
  await row('Change of a disk').getByRole('cell', { name: 'Zone of load, Area of load, a deleted rule' }).waitFor()
  await row('Change of a disk').getByRole('button', { name: 'End now' }).click()
  await page.getByText('Nothing matches this filter.').waitFor()
  await page.getByRole('button', { name: 'Clear filter' }).first().click()
  await row('Patches of the month').waitFor()
  const patches = async (): Promise<readonly Json[]> =>
    (await tenant.call('GET', '/monitoring/silences?status=active')).body.data.filter(
      (each: Json) => each.reason === 'Patches of the month',
    )
  const back = page.getByRole('button', { name: 'Take it back' })
  await row('Patches of the month').getByRole('button', { name: 'Extend by 1 h' }).click()
  await until('it ends later', async () => Date.parse((await patches())[0]?.ends_at) > Date.parse(ends_at))
  await back.click()
  await until('it ends when it did', async () => Date.parse((await patches())[0]?.ends_at) === Date.parse(ends_at))
  await row('Patches of the month').getByRole('button', { name: 'End now' }).click()
  await until('it is over', async () => (await patches()).length === 0)
  await back.click()
  await until('another is in its place', async () => Date.parse((await patches())[0]?.ends_at) === Date.parse(ends_at))
  // The first window of what recurs says when all the others are, also where it is long past.
  const hour = { starts_at: new Date(Date.now() - 50 * 3_600_000).toISOString(), reason: 'Copies of the night' }
  const first = { ...hour, ends_at: new Date(Date.parse(hour.starts_at) + 3 * 3_600_000).toISOString() }
  const daily = { ...first, scope: { tags: ['copied'] }, recurrence: { frequency: 'daily', time_zone: 'UTC' } }
  expect((await tenant.call('POST', '/monitoring/silences', daily)).status).toBe(201)
  await row(hour.reason).getByText('Active').waitFor()
  await row(hour.reason).getByRole('button', { name: 'End now' }).click()
  await row(hour.reason).waitFor({ state: 'detached' })
  await back.click()
  await row(hour.reason).getByText('Active').waitFor()
  const recurring = (await tenant.call('GET', '/monitoring/silences?status=active')).body.data
    .filter((each: Json) => each.reason === hour.reason)
    .map((each: Json) => [each.starts_at, each.ends_at].map(at => new Date(at).toISOString()))
  expect(recurring).toEqual([[first.starts_at, first.ends_at]])
  // One of a week: of named servers and a rule that is found by its name, on chosen days.
  await page.getByRole('button', { name: 'New silence' }).click()
  const weekly = page.getByRole('dialog', { name: 'New silence' })
  await weekly.getByLabel('Which servers').selectOption('by name')
  await weekly.getByRole('combobox', { name: 'Add a server' }).fill('swapp')
  await weekly.getByRole('option', { name: 'swapped' }).click()
  await weekly.getByRole('combobox', { name: 'Only of a rule' }).fill('zone of')
  await weekly.getByRole('option', { name: 'Zone of load' }).click()
  await weekly.getByText(/^Silences 1 server with/).waitFor()
  await weekly.getByLabel('Repeat', { exact: true }).selectOption('every week')
  await weekly.getByLabel('Fri').check()
  await weekly.getByLabel('Mon').check()
  await weekly.getByLabel('Reason').fill('Sweep of the week')
  await weekly.getByRole('button', { name: 'Silence' }).click()
  await row('Sweep of the week').getByText('every week, Mon, Fri').waitFor()
  const swept = (await tenant.call('GET', '/monitoring/silences')).body.data.find(
    (each: Json) => each.reason === 'Sweep of the week',
  )
  expect([swept.scope.server_ids, swept.rule_ids, swept.recurrence.weekdays]).toEqual([
    [serverId],
    rule_ids.slice(0, 1),
    [1, 5],
  ])
  await row(hour.reason).getByRole('button', { name: 'Extend by 1 h' }).click()
  await page.getByText('Each time it ends 1 h later.').waitFor()
  // What is refused is said with a way on, and what was shown before is not taken for the answer.
  const refusal = { status: 503, headers: { 'x-request-id': 'req-503' }, json: { message: 'Not at the moment.' } }
  await page.route(/silences\?.*past=1/, route => route.fulfill(refusal), { times: 1 })
  await page.getByRole('button', { name: 'Past' }).click()
  await page.getByText('Not at the moment.').waitFor()
  await page.getByText('req-503').waitFor()
  expect(await page.getByRole('row').count()).toBe(0)
  await page.getByRole('button', { name: 'Try again' }).click()
  await row('Change of a disk').getByText('Ended early').waitFor()
  await row('Change of a disk').getByRole('button', { name: 'Again' }).click()
  const dialog = page.getByRole('dialog', { name: 'New silence' })
  await dialog.getByText('Servers: swapped').waitFor()
  await dialog
    .getByRole('checkbox', { name: 'Only alerts of the rules “Zone of load, Area of load”', checked: true })
    .waitFor()
  expect(await dialog.getByLabel('Reason').inputValue()).toBe('Change of a disk')
  await dialog.getByRole('button', { name: 'Silence' }).click()
  await dialog.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Active and scheduled' }).click()
  await row('Change of a disk').getByText('Active').waitFor()
  const { data } = (await tenant.call('GET', '/monitoring/silences?status=active')).body
  const again = data.filter((each: Json) => each.reason === 'Change of a disk')
  expect(again.map((each: Json) => each.scope.server_ids)).toEqual([[serverId]])
  expect(again.map((each: Json) => each.rule_ids)).toEqual([rule_ids.slice(0, 2)])
  await page.context().close()
}, 120_000)

test('a session that has ended is signed in again within the page, and what was typed is still there and is sent', async () => {
  const { alert } = await newAlert('slow')
  const { page, userId } = await visit(`/alerts/${alert.id}`)
  await page.getByRole('button', { name: 'Comment', exact: true }).click()
  const comment = page.getByRole('dialog', { name: 'Comment' })
  await comment.getByLabel('Comment').fill('Written before the session ended')
  await hub.hub.database.db.execute(sql`delete from sessions where user_id = ${userId}`)
  // Told by the stream, without a click.
  const signIn = page.getByRole('dialog', { name: 'Your session is over' })
  await signIn.getByLabel('Password').fill('wrong')
  await signIn.getByRole('button', { name: 'Sign in' }).click()
  await signIn.getByText('E-mail or password is wrong.').waitFor()
  await signIn.getByLabel('Password').fill(PASSWORD)
  await signIn.getByRole('button', { name: 'Sign in' }).click()
  await signIn.waitFor({ state: 'detached' })
  expect(await comment.getByLabel('Comment').inputValue()).toBe('Written before the session ended')
  await comment.getByRole('button', { name: 'Comment' }).click()
  await comment.waitFor({ state: 'detached' })
  // The stream goes on for the new session: the comment appears by itself.
  await page.getByText('Written before the session ended').waitFor()
  const { data } = (await tenant.call('GET', `/monitoring/alerts/${alert.id}`)).body
  expect(data.comments.map((each: Json) => each.comment)).toEqual(['Written before the session ended'])
  await page.getByRole('button', { name: 'Live', exact: true }).waitFor()
  await page.context().close()
}, 120_000)

/** How many things of the page are seen in the colour of what is well, and not faded to grey. */
const greenCount = (page: Page): Promise<number> =>
  page.evaluate<number>(`(() => {
    const token = getComputedStyle(document.documentElement).getPropertyValue('--ok')
    const well = 'rgb(' + token.match(/[\\da-f]{2}/gi).map(pair => Number.parseInt(pair, 16)).join(', ') + ')'
    const isGrey = element =>
      element !== null && (getComputedStyle(element).filter.includes('grayscale') || isGrey(element.parentElement))
    return [...document.querySelectorAll('body *')].filter(element => {
      const { color, backgroundColor, fill, stroke } = getComputedStyle(element)
      return [color, backgroundColor, fill, stroke].includes(well) && !isGrey(element)
    }).length
  })()`)

test('a lost stream is said with the time of the data, nothing stays green, and it is live again by itself', async () => {
  const serverId = (await tenant.call('POST', '/servers', { name: 'far', hostname: 'far' })).body.data.id
  const { token } = (await tenant.call('POST', '/monitoring/licenses', { name: 'far', server_id: serverId })).body
  const { agent_id } = (await collector.call('POST', '/enroll', { license: token, hostname: 'far', machine_id: 'far' }))
    .body.data
  const seenNow = () =>
    collector.call('POST', '/agents/seen', { agents: [{ agent_id, last_seen_at: new Date().toISOString() }] })
  await seenNow()
  const { page } = await visit('/servers', way.url)
  await page.getByRole('button', { name: 'Live', exact: true }).waitFor()
  await until('what is live is green', async () => (await greenCount(page)) > 0)
  way.cut()
  await page
    .getByRole('alert')
    .getByText(/What you see is of .*\d\d:\d\d:\d\d.*; states are not known any more/)
    .waitFor()
  await page.getByRole('button', { name: 'No connection' }).waitFor()
  await until('nothing is green', async () => (await greenCount(page)) === 0)
  way.mend()
  await tenant.call('PATCH', `/servers/${serverId}`, { name: 'near' })
  await page.getByRole('button', { name: 'Live', exact: true }).waitFor()
  await page.getByRole('link', { name: 'near' }).waitFor()
  await page.getByRole('alert').waitFor({ state: 'detached' })
  await page.context().close()
}, 120_000)

test('a collector that has no answer is said at the foot of lists, which keep what the hub knows; values come with its next one', async () => {
  const serverId = (await tenant.call('POST', '/servers', { name: 'measured', hostname: 'measured' })).body.data.id
  const before = admin.answer
  admin.answer = () => ({ status: 404, body: {} })
  const { page } = await visit('/servers?q=measured')
  const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'measured' }) })
  await row.waitFor()
  const banner = page.getByRole('status').getByText('The collector does not answer: measured values are missing.')
  await banner.waitFor()
  expect(await row.locator('.meter').count()).toBe(0)
  const place = await row.boundingBox()
  admin.answer = ({ path, query }) => {
    const columns = { server_ids: [serverId], values: [64], ts_ms: [Date.now()], labels: [{}] }
    const data = { metric: query.get('metric'), ...packValues(columns), truncated: false }
    return { status: 200, body: { data: path.endsWith('/values') ? data : {} } }
  }
  await row.getByText('64 %').first().waitFor()
  await banner.waitFor({ state: 'detached' })
  expect((await row.boundingBox())?.y).toBe(place?.y)
  admin.answer = before
  await page.context().close()
}, 120_000)

test('an alert draws its series from an hour before it, says why it opened, and who was told and whether it arrived', async () => {
  const { alert, serverId } = await newAlert('drawn', { for_seconds: 300, recover_threshold: 80 })
  const openedMs = Date.parse(alert.opened_at)
  const asked: URLSearchParams[] = []
  const now = {
    ...{ rule_id: alert.rule.id, rule_name: alert.rule.name, series_key: 'cpu_usage_percent', state: 'firing' },
    ...{ since: alert.opened_at, last_value: 97.25, last_sample_at: alert.opened_at, flapping: false, no_data: false },
    ...{ suppressed_by: 'silence', decision: 'open: 97.25 > 90 holds; suppressed (silence)' },
  }
  admin.answer = ({ path, query }) => {
    if (path.endsWith('/alerting')) return { status: 200, body: { data: { series: [now], rules: [] } } }
    if (!path.endsWith('/series/by-metric')) return { status: 200, body: { data: {} } }
    asked.push(query)
    const points = Array.from({ length: 60 }, (_, at) => [openedMs - (59 - at) * 60_000, at < 50 ? 40 : 97.25])
    const range = { from: query.get('from'), to: query.get('to'), step_seconds: 60 }
    const metrics = [{ metric: 'cpu_usage_percent', series: [{ labels: {}, points }] }]
    return { status: 200, body: { data: { ...range, metrics, left_out: [] } } }
  }
  await hub.hub.database.db.execute(sql`
    insert into notification_deliveries (id, company_id, channel, target, type, payload, state, tries, last_error, alert_id)
    values (gen_random_uuid(), ${tenant.companyId}, 'email', 'ops@example.test', 'alert.opened', '{}', 'delivered', 1, null, ${alert.id}),
      (gen_random_uuid(), ${tenant.companyId}, 'webhook', 'https://hook.example.test/', 'alert.opened', '{}', 'failed', 5, 'it answered 500', ${alert.id})`)
  const { page, base } = await visit(`/alerts/${alert.id}`)
  await page.getByText('CPU usage of drawn is 97.3 %, threshold 90.0 %.').waitFor()
  const chart = page.getByRole('figure', { name: 'CPU usage' })
  await chart.getByRole('cell', { name: '97.3 %' }).first().waitFor()
  expect([asked[0]?.get('from'), asked[0]?.get('agg')]).toEqual([new Date(openedMs - 3_600_000).toISOString(), 'max'])
  await chart.getByText('Dashed strip: it held for 5m before the alert opened.').waitFor()
  await page.getByText('It opened because this held: CPU usage over 90.0 % for 5m. The value was 97.3 %.').waitFor()
  const told = page.getByRole('region', { name: 'Who was told' })
  await told.getByText(/1 of 2 messages arrived\. 1 failed\. In the inbox of \d/).waitFor()
  await told.getByText('it answered 500').waitFor()
  expect(await violationsOf(page)).toEqual([])
  // Its server opens at that time, and not now.
  const href = new URL(
    (await chart.getByRole('link', { name: 'Open drawn at that time' }).getAttribute('href')) ?? '',
    base,
  )
  expect([href.pathname.endsWith(`/servers/${serverId}`), href.searchParams.get('from')]).toEqual([
    true,
    new Date(openedMs - 3_600_000).toISOString(),
  ])
  // What people are sent leads here with its time, whatever company they are in.
  const { data } = (await tenant.call('GET', '/notifications')).body
  const link = data.find((each: Json) => each.link?.includes(alert.id))?.link
  expect(link).toBe(`/alerts/${alert.id}?at=${new Date(openedMs).toISOString()}`)
  await page.goto(hub.url + link)
  await page.getByRole('heading', { name: 'CPU of drawn' }).waitFor()
  expect(new URL(page.url()).searchParams.get('at')).toBe(new Date(openedMs).toISOString())
  const why = page.getByRole('region', { name: 'Why' })
  await why.getByText('Now it is still open: the newest value is 97.3 %. Nobody is told now: a silence').waitFor()
  await why.getByText('open: 97.25 > 90 holds; suppressed (silence)').waitFor()
  const other = await browser.newContext({ locale: 'vi-VN' })
  await other.addCookies(await page.context().cookies())
  const inVietnamese = await other.newPage()
  await inVietnamese.goto(page.url())
  await inVietnamese
    .getByText(/Hiện tại cảnh báo vẫn mở: giá trị mới nhất là 97[.,]3 %. Hiện không báo cho ai: đang tắt tiếng/)
    .waitFor()
  await other.close()
  await page.context().close()
}, 120_000)

/** The dialog in which a comment is written to the alert that is shown, or to those that are selected. */
async function commentDialog(page: Page, text: string) {
  await page.getByRole('button', { name: 'Comment', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'Comment' })
  await dialog.getByLabel('Comment').fill(text)
  const write = () => dialog.getByRole('button', { name: 'Comment', exact: true }).click()
  return { dialog, write, field: dialog.getByLabel('Comment') }
}

const commentsOf = async (alert: Json): Promise<string[]> =>
  (await tenant.call('GET', `/monitoring/alerts/${alert.id}`)).body.data.comments.map((each: Json) => each.comment)

/** What the hub answers to the next request of that kind; those after it go through. */
async function answerOnce(page: Page, path: RegExp, status: number, more: Record<string, string> = {}): Promise<void> {
  const json = { message: `It is ${status}.` }
  await page.route(path, route => route.fulfill({ status, headers: more, json }), { times: 1 })
}

test('a comment on several alerts: what fails of one is told, and a second press writes it to nobody twice', async () => {
  const alerts: Json[] = []
  for (const name of ['one-1', 'one-2', 'one-3']) alerts.push((await newAlert(name)).alert)
  const { page } = await visit('/alerts?q=one-')
  await page.getByRole('button', { name: 'Select all 3 that match' }).click()
  const { dialog, write, field } = await commentDialog(page, 'Seen by all')
  await answerOnce(page, new RegExp(`${alerts[1].id}/comments$`), 422)
  await write()
  await dialog.getByText('The comment was written to 2, not to 1. It is 422. Press again').waitFor()
  expect(await field.inputValue()).toBe('Seen by all')
  await write()
  await dialog.waitFor({ state: 'detached' })
  expect(await Promise.all(alerts.map(commentsOf))).toEqual([['Seen by all'], ['Seen by all'], ['Seen by all']])
  await page.context().close()
}, 120_000)

test('a server that is deleted while somebody looks at it stays with a banner, and so does what was typed', async () => {
  const serverId = (await tenant.call('POST', '/servers', { name: 'going', hostname: 'going' })).body.data.id
  const rights = ['monitoring.view', 'servers.view', 'monitoring.manage']
  const { page } = await visit(`/servers/${serverId}`, hub.url, rights)
  await page.getByRole('button', { name: 'Silence…' }).click()
  const reason = page.getByRole('dialog').getByLabel('Reason')
  await reason.fill('Being replaced')
  expect((await tenant.call('DELETE', `/servers/${serverId}`)).status).toBe(204)
  await page.getByText('This was deleted, or you may not see it any more').waitFor()
  expect(await reason.inputValue()).toBe('Being replaced')
  await page.reload()
  await page.getByText('There is nothing here').waitFor()
  await page.context().close()
}, 120_000)

test('a limit is waited out and said, a hub that refuses is said, and what was typed stays until it is done', async () => {
  const { alert } = await newAlert('busy')
  const { page, userId } = await visit(`/alerts/${alert.id}`)
  const { dialog, write, field } = await commentDialog(page, 'Typed once')
  const path = new RegExp(`${alert.id}/comments$`)
  await answerOnce(page, path, 503)
  await write()
  await dialog.getByText('Not done: It is 503.').waitFor()
  const { db } = hub.hub.database
  await db.execute(sql`update users set permissions = '{monitoring.view,servers.view}' where id = ${userId}`)
  await write()
  await dialog.getByText(/^Not done: .*monitoring\.manage/).waitFor()
  await db.execute(sql`update users set permissions = '{*}' where id = ${userId}`)
  expect(await field.inputValue()).toBe('Typed once')
  await field.fill('x'.repeat(10_000))
  // The field takes as much as the API does.
  expect((await field.inputValue()).length).toBe(1_000)
  await field.fill('Typed once')
  await answerOnce(page, path, 429, { 'Retry-After': '2' })
  await write()
  await dialog.getByText(/^Too many requests at once: waiting \d s\./).waitFor()
  await dialog.waitFor({ state: 'detached' })
  expect(await commentsOf(alert)).toEqual(['Typed once'])
  // A view waits for the limit as a change does.
  await answerOnce(page, /\/web\/view\/rules\?/, 429, { 'Retry-After': '1' })
  await page.keyboard.press('g')
  await page.keyboard.press('r')
  await page.getByText(/^Too many requests at once/).waitFor()
  await page.getByRole('link', { name: 'CPU of busy' }).waitFor()
  await page.context().close()
}, 120_000)

test('markup, marks that turn the direction, emoji and formulas in names are text on every page, in titles and in files', async () => {
  const name = '<img src=x onerror="document.title=1">\u202egnp.1-bd 🚀'
  const { alert, serverId } = await newAlert('hostile')
  const renamed = await tenant.call('PATCH', `/servers/${serverId}`, { name, tags: ['=HYPERLINK(1)', 'zz'] })
  const rule = await tenant.call('PATCH', `/monitoring/rules/${alert.rule.id}`, { name })
  expect([renamed.status, rule.status]).toEqual([200, 200])
  await tenant.call('POST', `/monitoring/alerts/${alert.id}/comments`, { comment: name.repeat(10) })
  const { page, base } = await visit('/')
  const faults: string[] = []
  page.on('pageerror', error => faults.push(error.message))
  page.on('console', message => message.type() === 'error' && faults.push(message.text()))
  for (const path of [
    ...['/servers?q=gnp', '/servers?q=gnp&view=cards', '/alerts?q=gnp', '/alerts?group=server', `/alerts/${alert.id}`],
    ...[`/servers/${serverId}`, '/rules?q=gnp', `/rules/${alert.rule.id}`, `/rules/${alert.rule.id}/edit`],
  ]) {
    await page.goto(base + path)
    await page.getByText(name, { exact: false }).first().waitFor()
    expect([path, await page.locator('main img').count()]).toEqual([path, 0])
    const over = await page.evaluate<number>(
      'document.documentElement.scrollWidth - document.documentElement.clientWidth',
    )
    expect([path, over <= 0]).toEqual([path, true])
  }
  // In the title of the tab the name turns nothing around it.
  await page.goto(`${base}/servers/${serverId}`)
  await until('the tab is called so', async () => (await page.title()).includes(`\u2068${name}\u2069 · `))
  const file = await page.request.get(`${hub.url}/web/servers.csv?company=${base.split('/').pop()}&q=gnp`)
  const [head, line, ...rest] = (await file.text()).trim().split('\r\n')
  expect([file.headers()['content-disposition'], rest]).toEqual(['attachment; filename="servers.csv"', []])
  expect(head).toStartWith('name,hostname,address,status')
  // The quotes of the name are doubled; tags that look like a formula are none in a table.
  expect(line).toStartWith(`"${name.replaceAll('"', '""')}",`)
  expect(line).toContain(",'=HYPERLINK(1);zz,")
  expect(faults).toEqual([])
  await page.context().close()
}, 120_000)

// The last one, since a hub that had no answer several times does not ask for half a minute.
test('the chart of an alert says that the collector does not answer, and not that there is nothing', async () => {
  admin.answer = () => ({ status: 503, body: {} })
  const { page } = await visit(`/alerts/${(await newAlert('unanswered')).alert.id}`)
  await page.getByText('The collector does not answer', { exact: true }).waitFor()
})

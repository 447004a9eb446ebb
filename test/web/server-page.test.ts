// The page of a server in a real browser, on a real site: what somebody looks for there, by role and name alone.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { metrics } from '../../core/series/catalogue.ts'
import { SimulatedAgent } from '../support/simulated-agent.ts'
import { type SiteProcess, startSiteProcess } from '../support/site.ts'
import { until } from '../support/until.ts'
import { closeContexts, sharedBrowser } from './browser.ts'

const HOUR_MS = 3_600_000
const HOSTILE = '<img src=x onerror=alert(1)>"&'
const none: Readonly<Record<string, string>> = {}

/** The series of a metric: two of everything that a server may have several of. */
function seriesOf(labels: readonly string[]): Record<string, string>[] {
  const [first] = labels
  if (first === undefined) return [none]
  if (first === 'mount')
    return ['/', '/var', HOSTILE].map(mount => ({ mount, device: `disk${mount.length}`, fstype: 'ext4' }))
  if (first === 'port') return [{ port: '443', proto: 'tcp' }]
  return [`${first}-a`, `${first}-b`].map(value => ({ [first]: value }))
}

describe('the page of a server', () => {
  let site: SiteProcess
  let browser: Browser
  let page: Page
  let base: string
  let serverId: string
  const refused: string[] = []

  beforeAll(async () => {
    site = await startSiteProcess({ args: ['--no-local-agent'], config: 'rate:\n  default_per_minute: 100000\n' })
    browser = await sharedBrowser()
    const tags = ['db', HOSTILE]
    const made = await site.api('POST', '/api/v1/servers', { name: 'db-primary', hostname: 'db-primary', tags })
    serverId = made.body.data.id
    const agent = await SimulatedAgent.enroll(site.facts.agent_url, site.facts.license, 'db-primary')
    const nowMs = Date.now()
    // Five hours of samples, a minute apart, with a gap of an hour, and CPU that jumps in the last half hour.
    const times = Array.from({ length: 300 }, (_, index) => nowMs - (300 - index) * 60_000)
    const sent = times.filter(tsMs => tsMs < nowMs - 3 * HOUR_MS || tsMs > nowMs - 2 * HOUR_MS)
    const sentValue = (name: string, labels: Record<string, string>, tsMs: number): number => {
      if (name === 'disk_used_percent') return labels.mount === '/var' ? 97 : 3
      if (name === 'cpu_usage_percent') return tsMs > nowMs - HOUR_MS / 2 ? 70 : 10 + (tsMs % 7)
      return 1 + (tsMs % 5) / 10
    }
    const series = metrics.flatMap(({ name, labels }) =>
      seriesOf(labels).map(own => ({
        name,
        labels: own,
        points: sent.map(tsMs => [tsMs, sentValue(name, own, tsMs)] as const),
      })),
    )
    // A request has at most 20,000 points.
    for (let at = 0; at < series.length; at += 70) await agent.send(series.slice(at, at + 70))
    await until('the full disk has its alerts', async () => {
      const { body } = await site.api('GET', '/api/v1/monitoring/alerts?state=open')
      return body.meta.total >= 2 ? true : null
    })
    page = await browser.newPage({
      viewport: { width: 1280, height: 1000 },
      locale: 'en-GB',
      timezoneId: 'Europe/Berlin',
    })
    page.on('console', message => {
      if (message.type() === 'error') refused.push(message.text())
    })
    page.on('pageerror', error => refused.push(error.message))
    page.on('dialog', dialog => {
      refused.push(`a dialog of the browser: ${dialog.message()}`)
      void dialog.dismiss()
    })
    await page.goto(site.facts.hub_url)
    await page.getByLabel('E-mail').fill(site.facts.user_email)
    await page.getByLabel('Password').fill(site.facts.user_password ?? '')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.waitForURL('**/c/**')
    base = /.*\/c\/[^/]+/.exec(page.url())?.[0] ?? ''
  }, 120_000)
  afterAll(async () => {
    await closeContexts()
    await site?.stop()
  })

  const open = async (search = ''): Promise<void> => {
    await page.goto(`${base}/servers/${serverId}${search}`)
    await page.getByRole('heading', { level: 1, name: 'db-primary' }).waitFor()
  }
  const chart = (title: string) => page.getByRole('figure', { name: title, exact: true })
  const rowOf = (title: string, series: string) => chart(title).getByRole('row', { name: series })

  test('a full /var beside an empty / is seen without a click: each mount a line of its own, the fullest first', async () => {
    await open()
    await rowOf('Disk usage', '/var').waitFor()
    const rows = await chart('Disk usage').getByRole('rowheader').allTextContents()
    expect(rows.map(text => text.trim().split(' ')[0])).toEqual(['/var', '/', '<img'])
    expect(await rowOf('Disk usage', '/var').getByRole('cell').allTextContents()).toEqual(Array(4).fill('97.0 %'))
    expect(await chart('Disk usage').getByRole('img').getAttribute('aria-label')).toContain('/var last 97.0 %')
    // Rules that cover it, and the alerts of the range, in words; the lines and bands say the same.
    expect(await chart('Disk usage').getByRole('list').textContent()).toContain('> 95')
    await chart('Disk usage').getByText('2 alerts in this range').waitFor()
    expect(await page.getByRole('tabpanel').locator('img').count()).toBe(0)
  }, 120_000)

  test('every metric that the agent sends has a chart, and hostile labels and tags stand as text', async () => {
    await open()
    await chart('CPU usage').waitFor()
    expect(await page.getByRole('figure').count()).toBe(metrics.length)
    await page.getByText(HOSTILE).first().waitFor()
    const checks = page.getByRole('figure', { name: 'Certificate, days left' })
    await checks.scrollIntoViewIfNeeded()
    await checks.getByRole('row', { name: 'target-a' }).waitFor()
    expect(refused).toEqual([])
  }, 120_000)

  test('a range drawn in one chart is that of all, stands in the address, and Back undoes it', async () => {
    await open('?from=now-6h')
    await rowOf('CPU usage', 'CPU usage').waitFor()
    const plot = (await chart('CPU usage').getByRole('img').boundingBox())!
    const before = await chart('Memory usage').getByRole('img').getAttribute('aria-label')
    await page.mouse.move(plot.x + plot.width * 0.5, plot.y + 60)
    await page.mouse.down()
    await page.mouse.move(plot.x + plot.width * 0.8, plot.y + 60, { steps: 4 })
    await page.mouse.up()
    await page.waitForURL(/from=2/)
    const search = new URL(page.url()).searchParams
    const hours = (Date.parse(search.get('to') ?? '') - Date.parse(search.get('from') ?? '')) / HOUR_MS
    expect(hours).toBeGreaterThan(1.5)
    expect(hours).toBeLessThan(2.6)
    await until('the other chart follows', async () => {
      const label = await chart('Memory usage').getByRole('img').getAttribute('aria-label')
      return label !== before ? true : null
    })
    await page.goBack()
    expect(new URL(page.url()).searchParams.get('from')).toBe('now-6h')
  }, 120_000)

  test('keys shift and zoom the range, and a range without data says so in each chart', async () => {
    await open('?from=2026-01-05T00:00:00Z&to=2026-01-05T06:00:00Z')
    await chart('CPU usage').getByText('No data in this range').waitFor()
    await page.keyboard.press('[')
    await page.waitForURL(/from=2026-01-04T21:00:00Z&to=2026-01-05T03:00:00Z/)
    await page.keyboard.press('=')
    await page.waitForURL(/from=2026-01-04T22:30:00Z&to=2026-01-05T01:30:00Z/)
    await page.keyboard.press('0')
    await rowOf('CPU usage', 'CPU usage').waitFor()
    expect(new URL(page.url()).search).toBe('')
  }, 120_000)

  test('a chart has a table that says the same; the day before stands beside now', async () => {
    // The day before this range has samples, since the range reaches into tomorrow.
    const at = (hours: number) => new Date(Date.now() + hours * HOUR_MS).toISOString()
    await open(`?compare=1d&from=${at(-2)}&to=${at(22)}`)
    await chart('CPU usage').getByText('1 day before').waitFor()
    await page.getByRole('button', { name: 'Show as table CPU usage' }).click()
    const table = page.getByRole('region', { name: 'CPU usage' }).getByRole('table')
    expect(await table.getByRole('row').count()).toBeGreaterThan(30)
    await page.getByRole('button', { name: 'Show as chart CPU usage' }).click()
    await chart('CPU usage').getByRole('img').waitFor()
  }, 120_000)

  test('"What changed here?" puts the metric that jumped first', async () => {
    await open('?from=now-30m')
    await page.getByRole('button', { name: 'What changed here?' }).click()
    await page.getByRole('heading', { name: 'What changed here?' }).waitFor()
    expect(await page.getByRole('figure').first().getByRole('heading').textContent()).toBe('CPU usage')
    await page
      .getByRole('figure')
      .first()
      .getByText(/Changed by \d+ %/)
      .waitFor()
  }, 120_000)

  test('alerts, decisions, agents, inventory, security, packages and history stand in their tabs, reached by keys', async () => {
    await open()
    await page.getByRole('tab', { name: 'Metrics' }).focus()
    await page.keyboard.press('ArrowRight')
    await page
      .getByRole('table')
      .first()
      .getByRole('row', { name: /Critical.*\/var/ })
      .waitFor()
    await page.getByRole('row', { name: /Now it is still open: the newest value is 97.*97 > 95 holds/ }).waitFor()
    await page.keyboard.press('ArrowRight')
    await page.getByText('No check applies to this server.').waitFor()
    await page.keyboard.press('ArrowRight')
    await page.getByText('No agent has reported what this server is made of.').waitFor()
    await page.keyboard.press('ArrowRight')
    await page.getByRole('row', { name: /db-primary.*Online/ }).waitFor()
    await page.keyboard.press('ArrowRight')
    await page.getByText('This server has never been scanned').waitFor()
    await page.keyboard.press('ArrowRight')
    await page.getByRole('searchbox', { name: 'Find a package' }).waitFor()
    await page.keyboard.press('ArrowRight')
    // An act, and what it changed, in words.
    await page.getByRole('listitem').filter({ hasText: 'added it' }).waitFor()
    expect(await page.getByRole('tabpanel').textContent()).not.toContain('server.')
  }, 120_000)

  const silences = async () => (await site.api('GET', '/api/v1/monitoring/silences?status=active')).body
  const silenceBySite = async (more: object): Promise<void> => {
    const { status } = await site.api('POST', '/api/v1/monitoring/silences', {
      ...{ ends_at: new Date(Date.now() + HOUR_MS).toISOString(), reason: 'works in the hall', ...more },
    })
    expect(status).toBe(201)
  }

  test('a silence of four hours that says first what it covers, and its end; maintenance until it is ended', async () => {
    await open()
    await page.getByRole('button', { name: 'Silence…' }).click()
    const dialog = page.getByRole('dialog', { name: 'New silence' })
    await dialog.getByText(/^Silences 1 server with \d+ open alerts?\.$/).waitFor()
    await dialog.getByText('Servers: db-primary').waitFor()
    await dialog.getByLabel('Reason').fill('disk is being moved')
    await dialog.getByRole('button', { name: 'Silence' }).click()
    await page.getByText(/^Silenced until/).waitFor()
    await page.getByRole('button', { name: 'Take it back' }).waitFor()
    const body = await silences()
    expect(body.data).toMatchObject([{ scope: { server_ids: [serverId] }, reason: 'disk is being moved' }])
    expect(Date.parse(body.data[0].ends_at) - Date.parse(body.data[0].starts_at)).toBeGreaterThan(3.9 * HOUR_MS)
    await page.getByRole('button', { name: 'End the silence' }).click()
    await page.getByText(/^Silenced until/).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Maintenance…' }).click()
    await page.getByRole('combobox', { name: 'For' }).selectOption('until I end it')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('button', { name: 'End maintenance' }).click()
    await page.getByRole('button', { name: 'End maintenance' }).waitFor({ state: 'detached' })
    expect((await site.api('GET', `/api/v1/servers/${serverId}`)).body.data.status).toBe('active')
  }, 120_000)

  test('an own end is of the zone that times are shown in; a silence of one rule does not silence the server', async () => {
    const { body: rules } = await site.api('GET', '/api/v1/monitoring/rules')
    await silenceBySite({ scope: { server_ids: [serverId] }, rule_ids: [rules.data[0].id] })
    await open()
    await page.evaluate("localStorage.setItem('times', 'utc')")
    await open()
    await page.getByRole('button', { name: 'Maintenance…' }).click()
    await page.getByRole('combobox', { name: 'For' }).selectOption('until…')
    const ends = new Date(Date.now() + 30 * HOUR_MS).toISOString().slice(0, 16)
    const dialog = page.getByRole('dialog')
    await dialog.getByText('UTC', { exact: true }).waitFor()
    await dialog.getByLabel('Until').fill(ends)
    await dialog.getByLabel('Reason').fill('New disks')
    expect(await page.getByText(/^Silenced until/).count()).toBe(0)
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText(/^Silenced until/).waitFor()
    const made = (await silences()).data.find((each: { reason: string }) => each.reason === 'New disks')
    expect(Date.parse(made.ends_at)).toBe(Date.parse(`${ends}Z`))
    await page.getByRole('button', { name: 'End the silence' }).click()
    await page.getByText(/^Silenced until/).waitFor({ state: 'detached' })
    await page.evaluate("localStorage.removeItem('times')")
  }, 120_000)

  test('a silence of more servers than this one is not ended without a word about them, one that comes again neither', async () => {
    const again = { frequency: 'daily', until: null, time_zone: 'UTC' }
    await silenceBySite({
      scope: { all: true },
      recurrence: again,
      starts_at: new Date(Date.now() - 60_000).toISOString(),
    })
    await open()
    await page.getByText(/^Silenced until/).waitFor()
    await page.getByRole('button', { name: 'End the silence' }).click()
    const dialog = page.getByRole('dialog', { name: 'End the silence' })
    await dialog
      .getByText('It covers all servers of the company: it ends for all of them. It does not come again')
      .waitFor()
    expect((await silences()).meta.total).toBe(2)
    await dialog.getByRole('button', { name: 'End the silence' }).click()
    await page.getByText(/^Silenced until/).waitFor({ state: 'detached' })
  }, 120_000)

  test('its record is edited, what the API refuses stands at its field; deleting asks for the name, and is undone', async () => {
    await open()
    await page.getByRole('button', { name: 'Edit…' }).click()
    await page.getByLabel('Address').fill('nonsense')
    await page.getByRole('button', { name: 'Save' }).click()
    await until('the field is marked', async () =>
      (await page.getByLabel('Address').getAttribute('aria-invalid')) === 'true' ? true : null,
    )
    await page.getByLabel('Address').fill('192.0.2.7')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('192.0.2.7').waitFor()
    await page.getByRole('button', { name: 'Delete…' }).click()
    const dialog = page.getByRole('dialog')
    expect(await dialog.getByRole('button', { name: 'Delete' }).isDisabled()).toBe(true)
    await dialog.getByLabel('Name').fill('db-primary')
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Restore' }).click()
    await page.getByRole('button', { name: 'Edit…' }).waitFor()
  }, 120_000)

  test('a form that is open stays when its server is deleted meanwhile', async () => {
    await open()
    await page.getByRole('button', { name: 'Edit…' }).click()
    const notes = page.getByRole('dialog').getByLabel('Notes')
    await notes.fill('Half written')
    expect((await site.api('DELETE', `/api/v1/servers/${serverId}`)).status).toBe(204)
    await page.getByText('This server was deleted.').waitFor()
    expect(await notes.inputValue()).toBe('Half written')
    expect((await site.api('POST', `/api/v1/servers/${serverId}/restore`)).status).toBe(200)
  }, 120_000)

  test('an id of nobody is a page that says so', async () => {
    await page.goto(`${base}/servers/00000000-0000-4000-8000-000000000000`)
    await page.getByRole('heading', { name: 'There is nothing here' }).waitFor()
  }, 120_000)
})

// Every page in a real browser, by address: nothing that axe-core knows to be wrong, in light and dark, wide and
// narrow; no refusal of the policy, no other host, no layout shift, nothing over the edge.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { type PageName, pageNames, pathOf, sitePages } from '../../apps/hub/web/address/site-map.ts'
import { SimulatedAgent } from '../support/simulated-agent.ts'
import { type Json, type SiteProcess, startSiteProcess } from '../support/site.ts'
import { until } from '../support/until.ts'
import { closeContexts, sharedBrowser, signIn, violationsOf } from './browser.ts'
import { treeFault } from './page-trees.ts'

/**
 * A page is loaded once a width, since it is laid out and moves by its width as it loads, and is judged whole; then its
 * colours are turned, on which nothing but colours depends. Either scheme is once the one that pages are loaded in.
 */
const looks = [
  { width: 1280, colorScheme: 'light', turned: 'dark' },
  { width: 360, colorScheme: 'dark', turned: 'light' },
] as const

/** Agents that report so seldom count as lost after a quarter of an hour. */
const SILENT_INTERVAL_S = 300

let site: SiteProcess
let browser: Browser
let base = ''
/** Parameters of paths that have some, by their name. */
const ids: Record<string, string> = {}

beforeAll(async () => {
  browser = await sharedBrowser()
  site = await startSiteProcess({ args: ['--no-local-agent'], config: 'rate:\n  default_per_minute: 100000\n' })
  await fillSite()
}, 120_000)
afterAll(async () => {
  await closeContexts()
  await site?.stop()
}, 120_000)

const api = async (method: string, path: string, body?: unknown): Promise<Json> => {
  const answer = await site.api(method, `/api/v1${path}`, body)
  expect([path, answer.status < 300]).toEqual([path, true])
  return answer.body
}

/** A buffer over half full, and a long warning. */
const SAYS = {
  ...{ bufferBytes: 40n * 1024n * 1024n, bufferBatches: 160 },
  warnings: [`remote config: interval_seconds 5 is not 10 to 300 <b>${'w'.repeat(60)}`],
}

/** Servers of every kind of name, an alert, a silence. */
async function fillSite(): Promise<void> {
  const names = [
    'db-01',
    `web-01 <img src="x"> & 'co'`,
    'a-name-as-long-as-nobody-should-give-one-and-somebody-does.example.internal',
  ]
  for (const [index, name] of names.entries()) {
    const hostname = `h${index}.example.test`
    const { data } = await api('POST', '/servers', {
      name,
      hostname,
      environment: 'prod',
      tags: ['web', 'eu', 'a-tag-as-long-as-tags-may-be'.padEnd(64, '-')],
    })
    ids.server ??= data.id
    const agent = await SimulatedAgent.enroll(site.facts.agent_url, site.facts.license, hostname)
    const nowMs = Date.now()
    const series = (metric: string, value: number, labels: Record<string, string> = {}) => ({
      name: metric,
      labels,
      points: Array.from({ length: 20 }, (_, step) => [nowMs - (19 - step) * 30_000, value] as const),
    })
    // Of an interval so long that nobody falls silent, and moves a page, while pages are looked at.
    await agent.send(
      [
        series('cpu_usage_percent', 10 + index * 40),
        series('mem_used_percent', 50),
        series('disk_used_percent', index === 0 ? 97 : 40, { mount: '/', device: 'sda1', fstype: 'ext4' }),
        series('cpu_load1', 1),
      ],
      SILENT_INTERVAL_S,
      index === 0 ? SAYS : {},
    )
  }
  await until('what an agent says of itself is known', async () => {
    const { data } = await api('GET', '/monitoring/agents')
    return data.some((agent: Json) => agent.last_warning !== null)
  })
  ids.alert = await until('both alerts of the full disk are open', async () => {
    const { data } = await api('GET', '/monitoring/alerts?state=open')
    return data.length < 2 ? null : data.find((alert: Json) => alert.severity === 'critical')?.id
  })
  const ends_at = new Date(Date.now() + 3_600_000).toISOString()
  await api('POST', '/monitoring/silences', { scope: { tags: ['web'] }, ends_at, reason: 'Window of the night' })
  const target = { url: 'https://www.example.net/' }
  ids.check = (
    await api('POST', '/monitoring/checks', { name: 'Front page', type: 'http', target, scope: { all: true } })
  ).data.id
  const { data: rules } = await api('GET', '/monitoring/rules')
  ids.rule = rules[0]?.id
  await fillInfrastructure()
  await fillAdministration()
}

/** A resource of long values, a run that waits for approval, one with faults. */
async function fillInfrastructure(): Promise<void> {
  const { data: subnet } = await api('POST', '/subnets', {
    ...{ name: 'office', cidr: '10.4.0.0/24', description: 'd'.repeat(300), tags: ['lan', 'a'.repeat(64)] },
    reserved: [{ from: '10.4.0.2', to: '10.4.0.9' }],
  })
  await api('POST', '/ips', { address: '10.4.0.10', server_id: ids.server })
  ids.kind = 'subnet'
  ids.resource = subnet.id
  const { data: me } = await api('GET', '/me')
  const { data: person } = await api('POST', '/users', {
    ...{ name: 'Approver', email: 'approver@example.test', password: 'a password of the test' },
  })
  await api('POST', '/approvals/workflows', {
    ...{ name: 'Networks', kinds: ['subnet'] },
    steps: [{ name: 'Network team', required: 1, sla_hours: 24, user_ids: [person.id] }],
  })
  const contents = (cidr: string): string =>
    `apiVersion: hub/v1\nkind: subnet\nmetadata:\n  company: ${me.company.slug}\n  name: lab\nspec:\n  cidr: ${cidr}\n`
  const submit = (title: string, cidr: string) =>
    api('POST', '/iac/runs', { title, manifests: [{ path: 'subnet/lab.yml', contents: contents(cidr) }] })
  await submit('A network that is none', '10.4.0.300/24')
  ids.run = (await submit('A network for the lab', '10.5.0.0/24')).data.id
}

/** A role, a team, an invitation, a webhook and a group address that are told nothing. */
async function fillAdministration(): Promise<void> {
  const { data: role } = await api('POST', '/roles', { name: 'Night shift', permissions: ['monitoring.view'] })
  await api('POST', '/invitations', { email: 'new@example.test', role_ids: [role.id] })
  await api('POST', '/teams', { name: 'Database team' })
  await api('POST', '/notifications/channels', {
    ...{ name: 'Night shift', address: `${'night-shift-'.repeat(4)}@example.test`, enabled: false },
    scope: { environments: ['prod'] },
  })
  ids.webhook = (
    await api('POST', '/webhooks', {
      ...{ name: 'Chat room', url: `https://9.9.9.9/${'a-path-'.repeat(20)}`, enabled: false },
      events: ['alert.opened'],
    })
  ).data.id
}

/** What must not happen on any page. */
function watch(page: Page, faults: string[]): void {
  page.on('pageerror', error => faults.push(`script: ${error.message}`))
  page.on('console', message => {
    if (message.type() === 'error') faults.push(`console: ${message.text()}`)
  })
  page.on('request', request => {
    if (new URL(request.url()).origin !== site.facts.hub_url) faults.push(`another host: ${request.url()}`)
  })
}

/** The address of a page; null where the site has nothing to show on it. */
function addressOf(name: PageName): string | null {
  const asked = [...sitePages[name].path.matchAll(/:(\w+)/g)].map(([, param]) => param ?? '')
  // Of a log that grows with every login, what does not.
  const search = name === 'audit' ? '?q=subject:webhook' : ''
  return asked.every(param => ids[param] !== undefined) ? base + pathOf(name, ids) + search : null
}

/** Pages by address, and the other ways in which some are shown. */
const addresses = (): readonly (readonly [name: string, address: string | null])[] => [
  ...pageNames.map(name => [name, addressOf(name)] as const),
  ['servers as cards', `${base}/servers?view=cards`],
  ['servers as a map', `${base}/servers?view=map&group=env`],
  ...['security', 'packages', 'checks', 'agents'].map(
    tab => [`server ${tab}`, `${base}/servers/${ids.server}?tab=${tab}`] as const,
  ),
]

/** What is left out on a phone is in the tree of a screen. */
const TREES_WIDTH = 1280

/** What Chromium makes of rounding to whole pixels; nobody sees it. */
const SHIFT_MAX = 0.001

/** Measured two frames on: charts follow a width in the frame after it. */
const overEdge = (page: Page): Promise<number> =>
  page.evaluate<number>(`new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(() =>
    resolve(document.documentElement.scrollWidth - document.documentElement.clientWidth))))`)

/** Cells of tables that do not stand below the head of their column. Rows have columns of their own, as wide as its. */
const ASIDE = `[...document.querySelectorAll('main table.table')].flatMap(table => {
  if (matchMedia('(max-width: 760px)').matches) return []
  const placesOf = row => [...row.cells].map(cell => cell.getBoundingClientRect()).filter(({ width }) => width > 0)
  const heads = placesOf(table.tHead.rows[0])
  return [...table.tBodies[0].rows].filter(row => row.dataset.key !== undefined).flatMap(row =>
    placesOf(row).flatMap(({ left, width }, at) =>
      Math.abs(left - heads[at].left) < 1 && Math.abs(width - heads[at].width) < 1 ? [] : [table.tHead.rows[0].cells[at].textContent]))
})`

/** Buttons of rows that stand over the end of their table, where they are cut off. */
const PAST_TABLE = `[...document.querySelectorAll('main table.table')].flatMap(table => {
  // Of chosen columns, which is scrolled.
  if (table.closest('.wide-table') !== null) return []
  const { right } = table.getBoundingClientRect()
  return [...table.querySelectorAll('tbody tr[data-key] button')].filter(button =>
    button.getBoundingClientRect().right > right + 1).map(button => button.textContent)
})`

/** What is wrong with the page as it is; `rules`: those of axe-core that are asked. */
async function faultsOf(page: Page, rules: 'all' | 'colour'): Promise<string[]> {
  const shifts = (await page.evaluate(`new Promise(resolve => {
    new PerformanceObserver((list, observer) => {
      observer.disconnect()
      resolve(list.getEntries().filter(entry => !entry.hadRecentInput && entry.value > ${SHIFT_MAX}).map(entry =>
        entry.value + ' ' + entry.sources.map(source => source.node?.outerHTML?.slice(0, 90)).join(' | ')))
    }).observe({ type: 'layout-shift', buffered: true })
    setTimeout(() => resolve([]), 200)
  })`)) as string[]
  const over = await overEdge(page)
  const aside = await page.evaluate<string[]>(ASIDE)
  const past = await page.evaluate<string[]>(PAST_TABLE)
  return [
    ...(past.length > 0 ? [`buttons past their table: ${[...new Set(past)].join(', ')}`] : []),
    ...(aside.length > 0 ? [`cells beside their column: ${[...new Set(aside)].join(', ')}`] : []),
    ...shifts.map(shift => `layout shift ${shift}`),
    ...(over > 0 ? [`${over} px over the edge`] : []),
    ...(await violationsOf(page, rules)),
  ]
}

async function openSite(context: BrowserContext): Promise<Page> {
  const page = await context.newPage()
  await page.goto(site.facts.hub_url)
  await signIn(page, site)
  await page.waitForURL(/\/c\//)
  base = /^.*\/c\/[^/]+/.exec(page.url())?.[0] ?? ''
  return page
}

for (const { width, colorScheme, turned } of looks)
  test(`every page at ${width} px, ${colorScheme} and ${turned}: read out as before, no violation, no refusal, no other host, no shift, nothing over the edge`, async () => {
    const faults: string[] = []
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, locale: 'en-GB' })
    const page = await openSite(context)
    watch(page, faults)
    for (const [name, address] of addresses()) {
      if (address === null) continue
      await page.goto(address)
      await page.locator('main h1').first().waitFor()
      // The stream has said that what is shown is of now: the page is what a person sees.
      await page.locator('.connection[data-state="live"]').waitFor()
      if (width === TREES_WIDTH) faults.push(...(await treeFault(name, page)))
      for (const [scheme, rules] of [[colorScheme, 'all'] as const, [turned, 'colour'] as const]) {
        await page.emulateMedia({ colorScheme: scheme })
        for (const fault of await faultsOf(page, rules)) faults.push(`${name} at ${width}, ${scheme}: ${fault}`)
      }
      await page.emulateMedia({ colorScheme })
    }
    await context.close()
    expect(faults).toEqual([])
  }, 240_000)

/**
 * Texts 40 % longer, as other languages are: what stands in braces is filled in and stays. A script has the texts of
 * an area side by side, and puts the language to each (bundle-texts.ts).
 */
const withLongerWords = (script: string): string =>
  script.replace(
    /\{en:(\w+)\}/g,
    (_, text: string) => `{en:${text}+" ẋẋẋẋẋẋẋ".repeat(12).slice(0,Math.ceil(${text}.length*.4)+1)}`,
  )

test('a language whose words are 40 % longer puts nothing over the edge, on a screen and on a phone', async () => {
  const faults: string[] = []
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en-GB' })
  /** By address: every page loads most of them again. */
  const scripts = new Map<string, string>()
  await context.route(/\/web\/[0-9a-f]{16}\/.*\.js$/, async route => {
    const url = route.request().url()
    const script = scripts.get(url) ?? withLongerWords(await (await route.fetch()).text())
    scripts.set(url, script)
    await route.fulfill({ status: 200, contentType: 'text/javascript; charset=utf-8', body: script })
  })
  const page = await openSite(context)
  await page.getByText('ẋ').first().waitFor()
  for (const name of pageNames) {
    const address = addressOf(name)
    if (address === null) continue
    await page.setViewportSize({ width: 1280, height: 900 })
    await page.goto(address)
    await page.locator('main h1').first().waitFor()
    if (!((await page.locator('body').textContent()) ?? '').includes('ẋẋ')) faults.push(`${name}: not longer`)
    for (const width of [1280, 360]) {
      await page.setViewportSize({ width, height: 900 })
      const over = await overEdge(page)
      if (over > 0) faults.push(`${name} at ${width}: ${over} px over the edge`)
    }
  }
  await context.close()
  expect(faults).toEqual([])
}, 120_000)

test('a server and an alert are printed on A4 with their charts, values and the time with its zone', async () => {
  // The width of A4 without its margins, at 96 pixels an inch.
  const context = await browser.newContext({
    viewport: { width: 688, height: 1000 },
    ...{ colorScheme: 'dark', locale: 'en-GB', timezoneId: 'Europe/Berlin' },
  })
  const page = await openSite(context)
  for (const name of ['server', 'alert'] as const) {
    await page.setViewportSize({ width: 1280, height: 1000 })
    await page.goto(addressOf(name) ?? '')
    await page.locator('.chart canvas').first().waitFor()
    await page.emulateMedia({ media: 'print' })
    await page.setViewportSize({ width: 688, height: 1000 })
    await page.getByText(/^First company · .*\d{2}:\d{2}:\d{2} CET/).waitFor()
    const seen = async (role: 'navigation' | 'button' | 'img') =>
      (await Promise.all((await page.getByRole(role).all()).map(each => each.isVisible()))).filter(Boolean).length
    expect([name, await seen('navigation'), await seen('button')]).toEqual([name, 0, 0])
    expect(await seen('img')).toBeGreaterThan(0)
    expect(await overEdge(page)).toBeLessThanOrEqual(0)
    await page.getByText('97.0 %').first().waitFor()
    // Ink on paper, whatever the screen is like.
    expect(await page.evaluate('getComputedStyle(document.body).color')).toBe('rgb(25, 33, 45)')
    expect((await page.pdf({ format: 'A4' })).byteLength).toBeGreaterThan(5_000)
    await page.emulateMedia({ media: 'screen' })
  }
  await context.close()
}, 120_000)

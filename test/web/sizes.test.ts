// What the first load of a page costs, on the wire and compressed: the bars of the design.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser, Cookie } from 'playwright-core'
import { SimulatedAgent } from '../support/simulated-agent.ts'
import { type SiteProcess, startSiteProcess } from '../support/site.ts'
import { until } from '../support/until.ts'
import { closeContexts, sharedBrowser, signIn } from './browser.ts'
import { bytesOf, countedLoads, type Load } from './first-load.ts'

let site: SiteProcess
let browser: Browser
let base: string
/** Of one login: they take long, and each page is loaded by a browser that has nothing else. */
let cookies: Cookie[]

beforeAll(async () => {
  browser = await sharedBrowser()
  site = await startSiteProcess({ args: ['--no-local-agent'], config: 'rate:\n  default_per_minute: 100000\n' })
  for (let number = 0; number < 60; number++)
    await site.api('POST', '/api/v1/servers', {
      name: `server-${number}`,
      hostname: `server-${number}.example.test`,
      ip_address: `192.0.2.${number + 1}`,
      environment: 'production',
      tags: ['web', `rack-${number % 9}`],
    })
  const context = await browser.newContext({ locale: 'en-GB' })
  const page = await context.newPage()
  await page.goto(site.facts.hub_url)
  await signIn(page, site)
  await page.waitForURL(/\/c\//)
  base = /^.*\/c\/[^/]+/.exec(page.url())?.[0] ?? ''
  cookies = await context.cookies()
  await context.close()
}, 120_000)
afterAll(async () => {
  await closeContexts()
  await site?.stop()
}, 120_000)

const DATA = 'application/json'

/** What the browser loads for a page that it has never seen, until what `isDrawn` names is there. */
async function loadedBy(path: string, isDrawn: string, locale = 'en-GB'): Promise<readonly Load[]> {
  const fresh = await browser.newContext({ locale })
  await fresh.addCookies(cookies)
  const first = await fresh.newPage()
  const loads = await countedLoads(await fresh.newCDPSession(first))
  await first.goto(base + path)
  await first.locator(isDrawn).first().waitFor()
  await first.locator('.connection[data-state="live"]').waitFor()
  await fresh.close()
  const files = loads.filter(({ type }) => type !== DATA)
  expect(new Set(files.map(({ encoding }) => encoding))).toEqual(new Set(['br']))
  expect(bytesOf(loads, 'text/html')).toBeLessThanOrEqual(30_000)
  expect(bytesOf(loads, 'text/css')).toBeLessThanOrEqual(12_000)
  return loads
}

/** What a page of charts asks the hub for when it is there, as their series, is no part of its first load. */
const filesOf = (loads: readonly Load[]): readonly string[] =>
  loads.filter(({ type }) => type !== DATA).map(({ path }) => path)

test.each([
  ...['/', '/servers', '/alerts', '/silences', '/rules', '/checks', '/licenses', '/agents', '/servers/add'],
  ...['/findings', '/findings?group=package', '/exceptions'],
  ...['/infrastructure', '/infrastructure/subnet', '/iac', '/approvals'],
  ...['/people', '/roles', '/webhooks', '/audit', '/settings'],
])(
  'the first load of %s: document, script and style are small, few and compressed',
  async path => {
    const loads = await loadedBy(path, 'main h1')
    expect(loads.length, loads.map(({ path }) => path).join(' ')).toBeLessThanOrEqual(6)
    expect(bytesOf(loads, 'text/javascript')).toBeLessThanOrEqual(45_000)
  },
  120_000,
)

test('the first load of a page that then asks about its viewer: script and files are few and small', async () => {
  for (const path of ['/notifications', '/system', '/account']) {
    const loads = await loadedBy(path, 'main h1')
    expect(filesOf(loads).length, filesOf(loads).join(' ')).toBeLessThanOrEqual(6)
    expect(bytesOf(loads, 'text/javascript')).toBeLessThanOrEqual(45_000)
  }
}, 120_000)

test('the first load of a page with charts: its script is small, in the language of the longer words too', async () => {
  const agent = await SimulatedAgent.enroll(site.facts.agent_url, site.facts.license, 'server-0.example.test')
  const nowMs = Date.now()
  // A quarter of an hour, so that a default rule has an alert of it.
  const points = Array.from({ length: 32 }, (_, at) => [nowMs - (31 - at) * 30_000, 97] as const)
  await agent.send([{ name: 'cpu_usage_percent', labels: {}, points }])
  const { body } = await site.api('GET', '/api/v1/servers?search=server-0')
  const { id } = body.data.find((server: { name: string }) => server.name === 'server-0')
  let alert = { id: '', rule_id: '' }
  await until('the alert is open', async () => {
    const { body } = await site.api('GET', `/api/v1/monitoring/alerts?server_id=${id}`)
    alert = body.data[0] ?? alert
    return body.data.length > 0
  })
  for (const path of [
    `/servers/${id}`,
    `/servers/compare?metric=cpu_usage_percent&servers=${id}`,
    `/alerts/${alert.id}`,
  ]) {
    const loads = await loadedBy(path, '.chart canvas', 'vi-VN')
    expect(filesOf(loads).length, filesOf(loads).join(' ')).toBeLessThanOrEqual(6)
    expect(bytesOf(loads, 'text/javascript')).toBeLessThanOrEqual(80_000)
  }
  for (const path of [`/rules/${alert.rule_id}`, `/rules/${alert.rule_id}/edit`]) {
    const loads = await loadedBy(path, 'main h1', 'vi-VN')
    expect(filesOf(loads).length, filesOf(loads).join(' ')).toBeLessThanOrEqual(6)
    expect(bytesOf(loads, 'text/javascript')).toBeLessThanOrEqual(path.endsWith('/edit') ? 80_000 : 45_000)
  }
}, 120_000)

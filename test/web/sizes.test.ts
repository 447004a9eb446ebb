// What the first load of a page costs, on the wire and compressed: the bars of the design.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser, Cookie } from 'playwright-core'
import { type SiteProcess, startSiteProcess } from '../support/site.ts'
import { closeContexts, sharedBrowser, signIn } from './browser.ts'

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

type Loaded = { readonly type: string; readonly encoding: string | undefined; readonly bytes: number }

/** What the browser loads for a page that it has never seen, workers and streams aside. */
async function loadedBy(path: string): Promise<Loaded[]> {
  const fresh = await browser.newContext({ locale: 'en-GB' })
  await fresh.addCookies(cookies)
  const first = await fresh.newPage()
  const loaded: Promise<Loaded>[] = []
  first.on('requestfinished', request => {
    const url = new URL(request.url())
    if (/shared-worker|\/web\/live|icon\.svg/.test(url.pathname)) return
    loaded.push(
      (async () => {
        const [response, sizes] = await Promise.all([request.response(), request.sizes()])
        const type = response?.headers()['content-type'] ?? ''
        return { type, encoding: response?.headers()['content-encoding'], bytes: sizes.responseBodySize }
      })(),
    )
  })
  await first.goto(base + path)
  await first.locator('main h1').first().waitFor()
  await first.locator('.connection[data-state="live"]').waitFor()
  const all = await Promise.all(loaded)
  await fresh.close()
  return all
}

const sizeOf = (loaded: readonly Loaded[], type: string): number =>
  loaded.filter(each => each.type.includes(type)).reduce((sum, { bytes }) => sum + bytes, 0)

for (const path of ['/', '/servers', '/alerts', '/silences'])
  test(`the first load of ${path}: document, script and style are small, few and compressed`, async () => {
    const loaded = await loadedBy(path)
    expect(new Set(loaded.map(({ encoding }) => encoding))).toEqual(new Set(['br']))
    expect(loaded.length).toBeLessThanOrEqual(6)
    expect(sizeOf(loaded, 'text/html')).toBeLessThanOrEqual(30_000)
    expect(sizeOf(loaded, 'javascript')).toBeLessThanOrEqual(45_000)
    expect(sizeOf(loaded, 'text/css')).toBeLessThanOrEqual(12_000)
  }, 120_000)

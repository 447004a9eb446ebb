// Twelve tabs of one browser over plain HTTP/1.1, each live: how many streams the hub holds for them. A forwarder
// between browser and hub counts the streams that are open.
import type { Browser, Page } from 'playwright-core'
import { until } from '../../test/support/until.ts'
import { openContext, untilLive } from './browsing.ts'
import type { SeededHub } from './seeded-hub.ts'

const TABS = 12
const LIVE_MS = 15_000

type Streams = { open: number; most: number }

/** Counts requests for the stream, by lines of the connections that pass through. */
function countingForwarder(hubUrl: string, streams: Streams) {
  return Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    fetch: async request => {
      const { pathname, search } = new URL(request.url)
      const headers = new Headers(request.headers)
      // Answers pass through as they are.
      const answer = await fetch(hubUrl + pathname + search, {
        ...{ method: request.method, headers, redirect: 'manual', decompress: false, signal: request.signal },
        ...(request.body === null ? {} : { body: await request.arrayBuffer() }),
      })
      if (pathname !== '/web/live') return new Response(answer.body, answer)
      streams.open++
      streams.most = Math.max(streams.most, streams.open)
      request.signal.addEventListener('abort', () => {
        streams.open--
      })
      return new Response(answer.body, answer)
    },
  })
}

const criticalIn = async (page: Page): Promise<number> =>
  Number(/^[\d,]+/.exec(await page.title())?.[0].replace(',', ''))

export async function benchTabs(browser: Browser, hub: SeededHub) {
  const streams: Streams = { open: 0, most: 0 }
  const forwarder = countingForwarder(hub.url, streams)
  const through: SeededHub = { ...hub, url: forwarder.url.origin, base: `${forwarder.url.origin}/c/bench` }
  const context = await openContext(browser, through)
  try {
    const paths = ['/', '/servers', '/alerts', `/servers/${hub.ids.server}`, '/rules', '/servers?view=map']
    const tabs: Page[] = []
    for (let tab = 0; tab < TABS; tab++) {
      const page = await context.newPage()
      tabs.push(page)
      await page.goto(through.base + (paths[tab % paths.length] ?? '/'))
      await page.locator('main h1').first().waitFor()
      await untilLive(page)
    }
    await Bun.sleep(LIVE_MS)
    const live = await Promise.all(tabs.map(page => page.locator('.connection[data-state="live"]').count()))
    const before = await Promise.all(tabs.map(criticalIn))
    const startedMs = performance.now()
    await hub.openAlert()
    const told = tabs.map(async (page, at) => {
      await until('the tab says it', async () => (await criticalIn(page)) > (before[at] ?? 0))
      return performance.now() - startedMs
    })
    const toldMs = Math.round(Math.max(...(await Promise.all(told))))
    const live_tabs = live.reduce((sum, count) => sum + count, 0)
    return { tabs: TABS, live_tabs, streams_open: streams.open, streams_most: streams.most, all_told_ms: toldMs }
  } finally {
    await context.close()
    await forwarder.stop(true)
  }
}

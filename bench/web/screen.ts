// How long until data is on the screen: from the start of a navigation to the paint, in a browser that has seen the
// pages before. Each load comes after the hub's own copy of the answer is too old, so that the hub makes it anew.
import type { Browser } from 'playwright-core'
import { devtoolsOf, medianOf, openContext, openPage, quantileOf, spent, untilLive } from './browsing.ts'
import type { SeededHub } from './seeded-hub.ts'

const LOADS = 6
const ANSWER_AGE_MS = 2_100
const ROW = 'main tbody tr[data-key]'

/** Paths of pages, and what of them is their data. */
const pagesOf = ({ ids }: SeededHub): Readonly<Record<string, readonly [path: string, selector: string]>> => ({
  overview: ['/', '.tile-number'],
  servers: ['/servers', ROW],
  map: ['/servers?view=map&group=dc,role', '.host-map canvas'],
  alerts: ['/alerts', ROW],
  alert: [`/alerts/${ids.alert}`, '#why'],
  alert_chart: [`/alerts/${ids.alert}`, '.chart canvas'],
  server: [`/servers/${ids.server}`, '.chart canvas'],
  rules: ['/rules', ROW],
  rule_editor: [`/rules/${ids.rule}/edit`, '.threshold-slider input'],
})

export async function benchScreen(browser: Browser, hub: SeededHub) {
  const context = await openContext(browser, hub)
  const page = await context.newPage()
  const devtools = await devtoolsOf(page)
  const figures: Record<string, number> = {}
  const all: number[] = []
  for (const [name, [path, selector]] of Object.entries(pagesOf(hub))) {
    await openPage(page, hub.base + path, selector)
    await untilLive(page)
    const loads: number[] = []
    const tasks: number[] = []
    for (let load = 0; load < LOADS; load++) {
      await Bun.sleep(ANSWER_AGE_MS)
      loads.push(await openPage(page, hub.base + path, selector))
      // The browser counts anew for every document.
      tasks.push(Math.round((await spent(devtools)).task))
    }
    all.push(...loads)
    figures[`${name}_ms`] = medianOf(loads)
    figures[`${name}_cpu_ms`] = medianOf(tasks)
    const [median, worst] = [medianOf(loads), quantileOf(loads, 1)]
    console.error(`${name.padEnd(12)} median ${median} worst ${worst} ms, ${medianOf(tasks)} ms CPU of the page`)
  }
  await context.close()
  return { ...figures, p95_ms: quantileOf(all, 0.95) }
}

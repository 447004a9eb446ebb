// Layout shift on every page, wide and narrow, while it loads and while live data arrive: values change, alerts open.
// Rows that make place for a new one, where no pointer, finger or focus is at their list, are counted apart as well.
import type { Browser, BrowserContext } from 'playwright-core'
import { pageNames, pathOf, sitePages } from '../../apps/hub/web/address/site-map.ts'
import { openContext, untilLive } from './browsing.ts'
import type { SeededHub } from './seeded-hub.ts'

/** Two answers of the stream and a reading of the collector's values. */
const LIVE_MS = 7_000
const ALERT_EVERY_MS = 1_500
const WIDTHS = [1280, 360]
/** Pages that are watched at once: most of the time is waiting for what is live. */
const AT_ONCE = 5
/** What Chromium makes of rounding to whole pixels; nobody sees it. */
const SHIFT_MIN = 0.001

type Shift = { readonly value: number; readonly isOfRows: boolean; readonly of: readonly string[] }

const sumOf = (shifts: readonly Shift[]): number => shifts.reduce((all, { value }) => all + value, 0)

/** What moves on a page from its beginning until live data has come for a while. */
async function shiftsOf(context: BrowserContext, address: string): Promise<Shift[]> {
  const page = await context.newPage()
  await page.goto(address)
  await page.locator('main h1').first().waitFor()
  await untilLive(page)
  await Bun.sleep(LIVE_MS)
  const shifts = await page.evaluate<Shift[]>('bench.shifts')
  await page.close()
  return shifts.filter(({ value }) => value > SHIFT_MIN)
}

export async function benchShift(browser: Browser, hub: SeededHub) {
  const more = ['/servers?view=cards', '/servers?view=map&group=dc,role', '/alerts?group=rule']
  // Without those of one thing of which the seeded hub has none.
  const shown = pageNames.filter(name => {
    const needed = [...sitePages[name].path.matchAll(/:(\w+)(\??)/g)].filter(([, , optional]) => optional === '')
    return needed.every(([, key = '']) => key in hub.ids)
  })
  const paths = [...shown.map(name => pathOf(name, hub.ids)), ...more]
  const opening = setInterval(() => void hub.openAlert(), ALERT_EVERY_MS)
  const contexts = await Promise.all(
    WIDTHS.map(async width => ({ width, context: await openContext(browser, hub, width) })),
  )
  const waiting = contexts.flatMap(({ width, context }) => paths.map(path => ({ width, context, path })))
  const found: Shift[][] = []
  const watch = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const { width, context, path } = next
      const shifts = await shiftsOf(context, hub.base + path)
      for (const { value, of } of shifts.slice(0, 3))
        console.error(`${path} at ${width}: ${value.toFixed(4)} of ${of.slice(0, 3).join(' | ')}`)
      found.push(shifts)
    }
  }
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, watch))
  } finally {
    clearInterval(opening)
    for (const { context } of contexts) await context.close()
  }
  const worstOf = (sums: readonly number[]): number => Math.round(Math.max(...sums) * 1e4) / 1e4
  return {
    ...{ pages: found.length, pages_shifted: found.filter(shifts => sumOf(shifts) > 0).length },
    shift_worst: worstOf(found.map(sumOf)),
    shift_worst_without_new_rows: worstOf(found.map(shifts => sumOf(shifts.filter(({ isOfRows }) => !isOfRows)))),
  }
}

// Layout shift on every page, wide and narrow, while it loads and while live data arrive: values change, alerts open.
// Rows that make place for a new one, where no pointer, finger or focus is at their list, are counted apart as well.
import type { Browser } from 'playwright-core'
import { pageNames, pathOf } from '../../apps/hub/web/address/site-map.ts'
import { openContext, untilLive } from './browsing.ts'
import type { SeededHub } from './seeded-hub.ts'

/** Two answers of the stream and a reading of the collector's values. */
const LIVE_MS = 7_000
const ALERT_EVERY_MS = 1_500
/** What Chromium makes of rounding to whole pixels; nobody sees it. */
const SHIFT_MIN = 0.001

type Shift = { readonly value: number; readonly isOfRows: boolean; readonly of: readonly string[] }

export async function benchShift(browser: Browser, hub: SeededHub) {
  const more = ['/servers?view=cards', '/servers?view=map&group=dc,role', '/alerts?group=rule']
  const paths = [...pageNames.map(name => pathOf(name, hub.ids)), ...more].filter(path => !path.includes(':'))
  const opening = setInterval(() => void hub.openAlert(), ALERT_EVERY_MS)
  let [worst, worstBesides, shifted, total] = [0, 0, 0, 0]
  try {
    for (const width of [1280, 360]) {
      const context = await openContext(browser, hub, width)
      const page = await context.newPage()
      for (const path of paths) {
        await page.goto(hub.base + path)
        await page.locator('main h1').first().waitFor()
        await untilLive(page)
        await Bun.sleep(LIVE_MS)
        const shifts = (await page.evaluate<Shift[]>('bench.shifts')).filter(({ value }) => value > SHIFT_MIN)
        const sumOf = (some: readonly Shift[]) => some.reduce((all, { value }) => all + value, 0)
        const sum = sumOf(shifts)
        worstBesides = Math.max(worstBesides, sumOf(shifts.filter(({ isOfRows }) => !isOfRows)))
        for (const { value, of } of shifts.slice(0, 3))
          console.error(`${path} at ${width}: ${value.toFixed(4)} of ${of.slice(0, 3).join(' | ')}`)
        worst = Math.max(worst, sum)
        if (sum > 0) shifted++
        total++
      }
      await context.close()
    }
  } finally {
    clearInterval(opening)
  }
  const rounded = (value: number): number => Math.round(value * 1e4) / 1e4
  const figures = { shift_worst: rounded(worst), shift_worst_without_new_rows: rounded(worstBesides) }
  return { pages: total, pages_shifted: shifted, ...figures }
}

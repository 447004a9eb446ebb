// A list of as many rows as the hub has servers: how even it scrolls, how many rows are in the document meanwhile, and
// how long a jump to its end takes.
import type { Browser } from 'playwright-core'
import { openContext, openPage, quantileOf, untilLive } from './browsing.ts'
import type { SeededHub } from './seeded-hub.ts'

const FRAMES = 600
/** Pixels a frame: some ninety rows a second, as with a wheel that is turned fast. */
const STEP = 60
const ROW = 'main tbody tr[data-key]'

type Scrolled = { readonly frames: number[]; readonly rowsMax: number; readonly emptyFrames: number }

/** Scrolls step by step. A frame without a row in the middle of the screen is counted: it shows nothing. */
const SCROLL = `new Promise(resolve => {
  const frames = []
  let [rowsMax, emptyFrames, before] = [0, 0, performance.now()]
  const step = now => {
    frames.push(now - before)
    before = now
    rowsMax = Math.max(rowsMax, document.querySelectorAll('main tbody tr').length)
    if (document.elementFromPoint(640, 600)?.closest('tr[data-key]') == null) emptyFrames++
    scrollBy(0, ${STEP})
    if (frames.length < ${FRAMES}) requestAnimationFrame(step)
    else resolve({ frames: frames.slice(1), rowsMax, emptyFrames })
  }
  requestAnimationFrame(step)
})`

/** Milliseconds until the last row is drawn. */
const TO_THE_END = `new Promise(resolve => {
  const startedMs = performance.now()
  scrollTo(0, document.documentElement.scrollHeight)
  const last = document.querySelector('main table').getAttribute('aria-rowcount')
  const look = () => document.querySelector('main tbody tr[aria-rowindex="' + last + '"]') === null
    ? requestAnimationFrame(look)
    : setTimeout(() => resolve(performance.now() - startedMs))
  look()
})`

export async function benchRows(browser: Browser, hub: SeededHub) {
  const context = await openContext(browser, hub)
  const page = await context.newPage()
  await openPage(page, `${hub.base}/servers`, ROW)
  await untilLive(page)
  const first = await openPage(page, `${hub.base}/servers`, ROW)
  await untilLive(page)
  const { frames, rowsMax, emptyFrames } = await page.evaluate<Scrolled>(SCROLL)
  const jumps: number[] = []
  for (let jump = 0; jump < 5; jump++) {
    jumps.push(await page.evaluate<number>(TO_THE_END))
    await page.evaluate('scrollTo(0, 0)')
    await page.locator(ROW).first().waitFor()
    await Bun.sleep(500)
  }
  await context.close()
  return {
    ...{
      first_rows_ms: Math.round(first),
      frame_p50_ms: quantileOf(frames, 0.5),
      frame_p95_ms: quantileOf(frames, 0.95),
    },
    ...{ frame_worst_ms: quantileOf(frames, 1), rows_max: rowsMax, empty_frames: emptyFrames, frames: frames.length },
    ...{ end_ms: quantileOf(jumps, 0.5), end_worst_ms: quantileOf(jumps, 1) },
  }
}

// Pages in a browser, signed in, and what is measured in them: when data is on the screen, how long an interaction
// takes to its paint, frames, layout shifts, and time of script.
import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core'
import { sessionCookie } from '../../apps/hub/platform/http/caller.ts'
import type { SeededHub } from './seeded-hub.ts'

/** Resolves once the next frame is drawn. */
export const FRAME = 'new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)))'

/** Kept by every page from its beginning: its interactions by the longest of their events, and its layout shifts. */
const RECORDER = `
window.bench = { interactions: new Map(), shifts: [] }
new PerformanceObserver(list => {
  for (const { interactionId, duration, startTime, name } of list.getEntries())
    if (interactionId > 0 && duration > (bench.interactions.get(interactionId)?.duration ?? 0))
      bench.interactions.set(interactionId, { duration, startTime, name })
}).observe({ type: 'event', durationThreshold: 16, buffered: true })
new PerformanceObserver(list => {
  for (const entry of list.getEntries())
    if (!entry.hadRecentInput)
      bench.shifts.push({
        value: entry.value,
        isOfRows: entry.sources.every(({ node, previousRect, currentRect }) =>
          (node?.nodeType === 1 ? node : node?.parentElement)?.closest('tr[data-key]') != null &&
          previousRect.x === currentRect.x),
        of: entry.sources.map(({ node }) =>
          (node?.nodeType === 1 ? node : node?.parentElement)?.outerHTML.slice(0, 120)),
      })
}).observe({ type: 'layout-shift', buffered: true })
`

/** Narrower screens are touched, and nothing hovers there. */
const PHONE_BELOW = 500

export async function openContext(browser: Browser, hub: SeededHub, width = 1280): Promise<BrowserContext> {
  const isPhone = width < PHONE_BELOW
  const context = await browser.newContext({
    ...{ viewport: { width, height: 900 }, locale: 'en-GB' },
    ...{ isMobile: isPhone, hasTouch: isPhone },
  })
  await context.addCookies([{ name: sessionCookie, value: await hub.newSession(), url: hub.url }])
  await context.addInitScript({ content: RECORDER })
  return context
}

/** What is not there by then never comes: its name has changed. */
const SHOWN_WITHIN_MS = 30_000

/** Milliseconds from the start of the navigation until what `selector` names is painted; throws when it never is. */
export async function openPage(page: Page, address: string, selector: string): Promise<number> {
  await page.goto(address, { waitUntil: 'commit' })
  const shownAtMs = await page.evaluate<number | null>(`new Promise(resolve => {
    const look = () => document.querySelector(${JSON.stringify(selector)}) !== null
      ? setTimeout(() => resolve(performance.now()))
      : performance.now() > ${SHOWN_WITHIN_MS} ? resolve(null) : requestAnimationFrame(look)
    requestAnimationFrame(look)
  })`)
  if (shownAtMs === null) throw new Error(`${address} does not show ${selector}`)
  return shownAtMs
}

export const untilLive = (page: Page): Promise<void> => page.locator('.connection[data-state="live"]').waitFor()

/** Milliseconds of CPU time, of script and of the whole main thread, so far. */
export async function spent(devtools: CDPSession): Promise<{ script: number; task: number }> {
  const { metrics } = await devtools.send('Performance.getMetrics')
  const of = (name: string) => 1000 * (metrics.find(each => each.name === name)?.value ?? 0)
  return { script: of('ScriptDuration'), task: of('TaskDuration') }
}

/** What the main thread does while `act` runs, in milliseconds of CPU time. */
export async function measured(
  devtools: CDPSession,
  act: () => Promise<unknown>,
): Promise<{ script: number; task: number }> {
  const before = await spent(devtools)
  await act()
  const after = await spent(devtools)
  return { script: Math.round(after.script - before.script), task: Math.round(after.task - before.task) }
}

export async function devtoolsOf(page: Page): Promise<CDPSession> {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('Performance.enable', { timeDomain: 'threadTicks' })
  return devtools
}

const sorted = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b)
export const quantileOf = (values: readonly number[], q: number): number =>
  Math.round((sorted(values)[Math.min(values.length - 1, Math.floor(values.length * q))] ?? 0) * 10) / 10
export const medianOf = (values: readonly number[]): number => quantileOf(values, 0.5)

// From a key or a click to the next paint, as the browser's Event Timing has it (the longest event of an interaction,
// in steps of 8 ms; what is shorter than 16 ms is counted as 16), on live pages; CPU time of the page for each, with
// what comes meanwhile; and how long a filter takes to answer.
import type { Browser, Page } from 'playwright-core'
import { devtoolsOf, measured, openContext, openPage, quantileOf, untilLive } from './browsing.ts'
import type { SeededHub } from './seeded-hub.ts'

const SHORTEST_MS = 16
const ROW = 'main tbody tr[data-key]'
/** People pause between clicks; the stream's answers come meanwhile. */
const PAUSE_MS = 400

/** Each does something several times and says how often; on the page of servers where it begins. */
type Act = (page: Page, hub: SeededHub) => Promise<number>

async function press(page: Page, key: string, times: number, pauseMs: number): Promise<number> {
  for (let time = 0; time < times; time++) {
    await page.keyboard.press(key)
    await Bun.sleep(pauseMs)
  }
  return times
}

const typing: Act = async page => {
  const texts = ['role:web dc:dc-1', 'server 0012', 'cpu:>80 -tag:team-7']
  for (const text of texts) {
    await page.locator('#filter').focus()
    await page.keyboard.type(text, { delay: 90 })
    await Bun.sleep(PAUSE_MS)
    await page.keyboard.press('Control+a')
    await page.keyboard.press('Backspace')
    await Bun.sleep(PAUSE_MS)
  }
  return texts.join('').length + 2 * texts.length
}

const sorting: Act = async page => {
  const heads = page.locator('main thead button.sort:visible')
  const count = await heads.count()
  for (let at = 0; at < count; at++) {
    await heads.nth(at).click()
    await Bun.sleep(PAUSE_MS)
    await heads.nth(at).click()
    await Bun.sleep(PAUSE_MS)
  }
  return 2 * count
}

const selecting: Act = async page => {
  const boxes = page.locator(`${ROW} input[type=checkbox]`)
  for (let at = 0; at < 10; at++) {
    await boxes.nth(at).click()
    await Bun.sleep(PAUSE_MS / 2)
  }
  await page.locator('main thead input[type=checkbox]').click()
  await Bun.sleep(PAUSE_MS)
  await page.locator('main thead input[type=checkbox]').click()
  return 12
}

const moving: Act = async page => (await press(page, 'j', 30, 60)) + (await press(page, 'k', 10, 60))

const opening: Act = async page => {
  for (let time = 0; time < 6; time++) {
    await page.locator(`${ROW} th a`).nth(time).click()
    await page.locator('[role=tablist]').waitFor()
    await Bun.sleep(PAUSE_MS)
    await page.goBack()
    await page.locator(ROW).first().waitFor()
    await Bun.sleep(PAUSE_MS)
  }
  return 6
}

const palette: Act = async page => {
  for (const text of ['server 0012', 'rules', 'host-77']) {
    await page.keyboard.press('Control+k')
    await page.locator('.palette').waitFor()
    await page.keyboard.type(text, { delay: 90 })
    await Bun.sleep(PAUSE_MS)
    await page.keyboard.press('Escape')
    await Bun.sleep(PAUSE_MS)
  }
  return 31
}

const tabs: Act = async (page, hub) => {
  await openPage(page, `${hub.base}/servers/${hub.ids.server}`, '.chart canvas')
  await untilLive(page)
  const all = page.locator('[role=tab]')
  const count = await all.count()
  for (let round = 0; round < 2; round++)
    for (let at = 0; at < count; at++) {
      await all.nth(at).click()
      await Bun.sleep(PAUSE_MS)
    }
  return 2 * count
}

const acts: Readonly<Record<string, Act>> = { typing, sorting, selecting, moving, opening, palette, tabs }

/** Milliseconds from the last key of a filter to the rows that it leaves. */
async function filterDelays(page: Page): Promise<number[]> {
  const delays: number[] = []
  for (const text of ['db', 'host-77', 'role:cache']) {
    await page.locator('#filter').focus()
    const answered = page.evaluate<number>(`new Promise(resolve => {
      let lastMs = 0
      addEventListener('keydown', () => { lastMs = performance.now() }, true)
      new MutationObserver((_, observer) => {
        observer.disconnect()
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - lastMs)))
      }).observe(document.querySelector('.page-head .muted'), { subtree: true, childList: true, characterData: true })
    })`)
    await page.keyboard.type(text, { delay: 30 })
    delays.push(await answered)
    await page.keyboard.press('Control+a')
    await page.keyboard.press('Backspace')
    await Bun.sleep(2 * PAUSE_MS)
  }
  return delays
}

type Interaction = { readonly duration: number; readonly name: string }

export async function benchInteraction(browser: Browser, hub: SeededHub) {
  const context = await openContext(browser, hub)
  const page = await context.newPage()
  await openPage(page, `${hub.base}/servers`, ROW)
  await untilLive(page)
  const devtools = await devtoolsOf(page)
  const figures: Record<string, number> = { filter_answer_ms: quantileOf(await filterDelays(page), 1) }
  const all: number[] = []
  for (const [name, act] of Object.entries(acts)) {
    await page.evaluate('bench.interactions.clear()')
    let count = 1
    const { task } = await measured(devtools, async () => {
      count = await act(page, hub)
    })
    await Bun.sleep(1_000)
    const found = await page.evaluate<Interaction[]>('[...bench.interactions.values()]')
    const durations = found.map(({ duration }) => duration)
    while (durations.length < count) durations.push(SHORTEST_MS)
    all.push(...durations)
    figures[`${name}_p95_ms`] = quantileOf(durations, 0.95)
    figures[`${name}_cpu_ms`] = Math.round((task / count) * 10) / 10
    const worst = [...found].sort((one, other) => other.duration - one.duration).slice(0, 3)
    console.error(
      name.padEnd(10),
      count,
      `${Math.round(task / count)} ms CPU each, worst`,
      worst.map(each => `${each.name} ${each.duration}`).join(', '),
    )
  }
  await context.close()
  return { interactions: all.length, ...figures, p95_ms: quantileOf(all, 0.95), worst_ms: quantileOf(all, 1) }
}

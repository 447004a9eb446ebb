// The host map: what a draw of all cells costs the script, what the pointer does that passes over them, what another
// fill does with the answer that it needs, and how large that answer is.
import type { Browser, Page } from 'playwright-core'
import { devtoolsOf, FRAME, measured, medianOf, openContext, openPage, quantileOf, untilLive } from './browsing.ts'
import type { SeededHub } from './seeded-hub.ts'

const FILLS = ['mem_used_percent', 'disk_used_percent', 'cpu_load1', 'cpu_usage_percent'] as const

async function fill(page: Page, metric: string): Promise<void> {
  const answered = page.waitForResponse(response => response.url().includes(`fill=${metric}`))
  await page.locator('main select').last().selectOption(metric)
  await (await answered).finished()
  await page.evaluate(FRAME)
  await page.evaluate(FRAME)
}

export async function benchMap(browser: Browser, hub: SeededHub) {
  const context = await openContext(browser, hub)
  const page = await context.newPage()
  await openPage(page, `${hub.base}/servers?view=map&group=dc,role`, '.host-map canvas')
  await untilLive(page)
  const devtools = await devtoolsOf(page)
  const draws: number[] = []
  // Other colours draw the same cells anew, and nothing else.
  for (let draw = 0; draw < 9; draw++) {
    const { script } = await measured(devtools, async () => {
      await page.emulateMedia({ colorScheme: draw % 2 === 0 ? 'dark' : 'light' })
      await page.evaluate(FRAME)
    })
    draws.push(script)
  }
  const moves: number[] = []
  const box = (await page.locator('.host-map canvas').boundingBox())!
  for (let move = 0; move < 20; move++) {
    const { script } = await measured(devtools, async () => {
      await page.mouse.move(box.x + 40 + move * 37, box.y + 60 + move * 5)
      await page.evaluate(FRAME)
    })
    moves.push(script)
  }
  let bytes = 0
  page.on('requestfinished', async request => {
    if (request.url().includes('/web/view/host-map?')) bytes = (await request.sizes()).responseBodySize
  })
  const fills: number[] = []
  const tasks: number[] = []
  for (const metric of FILLS) {
    const { script, task } = await measured(devtools, () => fill(page, metric))
    fills.push(script)
    tasks.push(task)
  }
  await context.close()
  return {
    ...{ draw_script_ms: medianOf(draws), draw_worst_ms: quantileOf(draws, 1) },
    ...{ move_script_ms: medianOf(moves), move_worst_ms: quantileOf(moves, 1) },
    ...{ fill_script_ms: medianOf(fills), fill_task_ms: medianOf(tasks), payload_bytes: bytes },
  }
}

// What the page of a server costs the browser: script of thirty charts of five hundred points, a move of the crosshair
// over them, bytes on the wire. A site of its own; CPU time, since the clock of a busy host says little.
import type { Browser, CDPSession, Page } from 'playwright-core'
import { metrics } from '../../core/series/catalogue.ts'
import { SimulatedAgent } from '../../test/support/simulated-agent.ts'
import { type SiteProcess, startSiteProcess } from '../../test/support/site.ts'
import { signIn } from '../../test/web/browser.ts'
import { bytesOf, countedLoads } from '../../test/web/first-load.ts'
import { devtoolsOf, FRAME, measured, medianOf } from './browsing.ts'

const POINTS = 500
const CHARTS = 30
const noLabels: Readonly<Record<string, string>> = {}
const rootDisk: Readonly<Record<string, string>> = { mount: '/' }
const MOVES = 40
const STEP_MS = 45_000

/** A server with one series of each of thirty metrics. */
async function seedServer(site: SiteProcess): Promise<string> {
  const made = await site.api('POST', '/api/v1/servers', { name: 'bench', hostname: 'bench' })
  const agent = await SimulatedAgent.enroll(site.facts.agent_url, site.facts.license, 'bench')
  const nowMs = Date.now()
  const names = metrics.filter(({ labels }) => labels.length === 0).slice(0, CHARTS)
  const disks = metrics.filter(({ labels }) => labels[0] === 'mount').slice(0, CHARTS - names.length)
  const series = [...names, ...disks].map(({ name, labels }, place) => ({
    name,
    labels: labels.length === 0 ? noLabels : rootDisk,
    points: Array.from(
      { length: POINTS },
      (_, index) => [nowMs - (POINTS - index) * STEP_MS, 40 + 30 * Math.sin(index / 20 + place)] as const,
    ),
  }))
  await agent.send(series)
  return made.body.data.id
}

async function openSite(page: Page, site: SiteProcess): Promise<string> {
  await page.goto(site.facts.hub_url)
  await signIn(page, site)
  await page.waitForURL('**/c/**')
  return /.*\/c\/[^/]+/.exec(page.url())?.[0] ?? ''
}

const drawn = async (page: Page, count: number): Promise<void> => {
  await page
    .locator('.chart canvas')
    .nth(count - 1)
    .waitFor()
}

async function chartFigures(page: Page, devtools: CDPSession, address: string) {
  const loads = await countedLoads(devtools)
  // All thirty at once: a screen as high as the page.
  const load = await measured(devtools, async () => {
    await page.goto(address)
    await drawn(page, CHARTS)
  })
  const bytes = { script_bytes: bytesOf(loads, 'text/javascript'), style_bytes: bytesOf(loads, 'text/css') }
  const redraws: number[] = []
  for (const hours of ['5h', '4h', '3h', '2h', '6h']) {
    const { script } = await measured(devtools, async () => {
      const answered = new Set<string>()
      const all = page.waitForResponse(response => {
        if (!response.url().includes('/web/view/server-series')) return false
        for (const name of new URL(response.url()).searchParams.get('metrics')?.split(',') ?? []) answered.add(name)
        return answered.size >= CHARTS
      })
      await page.evaluate(
        `history.pushState(null, '', location.pathname + '?from=now-${hours}'); dispatchEvent(new PopStateEvent('popstate'))`,
      )
      await all
      await page.evaluate(FRAME)
    })
    redraws.push(script)
  }
  const place = (await page.locator('.u-over').first().boundingBox())!
  const moves: number[] = []
  for (let move = 0; move < MOVES; move++) {
    const { script } = await measured(devtools, async () => {
      await page.mouse.move(place.x + (place.width * (move + 1)) / (MOVES + 2), place.y + 30)
      await page.evaluate(FRAME)
    })
    moves.push(script)
  }
  return {
    ...{ charts: CHARTS, points: POINTS, load_script_ms: load.script, load_task_ms: load.task },
    ...{ redraw_script_ms: medianOf(redraws), crosshair_script_ms: medianOf(moves) },
    ...{ crosshair_worst_ms: Math.max(...moves), ...bytes },
  }
}

export async function benchCharts(browser: Browser) {
  const site = await startSiteProcess({ args: ['--no-local-agent'] })
  try {
    const serverId = await seedServer(site)
    const page = await browser.newPage({ viewport: { width: 1280, height: 8_000 } })
    const base = await openSite(page, site)
    const devtools = await devtoolsOf(page)
    return await chartFigures(page, devtools, `${base}/servers/${serverId}`)
  } finally {
    await site.stop()
  }
}

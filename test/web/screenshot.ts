// A script: makes the pictures of the README in apps/hub/web/pictures from a real site and a fleet that is made up.
// Usage: bun test/web/screenshot.ts [DIRECTORY] [light|dark]
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { SimulatedAgent } from '../support/simulated-agent.ts'
import { type SiteProcess, startSiteProcess } from '../support/site.ts'
import { until } from '../support/until.ts'
import { signIn, startBrowser } from './browser.ts'

/** Name, and the level of CPU, memory, disk (percent) and load. */
const fleet = [
  ['backup-store', 8, 54, 96, 0.5],
  ['build-runner-01', 88, 50, 44, 2.8],
  ['build-runner-02', 12, 51, 47, 0.4],
  ['cache-01', 14, 40, 35, 0.9],
  ['db-primary', 34, 44, 87, 1.3],
  ['db-replica-1', 19, 37, 32, 0.8],
  ['gateway-fra', 22, 30, 28, 0.7],
  ['mail-01', 6, 35, 52, 0.2],
  ['web-01', 41, 48, 39, 1.6],
  ['web-02', 39, 47, 38, 1.5],
] as const
const noLabels: Readonly<Record<string, string>> = {}
const rootDisk: Readonly<Record<string, string>> = { mount: '/', device: 'sda1', fstype: 'ext4' }
const SAMPLES = 2880
const STEP_MS = 30_000

/** A level that moves about, as measured ones do. */
const wave = (index: number, level: number, reach: number): number =>
  Math.min(
    99.5,
    Math.max(
      0,
      level + reach * (Math.sin(index / 120 + level) + Math.sin(index / 23) / 2 + Math.sin(index * index) / 3),
    ),
  )

/** Adds a server and sends its last day. Resolves to its id. */
async function addServer(site: SiteProcess, server: (typeof fleet)[number], nowMs: number): Promise<string> {
  const [name, cpu, memory, disk, load] = server
  const hostname = `${name}.example.internal`
  const added = await site.api('POST', '/api/v1/servers', { name, hostname })
  const agent = await SimulatedAgent.enroll(site.facts.agent_url, site.facts.license, hostname)
  const series = [
    { name: 'cpu_usage_percent', labels: noLabels, at: (index: number) => wave(index, cpu, 7) },
    { name: 'mem_used_percent', labels: noLabels, at: (index: number) => wave(index / 8, memory, 2) },
    { name: 'disk_used_percent', labels: rootDisk, at: () => disk + 0.2 },
    { name: 'cpu_load1', labels: noLabels, at: (index: number) => wave(index, load, 0.1) },
  ].map(each => ({
    name: each.name,
    labels: each.labels,
    points: Array.from(
      { length: SAMPLES },
      (_, index) => [nowMs - (SAMPLES - 1 - index) * STEP_MS, Math.round(each.at(index) * 100) / 100] as const,
    ),
  }))
  await agent.send(series)
  return added.body.data.id
}

async function takePictures(page: Page, base: string, serverId: string, ruleId: string): Promise<void> {
  const take = (name: string) => page.screenshot({ path: join(directory, `${name}.png`) })
  await page.goto(`${base}/servers`)
  await page.getByRole('link', { name: 'web-02' }).waitFor()
  await page.getByRole('button', { name: 'Live', exact: true }).waitFor()
  await take('servers')
  await page.goto(`${base}/servers/${serverId}`)
  await page.getByRole('figure', { name: 'CPU usage', exact: true }).getByRole('row').nth(1).waitFor()
  await take('server')
  await page.goto(`${base}/rules/${ruleId}/edit`)
  await page.getByRole('slider', { name: 'Threshold in the chart' }).waitFor()
  // What it would have done shows once it holds for less than the peaks last.
  await page.getByLabel('Holds for').fill('3m')
  await page.getByText(/would have told [1-9]/).waitFor()
  await take('rule-editor')
}

const [directory = join(import.meta.dir, '../../apps/hub/web/pictures'), scheme = 'light'] = process.argv.slice(2)
const site = await startSiteProcess({ args: ['--no-local-agent'], config: 'rate:\n  default_per_minute: 100000\n' })
const browser = await startBrowser()
try {
  const nowMs = Date.now()
  const ids = new Map<string, string>()
  for (const server of fleet) ids.set(server[0], await addServer(site, server, nowMs))
  await until('the full disk has its alerts', async () => {
    const { body } = await site.api('GET', '/api/v1/monitoring/alerts?state=open')
    return body.meta.total >= 2 ? true : null
  })
  const { body } = await site.api('GET', '/api/v1/monitoring/rules')
  const rule = body.data.find((each: { name: string }) => each.name === 'High CPU')
  const colorScheme = scheme === 'dark' ? 'dark' : 'light'
  const page = await browser.newPage({ viewport: { width: 1280, height: 860 }, colorScheme, locale: 'en-GB' })
  await page.goto(site.facts.hub_url)
  await signIn(page, site)
  await page.waitForURL('**/c/**')
  const base = /.*\/c\/[^/]+/.exec(page.url())?.[0] ?? ''
  await takePictures(page, base, ids.get('db-primary') ?? '', rule.id)
} finally {
  await browser.close()
  await site.stop()
}

// A script: makes the snapshot of the README, apps/hub/web/screenshot.png, from a real site and a fleet that is made
// up. Usage: bun test/web/screenshot.ts [FILE] [light|dark] [WIDTH]
import { join } from 'node:path'
import { SimulatedAgent } from '../support/simulated-agent.ts'
import { startSiteProcess } from '../support/site.ts'
import { until } from '../support/until.ts'
import { startBrowser } from './browser.ts'

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
const SAMPLES = 119
const STEP_MS = 30_000

const [file = join(import.meta.dir, '../../apps/hub/web/screenshot.png'), scheme = 'light', width = '1280'] =
  process.argv.slice(2)
const site = await startSiteProcess({ args: ['--no-local-agent'], config: 'rate:\n  default_per_minute: 100000\n' })
const browser = await startBrowser()
try {
  const nowMs = Date.now()
  for (const [name, ...levels] of fleet) {
    const hostname = `${name}.example.internal`
    await site.api('POST', '/api/v1/servers', { name, hostname })
    const agent = await SimulatedAgent.enroll(site.facts.agent_url, site.facts.license, hostname)
    const [cpu, memory, disk, load] = levels
    const wave = (index: number, level: number, reach: number) =>
      Math.min(
        99.5,
        Math.max(
          0,
          level + reach * (Math.sin(index / 6 + level) + Math.sin(index / 2.3) / 2 + Math.sin(index * index) / 3),
        ),
      )
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
  }
  await until('the full disk has its alerts', async () => {
    const { body } = await site.api('GET', '/api/v1/monitoring/alerts?state=open')
    return body.meta.total >= 2 ? true : null
  })
  const colorScheme = scheme === 'dark' ? 'dark' : 'light'
  const page = await browser.newPage({ viewport: { width: Number(width), height: 860 }, colorScheme, locale: 'en-GB' })
  await page.goto(site.facts.hub_url)
  await page.fill('#email', site.facts.user_email)
  await page.fill('#password', site.facts.user_password ?? '')
  await page.click('button[type=submit]')
  await page.locator('canvas').nth(5).waitFor()
  await page.screenshot({ path: file })
} finally {
  await browser.close()
  await site.stop()
}

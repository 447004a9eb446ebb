// A script: makes the pictures of the README in apps/hub/web/pictures from a real site and a fleet that is made up.
// Usage: bun test/web/screenshot.ts [DIRECTORY] [light|dark]
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { SimulatedAgent } from '../support/simulated-agent.ts'
import { type SiteProcess, startSiteProcess } from '../support/site.ts'
import { until } from '../support/until.ts'
import { signIn, startBrowser } from './browser.ts'

/** Role, how many of it in each data centre, and the levels of CPU, memory, disk (percent) and load. */
const roles = [
  ['web', 26, 38, 46, 41, 1.5],
  ['api', 20, 47, 58, 36, 2.1],
  ['db', 12, 31, 71, 62, 1.2],
  ['cache', 10, 17, 66, 28, 0.8],
  ['queue', 8, 24, 43, 49, 0.9],
  ['build', 10, 64, 52, 57, 2.9],
] as const
const datacenters = ['ams', 'fra', 'sgn'] as const
/** Servers that stand out by a level of their own; the first six so much that an alert opens. */
const levels: Readonly<Record<string, { readonly cpu?: number; readonly disk?: number }>> = {
  'fra-db-03': { disk: 96.4 },
  'ams-queue-05': { disk: 97.2 },
  'sgn-web-17': { disk: 88.1 },
  'ams-build-07': { cpu: 93 },
  'fra-build-02': { cpu: 95 },
  'sgn-api-11': { cpu: 94 },
  'ams-api-02': { cpu: 81 },
  'ams-api-05': { cpu: 73 },
  'ams-api-09': { cpu: 68 },
}
const ALERTS = 6
/** The servers whose whole day is drawn: the one that has its picture, and those that a rule is judged on. */
const drawn = ['fra-db-03', 'fra-build-02', 'ams-build-07', 'sgn-api-11', 'ams-api-02', 'ams-api-05', 'ams-api-09']
const noLabels: Readonly<Record<string, string>> = {}
const rootDisk: Readonly<Record<string, string>> = { mount: '/', device: 'nvme0n1p2', fstype: 'ext4' }
const dataDisk: Readonly<Record<string, string>> = { mount: '/var/lib/postgresql', device: 'nvme1n1', fstype: 'xfs' }
const eth0: Readonly<Record<string, string>> = { interface: 'eth0' }
const DAY_SAMPLES = 2880
/** A quarter of an hour: as long as rules of the default set wait, and a little more. */
const FEW_SAMPLES = 32
const STEP_MS = 30_000

/** Numbers from 0 to 1 that are the same at each run. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

type Reach = { readonly level: number; readonly noise: number; readonly day: number; readonly max: number }

/** A level that wanders, returns, follows the hours of the day and has a peak now and then, as measured ones do. */
function walk(seed: number, count: number, { level, noise, day, max }: Reach): number[] {
  const random = randomOf(seed * 7_919 + 17)
  const phase = random() / 6
  let [drift, peak] = [0, 0]
  return Array.from({ length: count }, (_, index) => {
    drift = drift * 0.97 + (random() - 0.5) * noise
    peak = random() < 0.004 ? noise * 4 : peak * 0.86
    const hours = day * Math.sin(2 * Math.PI * (index / DAY_SAMPLES + phase))
    const value = level + hours + drift * 2 + peak + (random() - 0.5) * noise * 0.5
    return Math.round(Math.min(max, Math.max(0, value)) * 100) / 100
  })
}

type Added = { readonly id: string; readonly agent: SimulatedAgent; readonly name: string; readonly role: number }

/** Adds all servers and enrolls their agents; what they send comes after all are known. */
async function addFleet(site: SiteProcess): Promise<Added[]> {
  const added: Added[] = []
  for (const datacenter of datacenters)
    for (const [role, [name, count]] of roles.entries())
      for (let number = 1; number <= count; number++) {
        const server = `${datacenter}-${name}-${String(number).padStart(2, '0')}`
        const hostname = `${server}.example.internal`
        const tags = [name === 'db' || name === 'queue' ? 'stateful' : 'stateless', `rack-${1 + (number % 6)}`]
        const about = { datacenter, role: name, environment: number % 9 === 0 ? 'staging' : 'production', tags }
        const { body } = await site.api('POST', '/api/v1/servers', { name: server, hostname, ...about })
        const agent = await SimulatedAgent.enroll(site.facts.agent_url, site.facts.license, hostname)
        added.push({ id: body.data.id, agent, name: server, role })
      }
  return added
}

function seriesOf({ name, role }: Added, seed: number, nowMs: number) {
  const [, , cpu, memory, disk, load] = roles[role] ?? roles[0]
  const own = levels[name] ?? {}
  const count = drawn.includes(name) ? DAY_SAMPLES : FEW_SAMPLES
  const share = randomOf(seed)() - 0.5
  const points = (place: number, reach: Reach) =>
    walk(seed * 31 + place, count, reach).map((value, index) => [nowMs - (count - 1 - index) * STEP_MS, value] as const)
  const series = (metric: string, place: number, reach: Reach, labels = noLabels) => ({
    ...{ name: metric, labels, points: points(place, reach) },
  })
  const percent = { max: 99.6, day: count === DAY_SAMPLES ? 6 : 0 }
  const still = { max: 100, day: 0, noise: 0.02 }
  const few = [
    series('cpu_usage_percent', 1, { level: own.cpu ?? cpu + share * 44, noise: 2.4, ...percent }),
    series('mem_used_percent', 2, { level: memory + share * 30, noise: 1.2, max: 100, day: 2 }),
    series('disk_used_percent', 3, { level: own.disk === undefined ? disk + share * 40 : 34, ...still }, rootDisk),
    series('cpu_load1', 4, { level: Math.max(0.1, load + share), noise: 0.2, max: 64, day: 0.2 }),
  ]
  const data = series('disk_used_percent', 5, { level: own.disk ?? 0, ...still }, dataDisk)
  if (own.disk !== undefined) few.push(data)
  if (name !== drawn[0]) return few
  return [
    ...few,
    series('load_per_core_5m', 6, { level: 0.4, noise: 0.06, max: 8, day: 0.1 }),
    series('net_rx_bytes_per_second', 7, { level: 9e6, noise: 2e6, max: 1e8, day: 4e6 }, eth0),
    series('net_tx_bytes_per_second', 8, { level: 2.1e7, noise: 4e6, max: 1e8, day: 9e6 }, eth0),
  ]
}

async function takePictures(page: Page, base: string, serverId: string, ruleId: string): Promise<void> {
  const take = (name: string) => page.screenshot({ path: join(directory, `${name}.png`) })
  await page.goto(`${base}/servers?view=map&group=dc,role`)
  await page.locator('.host-map canvas').waitFor()
  await page.getByRole('button', { name: 'Live', exact: true }).waitFor()
  await take('host-map')
  await page.goto(`${base}/servers/${serverId}`)
  await page.getByRole('figure', { name: 'CPU usage', exact: true }).getByRole('row').nth(1).waitFor()
  await page.getByRole('button', { name: 'Live', exact: true }).waitFor()
  await take('server')
  await page.goto(`${base}/rules/${ruleId}/edit`)
  await page.getByRole('slider', { name: 'Threshold in the chart' }).waitFor()
  await page.getByText(/would have told [1-9]/).waitFor()
  await take('rule-editor')
}

/** A site with the fleet, its alerts, a server under maintenance and silenced ones. */
async function fillSite(site: SiteProcess): Promise<ReadonlyMap<string, string>> {
  const added = await addFleet(site)
  const nowMs = Date.now()
  for (const [seed, server] of added.entries()) {
    // A batch each: a day of all of them is more than one may hold.
    for (const series of seriesOf(server, seed + 1, nowMs)) {
      const { status, text } = await server.agent.send([series])
      if (status !== 200) throw new Error(`${server.name}: the collector answered ${status} ${text}`)
    }
  }
  const ids = new Map(added.map(({ name, id }) => [name, id]))
  await until('what is wrong has its alerts', async () => {
    const { body } = await site.api('GET', '/api/v1/monitoring/alerts?state=open')
    return body.meta.total >= ALERTS
  })
  await site.api('PUT', `/api/v1/servers/${ids.get('ams-web-08')}/status`, { status: 'maintenance' })
  const ends_at = new Date(nowMs + 3_600_000).toISOString()
  const scope = { server_ids: [ids.get('ams-build-07') ?? ''] }
  await site.api('POST', '/api/v1/monitoring/silences', { scope, ends_at, reason: 'New compiler' })
  return ids
}

const [directory = join(import.meta.dir, '../../apps/hub/web/pictures'), scheme = 'light'] = process.argv.slice(2)
const rates = 'rate:\n  default_per_minute: 100000\n  enroll_per_minute: 100000\n'
const site = await startSiteProcess({ args: ['--no-local-agent'], config: rates })
const browser = await startBrowser()
try {
  const ids = await fillSite(site)
  const { body } = await site.api('GET', '/api/v1/monitoring/rules')
  const rule = body.data.find((each: { name: string }) => each.name === 'High CPU')
  const colorScheme = scheme === 'dark' ? 'dark' : 'light'
  const page = await browser.newPage({ viewport: { width: 1280, height: 860 }, colorScheme, locale: 'en-GB' })
  await page.goto(site.facts.hub_url)
  await signIn(page, site)
  await page.waitForURL('**/c/**')
  const base = /.*\/c\/[^/]+/.exec(page.url())?.[0] ?? ''
  await takePictures(page, base, ids.get(drawn[0] ?? '') ?? '', rule.id)
} finally {
  await browser.close()
  await site.stop()
}

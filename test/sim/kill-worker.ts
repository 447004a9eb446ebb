// The executable worker under load, killed with SIGKILL at random moments, also while it starts: what the hub keeps must be what an
// uninterrupted run gives, event by event. `bun test/sim/kill-worker.ts [KILLS] [SEED] [COMMAND…]`; COMMAND starts the worker, by
// default the one of the sources. Prints a summary and exits 1 when something differs.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SqliteBusWriter } from '../../apps/collector/bus/sqlite-bus.ts'
import { collectorPaths } from '../../apps/collector/config.ts'
import type { AlertEvent } from '../../core/alerting/event.ts'
import { hubToken, id, ScriptedHub } from '../ingest/scripted-hub.ts'
import { entryOf } from '../support/clickhouse.ts'
import { ruleRecord } from '../support/rule-record.ts'
import { until } from '../support/until.ts'
import { HubModel } from './hub-model.ts'
import { randomOf } from './random.ts'

const [killsWanted = '200', seedText = '1', ...command] = process.argv.slice(2)
const random = randomOf(Number(seedText))
const kills = Number(killsWanted)
const MACHINES = 12
const STEP_MS = 40
const company = id('kill company')
const adminToken = 'admin-token-of-the-hub'
const hub = new ScriptedHub()
const rule = ruleRecord({ id: id('kill rule'), company_id: company, metric: 'swap_used_percent', threshold: 50 })
hub.feeds.rules!.push(rule)

const dataDir = mkdtempSync(join(tmpdir(), 'svc-kill-'))
const readyFile = join(dataDir, 'ready.json')
const configFile = join(dataDir, 'worker.yaml')
writeFileSync(
  configFile,
  [
    `data_dir: ${dataDir}`,
    `hub: { url: "${hub.url}", token: "${hubToken}" }`,
    `admin: { listen: 127.0.0.1:0, token: ${adminToken} }`,
    'ops: { listen: 127.0.0.1:0 }',
    'alerting: { flap_transitions: 0, rules_state_interval: 200ms }',
  ].join('\n'),
)
const bus = new SqliteBusWriter({
  path: collectorPaths(dataDir).bus,
  bytesMax: 1024 ** 3,
  ageMaxMs: 86_400_000,
  groupWaitMs: 1,
  nowMs: Date.now,
  onPublished: () => {},
  onError: error => {
    throw error
  },
})

const machines = Array.from({ length: MACHINES }, (_, index) => id(`kill machine ${index}`))
const startMs = Date.now() - 12 * 3_600_000
let steps = 0
let isOver = false

/** Every machine crosses the threshold with every sample, up and down. */
async function load(): Promise<void> {
  while (!isOver || steps % 2 !== 0) {
    const point = [startMs + steps * 1000, steps % 2 === 0 ? 90 : 10] as [number, number]
    await Promise.all(
      machines.map(serverId =>
        bus.publish(serverId, entryOf(company, serverId, [{ metric: 'swap_used_percent', points: [point] }])),
      ),
    )
    steps++
    await Bun.sleep(STEP_MS)
  }
}

const main = join(import.meta.dir, '../../apps/collector/worker/main.ts')
function spawn(): Bun.Subprocess {
  rmSync(readyFile, { force: true })
  const words = command.length > 0 ? command : [process.execPath, main]
  return Bun.spawn([...words, '--config', configFile, '--ready-file', readyFile], {
    stdout: 'ignore',
    stderr: 'inherit',
  })
}

// The first one knows the rules before anything is sent: an uninterrupted run evaluates every sample.
const first = spawn()
await until('the rules to be kept', () => existsSync(join(dataDir, 'feeds', 'rules.json')), 60_000)
const loading = load()
let ready = 0
for (let kill = 0; kill < kills; kill++) {
  const child = kill === 0 ? first : spawn()
  // Half of them die at some instant of their start, the others after up to a second of work.
  const afterReady = random.chance(0.5)
  if (afterReady) await until('the worker', () => existsSync(readyFile) || child.exitCode !== null, 60_000)
  await Bun.sleep(random.between(0, 1000))
  if (existsSync(readyFile)) ready++
  if (child.exitCode !== null) throw new Error(`the worker ended by itself with ${child.exitCode}`)
  child.kill('SIGKILL')
  await child.exited
}
isOver = true
await loading
const last = spawn()
await until('the worker', () => existsSync(readyFile), 60_000)
const adminUrl: string = JSON.parse(readFileSync(readyFile, 'utf8')).admin_url
await until(
  'everything to be told',
  async () => {
    const response = await fetch(`${adminUrl}/internal/v1/status`, {
      headers: { authorization: `Bearer ${adminToken}` },
    })
    const { data } = (await response.json()) as { data: { bus_lag: number; outbox_depth: number } }
    return data.bus_lag === 0 && data.outbox_depth === 0
  },
  300_000,
)
last.kill('SIGTERM')
await last.exited

/** What the hub keeps of a machine, and what it should. */
const model = new HubModel()
const kept = new Map<string, string[]>(machines.map(serverId => [serverId, []]))
model.onApplied = event => {
  if (event.type.startsWith('alert.')) kept.get(event.server_id)?.push(`${event.type} ${event.occurred_at}`)
}
for (const event of hub.taken) model.receive(event as unknown as AlertEvent)
const expected = Array.from(
  { length: steps },
  (_, step) => `alert.${step % 2 === 0 ? 'opened' : 'resolved'} ${new Date(startMs + step * 1000).toISOString()}`,
)
const faults = machines.flatMap(serverId => {
  const found = kept.get(serverId)!
  const at = expected.findIndex((text, index) => text !== found[index])
  return at < 0 && found.length === expected.length
    ? []
    : [`${serverId}: event ${at}: ${expected[at]}, not ${found[at]}`]
})
for (const clash of model.clashes) faults.push(`two events of one id: ${clash}`)
const openAlerts = model.open().filter(key => key.includes(rule.id))
if (openAlerts.length > 0) faults.push(`open at the end: ${openAlerts.join(', ')}`)
for (const fault of faults) console.log(fault)
const told = hub.taken.filter(event => String(event.type).startsWith('alert.')).length
console.log(
  JSON.stringify({
    kills,
    ready,
    machines: MACHINES,
    samples: steps * MACHINES,
    events: told,
    resent: told - steps * MACHINES,
    faults: faults.length,
  }),
)
await bus.close()
await hub.stop()
rmSync(dataDir, { recursive: true, force: true })
process.exit(faults.length > 0 ? 1 : 0)

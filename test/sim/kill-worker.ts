// The executable worker under load, killed with SIGKILL at random moments, also while it starts: what the hub keeps
// must be what an uninterrupted worker tells of the same batches, event by event. Prints a summary and exits 1 when
// something differs.
//
//   bun test/sim/kill-worker.ts [sqlite | redis] [KILLS] [SEED] [COMMAND…]
//
// sqlite: one worker on its files. redis: two workers over a Redis server; at each moment one of them dies or both, and
// at times one stays away for so long that the other takes its shards. COMMAND starts the worker, by default the one of
// the sources.
import type { AlertEvent } from '../../core/alerting/evaluate/event.ts'
import { id } from '../ingest/scripted-hub.ts'
import { entryOf } from '../support/clickhouse.ts'
import { sourceCommand } from '../support/executable.ts'
import { ruleRecord } from '../support/rule-record.ts'
import { until } from '../support/until.ts'
import { HubModel } from './hub-model.ts'
import { type KillSite, type KillWorker, openKillSite, START_MAX_MS } from './kill-site.ts'
import { randomOf } from './random.ts'

const [kind = 'sqlite', killsWanted = '200', seedText = '1', ...given] = process.argv.slice(2)
if (kind !== 'sqlite' && kind !== 'redis') throw new Error(`sqlite or redis, not ${kind}`)
const kills = Number(killsWanted)
const random = randomOf(Number(seedText))
const command = given.length > 0 ? given : sourceCommand('collector-worker')

const SERVERS = 12
const STEP_MS = 40
const DRAIN_MAX_MS = 600_000
/** Beyond the time after which a silent worker's leases are free. */
const AWAY_MS = 13_000
const company = id('kill company')
const servers = Array.from({ length: SERVERS }, (_, index) => id(`kill server ${index}`))
const startMs = Date.now() - 12 * 3_600_000

/** Crossed with every sample, up and down. */
const crossed = ruleRecord({ id: id('kill rule'), company_id: company, metric: 'swap_used_percent', threshold: 50 })
/**
 * Waits before it opens and before it ends, and has a band in which nothing changes: much of it lies between two
 * events.
 */
const waiting = ruleRecord({
  id: id('waiting kill rule'),
  company_id: company,
  sync_version: 2,
  metric: 'mem_used_percent',
  threshold: 80,
  for_seconds: 2,
  recover_threshold: 60,
  recover_for_seconds: 1,
})
const rules = [crossed, waiting]

/** A batch of each server: when it came, and the value under the waiting rule. */
type Step = { readonly receivedAtMs: number; readonly values: readonly number[] }
const steps: Step[] = []

async function send(site: KillSite, index: number): Promise<void> {
  const { receivedAtMs, values } = steps[index]!
  const atMs = startMs + index * 1000
  await Promise.all(
    servers.map((serverId, server) => {
      const series = [
        { metric: 'swap_used_percent', points: [[atMs, index % 2 === 0 ? 90 : 10] as const] },
        { metric: 'mem_used_percent', points: [[atMs, values[server]!] as const] },
      ]
      return site.publish(serverId, entryOf(company, serverId, series, receivedAtMs))
    }),
  )
}

let isOver = false
/** Sends as long as workers are killed, and to the end of an alert. */
async function load(site: KillSite): Promise<void> {
  const level = randomOf(Number(seedText) + 1)
  const values = servers.map(() => 70)
  while (!isOver || steps.length % 2 !== 0) {
    for (const server of values.keys()) if (level.chance(0.4)) values[server] = level.pick([50, 70, 90])
    steps.push({ receivedAtMs: Date.now(), values: [...values] })
    await send(site, steps.length - 1)
    await Bun.sleep(STEP_MS)
  }
}

/** The moments: who dies, and what is started again after a while. */
async function killAll(site: KillSite, running: (KillWorker | null)[]): Promise<{ deaths: number; ready: number }> {
  const slots = [...running.keys()]
  let deaths = 0
  let ready = 0
  for (let kill = 0; kill < kills; kill++) {
    for (const slot of slots) running[slot] ??= site.spawn(slot)
    // Half of them die at some instant of their start, the others after up to a second of work.
    const dying = slots.length > 1 && random.chance(0.7) ? [random.pick(slots)] : slots
    if (random.chance(0.5)) await Promise.all(dying.map(slot => running[slot]?.ready()))
    await Bun.sleep(random.between(0, 1000))
    for (const slot of dying) {
      const worker = running[slot]!
      if (worker.isReady) ready++
      await worker.kill()
      running[slot] = null
      deaths++
    }
    if (slots.length > 1 && random.chance(0.2)) await Bun.sleep(random.between(0, AWAY_MS))
  }
  return { deaths, ready }
}

/** The events that rules 1 and 2 of the hub let through, by key, and what is wrong with how they came. */
function judge(taken: readonly AlertEvent[]): { kept: Map<string, string[]>; faults: string[]; open: string[] } {
  const model = new HubModel()
  const kept = new Map<string, string[]>()
  const ids = new Set<string>()
  let applied = 0
  model.onApplied = event => {
    applied++
    const key = `${event.server_id} ${event.rule_id} ${event.series_key}`
    const ofKey = kept.get(key)
    if (ofKey) ofKey.push(JSON.stringify(event))
    else kept.set(key, [JSON.stringify(event)])
  }
  for (const event of taken) {
    ids.add(event.event_id)
    model.receive(event)
  }
  const faults = model.clashes.map(clash => `two events of one id: ${clash}`)
  if (applied !== ids.size) faults.push(`${ids.size - applied} events came with a seq that had been passed`)
  return { kept, faults, open: model.open() }
}

/** The events of rules that the hub was sent, repeated ones again. What is told of presence goes by the wall clock. */
const eventsOf = (site: KillSite): readonly AlertEvent[] =>
  (site.hub.taken as unknown as readonly AlertEvent[]).filter(event => event.type.startsWith('alert.'))
const countOf = (site: KillSite): number => new Set(eventsOf(site).map(event => event.event_id)).size

const site = await openKillSite(kind, rules, command)
const running: (KillWorker | null)[] = Array.from({ length: site.workers }, (_, slot) => site.spawn(slot))
// They know the rules before anything is sent: an uninterrupted run evaluates every sample.
await until('the rules to be kept', () => site.hasRules(), START_MAX_MS)
const loading = load(site)
const { deaths, ready } = await killAll(site, running)
isOver = true
await loading
const last = running.map((worker, slot) => worker ?? site.spawn(slot))
await Promise.all(last.map(worker => worker.ready()))

const reference = await openKillSite('sqlite', rules, command)
const undisturbed = reference.spawn(0)
await undisturbed.ready()
await until('the rules to be kept', () => reference.hasRules(), START_MAX_MS)
for (const index of steps.keys()) await send(reference, index)
await until('the undisturbed worker', () => undisturbed.isIdle(), DRAIN_MAX_MS)
// An unclean end is a fault, yet what the hub was told is still compared.
const unclean = await undisturbed.stop()
const expectedCount = countOf(reference)
const isTold = async (): Promise<boolean> => {
  const idle = await Promise.all(last.map(worker => worker.isIdle()))
  return idle.every(each => each) && countOf(site) >= expectedCount
}
await until('everything to be told', isTold, DRAIN_MAX_MS).catch(error => console.log(String(error)))
unclean.push(...(await Promise.all(last.map(worker => worker.stop()))).flat())

const found = judge(eventsOf(site))
const expected = judge(eventsOf(reference))
const faults = [...unclean, ...found.faults, ...expected.faults]
for (const key of new Set([...expected.kept.keys(), ...found.kept.keys()])) {
  const [is, should] = [found.kept.get(key) ?? [], expected.kept.get(key) ?? []]
  const at = should.findIndex((event, index) => event !== is[index])
  if (at >= 0) faults.push(`${key}: event ${at} is ${is[at]}, not ${should[at]}`)
  else if (is.length !== should.length) faults.push(`${key}: ${is.length} events, not ${should.length}: ${is.at(-1)}`)
}
if (found.open.join() !== expected.open.join()) faults.push(`open: ${found.open.join()}, not ${expected.open.join()}`)
// What is known without any worker: every sample opens or ends the alert of the one rule.
const crossings = [...expected.kept].filter(([key]) => key.includes(crossed.id)).flatMap(([, events]) => events).length
if (crossings !== steps.length * SERVERS) faults.push(`${crossings} crossings of ${steps.length * SERVERS} were told`)
for (const fault of faults) console.log(fault)
console.log(
  JSON.stringify({
    kind,
    seed: Number(seedText),
    kills,
    deaths,
    ready,
    takeovers: await site.takeovers(),
    batches: steps.length * SERVERS,
    events: [...expected.kept.values()].flat().length,
    resent: eventsOf(site).length - [...found.kept.values()].flat().length,
    faults: faults.length,
  }),
)
await Promise.all([site.close(), reference.close()])
process.exit(faults.length > 0 ? 1 : 0)

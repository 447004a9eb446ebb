// The judge in a real browser: the evaluation that pages draw alerts with is the one of the worker.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { ShardLoop } from '../../apps/collector/worker/evaluation/shard-loop.ts'
import type { JudgedSeries } from '../../apps/hub/web/browser/judge/judge-messages.ts'
import { runText } from '../../apps/hub/web/browser/judge/scenarios.ts'
import { type Firing, firingsOf } from '../../core/alerting/evaluate/backtest.ts'
import type { AlertEvent } from '../../core/alerting/evaluate/event.ts'
import { FLAP_DEFAULTS } from '../../core/alerting/evaluate/flapping.ts'
import { compileMatchers, type RawMatchers } from '../../core/alerting/rules/matchers.ts'
import { matchesLabels } from '../../core/alerting/rules/matches-labels.ts'
import { noDataModes, operators, type RawRule } from '../../core/alerting/rules/rule.ts'
import { encodeEntry } from '../../core/bus/entry.ts'
import { shardOfServer } from '../../core/bus/shard-of-server.ts'
import { limits } from '../../core/limits.ts'
import { fullSeriesKey, seriesKey } from '../../core/series/series-key.ts'
import { sampleBatchOf } from '../sim/batch.ts'
import { Fuse, MemoryBus, MemoryStore } from '../sim/durable.ts'
import { START_MS } from '../sim/plan.ts'
import { type Random, randomOf } from '../sim/random.ts'
import { ruleRecord } from '../support/rule-record.ts'
import { closeContexts, sharedBrowser } from './browser.ts'
import type { JudgePage } from './judge-page.ts'

const POLICY = "default-src 'none'; script-src 'self'; worker-src 'self'"

let browser: Browser
let page: Page
let server: ReturnType<typeof Bun.serve>

beforeAll(async () => {
  const built = await Bun.build({
    entrypoints: [
      join(import.meta.dir, 'judge-page.ts'),
      join(import.meta.dir, '../../apps/hub/web/browser/judge/judge-worker.ts'),
    ],
    target: 'browser',
    splitting: true,
    minify: true,
    naming: { entry: '[name].js' },
  })
  const files = new Map<string, Blob>()
  // The worker lies in a folder of its own, as in the bundle of the hub.
  for (const file of built.outputs) files.set(file.path.replace(/^\.?\//, ''), file)
  const fileOf = (path: string): Blob | undefined => files.get(path.replace('judge/', ''))
  server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      const { pathname } = new URL(request.url)
      const headers = { 'Content-Security-Policy': POLICY, 'Content-Type': 'text/javascript' }
      if (pathname === '/')
        return new Response('<!doctype html><title>judge</title><script type="module" src="/judge-page.js"></script>', {
          headers: { ...headers, 'Content-Type': 'text/html' },
        })
      const file = fileOf(pathname.slice(1))
      return file ? new Response(file, { headers }) : new Response(null, { status: 404 })
    },
  })
  browser = await sharedBrowser()
  page = await browser.newPage()
  await page.goto(server.url.href)
  await page.waitForFunction(() => 'judgePage' in globalThis)
})

afterAll(async () => {
  await closeContexts()
  await server?.stop(true)
})

declare const judgePage: JudgePage

describe('scenarios in the browser', () => {
  const folder = join(import.meta.dir, '../scenarios')
  const texts = readdirSync(folder)
    .filter(name => name.endsWith('.txt'))
    .map(name => readFileSync(join(folder, name), 'utf8'))

  test('every scenario of the repository gets the same verdict there as here', async () => {
    let scenarios = 0
    for (const text of texts) {
      const here = runText(text)
      expect(await page.evaluate(given => judgePage.runScenarios(given), text)).toMatchObject(here)
      if ('verdicts' in here) scenarios += here.verdicts.length
    }
    expect(scenarios).toBeGreaterThan(130)
  })

  test('what differs is told with its line, and so is a text that is no scenario', async () => {
    const wrong = readFileSync(join(folder, 'eval-hysteresis.txt'), 'utf8').replace(/value=\d+/, 'value=7')
    const here = runText(wrong)
    expect(JSON.stringify(here)).toMatch(/line \d+: differs .*expected 7/)
    expect(await page.evaluate(given => judgePage.runScenarios(given), wrong)).toMatchObject(here)
    expect(await page.evaluate(() => judgePage.runScenarios('scenario x\nnonsense'))).toMatchObject({ line: 2 })
  })
})

const SERVER = '50000000-0000-4000-8000-000000000001'
const STEP_MS = 30_000
const STEPS = 960

/** A series: its value at each step, null where it is absent. */
type Walk = { readonly metric: string; readonly labels: Record<string, string>; readonly values: (number | null)[] }

/** A value that wanders, stays and is absent at times. */
function walk(random: Random, metric: string, labels: Record<string, string>, isSwitch: boolean): Walk {
  const values: (number | null)[] = []
  let value = isSwitch ? 1 : random.between(20, 80)
  for (let left = 0, isAbsent = false; values.length < STEPS; left--) {
    if (left <= 0) {
      left = random.between(1, 120)
      isAbsent = random.chance(0.15)
    }
    if (isSwitch) value = random.chance(0.05) ? 1 - value : value
    else value = Math.min(100, Math.max(0, value + random.between(-40, 40) / 10))
    values.push(isAbsent ? null : value)
  }
  return { metric, labels, values }
}

const matcherOf = (random: Random, mounts: readonly string[]): RawMatchers =>
  random.pick<RawMatchers>([
    {},
    { mount: random.pick(mounts) },
    { mount: [...mounts.slice(1)] },
    { mount: { regex: '/(var|srv).*' } },
  ])

function randomRule(random: Random, at: number, mounts: readonly string[]): RawRule {
  const metric = random.pick(['cpu_usage_percent', 'disk_used_percent', 'disk_used_percent', 'service_up'])
  const isSwitch = metric === 'service_up'
  const operator = isSwitch ? random.pick(['==', '!=', '<'] as const) : random.pick(operators)
  const threshold = isSwitch ? 1 : random.between(300, 700) / 10
  const slack = random.between(0, 200) / 10
  const recover = operator.startsWith('>') ? threshold - slack : operator.startsWith('<') ? threshold + slack : null
  return ruleRecord({
    id: `60000000-0000-4000-8000-${String(at).padStart(12, '0')}`,
    sync_version: at + 1,
    metric,
    operator,
    threshold,
    matchers: metric === 'disk_used_percent' ? matcherOf(random, mounts) : {},
    for_seconds: random.pick([0, 30, 60, 300, 900]),
    recover_threshold: random.chance(0.5) ? recover : null,
    recover_for_seconds: random.pick([0, 0, 60, 300]),
    no_data: random.pick(noDataModes),
    renotify_seconds: 0,
  })
}

const isHeard = (silences: readonly (readonly [number, number])[], step: number): boolean =>
  silences.every(([from, to]) => step < from || step >= to)

/** All events of the worker's own loop, which gets the samples batch by batch over a bus, and sweeps every 10 s. */
async function eventsOfWorker(
  rules: readonly RawRule[],
  walks: readonly Walk[],
  silences: readonly (readonly [number, number])[],
): Promise<AlertEvent[]> {
  const bus = new MemoryBus()
  const store = new MemoryStore(new Fuse())
  let nowMs = START_MS
  const config = {
    shards: [shardOfServer(SERVER)],
    threadIndex: 0,
    partition: 0,
    pollMs: 50,
    busPath: '',
    dataDir: '',
    snapshotDir: '',
    settings: {
      noDataAfterMs: limits.noDataAfterMs,
      flapping: FLAP_DEFAULTS,
    },
    snapshotIntervalMs: 3_600_000,
    sweepIntervalMs: limits.presenceSweepMs,
    presenceGraceMinMs: 0,
    seriesSweepIntervalMs: limits.seriesSweepMs,
  }
  const loop = new ShardLoop(
    config,
    bus,
    store,
    () => nowMs,
    () => {},
  )
  loop.startRules(rules, rules.length)
  loop.restore()
  for (; nowMs <= START_MS + STEPS * STEP_MS; nowMs += limits.presenceSweepMs) {
    const step = (nowMs - START_MS) / STEP_MS
    if (Number.isInteger(step) && step < STEPS && isHeard(silences, step)) {
      const series = walks.flatMap(({ metric, labels, values }) => {
        const value = values[step]
        return value === null || value === undefined
          ? []
          : [{ key: fullSeriesKey(metric, labels), points: [[nowMs, value] as [number, number]] }]
      })
      const header = { companyId: rules[0]!.company_id, serverId: SERVER, agentId: SERVER, receivedAtMs: nowMs }
      bus.publish([
        encodeEntry(
          { ...header, seq: step, intervalSeconds: 30 },
          sampleBatchOf(series, () => true),
        ),
      ])
    }
    await loop.turn()
    bus.trim(loop.position)
  }
  return store.nextEvents(1_000_000).map(text => JSON.parse(text) as AlertEvent)
}

/** What the page is given of a walk: the points that came, and when anything came. */
function judged({ labels, values }: Walk, silences: readonly (readonly [number, number])[]): JudgedSeries {
  const heard = values.map((_, step) => step).filter(step => isHeard(silences, step))
  const present = heard.filter(step => values[step] !== null)
  return {
    serverId: SERVER,
    labels,
    tsMs: present.map(step => START_MS + step * STEP_MS),
    values: present.map(step => values[step]!),
    heardAtMs: heard.map(step => START_MS + step * STEP_MS),
    intervalSeconds: 30,
  }
}

test('100 random rules: the alerts that the page draws are the events of the worker', async () => {
  const seed = Number(process.env.SVC_FUZZ_SEED ?? Date.now() % 1_000_000)
  console.log(`rules judged in the browser: seed ${seed}`)
  const random = randomOf(seed)
  const mounts = ['/', '/var', '/var/lib', '/srv']
  const walks = [
    walk(random, 'cpu_usage_percent', {}, false),
    ...mounts.map(mount => walk(random, 'disk_used_percent', { mount, device: 'sda', fstype: 'ext4' }, false)),
    walk(random, 'service_up', { name: 'sshd' }, true),
  ]
  const silences = [300, 600].map(from => [from, from + random.between(1, 60)] as const)
  const rules = Array.from({ length: 100 }, (_, at) => randomRule(random, at, mounts))
  const events = await eventsOfWorker(rules, walks, silences)
  expect(events.filter(event => event.type === 'alert.opened').length).toBeGreaterThan(100)

  const covered = rules.map(({ metric, matchers: raw }) => {
    const { matchers } = compileMatchers(raw ?? {}, null)
    return walks.flatMap((each, at) => (each.metric === metric && matchesLabels(matchers, each.labels) ? [at] : []))
  })
  const drawn = await page.evaluate(
    async ([series, toMs, questions]) => {
      const answers: (readonly Firing[])[][] = []
      for (const [rule, indexes] of questions)
        answers.push(
          await judgePage.judge(
            indexes.map(at => series[at]!),
            toMs,
            rule,
          ),
        )
      return answers
    },
    [
      walks.map(each => judged(each, silences)),
      START_MS + STEPS * STEP_MS,
      rules.map((rule, at) => [rule, covered[at]!] as const),
    ] as const,
  )
  let same = 0
  for (const [at, rule] of rules.entries()) {
    for (const [place, index] of covered[at]!.entries()) {
      const { metric, labels } = walks[index]!
      const key = seriesKey(metric, labels)
      const told = events.filter(event => event.rule_id === rule.id && event.series_key === key)
      expect({ seed, rule, firings: drawn[at]?.[place] }).toEqual({ seed, rule, firings: firingsOf(told) })
    }
    same++
  }
  expect(same).toBe(100)
})

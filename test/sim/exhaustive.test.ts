// Every small world: all patterns of seven samples out of {below, between, above, absent}, every kind of rule, a crash
// or a restart between any two steps. States are independent of each other, so that many patterns are series of one
// server, each with its own key. EXHAUSTIVE=1 runs all of it; otherwise every part of the space is sampled.
import { expect, test } from 'bun:test'
import type { NoDataMode, RawRule } from '../../core/alerting/rules/rule.ts'
import { type Plan, type SimAction, type SimSeries, START_MS, type TimedAction } from './plan.ts'
import { World } from './world.ts'

const ALL = process.env.EXHAUSTIVE === '1'
/** Of the patterns of each combination, one in so many without EXHAUSTIVE. */
const SAMPLED = 401
/** Patterns that share a world. */
const TOGETHER = 1024
const STEPS = 7
const STEP_MS = 30_000
const VALUES = [50, 85, 95, null] as const
const SERVER = '50000000-0000-4000-8000-000000000001'
const COMPANY = 'c0000000-0000-4000-8000-000000000001'
const AGENT = 'a0000000-0000-4000-8000-000000000001'

type Case = {
  forS: number
  recoverForS: number
  recover: number | null
  noData: NoDataMode
  stop: 'kill' | 'stop' | null
  at: number
}

const ruleOf = ({ forS, recoverForS, recover, noData }: Case): RawRule => ({
  id: '10000000-0000-4000-8000-000000000001',
  version: 1,
  sync_version: 1,
  company_id: COMPANY,
  name: 'disk',
  kind: 'threshold',
  scope: { all: true, server_ids: [], tags: [], environments: [], roles: [], datacenters: [] },
  resolved_server_ids: [],
  metric: 'disk_used_percent',
  matchers: {},
  operator: '>',
  threshold: 90,
  for_seconds: forS,
  recover_threshold: recover,
  recover_for_seconds: recoverForS,
  severity: 'warning',
  no_data: noData,
  renotify_seconds: 60,
  enabled: true,
  deleted: false,
})

/** The digits of a pattern, the first step first. */
const stepsOf = (pattern: number): string => pattern.toString(VALUES.length).padStart(STEPS, '0')

function planOf(small: Case, patterns: readonly string[]): Plan {
  const actions: TimedAction[] = []
  const add = (atMs: number, action: SimAction) => actions.push({ atMs: START_MS + atMs, isQuiet: false, action })
  add(0, { kind: 'rules', rules: [ruleOf(small)] })
  for (let step = 0; step < STEPS; step++) {
    const receivedAtMs = START_MS + step * STEP_MS + 1000
    const series: SimSeries[] = []
    for (const pattern of patterns) {
      const value = VALUES[Number(pattern[step])] ?? null
      if (value !== null) series.push({ key: `disk_used_percent{mount="${pattern}"}`, points: [[receivedAtMs, value]] })
    }
    const batch = { companyId: COMPANY, serverId: SERVER, agentId: AGENT, intervalSeconds: 30, receivedAtMs, series }
    add(step * STEP_MS + 1000, { kind: 'batch', batch })
    if (small.stop === 'kill' && small.at === step)
      add(step * STEP_MS + 12_000, { kind: 'kill', ops: 0, isAfter: true, downMs: 2000 })
    if (small.stop === 'stop' && small.at === step) add(step * STEP_MS + 12_000, { kind: 'stop', downMs: 2000 })
  }
  return {
    seed: 1,
    settings: { noDataAfterMs: 50_000, flapping: { windowMs: 120_000, transitions: 4, stableMs: 40_000 } },
    snapshotIntervalMs: 45_000,
    endMs: START_MS + STEPS * STEP_MS + 60_000,
    actions,
  }
}

function* cases(): Generator<Case> {
  const stops = [null, ...Array.from({ length: STEPS - 1 }, (_, at) => at)]
  for (const forS of [0, 60])
    for (const recoverForS of [0, 60])
      for (const recover of [null, 80])
        for (const noData of ['ignore', 'alert', 'resolve'] as const)
          for (const at of stops)
            if (at === null) yield { forS, recoverForS, recover, noData, stop: null, at: 0 }
            else for (const stop of ['kill', 'stop'] as const) yield { forS, recoverForS, recover, noData, stop, at }
}

test('[EVAL-003] [EVAL-014] [NOD-001] [SNAP-008] every small world ends as the documents say, wherever it is cut', async () => {
  const all = VALUES.length ** STEPS
  let patternCount = 0
  let events = 0
  let offset = 0
  for (const small of cases()) {
    offset = (offset + 37) % SAMPLED
    const patterns: string[] = []
    for (let pattern = ALL ? 0 : offset; pattern < all; pattern += ALL ? 1 : SAMPLED) patterns.push(stepsOf(pattern))
    for (let from = 0; from < patterns.length; from += TOGETHER) {
      const world = new World(planOf(small, patterns.slice(from, from + TOGETHER)))
      const faults = await world.run()
      events += world.eventCount
      // The key of a fault names the pattern: a digit a step, its storage in VALUES.
      if (faults.length > 0) throw new Error(`${JSON.stringify(small)}:\n${faults.slice(0, 5).join('\n')}`)
    }
    patternCount += patterns.length
  }
  if (ALL) console.log(`${patternCount} small worlds, ${events} events, no difference`)
  expect(patternCount).toBeGreaterThan(ALL ? 5_000_000 : 12_000)
  expect(events).toBeGreaterThan(patternCount)
}, 36_000_000)

// Warnings of agents in the reports of who was seen: how many go at once, and whose turn it is.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import pino from 'pino'
import { SeenReporter } from '../../apps/collector/hub-link/report-seen.ts'
import { clientOf, id, ScriptedHub } from './scripted-hub.ts'

const log = pino({ level: 'silent' })
let hub: ScriptedHub

beforeEach(() => {
  hub = new ScriptedHub()
})
afterEach(() => hub.stop())

const agentsThatSay = (lastWarning: string) =>
  Array.from({ length: 300 }, (_, index) => ({
    record: { agentId: id(`warned ${index}`) },
    ...{ lastSeenAtMs: 1, agentVersion: '', protoVersion: 0 },
    statement: { bufferBytes: 0, bufferBatches: 0, lastWarning, lastWarningAtMs: 1 },
    isUnreported: true,
  }))

test('[SYNC-040] so many warnings go in a report, the others in the next, each once', async () => {
  const agents = agentsThatSay('w')
  const reporter = new SeenReporter({ agents: () => agents, hub: clientOf(hub, log), log, intervalMs: 3_600_000 })
  hub.script = () => (hub.requests.length === 1 ? hub.error(503, 'unavailable') : null)
  for (let report = 0; report < 4; report++) {
    for (const agent of agents) agent.isUnreported = true
    await reporter.report()
  }
  await reporter.stop()
  const told = (member: string) =>
    hub
      .to('/agents/seen')
      .map(({ body }) => (body as { agents: Record<string, unknown>[] }).agents.filter(each => member in each).length)
  // The first report was not taken.
  expect([told('last_warning'), told('buffer_bytes')]).toEqual([
    [200, 200, 100, 0],
    [300, 300, 0, 0],
  ])
})

test('[SYNC-040] of too many who warn anew before each report all have their turn, and who has waited is not forgotten', async () => {
  const agents = agentsThatSay('')
  const reporter = new SeenReporter({ agents: () => agents, hub: clientOf(hub, log), log, intervalMs: 3_600_000 })
  const warnAnew = (report: number): void => {
    for (const agent of agents) {
      agent.statement = { ...agent.statement, lastWarning: `w${report}`, lastWarningAtMs: report }
      agent.isUnreported = true
    }
  }
  for (let report = 1; report <= 3; report++) {
    warnAnew(report)
    await reporter.report()
    // They say nothing more, and are reported all the same.
    expect(agents.filter(agent => agent.isUnreported)).toHaveLength(100)
  }
  const told = hub.to('/agents/seen').map(({ body }) => {
    const entries = (body as { agents: Record<string, unknown>[] }).agents
    return entries.flatMap(each => ('last_warning' in each ? [String(each.agent_id)] : []))
  })
  expect(told.map(ids => ids.length)).toEqual([200, 200, 200])
  expect(new Set([...told[0]!, ...told[1]!]).size).toBe(300)
  // Those whose turn was longest ago.
  const left = told[0]!.filter(each => !told[1]!.includes(each))
  expect(told[2]).toEqual(expect.arrayContaining(left))
  await reporter.stop()
})

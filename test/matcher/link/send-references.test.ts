// Reference data on their way to the hub: how many in a call, how often, and never before the events (MAT-223).
import { expect, test } from 'bun:test'
import { pino } from 'pino'
import { ReferenceSender } from '../../../apps/matcher/hub-link/send-references.ts'
import type { MatcherState } from '../../../apps/matcher/state/state-types.ts'

type References = ReturnType<MatcherState['referencesToSend']>

const referenceOf = (number: number): References[number] => ({
  id: `CVE-2026-${10_000 + number}`,
  aliases: [],
  severity: '',
  cvss_vector: '',
  cvss_score: null,
  score_source: '',
  published_ms: null,
  modified_ms: null,
  title: '',
  references: [],
  kev: false,
  kev_due_date: '',
  epss: null,
  digest: String(number),
})

test('[MAT-223] at most 500 a call and 10 calls a minute, each once, behind the events that wait', async () => {
  let open: References = Array.from({ length: 1_100 }, (_, number) => referenceOf(number))
  let waiting: string[] = ['a company']
  let clockMs = 0
  const calls: { readonly atMs: number; readonly count: number }[] = []
  const waits: { readonly run: () => void; readonly ms: number }[] = []
  const timer = setTimeout(() => {}, 0)
  const sender = new ReferenceSender({
    state: {
      referencesToSend: max => open.slice(0, max),
      referencesSent: async sent => {
        open = open.slice(sent.length)
      },
      companiesWaiting: () => waiting,
    },
    hub: {
      putVulnerabilities: async items => {
        calls.push({ atMs: clockMs, count: items.length })
        return { kind: 'ok', status: 200, body: { data: {} }, data: {} }
      },
    },
    log: pino({ level: 'silent' }),
    schedule: (run, ms) => {
      waits.push({ run, ms })
      return timer
    },
  })
  const turn = async (): Promise<void> => {
    for (let tick = 0; tick < 10; tick++) await Promise.resolve()
    const next = waits.shift()!
    clockMs += next.ms
    next.run()
  }
  sender.wake()
  for (let turns = 0; turns < 3; turns++) await turn()
  expect(calls).toEqual([])
  waiting = []
  for (let turns = 0; turns < 12; turns++) await turn()
  await sender.stop()
  expect(calls.map(({ count }) => count)).toEqual([500, 500, 100])
  for (const [at, { atMs }] of calls.slice(1).entries()) expect(atMs - calls[at]!.atMs).toBeGreaterThanOrEqual(6_000)
})

// When the hub is told that a scan host was seen.
import { expect, test } from 'bun:test'
import pino from 'pino'
import { SeenTeller } from '../../../apps/matcher/hub-link/tell-seen.ts'
import type { KnownHost } from '../../../apps/matcher/state/state-types.ts'
import { until } from '../../support/until.ts'

const MINUTE_MS = 60_000
const BEGAN_MS = Date.UTC(2026, 0, 15, 12)

test('[MAT-056] the hub is told of a host at most once an hour, of each host by itself', async () => {
  const toldAtMs = new Map<string, number>()
  const told: string[] = []
  const teller = new SeenTeller({
    state: {
      host: hostId => ({ seenToldAtMs: toldAtMs.get(hostId) ?? 0 }) as KnownHost,
      seenTold: (hostId, atMs) => void toldAtMs.set(hostId, atMs),
    },
    hub: {
      seen: async (hostId, body) => {
        told.push(`${hostId} ${body.last_seen_at.slice(11, 16)}`)
        return { kind: 'ok', status: 200, body: {}, data: {} }
      },
    },
    log: pino({ level: 'silent' }),
  })
  for (const [hostId, minutes, isTold] of [
    ['one', 0, true],
    ['one', 30, false],
    ['two', 31, true],
    ['one', 59, false],
    ['one', 60, true],
    ['two', 90, false],
    ['two', 91, true],
    ['one', 119, false],
  ] as const) {
    const atMs = BEGAN_MS + minutes * MINUTE_MS
    teller.note(hostId, '1.0.0', atMs)
    if (isTold) await until('the hub to be told', () => toldAtMs.get(hostId) === atMs)
  }
  expect(told).toEqual(['one 12:00', 'two 12:31', 'one 13:00', 'two 13:31'])
})

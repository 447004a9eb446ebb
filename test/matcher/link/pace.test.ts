// How many requests the hub gets in a minute.
import { expect, test } from 'bun:test'
import { pino } from 'pino'
import { Pace } from '../../../apps/matcher/hub-link/hub-request-rate.ts'
import { MatcherHub, PACED } from '../../../apps/matcher/hub-link/matcher-hub.ts'

test('[MAT-170] no minute has more than 590 requests, whichever minute is looked at', () => {
  let nowMs = 0
  const pace = new Pace(() => nowMs)
  const times: number[] = []
  while (nowMs < 300_000) {
    const waitMs = pace.take('waited')
    if (waitMs === 0) times.push(nowMs)
    nowMs += waitMs === 0 ? 1 : Math.min(waitMs, 13)
  }
  expect(times.length).toBeGreaterThan(4 * 590)
  const most = Math.max(...times.map((from, index) => times.slice(index).filter(at => at < from + 60_000).length))
  expect(most).toBe(590)
})

test('events leave room for what agents wait for, and what is told in passing leaves room for events', () => {
  const pace = new Pace(() => 1000)
  const takeAll = (kind: 'waited' | 'events' | 'passing'): number => {
    let count = 0
    while (pace.take(kind) === 0) count++
    return count
  }
  expect([takeAll('passing'), takeAll('events'), takeAll('waited')]).toEqual([480, 80, 30])
  expect(pace.take('waited')).toBe(60_000)
})

test('[MAT-037] [MAT-170] a call that agents wait for and that has no request left is refused at once, with the time to come again', async () => {
  const pace = new Pace(() => 1000)
  while (pace.take('waited') === 0);
  const hub = new MatcherHub({
    url: 'http://127.0.0.1:9',
    token: () => 'token',
    isPlainAllowed: false,
    log: pino({ level: 'silent' }),
    nowMs: Date.now,
    onClockSkew: () => {},
    onRequest: () => {},
    pace,
  })
  expect(await hub.settings('00000000-0000-4000-8000-000000000001')).toMatchObject({
    kind: 'refused',
    status: 429,
    code: PACED,
    retryAfterSeconds: 60,
  })
})

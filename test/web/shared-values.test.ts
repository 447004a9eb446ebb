// Values that many viewers share, and what is shared of one that cannot be had.
import { expect, test } from 'bun:test'
import { RecentValues } from '../../apps/hub/web/live/recent-values.ts'
import { until } from '../support/until.ts'

const rig = <T>(maxAgeMs: number, outcomes: (T | Error)[]) => {
  const clock = { nowMs: 0 }
  const calls = { count: 0 }
  const values = new RecentValues<T>(maxAgeMs, 3, () => clock.nowMs)
  const make = async (): Promise<T> => {
    const outcome = outcomes[Math.min(calls.count++, outcomes.length - 1)]
    if (outcome instanceof Error) throw outcome
    return outcome as T
  }
  return {
    clock,
    calls,
    values,
    make,
    get: (key = 'key') => values.get(key, make),
    getFresh: () => values.getFresh('key', make),
  }
}

test('a null is a value: many who ask get it from one call, until it is too old', async () => {
  const { clock, calls, get } = rig<string | null>(15_000, [null, 'there'])
  expect(await Promise.all(Array.from({ length: 20 }, () => get()))).toEqual(Array.from({ length: 20 }, () => null))
  expect(await get()).toBeNull()
  expect(calls.count).toBe(1)
  clock.nowMs = 15_000
  expect(await get()).toBe('there')
  expect(calls.count).toBe(2)
})

test('a failure is told to all who ask for two seconds, and then tried again', async () => {
  const { clock, calls, get } = rig(15_000, [new Error('no answer'), 'there'])
  const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => get()))
  expect(new Set(outcomes.map(outcome => outcome.status))).toEqual(new Set(['rejected']))
  await expect(get()).rejects.toThrow('no answer')
  expect(calls.count).toBe(1)
  clock.nowMs = 2_000
  expect(await get()).toBe('there')
})

test('the last value stays at hand while the next cannot be had, as long as it is usable', async () => {
  const { clock, values, get } = rig(4_000, ['old', new Error('no answer')])
  expect(await get()).toBe('old')
  clock.nowMs = 4_000
  await expect(get()).rejects.toThrow('no answer')
  expect(values.last('key', 30_000)).toBe('old')
  clock.nowMs = 30_001
  expect(values.last('key', 30_000)).toBeNull()
})

test('what is at hand is given at once, and the next is begun after it', async () => {
  const { clock, calls, get, values, make } = rig(4_000, ['old', 'new'])
  await get()
  clock.nowMs = 5_000
  expect(await values.of('key', 'at_hand', make)).toBe('old')
  expect(calls.count).toBe(1)
  await until('the next is made', () => calls.count === 2)
  expect(await values.of('key', 'at_hand', make)).toBe('new')
})

test('of too many keys the one goes that was asked for least recently', async () => {
  const { calls, get } = rig(15_000, ['value'])
  for (const key of ['a', 'b', 'c', 'a', 'd']) await get(key)
  expect(calls.count).toBe(4)
  await get('a')
  expect(calls.count).toBe(4)
  await get('b')
  expect(calls.count).toBe(5)
})

test('a fresh value is made after the question, whatever is at hand or under way; all who ask meanwhile share one', async () => {
  const { calls, get, getFresh } = rig<string>(15_000, ['first', 'second', 'third', 'fourth'])
  expect(await get()).toBe('first')
  expect(await getFresh()).toBe('second')
  expect(await get()).toBe('second')
  const [begun, ...asked] = [getFresh(), getFresh(), getFresh()]
  expect(await Promise.all([begun, ...asked])).toEqual(['third', 'third', 'third'])
  expect(calls.count).toBe(3)
})

test('a fresh value is not the one that was begun before the question', async () => {
  const values = new RecentValues<number>(15_000, 3, () => 0)
  const started: (() => void)[] = []
  const make = (): Promise<number> => {
    const number = started.length + 1
    return new Promise(resolve => started.push(() => resolve(number)))
  }
  const before = values.get('key', make)
  const fresh = values.getFresh('key', make)
  expect(started).toHaveLength(1)
  started[0]?.()
  expect(await before).toBe(1)
  while (started.length < 2) await Promise.resolve()
  started[1]?.()
  expect(await fresh).toBe(2)
})

test('what is at hand is given at once, and the next is made meanwhile; where it is too old, one waits', async () => {
  const { clock, values } = rig<string>(2_000, [])
  let [made, release] = [0, () => {}]
  const make = async () => {
    await new Promise<void>(resolve => {
      release = resolve
    })
    return `value ${++made}`
  }
  const first = values.of('key', 'at_hand', make)
  release()
  expect(await first).toBe('value 1')
  clock.nowMs = 5_000
  expect(await values.of('key', 'at_hand', make)).toBe('value 1')
  const recent = values.of('key', 'recent', make)
  release()
  expect(await recent).toBe('value 2')
  clock.nowMs = 12_000
  const late = values.of('key', 'at_hand', make)
  release()
  expect(await late).toBe('value 3')
})

test('what is at hand is given where the next cannot be made', async () => {
  const { clock, values } = rig<string>(2_000, [])
  await values.of('key', 'at_hand', async () => 'value')
  clock.nowMs = 3_000
  const broken = () => Promise.reject(new Error('no answer'))
  expect(await values.of('key', 'at_hand', broken)).toBe('value')
  await expect(values.of('key', 'recent', broken)).rejects.toThrow('no answer')
})

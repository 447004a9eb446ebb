import { describe, expect, test } from 'bun:test'
import { BodyPace } from '../../apps/http/body-pace.ts'

/** Bytes that come at seconds after the start, of which 45 are grace; whether each was too late. */
const f = (came: readonly (readonly [second: number, bytes: number])[]): boolean[] => {
  const pace = new BodyPace(45_000, 1_000_000)
  return came.map(([second, bytes]) => {
    pace.came(bytes)
    return pace.isTooSlow(1_000_000 + second * 1000)
  })
}

describe('the pace of a body', () => {
  test('a client has the grace for itself; then its body comes with 512 bytes a second at least, on the average', () => {
    expect(f([[44, 1]])).toEqual([false])
    expect(f([[45, 1]])).toEqual([false])
    expect(f([[46, 511]])).toEqual([true])
    expect(f([[46, 512]])).toEqual([false])
    expect(f(Array.from({ length: 60 }, (_, second) => [second, 1] as const)).indexOf(true)).toBe(46)
    // 300 s of a slow line, that has sent more than its share, may be silent for a while.
    expect(
      f([
        [100, 200_000],
        [300, 1],
        [500, 1],
      ]),
    ).toEqual([false, false, true])
  })

  test('the time in which nobody reads is not the client’s', () => {
    const pace = new BodyPace(1000, 0)
    pace.came(1)
    pace.pause(500)
    pace.pause(900)
    expect(pace.isTooSlow(60_000)).toBe(false)
    pace.resume(60_000)
    expect(pace.isTooSlow(60_500)).toBe(false)
    expect(pace.isTooSlow(60_600)).toBe(true)
    pace.resume(61_000)
    expect(pace.isTooSlow(60_600)).toBe(true)
  })
})

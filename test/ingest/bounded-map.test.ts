import { expect, test } from 'bun:test'
import { BoundedMap } from '../../apps/collector/bounded-map.ts'
import { randomFrom } from '../support/random.ts'

test('a full map gives up the entry that was set longest ago, and no other', () => {
  const map = new BoundedMap<string, number>(3)
  for (const [value, key] of ['a', 'b', 'c'].entries()) map.set(key, value)
  // Set anew: it is the youngest, and nothing has to go for it.
  map.set('a', 10)
  map.set('d', 3)
  expect(['a', 'b', 'c', 'd'].map(key => map.get(key))).toEqual([10, undefined, 2, 3])
  map.delete('c')
  map.set('e', 4)
  expect(map.size).toBe(3)
  map.set('f', 5)
  expect(['a', 'd', 'e', 'f'].map(key => map.get(key))).toEqual([undefined, 3, 4, 5])
})

const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)

test(`a bounded map is a list of the entries set last (SEED=${seed})`, () => {
  const random = randomFrom(seed)
  const below = (count: number) => Math.floor(random() * count)
  for (let round = 0; round < 40; round++) {
    const countMax = 1 + below(40)
    const map = new BoundedMap<number, number>(countMax)
    let expected: [key: number, value: number][] = []
    for (let step = 0; step < 500; step++) {
      const key = below(countMax * 2)
      expected = expected.filter(([other]) => other !== key)
      if (below(8) === 0) map.delete(key)
      else {
        map.set(key, step)
        expected = [...expected, [key, step] as [number, number]].slice(-countMax)
      }
      expect(map.size).toBe(expected.length)
      for (const [other, value] of expected) if (map.get(other) !== value) throw new Error(`${other} is lost`)
    }
  }
})

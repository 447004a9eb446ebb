// Items of a stream by positions: exact of the newest, never too far of what is older.
import { expect, test } from 'bun:test'
import { PassedItems } from '../../apps/collector/bus/passed-items.ts'
import { Random, seedOf } from '../fuzz/seeded.ts'

test('nothing is known before the first entry came, and of positions before it', () => {
  const items = new PassedItems()
  expect(items.upTo(5)).toBeNull()
  items.came(5, 11)
  expect(items.upTo(4)).toBeNull()
  expect(items.upTo(5)).toBe(11)
  expect(items.upTo(9)).toBe(11)
})

test('what comes again is known anew', () => {
  const items = new PassedItems()
  for (const [position, item] of [
    [1, 1],
    [2, 2],
    [3, 3],
  ] as const)
    items.came(position, item)
  items.backTo(1)
  expect(items.upTo(3)).toBe(1)
  items.came(2, 7)
  expect(items.upTo(3)).toBe(7)
})

test('[BUS-005] an item that is named has nothing behind it that the position is ahead of, and the newest are exact', () => {
  const random = new Random(seedOf('passed items'))
  const items = new PassedItems()
  const came: { readonly position: number; readonly item: number }[] = []
  let [position, item] = [0, 0]
  for (let count = 0; count < 5_000; count++) {
    position += 1 + random.below(3)
    item += 1 + random.below(5)
    items.came(position, item)
    came.push({ position, item })
    const exact = came[came.length - 1 - random.below(Math.min(came.length, 60))]!
    expect(items.upTo(exact.position)).toBe(exact.item)
    const index = random.below(came.length)
    const any = items.upTo(came[index]!.position)!
    expect(any).toBeLessThanOrEqual(came[index]!.item)
    // Of what is older one in 64 is known, until there is much of it.
    expect(any).toBeGreaterThanOrEqual(came[Math.max(0, index - 64)]!.item)
  }
})

test('[BUS-004] however long it runs, what is known stays close to what was passed last', () => {
  const items = new PassedItems()
  let furthest = 0
  for (let position = 1; position <= 2_000_000; position++) {
    items.came(position, position)
    if (position % 12_000 !== 0) continue
    const behind = position - 1_000
    furthest = Math.max(furthest, behind - items.passedTo(behind)!)
  }
  expect(furthest).toBeLessThanOrEqual(64)
})

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
    const any = came[random.below(came.length)]!
    expect(items.upTo(any.position) ?? 0).toBeLessThanOrEqual(any.item)
  }
  // Of the oldest still something is known.
  expect(items.upTo(came[1_000]!.position)).toBeGreaterThan(0)
})

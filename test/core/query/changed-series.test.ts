import { expect, test } from 'bun:test'
import { changeOf, distributionDistance } from '../../../core/query/changed-series.ts'
import { randomFrom } from '../../support/random.ts'

const steps = (count: number, at: (index: number) => number): number[] =>
  Array.from({ length: count }, (_, index) => at(index))

test('the distance of two distributions: 0 for the same, 1 for those that do not meet, the share that moved between', () => {
  const f = (before: readonly number[], within: readonly number[]) => distributionDistance(before, within)
  expect(f([1, 2, 3, 4], [4, 3, 2, 1])).toBe(0)
  expect(f([1, 2, 3], [10, 11])).toBe(1)
  expect(f([1, 1, 1, 1], [1, 1, 9, 9])).toBe(0.5)
  expect(f([], [1])).toBe(0)
  expect(f([1], [])).toBe(0)
})

test('it is the greatest difference of the two shares at or below any value', () => {
  const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
  const random = randomFrom(seed)
  for (let turn = 0; turn < 200; turn++) {
    const draw = () => steps(1 + Math.floor(random() * 20), () => Math.floor(random() * 6))
    const [before, within] = [draw(), draw()]
    const share = (values: readonly number[], value: number) =>
      values.filter(each => each <= value).length / values.length
    const expected = Math.max(
      ...[...before, ...within].map(value => Math.abs(share(before, value) - share(within, value))),
    )
    expect([seed, turn, distributionDistance(before, within)]).toEqual([seed, turn, expected])
  }
})

test('a series that jumped ranks above one that moved by a hair, and that above one that went on as before', () => {
  const wave = steps(240, index => 40 + 5 * Math.sin(index / 5))
  const asBefore = changeOf(wave, wave.slice(0, 60))
  const byAHair = changeOf(
    steps(240, () => 100),
    steps(60, () => 100.5),
  )
  const jumped = changeOf(
    wave,
    steps(60, () => 95),
  )
  expect(asBefore).toBeLessThan(0.2)
  expect(byAHair).toBeGreaterThan(asBefore)
  expect(jumped).toBeGreaterThan(byAHair)
  expect(jumped).toBeLessThanOrEqual(1)
})

test('too few values say nothing', () => {
  expect(changeOf([1, 1], [9, 9, 9])).toBe(0)
  expect(changeOf([1, 1, 1], [9, 9])).toBe(0)
  expect(changeOf([0, 0, 0], [0, 0, 0])).toBe(0)
})

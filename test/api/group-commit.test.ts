// What is asked for at once of the same thing is done together (apps/hub/platform/group-commit.ts).
import { expect, test } from 'bun:test'
import { Grouped } from '../../apps/hub/platform/group-commit.ts'
import { until } from '../support/until.ts'

/** Works off numbers when it is told to; the groups that it was given. */
function rig(groupMax: number, gaps: { firstMs: number; nextMs: number; lastMs: number } | null = null) {
  const groups: number[][] = []
  const gates: PromiseWithResolvers<void>[] = []
  const grouped = new Grouped(
    async (asks: readonly number[]) => {
      groups.push([...asks])
      const gate = Promise.withResolvers<void>()
      gates.push(gate)
      await gate.promise
      return asks.map(each => each * 10)
    },
    waiting => Math.min(waiting.length, groupMax),
    gaps,
  )
  return { grouped, groups, gates }
}

test('those that come at once or meanwhile go together, in their order', async () => {
  const { grouped, groups, gates } = rig(3)
  const first = [1, 2].map(each => grouped.run('a', each))
  const other = grouped.run('b', 7)
  expect(groups).toEqual([])
  await until('both keys began', () => groups.length === 2)
  expect(groups).toEqual([[1, 2], [7]])
  const meanwhile = [3, 4, 5, 6].map(each => grouped.run('a', each))
  for (const gate of gates) gate.resolve()
  expect(await Promise.all([...first, other])).toEqual([10, 20, 70])
  expect(groups).toEqual([[1, 2], [7], [3, 4, 5]])
  gates[2]?.resolve()
  await meanwhile[2]
  gates[3]?.resolve()
  expect(await Promise.all(meanwhile)).toEqual([30, 40, 50, 60])
  expect(groups).toEqual([[1, 2], [7], [3, 4, 5], [6]])
})

test('when the work fails, those of its group fail and the next go on', async () => {
  const { grouped, groups, gates } = rig(2)
  const results = [1, 2, 3, 4].map(each =>
    grouped.run('a', each).catch((error: unknown) => (error instanceof Error ? error.message : 'another')),
  )
  await until('the first group began', () => groups.length === 1)
  gates[0]?.reject(new Error('lost'))
  expect(await Promise.all([results[0], results[1]])).toEqual(['lost', 'lost'])
  gates[1]?.resolve()
  expect(await Promise.all([results[2], results[3]])).toEqual([30, 40])
  expect(groups).toEqual([
    [1, 2],
    [3, 4],
  ])
  const last = grouped.run('a', 5)
  await until('the last began', () => groups.length === 3)
  gates[2]?.resolve()
  expect(await last).toBe(50)
})

test('those that were answered together and come back one after the other go together again', async () => {
  const { grouped, groups, gates } = rig(9, { firstMs: 60_000, nextMs: 60_000, lastMs: 60_000 })
  const first = [1, 2, 3].map(each => grouped.run('a', each))
  await until('the first group began', () => groups.length === 1)
  gates[0]?.resolve()
  await Promise.all(first)
  const again: Promise<number>[] = []
  for (const each of [4, 5, 6]) {
    expect(groups).toHaveLength(1)
    again.push(grouped.run('a', each))
    await new Promise(resolve => setImmediate(resolve))
  }
  await until('all of them began', () => groups.length === 2)
  expect(groups).toEqual([
    [1, 2, 3],
    [4, 5, 6],
  ])
  gates[1]?.resolve()
  expect(await Promise.all(again)).toEqual([40, 50, 60])
})

test('one that comes alone after a group waits for the next for a moment, not for as long as for the first', async () => {
  const { grouped, groups, gates } = rig(9, { firstMs: 60_000, nextMs: 1, lastMs: 1 })
  const first = [1, 2, 3].map(each => grouped.run('a', each))
  await until('the first group began', () => groups.length === 1)
  gates[0]?.resolve()
  await Promise.all(first)
  const alone = grouped.run('a', 4)
  await until('it began', () => groups.length === 2)
  gates[1]?.resolve()
  expect(await alone).toBe(40)
})

test('the last ones that come back go with as many as before, and do not wait for a whole group', async () => {
  const { grouped, groups, gates } = rig(9, { firstMs: 60_000, nextMs: 60_000, lastMs: 60_000 })
  const first = [1, 2, 3].map(each => grouped.run('a', each))
  await until('the first group began', () => groups.length === 1)
  const meanwhile = grouped.run('a', 4)
  gates[0]?.resolve()
  await Promise.all(first)
  const again = [5, 6].map(each => grouped.run('a', each))
  await new Promise(resolve => setImmediate(resolve))
  expect(groups).toHaveLength(1)
  again.push(grouped.run('a', 7))
  await until('they began', () => groups.length === 2)
  gates[1]?.resolve()
  expect(await Promise.all([meanwhile, ...again])).toEqual([40, 50, 60, 70])
  expect(groups[1]).toEqual([4, 5, 6, 7])
})

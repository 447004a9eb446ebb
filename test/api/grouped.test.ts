// What is asked for at once of the same thing is done together (apps/hub/platform/grouped.ts).
import { expect, test } from 'bun:test'
import { Grouped } from '../../apps/hub/platform/grouped.ts'

/** Works off numbers when it is told to; the groups that it was given. */
function rig(groupMax: number) {
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
  )
  return { grouped, groups, gates }
}

test('one that comes alone begins at once; those that come meanwhile go together, in their order', async () => {
  const { grouped, groups, gates } = rig(3)
  const results = [1, 2, 3, 4, 5].map(each => grouped.run('a', each))
  const other = grouped.run('b', 7)
  expect(groups).toEqual([[1], [7]])
  for (const gate of gates) gate.resolve()
  expect(await Promise.all([results[0], other])).toEqual([10, 70])
  expect(groups).toEqual([[1], [7], [2, 3, 4]])
  gates[2]?.resolve()
  await results[3]
  gates[3]?.resolve()
  expect(await Promise.all(results)).toEqual([10, 20, 30, 40, 50])
  expect(groups).toEqual([[1], [7], [2, 3, 4], [5]])
})

test('when the work fails, those of its group fail and the next go on', async () => {
  const { grouped, groups, gates } = rig(2)
  const results = [1, 2, 3, 4].map(each =>
    grouped.run('a', each).catch((error: unknown) => (error instanceof Error ? error.message : 'another')),
  )
  gates[0]?.resolve()
  expect(await results[0]).toBe(10)
  gates[1]?.reject(new Error('lost'))
  expect(await Promise.all([results[1], results[2]])).toEqual(['lost', 'lost'])
  gates[2]?.resolve()
  expect(await results[3]).toBe(40)
  expect(groups).toEqual([[1], [2, 3], [4]])
  expect(await Promise.all([grouped.run('a', 5), gates[3]?.resolve()])).toEqual([50, undefined])
})

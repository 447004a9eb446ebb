// Turns that go round the callers, with work that ends when the test says so.
import { expect, test } from 'bun:test'
import { FairTurns } from '../../apps/hub/platform/fair-turns.ts'

class Work {
  readonly begun: string[] = []
  private readonly ends: (() => void)[] = []
  readonly of = (name: string) => () => {
    this.begun.push(name)
    return new Promise<string>(resolve => {
      this.ends.push(() => resolve(name))
    })
  }
  /** Ends the piece that began first, and lets what waits for it go on. */
  async endOne(): Promise<void> {
    this.ends.shift()?.()
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  }
}

const settle = async () => {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}

test('a caller with one piece waits for one piece of a caller with many', async () => {
  const work = new Work()
  const turns = new FairTurns(1, 100)
  for (let count = 0; count < 50; count++) void turns.run('greedy', work.of(`greedy ${count}`))
  void turns.run('modest', work.of('modest'))
  await settle()
  await work.endOne()
  await work.endOne()
  expect(work.begun).toEqual(['greedy 0', 'modest', 'greedy 1'])
})

test('several run side by side, of one caller never more than one', async () => {
  const work = new Work()
  const turns = new FairTurns(3, 100)
  for (const name of ['a1', 'a2', 'b1', 'c1', 'd1']) void turns.run(name[0] ?? '', work.of(name))
  await settle()
  expect(work.begun).toEqual(['a1', 'b1', 'c1'])
  await work.endOne()
  expect(work.begun).toEqual(['a1', 'b1', 'c1', 'd1'])
  await work.endOne()
  expect(work.begun).toEqual(['a1', 'b1', 'c1', 'd1', 'a2'])
})

test('a caller may have several at once, and leaves the other places to others', async () => {
  const work = new Work()
  const turns = new FairTurns(3, 100, 2)
  for (const name of ['a1', 'a2', 'a3', 'a4']) void turns.run(name[0] ?? '', work.of(name))
  await settle()
  expect(work.begun).toEqual(['a1', 'a2'])
  for (const name of ['b1', 'b2', 'c1']) void turns.run(name[0] ?? '', work.of(name))
  await settle()
  expect(work.begun).toEqual(['a1', 'a2', 'b1'])
  // a1 ends: those who had fewer come first.
  for (let count = 0; count < 5; count++) await work.endOne()
  expect(work.begun).toEqual(['a1', 'a2', 'b1', 'b2', 'c1', 'a3', 'a4'])
})

test('where all places are taken, the caller with the most gives one up, and may not take one of others', async () => {
  const work = new Work()
  const turns = new FairTurns(1, 3)
  const greedy = [0, 1, 2, 3].map(count => turns.run('greedy', work.of(`greedy ${count}`)))
  await settle()
  expect(await turns.run('greedy', work.of('greedy 4'))).toBeNull()
  const modest = turns.run('modest', work.of('modest'))
  expect(await greedy[3]).toBeNull()
  for (let count = 0; count < 4; count++) await work.endOne()
  expect(await modest).toBe('modest')
  expect(await Promise.all(greedy.slice(0, 3))).toEqual(['greedy 0', 'greedy 1', 'greedy 2'])
})

test('work that fails gives the turn to the next', async () => {
  const turns = new FairTurns(1, 10)
  const failed = turns.run('a', () => Promise.reject(new Error('refused')))
  const next = turns.run('b', async () => 'done')
  await expect(failed).rejects.toThrow('refused')
  expect(await next).toBe('done')
})

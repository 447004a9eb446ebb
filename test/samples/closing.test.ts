import { expect, test } from 'bun:test'
import { openTestStore } from '../support/clickhouse.ts'

test('a store that is closed lets the statements end that are under way', async () => {
  const store = await openTestStore()
  // Connections to a server may be cut: the engine in this process may not.
  if (!store.isEmbedded) return store.close()
  const reads = [1, 2, 3].map(number => store.rows(`SELECT ${number} + sleep(0.3)`))
  await store.close()
  expect(await Promise.all(reads)).toEqual([[[1]], [[2]], [[3]]])
})

test('a store that is opened and closed again and again in one process is not worn out', async () => {
  for (let opening = 0; opening < 15; opening++) {
    const store = await openTestStore()
    expect(await store.rows('SELECT 1')).toEqual([[1]])
    await store.close()
    if (!store.isEmbedded) return
  }
})

test('a store that is closed refuses statements, and the process goes on', async () => {
  const store = await openTestStore()
  await store.close()
  await expect(store.rows('SELECT 1')).rejects.toThrow()
  await expect(store.command('SELECT 1')).rejects.toThrow()
})

// Stores a block that is larger than 1 MiB, and a small one, and prints how many rows there are after each. With `stay`
// it goes on until it is killed.
import { insertLateCells } from '../../apps/collector/store/clickhouse/samples-rollups.ts'
import { openTestStore } from '../support/clickhouse.ts'

const cellsOf = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    companyId: '11111111-1111-4111-8111-111111111111',
    serverId: `aaaaaaaa-0000-4000-8000-${String(index).padStart(12, '0')}`,
    startMs: 1_795_000_200_000,
  }))
const store = await openTestStore()
const counts: unknown[] = []
for (const [batch, count] of [
  ['large', 40_000],
  ['small', 1],
] as const) {
  await insertLateCells(store, batch, cellsOf(count))
  counts.push((await store.rows(`SELECT count() FROM ${store.database}.rollup_late`))[0]?.[0])
}
console.log(counts.join(' '))
if (process.argv[2] === 'stay') await new Promise(() => setInterval(() => {}, 1_000))
await store.close()

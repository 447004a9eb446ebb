import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { ClickHouse } from '../../apps/collector/store/clickhouse/clickhouse.ts'
import { insertLateCells } from '../../apps/collector/store/clickhouse/samples-rollups.ts'
import { sha256Hex } from '../../core/series/hash.ts'
import { engineDirectory, openTestStore } from '../support/clickhouse.ts'

/** Where the embedded engine's blocks may lie: in memory, or beside the data. */
const places = [`/dev/shm/samples-${sha256Hex(resolve(engineDirectory)).slice(0, 16)}`, join(engineDirectory, 'blocks')]
const blockFiles = (): string[] =>
  places.flatMap(place => (existsSync(place) ? readdirSync(place).map(name => join(place, name)) : []))
const cell = {
  companyId: '11111111-1111-4111-8111-111111111111',
  serverId: 'aaaaaaaa-0000-4000-8000-000000000001',
  startMs: 1_795_000_200_000,
}

let store: ClickHouse
beforeAll(async () => {
  store = await openTestStore()
})
afterAll(() => store.close())

test('[STO-001] a block file that somebody removed costs one try, not every one after it', async () => {
  // A store on a server has no such files.
  if (!store.isEmbedded) return expect(blockFiles()).toEqual([])
  const before = new Set(blockFiles())
  await insertLateCells(store, 'first', [cell])
  const own = blockFiles().filter(file => !before.has(file))
  expect(own).toHaveLength(1)
  for (const file of own) rmSync(file)
  expect(await insertLateCells(store, 'second', [cell]).catch(() => 'refused')).toBe('refused')
  await insertLateCells(store, 'second', [cell])
  expect(await store.rows(`SELECT count() FROM ${store.database}.rollup_late`)).toEqual([[2]])
})

/** Whether a process may have a small memory of its own to write to. */
const hasNamespaces =
  Bun.which('unshare') !== null && Bun.spawnSync(['unshare', '-rm', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']).success

test.skipIf(!hasNamespaces)(
  '[STO-001] a block that does not fit into the memory of a container goes by way of the disk',
  async () => {
    const child = Bun.spawn(
      [
        'unshare',
        '-rm',
        'sh',
        '-c',
        'mount -t tmpfs -o size=1m tmpfs /dev/shm && mount -t tmpfs tmpfs /mnt && exec "$0" "$@"',
        process.execPath,
        join(import.meta.dir, 'block-process.ts'),
      ],
      { stdout: 'pipe', stderr: 'inherit', env: { PATH: process.env.PATH, TMPDIR: '/mnt' } },
    )
    expect(await new Response(child.stdout).text()).toBe('40000 40001\n')
    expect(await child.exited).toBe(0)
  },
)

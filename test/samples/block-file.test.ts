import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { ClickHouse } from '../../apps/collector/store/clickhouse/clickhouse.ts'
import { insertLateCells } from '../../apps/collector/store/clickhouse/samples-rollups.ts'
import { sha256Hex } from '../../core/series/hash.ts'
import { engineDirectory, openTestStore } from '../support/clickhouse.ts'
import { until } from '../support/until.ts'

const MEMORY = '/dev/shm'
/** A name that another user of the server can work out, as blocks once had it. */
const guessable = join(MEMORY, `samples-${sha256Hex(resolve(engineDirectory)).slice(0, 16)}`)
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

/** A store of this process that stores a block and is closed again. */
async function storeBlock(): Promise<void> {
  const other = await openTestStore()
  await insertLateCells(other, 'first', [cell])
  expect(await other.rows(`SELECT count() FROM ${other.database}.rollup_late`)).toEqual([[1]])
  await other.close()
}

test('[STO-001] what somebody links in the place of blocks beforehand is left alone', async () => {
  if (!existsSync(MEMORY)) return
  const victim = mkdtempSync(join(tmpdir(), 'block-victim-'))
  writeFileSync(join(victim, 'precious'), 'precious')
  rmSync(guessable, { recursive: true, force: true })
  symlinkSync(victim, guessable)
  try {
    await storeBlock()
    expect(readdirSync(victim)).toEqual(['precious'])
  } finally {
    rmSync(guessable, { force: true })
    rmSync(victim, { recursive: true })
  }
})

test('[STO-001] a directory that somebody made for blocks beforehand is not used, and not removed', async () => {
  if (!existsSync(MEMORY)) return
  mkdirSync(guessable, { mode: 0o777 })
  writeFileSync(join(guessable, 'theirs'), '')
  try {
    await insertLateCells(store, 'into a directory', [cell])
    expect(readdirSync(guessable)).toEqual(['theirs'])
    await storeBlock()
    expect(readdirSync(guessable)).toEqual(['theirs'])
  } finally {
    rmSync(guessable, { recursive: true })
  }
})

test('[STO-001] a store that is killed leaves nothing of its blocks behind', async () => {
  if (!existsSync(MEMORY)) return
  const blocks = () => readdirSync(MEMORY).filter(name => name.startsWith('samples-'))
  const before = new Set(blocks())
  const directory = mkdtempSync(join(tmpdir(), 'block-killed-'))
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'block-process.ts'), 'stay'], {
    stdout: Bun.file(join(directory, 'out')),
    stderr: 'inherit',
    env: { PATH: process.env.PATH, TMPDIR: directory },
  })
  await until(
    'its blocks to be stored',
    async () => (await Bun.file(join(directory, 'out')).text()) === '40000 40001\n',
  )
  child.kill('SIGKILL')
  await child.exited
  expect(blocks().filter(name => !before.has(name))).toEqual([])
  const [data] = readdirSync(directory).filter(name => name.startsWith('samples-engine-'))
  expect(readdirSync(join(directory, data!))).not.toContain('blocks')
  rmSync(directory, { recursive: true })
})

test('[STO-001] a block that the engine cannot take costs one try, not every one after it', async () => {
  await store.command(`RENAME TABLE ${store.database}.rollup_late TO ${store.database}.elsewhere`)
  expect(await insertLateCells(store, 'second', [cell]).catch(() => 'refused')).toBe('refused')
  await store.command(`RENAME TABLE ${store.database}.elsewhere TO ${store.database}.rollup_late`)
  const count = async () => Number((await store.rows(`SELECT count() FROM ${store.database}.rollup_late`))[0]![0])
  const before = await count()
  await insertLateCells(store, 'second', [cell])
  expect(await count()).toBe(before + 1)
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

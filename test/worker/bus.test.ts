import { Database } from 'bun:sqlite'
import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SqliteBusReader, SqliteBusWriter } from '../../apps/collector/bus/sqlite-bus.ts'

const MIB = 1024 * 1024
const CONSUMERS = ['evaluation', 'samples'] as const
const close: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const each of close.splice(0).reverse()) await each()
})

function newPath(): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-bus-'))
  close.push(() => rmSync(directory, { recursive: true, force: true }))
  return join(directory, 'bus.sqlite')
}

function openWriter(path: string, options: { bytesMax?: number; ageMaxMs?: number; nowMs?: () => number } = {}) {
  const writer = new SqliteBusWriter({
    path,
    bytesMax: options.bytesMax ?? 1024 * MIB,
    ageMaxMs: options.ageMaxMs ?? 3_600_000,
    groupWaitMs: 1,
    nowMs: options.nowMs ?? Date.now,
    onPublished: () => {},
    onError: error => {
      throw error
    },
  })
  close.push(() => writer.close())
  return writer
}

function openReader(path: string): SqliteBusReader {
  const reader = new SqliteBusReader(path, CONSUMERS)
  close.push(() => reader.close())
  return reader
}

const entryOf = (size: number, first = 0): Uint8Array => new Uint8Array(size).fill(first % 251)

describe('the bus in a file', () => {
  test('at the bound in bytes an entry is refused; it is taken again once both consumers have passed', async () => {
    let nowMs = 1_000_000
    const path = newPath()
    const reader = openReader(path)
    const writer = openWriter(path, { bytesMax: 4 * MIB, nowMs: () => nowMs })
    const publish = () => {
      nowMs += 1001
      return writer.publish('a', entryOf(MIB))
    }
    for (let count = 0; count < 4; count++) expect(await publish()).toBeNull()
    expect(await publish()).toBe('full')
    await reader.pass('evaluation', 0, 4)
    expect(await publish()).toBe('full')
    expect(await reader.read(0, 0, 64 * MIB)).toHaveLength(4)
    await reader.pass('samples', 0, 3)
    expect(await publish()).toBeNull()
    expect((await reader.read(0, 0, 64 * MIB)).map(group => group.firstPosition)).toEqual([4, 5])
    expect((await writer.stats()).bytes).toBe(2 * MIB)
  })

  test('at the bound in age an entry is refused; it is taken again once the old ones are passed', async () => {
    let nowMs = 1_000_000
    const path = newPath()
    const reader = openReader(path)
    const writer = openWriter(path, { ageMaxMs: 60_000, nowMs: () => nowMs })
    expect(await writer.publish('a', entryOf(10))).toBeNull()
    nowMs += 61_000
    expect(await writer.publish('a', entryOf(10))).toBe('full')
    for (const consumer of CONSUMERS) await reader.pass(consumer, 0, 1)
    nowMs += 1001
    expect(await writer.publish('a', entryOf(10))).toBeNull()
  })

  test('[BUS-002] a refusal is told to every reader of the file, with its time', async () => {
    let nowMs = 1_000_000
    const path = newPath()
    const reader = openReader(path)
    const writer = openWriter(path, { bytesMax: MIB, nowMs: () => nowMs })
    expect(await writer.publish('a', entryOf(MIB))).toBeNull()
    expect(await reader.refusedAtMs()).toBe(0)
    nowMs += 5000
    expect(await writer.publish('a', entryOf(10))).toBe('full')
    expect(await reader.refusedAtMs()).toBe(nowMs)
    nowMs += 5000
    expect(await writer.publish('a', entryOf(10))).toBe('full')
    expect(await reader.refusedAtMs()).toBe(nowMs)
  })

  test('nothing is removed while a consumer has not passed it, and what is passed stays passed after a restart', async () => {
    const path = newPath()
    const writer = openWriter(path)
    const reader = openReader(path)
    for (let index = 1; index <= 10; index++) await writer.publish('a', entryOf(100, index))
    await reader.pass('evaluation', 0, 10)
    await reader.pass('samples', 0, 4)
    // A position that is lower than what was passed changes nothing.
    await reader.pass('samples', 0, 2)
    const again = openReader(path)
    expect(await again.passed('samples')).toBe(4)
    expect((await again.read(0, 0, MIB)).map(group => group.firstPosition)).toEqual([5, 6, 7, 8, 9, 10])
    await writer.close()
    const next = openWriter(path)
    expect(await next.publish('a', entryOf(100, 11))).toBeNull()
    expect(await again.lastPosition()).toBe(11)
  })

  test('[BUS-005] a writer and several readers at once: every reader sees every entry once, in the order of publishing', async () => {
    const path = newPath()
    const writer = openWriter(path)
    const total = 3000
    const readers = CONSUMERS.map(async consumer => {
      const reader = openReader(path)
      const seen: number[] = []
      let position = 0
      while (position < total) {
        for (const group of await reader.read(0, position, MIB)) {
          const view = new DataView(group.bytes.buffer, group.bytes.byteOffset, group.bytes.byteLength)
          for (let index = 0; index < group.count; index++) seen.push(view.getUint32(index * 64))
          position = group.firstPosition + group.count - 1
        }
        await reader.pass(consumer, 0, position)
        await new Promise(resolve => setImmediate(resolve))
      }
      return seen
    })
    const publishing: Promise<unknown>[] = []
    for (let index = 0; index < total; index++) {
      const entry = new Uint8Array(64)
      new DataView(entry.buffer).setUint32(0, index)
      publishing.push(writer.publish('a', entry))
      if (index % 50 === 0) await new Promise(resolve => setImmediate(resolve))
    }
    expect((await Promise.all(publishing)).every(refusal => refusal === null)).toBe(true)
    const expected = Array.from({ length: total }, (_, index) => index)
    for (const seen of await Promise.all(readers)) expect(seen).toEqual(expected)
    expect((await writer.stats()).bytes).toBe(0)
  })

  test('a long backlog is removed in small steps: what is published meanwhile is taken before they end', async () => {
    const path = newPath()
    const writer = openWriter(path)
    const reader = openReader(path)
    for (let index = 0; index < 25; index++)
      await Promise.all(Array.from({ length: 4 }, () => writer.publish('a', entryOf(MIB))))
    await reader.pass('evaluation', 0, 100)
    let isRemoved = false
    const removing = reader.pass('samples', 0, 100).then(() => {
      isRemoved = true
    })
    expect(await writer.publish('a', entryOf(10))).toBeNull()
    expect(isRemoved).toBe(false)
    await removing
    expect((await reader.read(0, 0, MIB)).map(group => group.firstPosition)).toEqual([101])
  })

  test('a close in the middle of a removal ends it; the next reader goes on', async () => {
    const path = newPath()
    const writer = openWriter(path)
    const reader = new SqliteBusReader(path, CONSUMERS)
    for (let index = 0; index < 10; index++)
      await Promise.all(Array.from({ length: 4 }, () => writer.publish('a', entryOf(MIB))))
    await reader.pass('evaluation', 0, 40)
    const removing = reader.pass('samples', 0, 40)
    await reader.close()
    await removing
    const next = openReader(path)
    expect(await next.passed('samples')).toBe(40)
    await next.pass('samples', 0, 40)
    expect(await next.read(0, 0, MIB)).toEqual([])
  })

  test('a file that is no database, or that of something else, or of a later format, is refused in words', async () => {
    const noDatabase = newPath()
    writeFileSync(
      noDatabase,
      'this is a text file and no database at all, and long enough to be taken for one'.repeat(20),
    )
    expect(() => new SqliteBusReader(noDatabase, CONSUMERS)).toThrow(/cannot open bus .*: it is damaged, or no bus/)
    const foreign = newPath()
    const database = new Database(foreign, { create: true })
    database.run('CREATE TABLE people (name TEXT)')
    database.close()
    expect(() => openWriter(foreign)).toThrow('it is the database of something else; name another data_dir')
    const later = newPath()
    await openReader(later).close()
    const newer = new Database(later)
    newer.run('PRAGMA user_version = 99')
    newer.close()
    expect(() => openWriter(later)).toThrow('it is of format 99, this program knows 2; use the newer program')
  })

  test('[BUS-005] a bus goes on counting after everything was passed and removed, and so does one of the format before', async () => {
    const path = newPath()
    const reader = openReader(path)
    const writer = openWriter(path)
    for (let index = 1; index <= 5; index++) expect(await writer.publish('a', entryOf(100, index))).toBeNull()
    expect(await reader.lastPosition()).toBe(5)
    for (const consumer of CONSUMERS) await reader.pass(consumer, 0, 5)
    expect(await reader.read(0, 0, MIB)).toEqual([])
    expect(await reader.lastPosition()).toBe(5)
    await writer.close()
    const next = openWriter(path)
    expect(await next.publish('a', entryOf(100, 6))).toBeNull()
    expect((await reader.read(0, 5, MIB)).map(group => group.firstPosition)).toEqual([6])
    await next.close()
    // Format 1 noted the last position with every commit.
    const older = new Database(path)
    older.run('UPDATE head SET last = 6')
    older.run('PRAGMA user_version = 1')
    older.close()
    const migrated = openWriter(path)
    expect(await migrated.publish('a', entryOf(100, 7))).toBeNull()
    expect(await openReader(path).lastPosition()).toBe(7)
  })

  test('a file of which the middle is overwritten gives an error that names it, and no wrong entry', async () => {
    const path = newPath()
    const writer = openWriter(path)
    for (let index = 0; index < 8; index++) await writer.publish('a', entryOf(MIB, index))
    await writer.close()
    const damaged = new Uint8Array(await Bun.file(path).arrayBuffer())
    damaged.fill(0xff, 16_384, 3 * 16_384)
    await Bun.write(path, damaged)
    rmSync(`${path}-wal`, { force: true })
    const open = async () => {
      const reader = new SqliteBusReader(path, CONSUMERS)
      try {
        await reader.read(0, 0, 64 * MIB)
      } finally {
        await reader.close()
      }
    }
    await expect(open()).rejects.toThrow(/bus|malformed/)
  })
})

test('a second writer of a bus is refused in words; after the first has closed it may write', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-bus-'))
  const options = {
    path: join(directory, 'bus.sqlite'),
    bytesMax: 1024 * 1024,
    ageMaxMs: 3_600_000,
    groupWaitMs: 1,
    nowMs: Date.now,
    onPublished: () => {},
    onError: () => {},
  }
  const first = new SqliteBusWriter(options)
  expect(() => new SqliteBusWriter(options)).toThrow('another ingest runs on this directory')
  expect(await first.publish('a', new Uint8Array(96))).toBeNull()
  await first.close()
  const second = new SqliteBusWriter(options)
  expect(await second.publish('a', new Uint8Array(96))).toBeNull()
  await second.close()
  rmSync(directory, { recursive: true, force: true })
})

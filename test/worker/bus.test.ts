import { Database } from 'bun:sqlite'
import { afterEach, describe, expect, spyOn, test } from 'bun:test'
import {
  appendFileSync,
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import {
  CommitPace,
  GROUP_ENTRIES,
  GROUP_WAIT_MS,
  REDIS_GROUP_ENTRIES,
  REDIS_GROUP_WAIT_MS,
} from '../../apps/collector/bus/commit-pace.ts'
import { FileBusReader } from '../../apps/collector/bus/file-bus-reader.ts'
import { FileBusWriter } from '../../apps/collector/bus/file-bus-writer.ts'
import { PacedNotice } from '../../apps/collector/bus/paced-notice.ts'
import { groupBytes, sealGroup } from '../../apps/collector/bus/segment.ts'
import { BusIndex } from '../../apps/collector/bus/segments-and-consumers.ts'
import { randomFrom } from '../support/random.ts'
import { until } from '../support/until.ts'

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
  const writer = new FileBusWriter({
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

function openReader(path: string): FileBusReader {
  const reader = new FileBusReader(path, CONSUMERS)
  close.push(() => reader.close())
  return reader
}

const folderOf = (path: string): string => join(dirname(path), 'bus-segments')
const endOf = (path: string): string => join(folderOf(path), 'end')
const segmentsOf = (path: string): string[] =>
  readdirSync(folderOf(path))
    .filter(name => name.endsWith('.log'))
    .map(name => join(folderOf(path), name))

const entryOf = (size: number, first = 0): Uint8Array => new Uint8Array(size).fill(first % 251)

describe('the bus in a file', () => {
  test('what is passed makes room although the clock was set back', async () => {
    let nowMs = 36_000_000
    const path = newPath()
    const reader = openReader(path)
    const writer = openWriter(path, { bytesMax: 4 * MIB, nowMs: () => nowMs })
    expect(await writer.publish('a', new Uint8Array(MIB))).toBeNull()
    nowMs -= 3_600_000
    for (let count = 0; count < 8; count++) {
      nowMs += 5_000
      expect(await writer.publish('a', new Uint8Array(MIB))).toBeNull()
      for (const consumer of CONSUMERS) await reader.pass(consumer, 0, await reader.lastPosition())
    }
  })

  test('a disk that does not let what is passed be forgotten is told of; the bus opens, answers and goes on', async () => {
    const path = newPath()
    const reader = openReader(path)
    const errors: unknown[] = []
    let nowMs = Date.now()
    const open = () =>
      new FileBusWriter({
        path,
        bytesMax: 1024 * MIB,
        ageMaxMs: 3_600_000,
        groupWaitMs: 0,
        nowMs: () => nowMs,
        onPublished: () => {},
        onError: error => errors.push(error),
      })
    let writer = open()
    // More than a segment.
    for (let count = 0; count < 20; count++) expect(await writer.publish('a', new Uint8Array(MIB))).toBeNull()
    for (const consumer of CONSUMERS) await reader.pass(consumer, 0, 20)
    const removing = spyOn(BusIndex.prototype, 'removeSegmentsBefore').mockImplementation(() => {
      throw new Error('database or disk is full')
    })
    nowMs += 2_000
    expect(await writer.publish('a', new Uint8Array(8))).toBeNull()
    expect((await writer.stats()).lagEntries).toBe(1)
    await writer.close()
    writer = open()
    expect(errors.map(String)).toContain('Error: database or disk is full')
    removing.mockRestore()
    nowMs += 2_000
    expect(await writer.publish('a', new Uint8Array(8))).toBeNull()
    await writer.close()
    expect((await reader.read(0, 20, MIB)).map(({ firstPosition }) => firstPosition)).toEqual([21, 22])
  })

  test('what one read gives stays as it is until the next, which takes the same memory', async () => {
    const path = newPath()
    const writer = openWriter(path)
    const reader = openReader(path)
    const publish = (value: number, byteCount: number) =>
      writer.publish('a', new Uint8Array(byteCount).fill(value, 0, byteCount))
    const areOf = (values: readonly number[], groups: readonly { readonly bytes: Uint8Array }[]): boolean =>
      groups.length === values.length &&
      groups.every(({ bytes }, at) => bytes.length > 0 && bytes.every(byte => byte === values[at]))
    // The file is read a second time for the last of them, which the first time has only begun.
    for (const [value, byteCount] of [
      [1, 8],
      [2, 50_000],
      [3, 50_000],
    ] as const)
      await publish(value, byteCount)
    const first = await reader.read(0, 0, 70_000)
    expect(areOf([1, 2, 3], first)).toBe(true)
    for (const value of [4, 5]) await publish(value, 16)
    const second = await reader.read(0, 3, MIB)
    expect(areOf([4, 5], second)).toBe(true)
    expect(second[0]?.bytes.buffer).toBe(first[0]!.bytes.buffer)
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

  test('files that all have passed are used again: the folder stays small, and nothing of their first use shows', async () => {
    const path = newPath()
    const writer = openWriter(path)
    const reader = openReader(path)
    const random = randomFrom(5)
    let position = 0
    for (let round = 0; round < 60; round++) {
      const sizes = Array.from({ length: 4 }, () => 8 * (1 + Math.floor(random() * 131_072)))
      await Promise.all(sizes.map((size, index) => writer.publish('a', entryOf(size, position + index))))
      const groups = await reader.read(0, position, 64 * MIB)
      expect(groups.map(group => group.bytes.length)).toEqual([sizes.reduce((sum, size) => sum + size, 0)])
      expect(groups[0]!.bytes[0]).toBe(position % 251)
      expect(groups[0]!.firstPosition).toBe(position + 1)
      position += 4
      for (const consumer of CONSUMERS) await reader.pass(consumer, 0, position)
      await writer.stats()
      expect(segmentsOf(path).length).toBeLessThanOrEqual(4)
    }
    expect(segmentsOf(path).length).toBeGreaterThan(1)
    await writer.close()
    // Another writer knows nothing of the spare files.
    const next = openWriter(path)
    expect(segmentsOf(path)).toHaveLength(1)
    expect(await next.publish('a', entryOf(8, 7))).toBeNull()
    expect((await openReader(path).read(0, 0, MIB)).map(group => group.firstPosition)).toEqual([position + 1])
  })

  test('[BUS-005] the file of the next segment is written ahead of its use, at its full size', async () => {
    const path = newPath()
    const writer = openWriter(path)
    const largest = (): number => Math.max(...segmentsOf(path).map(segment => statSync(segment).size))
    for (let index = 0; index < 300; index++) await writer.publish('a', entryOf(32 * 1024, index))
    await until('a file of zeros', () => segmentsOf(path).length === 2 && largest() === 16 * MIB)
    await Promise.all(Array.from({ length: 8 }, (_, index) => writer.publish('a', entryOf(MIB, index))))
    await writer.publish('a', entryOf(8, 7))
    const groups = await openReader(path).read(0, 300, 64 * MIB)
    expect(groups.map(group => [group.firstPosition, group.count])).toEqual([
      [301, 4],
      [305, 4],
      [309, 1],
    ])
    // The file after these two may be written already; it is no segment before it is used.
    const index = BusIndex.open(path, 'reader')
    expect(index.segments()).toHaveLength(2)
    index.close()
  })

  test('who reads from an earlier storage goes back to it; who is behind all consumers starts where they are', async () => {
    const path = newPath()
    const writer = openWriter(path)
    const reader = openReader(path)
    for (let index = 1; index <= 30; index++) await writer.publish('a', entryOf(MIB, index))
    const positions = async (from: number, bytesMax: number) =>
      (await reader.read(0, from, bytesMax)).map(group => group.firstPosition)
    expect(segmentsOf(path)).toHaveLength(2)
    expect(await positions(0, 64 * MIB)).toEqual(Array.from({ length: 30 }, (_, index) => index + 1))
    expect(await positions(15, 2 * MIB)).toEqual([16, 17])
    expect(await positions(17, 1)).toEqual([18])
    expect(await positions(3, 2 * MIB)).toEqual([4, 5])
    for (const consumer of CONSUMERS) await reader.pass(consumer, 0, 20)
    await writer.stats()
    expect(segmentsOf(path)).toHaveLength(2)
    expect(await positions(8, 2 * MIB)).toEqual([21, 22])
    expect(await positions(0, 2 * MIB)).toEqual([21, 22])
  })

  test('a file that is no database, or that of something else, or of a later format, is refused in words', async () => {
    const noDatabase = newPath()
    writeFileSync(
      noDatabase,
      'this is a text file and no database at all, and long enough to be taken for one'.repeat(20),
    )
    expect(() => new FileBusReader(noDatabase, CONSUMERS)).toThrow(/cannot open bus .*: it is damaged, or no bus/)
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
    expect(() => openWriter(later)).toThrow('it is of format 99, this program knows 3; use the newer program')
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
  })

  test('[BUS-005] a bus of a format before is read on: its groups, its positions, what was passed', async () => {
    const path = newPath()
    const sizes = [96, 8 * MIB, 104]
    const atMs = Date.now()
    const older = new Database(path, { create: true })
    older.run('CREATE TABLE groups (first INTEGER PRIMARY KEY, count INTEGER, size INTEGER, at_ms INTEGER, bytes BLOB)')
    older.run('CREATE TABLE consumers (name TEXT PRIMARY KEY, position INTEGER NOT NULL)')
    older.run('CREATE TABLE head (id INTEGER PRIMARY KEY, last INTEGER NOT NULL)')
    older.run('CREATE TABLE refusal (id INTEGER PRIMARY KEY CHECK (id = 1), at_ms INTEGER NOT NULL)')
    older.run('INSERT INTO head VALUES (1, 12)')
    older.run('INSERT INTO refusal VALUES (1, 77)')
    older.run("INSERT INTO consumers VALUES ('evaluation', 13), ('samples', 12)")
    for (const [index, size] of sizes.entries())
      older.query('INSERT INTO groups VALUES (?, 1, ?, ?, ?)').run(13 + index, size, atMs, entryOf(size, 13 + index))
    older.run(`PRAGMA application_id = ${0x53564342}`)
    older.run('PRAGMA user_version = 2')
    older.close()
    const reader = openReader(path)
    expect(await reader.lastPosition()).toBe(15)
    const groups = await reader.read(0, 12, 64 * MIB)
    expect(groups.map(group => [group.firstPosition, group.bytes.length, group.bytes[0]])).toEqual(
      sizes.map((size, index) => [13 + index, size, 13 + index]),
    )
    expect(await reader.refusedAtMs()).toBe(77)
    expect(await reader.passed('evaluation')).toBe(13)
    const writer = openWriter(path)
    expect(await writer.stats()).toEqual({
      lagEntries: 3,
      bytes: sizes.reduce((sum, size) => sum + size),
      oldestAtMs: atMs,
      isFull: false,
    })
    expect(await writer.publish('a', entryOf(96, 16))).toBeNull()
    expect((await reader.read(0, 15, MIB)).map(group => group.firstPosition)).toEqual([16])
    expect(Bun.file(path).size).toBeLessThan(MIB)
    // One that was empty goes on counting.
    const emptyPath = newPath()
    const empty = new Database(emptyPath, { create: true })
    empty.run('CREATE TABLE groups (first INTEGER PRIMARY KEY, count INTEGER, size INTEGER, at_ms INTEGER, bytes BLOB)')
    empty.run('CREATE TABLE head (id INTEGER PRIMARY KEY, last INTEGER NOT NULL)')
    empty.run('INSERT INTO head VALUES (1, 40)')
    empty.close()
    expect(await openWriter(emptyPath).publish('a', entryOf(96))).toBeNull()
    expect(await openReader(emptyPath).lastPosition()).toBe(41)
  })
})

describe('the bus after the power was cut', () => {
  /** What the disk of a server has after it lost its power: the mark of the end may be old or missing. */
  async function filled(count: number): Promise<string> {
    const path = newPath()
    const writer = openWriter(path)
    for (let index = 1; index <= count; index++) await writer.publish('a', entryOf(8 * index, index))
    await writer.close()
    rmSync(endOf(path))
    return path
  }

  test('[BUS-004] what was acknowledged is there, whoever opens the bus first', async () => {
    const path = await filled(9)
    const reader = openReader(path)
    expect(await reader.lastPosition()).toBe(9)
    expect((await reader.read(0, 0, MIB)).map(group => group.bytes.length / 8)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
    const writer = openWriter(path)
    expect(await writer.publish('a', entryOf(80, 10))).toBeNull()
    expect((await reader.read(0, 9, MIB)).map(group => group.firstPosition)).toEqual([10])
  })

  test('[BUS-004] a group that was half written is none: the next one takes its storage and its position', async () => {
    const seed = Math.floor(Math.random() * 2 ** 31)
    const random = randomFrom(seed)
    for (let round = 0; round < 40; round++) {
      const path = await filled(5)
      const [segment] = segmentsOf(path)
      const bytes = new Uint8Array(await Bun.file(segment!).arrayBuffer())
      // The last group is 32 + 40 bytes: cut off within it, or a byte of it another one.
      const at = bytes.length - 1 - Math.floor(random() * 72)
      const isCut = random() < 0.5
      if (!isCut) bytes[at]! ^= 1 + Math.floor(random() * 255)
      writeFileSync(segment!, isCut ? bytes.subarray(0, at) : bytes)
      const where = `seed ${seed}, round ${round}`
      const reader = openReader(path)
      expect(await reader.lastPosition(), where).toBe(4)
      const writer = openWriter(path)
      expect(await writer.publish('a', entryOf(16, 99)), where).toBeNull()
      const groups = await reader.read(0, 0, MIB)
      expect(groups.map(group => [group.firstPosition, group.bytes.length]), where).toEqual([[1, 8], [2, 16], [3, 24], [4, 32], [5, 16]]) // biome-ignore format: pairs
      expect(groups[4]!.bytes[0], where).toBe(99)
    }
  })

  test('what is not synced yet is not shown to readers; a writer that finds it whole makes it part of the bus', async () => {
    const path = newPath()
    const writer = openWriter(path)
    for (let index = 1; index <= 3; index++) await writer.publish('a', entryOf(96, index))
    await writer.close()
    const group = new Uint8Array(groupBytes(96))
    sealGroup(group, { byteCount: 96, first: 4, count: 1, atMs: 1 })
    const [segment] = segmentsOf(path)
    appendFileSync(segment!, group)
    const reader = openReader(path)
    expect(await reader.lastPosition()).toBe(3)
    expect(await reader.read(0, 0, MIB)).toHaveLength(3)
    openWriter(path)
    expect(await reader.lastPosition()).toBe(4)
    expect(await reader.read(0, 3, MIB)).toHaveLength(1)
  })

  test('acknowledged entries that are gone are said in words, and none is numbered as they were', async () => {
    const path = newPath()
    const writer = openWriter(path)
    for (let index = 1; index <= 6; index++) await writer.publish('a', entryOf(96, index))
    await writer.close()
    const [segment] = segmentsOf(path)
    truncateSync(segment!, groupBytes(96) * 4)
    expect(() => openWriter(path)).toThrow('the entries 5 to 6 are missing in')
    // With the index moved away, as the message says, it is a new bus, which goes on counting: its readers know their
    // places.
    for (const file of [path, `${path}-wal`, `${path}-shm`]) rmSync(file, { force: true })
    const reader = openReader(path)
    expect(await reader.read(0, 0, MIB)).toEqual([])
    const next = openWriter(path)
    expect(await next.publish('a', entryOf(96, 7))).toBeNull()
    expect((await reader.read(0, 6, MIB)).map(group => group.firstPosition)).toEqual([7])
    expect((await reader.read(0, 0, MIB)).map(group => group.firstPosition)).toEqual([7])
    expect(await reader.lastPosition()).toBe(7)
  })

  test('a bus of which the middle is overwritten gives an error that names it, and no wrong entry', async () => {
    const path = newPath()
    const writer = openWriter(path)
    for (let index = 0; index < 8; index++) await writer.publish('a', entryOf(MIB, index))
    const [segment] = segmentsOf(path)
    const file = openSync(segment!, 'r+')
    writeSync(file, new Uint8Array(40_000).fill(0xff), 0, 40_000, 3 * MIB + 1000)
    closeSync(file)
    const reader = openReader(path)
    expect(await reader.read(0, 0, 2 * MIB)).toHaveLength(2)
    // What lies before the damage is handed over first.
    expect(await reader.read(0, 2, 64 * MIB)).toHaveLength(1)
    await expect(reader.read(0, 3, 64 * MIB)).rejects.toThrow(`bus ${segment} is damaged at byte`)
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
  const first = new FileBusWriter(options)
  expect(() => new FileBusWriter(options)).toThrow('another ingest runs on this directory')
  expect(await first.publish('a', new Uint8Array(96))).toBeNull()
  await first.close()
  const second = new FileBusWriter(options)
  expect(await second.publish('a', new Uint8Array(96))).toBeNull()
  await second.close()
  rmSync(directory, { recursive: true, force: true })
})

test('the next commit waits as long as suits the rate: of a disk until about twelve entries have come, 2 to 12 ms, of Redis 64, 2 to 25', () => {
  const now = spyOn(performance, 'now').mockReturnValue(1_000_000)
  close.push(() => now.mockRestore())
  const waitAfter = (count: number, ...pace: ConstructorParameters<typeof CommitPace>): number => {
    const commits = new CommitPace(...pace)
    expect(commits.waitMs).toBe(0)
    commits.committed(count)
    return commits.waitMs
  }
  const disk = (count: number) => waitAfter(count, GROUP_WAIT_MS, GROUP_ENTRIES)
  expect([1, 100, 120, 240, 600, 10_000].map(disk)).toEqual([12, 12, 10, 5, 2, 2])
  const redis = (count: number) => waitAfter(count, REDIS_GROUP_WAIT_MS, REDIS_GROUP_ENTRIES)
  expect([1, 200, 256, 400, 800, 10_000].map(redis)).toEqual([25, 25, 25, 16, 8, 2])
  expect(waitAfter(1, 0, GROUP_ENTRIES)).toBe(0)
  expect(waitAfter(1, 0, REDIS_GROUP_ENTRIES)).toBe(0)
})

test('who comes back only when it is answered is not waited for in vain, and a fleet that comes all the time is', () => {
  let nowMs = 1_000_000
  const now = spyOn(performance, 'now').mockImplementation(() => nowMs)
  close.push(() => now.mockRestore())
  /** The wait after so many commits; each entry comes so long after the one before, or after a commit. */
  const settled = (gapMs: number, senders: number): number => {
    const pace = new CommitPace(GROUP_WAIT_MS, GROUP_ENTRIES)
    let count = 0
    for (let commits = 0; commits < 200; commits += count === 0 ? 1 : 0) {
      nowMs += gapMs
      pace.arrived()
      count++
      const { waitMs } = pace
      if (waitMs > gapMs && count < senders) continue
      nowMs += waitMs
      pace.committed(count)
      count = 0
    }
    return pace.waitMs
  }
  for (const senders of [1, 2, 4]) expect([senders, settled(0.2, senders) < 3]).toEqual([senders, true])
  expect(settled(3, Number.POSITIVE_INFINITY)).toBe(12)
  expect(settled(1, Number.POSITIVE_INFINITY)).toBeWithin(10, 13)
  expect(settled(0.5, Number.POSITIVE_INFINITY)).toBeWithin(5, 7)
  expect(settled(0.1, Number.POSITIVE_INFINITY)).toBe(2)
})

describe('a paced notice', () => {
  test('is given at once after quiet, and once for all that is raised within the period', () => {
    let given = 0
    const notice = new PacedNotice(3_600_000, () => given++)
    notice.raise()
    expect(given).toBe(1)
    for (let raised = 0; raised < 5; raised++) notice.raise()
    expect(given).toBe(1)
    // Nothing that was raised is lost at the end.
    notice.stop()
    expect(given).toBe(2)
    notice.stop()
    expect(given).toBe(2)
  })

  test('what is raised within the period is given at its end', async () => {
    let given = 0
    const notice = new PacedNotice(1, () => given++)
    notice.raise()
    notice.raise()
    await until('the second notice', () => given === 2)
  })
})

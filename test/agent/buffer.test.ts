// The buffer on disk: what survives, what is dropped, in which order.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { BatchBuffer } from '../../apps/agent/state/batch-buffer.ts'
import { SeqCounter, StateDir } from '../../apps/agent/state/state-dir.ts'
import { type PointSeries, pointCount } from '../../core/agent/requests-of-cycles.ts'

const log = pino({ level: 'silent' })
let path = ''
beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), 'buffer-test-'))
})
afterEach(() => {
  chmodSync(path, 0o700)
  rmSync(path, { recursive: true, force: true })
})

const cycle = (tsMs: number, count = 3): PointSeries[] =>
  Array.from({ length: count }, (_, index) => ({
    name: 'disk_total_bytes',
    labels: { mount: `/m${index}` },
    points: [{ tsMs, value: Math.sin(tsMs * 7 + index) }],
  }))
const stamps = (buffer: BatchBuffer, pointsMax = 20_000): number[] =>
  (buffer.oldest(pointsMax)?.series ?? []).filter(({ labels }) => labels.mount === '/m0').map(s => s.points[0]!.tsMs)

test('cycles come back oldest first, exactly as they went in, after a restart too', () => {
  const first = new BatchBuffer(path, 1e6, log)
  for (const tsMs of [1, 2, 3]) first.append(cycle(tsMs))
  const again = new BatchBuffer(path, 1e6, log)
  expect(again.batchCount).toBe(3)
  expect(again.oldest(20_000)?.series).toEqual([...cycle(1), ...cycle(2), ...cycle(3)])
  again.append(cycle(4))
  expect(stamps(again)).toEqual([1, 2, 3, 4])
})

test('a request takes no more cycles than its points allow, but one at least', () => {
  const buffer = new BatchBuffer(path, 1e6, log)
  for (const tsMs of [1, 2, 3]) buffer.append(cycle(tsMs))
  expect(stamps(buffer, 6)).toEqual([1, 2])
  expect(stamps(buffer, 1)).toEqual([1])
})

test('removed cycles are gone from the disk', () => {
  const buffer = new BatchBuffer(path, 1e6, log)
  for (const tsMs of [1, 2]) buffer.append(cycle(tsMs))
  buffer.remove(buffer.oldest(3)!.entryNumbers)
  expect(readdirSync(path).length).toBe(1)
  expect(stamps(buffer)).toEqual([2])
  expect(buffer.droppedPoints).toBe(0)
})

test('a full buffer drops its oldest cycles and counts their points', () => {
  const probe = new BatchBuffer(path, 1e6, log)
  probe.append(cycle(1, 50))
  const one = probe.bytes
  probe.clear()
  const buffer = new BatchBuffer(path, Math.floor(one * 3.5), log)
  for (let tsMs = 1; tsMs <= 10; tsMs++) buffer.append(cycle(tsMs, 50))
  expect(buffer.bytes).toBeLessThanOrEqual(one * 3.5)
  const kept = stamps(buffer)
  expect(kept.at(-1)).toBe(10)
  expect(kept).toEqual(Array.from({ length: kept.length }, (_, index) => 11 - kept.length + index))
  expect(buffer.droppedPoints).toBe((10 - kept.length) * 50)
})

test('a smaller bound takes effect at once', () => {
  const buffer = new BatchBuffer(path, 1e6, log)
  for (const tsMs of [1, 2, 3]) buffer.append(cycle(tsMs, 50))
  buffer.setBytesMax(Math.ceil(buffer.bytes / 2))
  expect(buffer.batchCount).toBe(1)
  expect(buffer.droppedPoints).toBe(100)
})

test('a cycle larger than the whole buffer is counted and not kept', () => {
  const buffer = new BatchBuffer(path, 50, log)
  buffer.append(cycle(1, 200))
  expect(buffer.batchCount).toBe(0)
  expect(buffer.droppedPoints).toBe(200)
})

test('a torn file costs its own points only, and half a file from a kill is cleared away', () => {
  const first = new BatchBuffer(path, 1e6, log)
  for (const tsMs of [1, 2, 3]) first.append(cycle(tsMs))
  const [torn] = readdirSync(path).sort()
  truncateSync(join(path, torn!), 5)
  writeFileSync(join(path, '000000000004-3.batch.tmp'), 'half')
  const buffer = new BatchBuffer(path, 1e6, log)
  expect(buffer.batchCount).toBe(3)
  expect(stamps(buffer)).toEqual([2, 3])
  expect(buffer.droppedPoints).toBe(3)
  expect(readdirSync(path).length).toBe(2)
})

test('while the disk takes nothing, cycles wait in memory', () => {
  const buffer = new BatchBuffer(path, 1e6, log)
  buffer.append(cycle(1))
  rmSync(path, { recursive: true })
  buffer.append(cycle(2))
  expect(pointCount(buffer.oldest(20_000)!.series)).toBe(3)
  expect(stamps(buffer)).toEqual([2])
  const dir = new StateDir(path)
  expect(statSync(dir.path).mode & 0o777).toBe(0o700)
  buffer.append(cycle(3))
  expect(readdirSync(path).length).toBe(1)
  expect(stamps(buffer)).toEqual([2, 3])
})

test('[AGT-006] sequence numbers grow over restarts while the disk takes nothing, and go on from there once it does', () => {
  const dir = new StateDir(path)
  const taken: bigint[] = [new SeqCounter(dir).take(0)]
  // The file cannot be written where a folder has its name.
  mkdirSync(join(path, 'seq.tmp'))
  for (const nowMs of [1_790_000_000_000, 1_790_000_030_000]) {
    const seq = new SeqCounter(dir)
    taken.push(...Array.from({ length: 1_200 }, () => seq.take(nowMs)))
  }
  rmSync(join(path, 'seq.tmp'), { recursive: true })
  taken.push(new SeqCounter(dir).take(1_790_000_060_000), new SeqCounter(dir).take(0))
  taken.slice(1).forEach((seq, index) => {
    expect(seq > taken[index]!).toBe(true)
  })
})

test('a file that the disk refuses leaves nothing behind and the old one as it was', () => {
  const dir = new StateDir(path)
  dir.write('config', 'old')
  mkdirSync(join(path, 'config.tmp'))
  expect(() => dir.write('config', 'new')).toThrow()
  rmSync(join(path, 'config.tmp'), { recursive: true })
  expect(dir.read('config')).toBe('old')
  expect(readdirSync(path)).toEqual(['config'])
})

test('a cycle without points takes no room', () => {
  const buffer = new BatchBuffer(path, 1e6, log)
  buffer.append([])
  expect(buffer.batchCount).toBe(0)
  expect(buffer.oldest(10)).toBeNull()
})

test('[AGT-006] sequence numbers grow over restarts, whether the last run ended well or not', () => {
  const dir = new StateDir(path)
  const taken: bigint[] = []
  for (let run = 0; run < 3; run++) {
    const seq = new SeqCounter(dir)
    for (let index = 0; index < 1_500; index++) taken.push(seq.take(0))
  }
  taken.slice(1).forEach((seq, index) => {
    expect(seq > taken[index]!).toBe(true)
  })
})

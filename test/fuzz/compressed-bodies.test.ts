import { expect, test } from 'bun:test'
import { constants, createZstdCompress, gzipSync, zstdCompressSync } from 'node:zlib'
import { ApiError } from '../../apps/http/api-error.ts'
import { inflate } from '../../apps/http/body-limits.ts'
import { batchFields, mutate } from './batch-messages.ts'
import { Random, runsOf, seedOf } from './seeded.ts'

const BYTES_MAX = 8 * 1024 * 1024
const nowMs = 1_795_000_000_000
const plain = Buffer.from(
  Array.from({ length: 40 }, (_, index) => batchFields(nowMs, new Random(index)))
    .flat(2)
    .flat(),
)

const f = (bytes: Uint8Array, encoding: 'zstd' | 'gzip') => {
  const result = inflate(new Uint8Array(bytes), encoding, BYTES_MAX)
  return result instanceof ApiError ? result.status : Buffer.from(result)
}
const zstd = (bytes: Uint8Array, params: Record<number, number> = {}) => zstdCompressSync(bytes, { params })
const skippable = (length: number, kind = 0) => {
  const frame = Buffer.alloc(8 + length, 7)
  frame.writeUInt32LE(0x184d2a50 + kind, 0)
  frame.writeUInt32LE(length, 4)
  return frame
}

/** A frame of unknown size, in blocks as they come. */
async function streamed(chunks: readonly Uint8Array[]): Promise<Buffer> {
  const stream = createZstdCompress()
  const parts: Buffer[] = []
  stream.on('data', (part: Buffer) => parts.push(part))
  const done = new Promise<void>(settle => stream.on('end', () => settle()))
  for (const chunk of chunks)
    await new Promise<void>(settle => stream.write(chunk, () => stream.flush(constants.ZSTD_e_flush, () => settle())))
  stream.end()
  await done
  return Buffer.concat(parts)
}

test('[WIRE-006] zstd frames of every level are taken, with and without their size and a checksum', async () => {
  for (let level = -7; level <= 22; level++)
    for (const size of [0, 1])
      for (const checksum of [0, 1]) {
        const params = {
          [constants.ZSTD_c_compressionLevel]: level,
          [constants.ZSTD_c_contentSizeFlag]: size,
          [constants.ZSTD_c_checksumFlag]: checksum,
        }
        expect(f(zstd(plain, params), 'zstd')).toEqual(plain)
      }
  expect(f(await streamed([plain.subarray(0, 100), plain.subarray(100)]), 'zstd')).toEqual(plain)
})

test('[WIRE-006] several zstd frames are one body, and skippable ones are skipped', async () => {
  const [one, other] = [plain.subarray(0, 333), plain.subarray(333)]
  const frames = [zstd(one), await streamed([other])]
  expect(f(Buffer.concat(frames), 'zstd')).toEqual(plain)
  expect(f(Buffer.concat([skippable(0), frames[0]!, skippable(1000, 15), frames[1]!, skippable(3)]), 'zstd')).toEqual(
    plain,
  )
  expect(f(Buffer.concat([zstd(new Uint8Array(0)), zstd(plain)]), 'zstd')).toEqual(plain)
})

test('a zstd body with a dictionary, a wrong checksum, a wrong size, a tail or without its end answers 400', () => {
  const whole = zstd(plain)
  const dictionary = Buffer.concat([whole.subarray(0, 5), Buffer.from([42]), whole.subarray(5)])
  dictionary[4]! |= 1
  const checked = zstd(plain, { [constants.ZSTD_c_checksumFlag]: 1 })
  checked[checked.length - 1]! ^= 1
  const sized = Buffer.from(whole)
  // The size stands after the descriptor, in a frame of one segment.
  sized[5]! ^= 1
  for (const bytes of [dictionary, checked, sized, whole.subarray(0, -1), Buffer.concat([whole, Buffer.from('tail')])])
    expect(f(bytes, 'zstd')).toBe(400)
})

test('[ING-014] [ING-015] bombs answer 413, whether they tell their size, and also in several frames', async () => {
  const bomb = new Uint8Array(64 * 1024 * 1024)
  const quarter = zstd(bomb.subarray(0, BYTES_MAX / 4 + 1))
  expect(f(zstd(bomb), 'zstd')).toBe(413)
  expect(f(zstd(bomb, { [constants.ZSTD_c_contentSizeFlag]: 0 }), 'zstd')).toBe(413)
  expect(f(Buffer.concat([quarter, quarter, quarter, quarter]), 'zstd')).toBe(413)
  const unsized = await streamed([bomb.subarray(0, BYTES_MAX / 2), bomb.subarray(0, BYTES_MAX / 2 + 1)])
  expect(f(unsized, 'zstd')).toBe(413)
  expect(f(Buffer.concat([skippable(10), unsized]), 'zstd')).toBe(413)
  expect(f(gzipSync(bomb), 'gzip')).toBe(413)
  expect(f(Buffer.concat([gzipSync(plain), gzipSync(bomb)]), 'gzip')).toBe(413)
  expect(f(gzipSync(bomb.subarray(0, BYTES_MAX)), 'gzip')).toHaveLength(BYTES_MAX)
  expect(f(zstd(bomb.subarray(0, BYTES_MAX)), 'zstd')).toHaveLength(BYTES_MAX)
})

test('[WIRE-007] gzip of every level and of several members is taken; damage, a cut and garbage at the end answer 400', () => {
  for (let level = 0; level <= 9; level++) expect(f(gzipSync(plain, { level }), 'gzip')).toEqual(plain)
  const whole = gzipSync(plain)
  expect(f(Buffer.concat([gzipSync(plain.subarray(0, 9)), gzipSync(plain.subarray(9))]), 'gzip')).toEqual(plain)
  // Zeros at the end are padding, as gzip itself takes them.
  expect(f(Buffer.concat([whole, Buffer.alloc(100)]), 'gzip')).toEqual(plain)
  const damaged = Buffer.from(whole)
  damaged[damaged.length - 6]! ^= 1
  for (const bytes of [damaged, whole.subarray(0, -1), Buffer.concat([whole, Buffer.from('tail')]), zstd(plain)])
    expect(f(bytes, 'gzip')).toBe(400)
})

test(
  '[WIRE-040] damaged bodies inflate within the limit, or answer 400 or 413',
  async () => {
    const seed = seedOf('compressed-bodies')
    const random = new Random(seed)
    const bomb = new Uint8Array(BYTES_MAX + 1)
    const bodies = [
      ['zstd', zstd(plain)],
      ['zstd', await streamed([plain])],
      ['zstd', Buffer.concat([zstd(plain), skippable(9), zstd(plain)])],
      ['zstd', zstd(bomb)],
      ['gzip', gzipSync(plain)],
    ] as const
    const seen = new Map<number, number>()
    for (let run = 0; run < runsOf(4000); run++) {
      const [encoding, bytes] = random.pick(bodies)
      const result = f(mutate(bytes, random), encoding)
      const status = typeof result === 'number' ? result : 200
      seen.set(status, (seen.get(status) ?? 0) + 1)
      if (typeof result !== 'number') expect(result.length, `seed ${seed}, run ${run}`).toBeLessThanOrEqual(BYTES_MAX)
      else expect([400, 413], `seed ${seed}, run ${run}`).toContain(result)
    }
    console.log('compressed-bodies:', Object.fromEntries(seen))
    expect(seen.get(400)).toBeGreaterThan(0)
  },
  Math.max(60_000, runsOf(0) * 10),
)

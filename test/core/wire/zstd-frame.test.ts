import { expect, test } from 'bun:test'
import { createZstdCompress, zstdCompressSync } from 'node:zlib'
import { readZstdFrames } from '../../../core/wire/zstd-frame.ts'

const text = (bytes: number) => new Uint8Array(bytes).map((_, index) => (index * 2_654_435_761) >>> 20)
const compress = (bytes: Uint8Array, level = 3) =>
  new Uint8Array(Bun.zstdCompressSync(bytes as Uint8Array<ArrayBuffer>, { level }))
const join = (...parts: Uint8Array[]) => new Uint8Array(Buffer.concat(parts))

/** A frame of an encoder that does not know how much will come. */
const streamed = (parts: Uint8Array[]) =>
  new Promise<Uint8Array>((settle, fail) => {
    const encoder = createZstdCompress()
    const out: Buffer[] = []
    encoder.on('data', (part: Buffer) => out.push(part))
    encoder.on('end', () => settle(new Uint8Array(Buffer.concat(out))))
    encoder.on('error', fail)
    for (const part of parts) encoder.write(part)
    encoder.end()
  })

test('[ING-014] a single frame tells its size, whatever its size field', () => {
  for (const bytes of [0, 1, 100, 255, 256, 257, 1000, 65_535, 65_791, 65_792, 70_000, 300_000, 2_000_000])
    for (const level of [1, 3, 19])
      expect(readZstdFrames(compress(text(bytes), level)), `${bytes} at ${level}`).toEqual({
        frameCount: 1,
        contentBytes: bytes,
      })
})

test('a frame of unknown size is whole but tells nothing', async () => {
  const frame = await streamed([text(1000), text(50_000)])
  expect(readZstdFrames(frame)).toMatchObject({ contentBytes: null })
  expect(readZstdFrames(frame.slice(0, -1))).toBeNull()
})

test('several frames and skippable ones add up', () => {
  const skippable = new Uint8Array([0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9])
  expect(readZstdFrames(join(compress(text(10)), compress(text(20))))).toEqual({ frameCount: 2, contentBytes: 30 })
  expect(readZstdFrames(join(skippable, compress(text(20))))).toEqual({ frameCount: 2, contentBytes: 20 })
  expect(readZstdFrames(skippable.slice(0, -1))).toBeNull()
})

test('a checksum belongs to the frame', () => {
  const frame = new Uint8Array(zstdCompressSync(text(5000), { params: { 201: 1 } }))
  expect(readZstdFrames(frame)).toEqual({ frameCount: 1, contentBytes: 5000 })
  expect(readZstdFrames(frame.slice(0, -1))).toBeNull()
})

test('[ING-015] what was cut, has a tail or is no zstd is no frame', () => {
  const frame = compress(text(3000))
  for (let length = 0; length < frame.length; length++)
    expect(readZstdFrames(frame.slice(0, length)), `${length}`).toBeNull()
  expect(readZstdFrames(join(frame, new Uint8Array([1])))).toBeNull()
  expect(readZstdFrames(join(frame, text(100)))).toBeNull()
  expect(readZstdFrames(text(500))).toBeNull()
  const withDictionary = frame.slice()
  withDictionary[4]! |= 1
  expect(readZstdFrames(withDictionary)).toBeNull()
})

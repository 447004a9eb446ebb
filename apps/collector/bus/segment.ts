// A segment of the bus: a file of groups, one after another. Each group has the position of its first entry, so that
// bytes of an earlier use of the file are never taken for a group, and a checksum, which shows that it was written
// completely. Little-endian; entries lie at multiples of eight.
//
//   offset  size  field
//   0       4     magic, with the version of the format
//   4       4     bytes of the entries
//   8       8     position of the first entry (float64)
//   16      4     count of entries
//   20      4     CRC-32 of all of the group, this field as zero
//   24      8     time of the commit, ms (float64)
//   32            the entries, padded to 8
import { fstatSync, readSync, writeSync } from 'node:fs'
import { crc32 } from 'node:zlib'

export const GROUP_HEADER_BYTES = 32
/** 'SVG1' */
const MAGIC = 0x31475653
const CHECKSUM_AT = 20

type GroupHeader = {
  readonly byteCount: number
  readonly first: number
  readonly count: number
  readonly atMs: number
}

/** The size of a group on disk whose entries have `byteCount` bytes. */
export const groupBytes = (byteCount: number): number => GROUP_HEADER_BYTES + Math.ceil(byteCount / 8) * 8

/**
 * Completes a group in place: `bytes` has room for the header, then the entries, and exactly the length of the group.
 */
export function sealGroup(bytes: Uint8Array, header: GroupHeader): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  view.setUint32(0, MAGIC, true)
  view.setUint32(4, header.byteCount, true)
  view.setFloat64(8, header.first, true)
  view.setUint32(16, header.count, true)
  view.setUint32(CHECKSUM_AT, 0, true)
  view.setFloat64(24, header.atMs, true)
  bytes.fill(0, GROUP_HEADER_BYTES + header.byteCount)
  view.setUint32(CHECKSUM_AT, crc32(bytes), true)
}

/** The header of the group that starts at `at` and at the position `first`; null where no such group starts. */
export function groupHeader(bytes: Uint8Array, at: number, first: number): GroupHeader | null {
  if (at + GROUP_HEADER_BYTES > bytes.length) return null
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, GROUP_HEADER_BYTES)
  const count = view.getUint32(16, true)
  const isGroup = view.getUint32(0, true) === MAGIC && view.getFloat64(8, true) === first && count > 0
  return isGroup ? { byteCount: view.getUint32(4, true), first, count, atMs: view.getFloat64(24, true) } : null
}

/**
 * Whether the checksum of the group in `bytes` is right. Zeroes the checksum field, so the memory
 * must belong to the caller.
 */
export function isWhole(bytes: Uint8Array): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const checksum = view.getUint32(CHECKSUM_AT, true)
  view.setUint32(CHECKSUM_AT, 0, true)
  return crc32(bytes) === checksum
}

/** Reads up to `byteCount` bytes of a file, into memory of its own or the beginning of `into`; fewer at its end. */
export function readBytes(
  file: number,
  at: number,
  byteCount: number,
  into: Uint8Array<ArrayBuffer> = new Uint8Array(byteCount),
): Uint8Array<ArrayBuffer> {
  const bytes = into.subarray(0, byteCount)
  let count = 0
  while (count < byteCount) {
    const read = readSync(file, bytes, count, byteCount - count, at + count)
    if (read === 0) break
    count += read
  }
  return count === byteCount ? bytes : bytes.subarray(0, count)
}

export function writeBytes(file: number, at: number, bytes: Uint8Array): void {
  for (let count = 0; count < bytes.length; ) count += writeSync(file, bytes, count, bytes.length - count, at + count)
}

/** A group and its offset `at` in the file. */
export type PlacedGroup = GroupHeader & { readonly at: number }

/**
 * The groups of a segment that starts at position `first`, up to the first offset at which no group with the next
 * position starts. With `looksInside` it also stops at a group whose checksum is wrong.
 */
export function* groupsOf(file: number, first: number, looksInside: boolean): Generator<PlacedGroup> {
  const size = fstatSync(file).size
  let at = 0
  let position = first
  while (at < size) {
    const header = groupHeader(readBytes(file, at, GROUP_HEADER_BYTES), 0, position)
    const length = header ? groupBytes(header.byteCount) : 0
    if (!header || at + length > size || (looksInside && !isWhole(readBytes(file, at, length)))) return
    yield { ...header, at }
    position += header.count
    at += length
  }
}

// The end mark says how far the bus is synced to disk. The writer updates it after each sync and readers do not read
// beyond it, so what they have read cannot be lost in a power cut, and no position is ever used twice. The mark itself
// is not synced: after a power cut it may be older than the segments. It names the boot of the host that wrote it, so a
// reader notices that; the end is then the last complete group of the last segment.
import { closeSync, constants, existsSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { groupBytes, groupsOf, type PlacedGroup } from './segment.ts'
import type { BusIndex, Segment } from './segments-and-consumers.ts'

/**
 * `last` is the last position, `segment` the first position of the last segment, `offset` the bytes of groups in it.
 */
export type BusEnd = { readonly last: number; readonly segment: number; readonly offset: number }

//   0  16  boot   16  8  last   24  8  segment   32  8  offset (float64 each)   40  4  CRC-32 of the 40 bytes before
const MARK_BYTES = 44
/** A read may see a half-written mark; it is then tried again. */
const READ_TRIES_MAX = 100

const bootFile = '/proc/sys/kernel/random/boot_id'
const bootId = Buffer.from(
  (existsSync(bootFile) ? readFileSync(bootFile, 'utf8') : '').replaceAll('-', '').trim().padEnd(32, '0'),
  'hex',
)

export class EndMark {
  private readonly file: number
  private readonly bytes = new Uint8Array(MARK_BYTES)
  private readonly view = new DataView(this.bytes.buffer)
  private readonly body = this.bytes.subarray(0, MARK_BYTES - 4)

  constructor(folder: string) {
    this.file = openSync(join(folder, 'end'), constants.O_RDWR | constants.O_CREAT, 0o600)
  }

  write(end: BusEnd): void {
    this.bytes.set(bootId, 0)
    this.view.setFloat64(16, end.last, true)
    this.view.setFloat64(24, end.segment, true)
    this.view.setFloat64(32, end.offset, true)
    this.view.setUint32(40, crc32(this.body), true)
    writeSync(this.file, this.bytes, 0, MARK_BYTES, 0)
  }

  /** The last mark, or null when there is none. `isCurrent` is false when it is of an earlier boot. */
  read(): (BusEnd & { readonly isCurrent: boolean }) | null {
    for (let attempt = 0; attempt < READ_TRIES_MAX; attempt++) {
      if (readSync(this.file, this.bytes, 0, MARK_BYTES, 0) < MARK_BYTES) return null
      if (crc32(this.body) !== this.view.getUint32(40, true)) continue
      return {
        last: this.view.getFloat64(16, true),
        segment: this.view.getFloat64(24, true),
        offset: this.view.getFloat64(32, true),
        isCurrent: bootId.equals(this.bytes.subarray(0, 16)),
      }
    }
    return null
  }

  close(): void {
    closeSync(this.file)
  }
}

/**
 * The offset at which the groups of a segment end. With `looksInside` checksums are verified and the end is that of the
 * last complete group.
 */
export function endOfSegment(
  index: BusIndex,
  { first, file }: Segment,
  looksInside: boolean,
  tell: (group: PlacedGroup) => void = () => {},
): BusEnd {
  let last = first - 1
  let offset = 0
  const descriptor = openSync(index.segmentPath(file), 'r')
  try {
    for (const group of groupsOf(descriptor, first, looksInside)) {
      tell(group)
      last = group.first + group.count - 1
      offset = group.at + groupBytes(group.byteCount)
    }
  } finally {
    closeSync(descriptor)
  }
  return { last, segment: first, offset }
}

/** Finds the end of the bus by searching the last segment. */
export function endOnDisk(index: BusIndex): BusEnd {
  const segment = index.segments().at(-1)
  return segment ? endOfSegment(index, segment, true) : { last: 0, segment: 1, offset: 0 }
}

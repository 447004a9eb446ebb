// Reads the frame headers of a zstd body before it is inflated (RFC 8878, 3.1): whether it is complete, and its size
// once inflated. The fast decompressor has no output limit, so it only gets a single frame that declares a size within
// the limit (a frame cannot inflate to more than it declares). The decompressor with a limit does not notice a
// truncated body.

const MAGIC = 0xfd2fb528
const SKIPPABLE_MAGIC = 0x184d2a50
const BLOCK_BYTES_MAX = 128 * 1024
const BLOCK_RLE = 1
const BLOCK_RESERVED = 3

/** The frames of a body and their declared size; `contentBytes` is null when at least one frame does not declare it. */
type ZstdContent = { readonly frameCount: number; readonly contentBytes: number | null }

type Frame = { readonly end: number; readonly contentBytes: number | null }

const word = (bytes: Uint8Array, at: number): number =>
  (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0

/** Reads the frames of a body; null when it is not zstd, is truncated, has trailing bytes, or needs a dictionary. */
export function readZstdFrames(bytes: Uint8Array): ZstdContent | null {
  let at = 0
  let frameCount = 0
  let contentBytes: number | null = 0
  while (at < bytes.length) {
    if (at + 8 > bytes.length) return null
    const magic = word(bytes, at)
    const isSkippable = magic >>> 4 === SKIPPABLE_MAGIC >>> 4
    const frame = isSkippable ? { end: at + 8 + word(bytes, at + 4), contentBytes: 0 } : readFrame(bytes, at, magic)
    if (!frame || frame.end > bytes.length) return null
    at = frame.end
    frameCount++
    contentBytes = contentBytes === null || frame.contentBytes === null ? null : contentBytes + frame.contentBytes
  }
  return frameCount > 0 ? { frameCount, contentBytes } : null
}

function readFrame(bytes: Uint8Array, start: number, magic: number): Frame | null {
  if (magic !== MAGIC) return null
  const descriptor = bytes[start + 4]!
  const isSingleSegment = (descriptor & 0x20) !== 0
  const hasChecksum = (descriptor & 0x04) !== 0
  const hasDictionary = (descriptor & 0x03) !== 0
  const hasReservedBit = (descriptor & 0x08) !== 0
  if (hasDictionary || hasReservedBit) return null
  const sizeFlag = descriptor >>> 6
  const sizeBytes = sizeFlag === 0 ? (isSingleSegment ? 1 : 0) : 1 << sizeFlag
  let at = start + (isSingleSegment ? 5 : 6)
  if (at + sizeBytes > bytes.length) return null
  let size = 0
  for (let index = sizeBytes - 1; index >= 0; index--) size = size * 256 + bytes[at + index]!
  if (sizeBytes === 2) size += 256
  at += sizeBytes
  for (;;) {
    if (at + 3 > bytes.length) return null
    const header = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16)
    const type = (header >>> 1) & 3
    const blockBytes = header >>> 3
    if (type === BLOCK_RESERVED || blockBytes > BLOCK_BYTES_MAX) return null
    at += 3 + (type === BLOCK_RLE ? 1 : blockBytes)
    if (header & 1) break
  }
  return { end: at + (hasChecksum ? 4 : 0), contentBytes: sizeBytes === 0 ? null : size }
}

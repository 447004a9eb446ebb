// How large a zstd body says it becomes (RFC 8878, 3.1.1). The fast decompressor has no output limit, so it may only be
// given a single frame that declares a size within the limit; a frame cannot inflate to more than it declares.

const MAGIC = 0xfd2fb528
const BLOCK_BYTES_MAX = 128 * 1024

/**
 * The declared content size of a body that is exactly one zstd frame, or null: more frames, skippable frames, a dictionary,
 * no declared size, or no zstd at all. Those go to the decompressor that holds a limit.
 */
export function singleFrameContentSize(bytes: Uint8Array): number | null {
  if (bytes.length < 9) return null
  const magic = (bytes[0]! | (bytes[1]! << 8) | (bytes[2]! << 16) | (bytes[3]! << 24)) >>> 0
  if (magic !== MAGIC) return null
  const descriptor = bytes[4]!
  const isSingleSegment = (descriptor & 0x20) !== 0
  const hasChecksum = (descriptor & 0x04) !== 0
  if ((descriptor & 0x03) !== 0) return null
  const sizeFlag = descriptor >>> 6
  const sizeBytes = sizeFlag === 0 ? (isSingleSegment ? 1 : 0) : 1 << sizeFlag
  if (sizeBytes === 0) return null
  let at = isSingleSegment ? 5 : 6
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
    if (type === 3 || blockBytes > BLOCK_BYTES_MAX) return null
    at += 3 + (type === 1 ? 1 : blockBytes)
    if (header & 1) break
  }
  if (hasChecksum) at += 4
  return at === bytes.length ? size : null
}

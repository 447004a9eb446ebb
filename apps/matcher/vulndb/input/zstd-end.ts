// Whether a stream of zstd frames ends where a frame does: the decompressor of the runtime takes a stream that is cut
// short for one that has ended (RFC 8878, section 3.1). Only the lengths of headers and blocks are followed.

const MAGIC = 0xfd2fb528
const isSkippable = (magic: number): boolean => magic >= 0x184d2a50 && magic <= 0x184d2a5f
const BLOCK_HEADER_BYTES = 3
const CHECKSUM_BYTES = 4
const RLE = 1

type State = 'magic' | 'descriptor' | 'block' | 'skippable'

export class ZstdEnd {
  private state: State = 'magic'
  /** Bytes of the field that is being read, and how many it has. */
  private readonly field: number[] = []
  private wanted = 4
  /** Bytes that are stepped over before the next field. */
  private toSkip = 0
  private hasChecksum = false
  private frames = 0
  isBroken = false

  /** Whether what was pushed is frames, all of them ended. */
  get isWhole(): boolean {
    return this.frames > 0 && this.state === 'magic' && this.field.length === 0 && this.toSkip === 0 && !this.isBroken
  }

  push(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length && !this.isBroken; ) {
      if (this.toSkip > 0) {
        const step = Math.min(this.toSkip, chunk.length - at)
        this.toSkip -= step
        at += step
        continue
      }
      this.field.push(chunk[at]!)
      at += 1
      if (this.field.length === this.wanted) this.next()
    }
  }

  private await(state: State, wanted: number, skip = 0): void {
    this.state = state
    this.wanted = wanted
    this.toSkip = skip
    this.field.length = 0
  }

  private value(): number {
    return this.field.reduce((sum, byte, index) => sum + byte * 2 ** (8 * index), 0)
  }

  private next(): void {
    const value = this.value()
    switch (this.state) {
      case 'magic':
        if (value === MAGIC) this.await('descriptor', 1)
        else if (isSkippable(value)) this.await('skippable', 4)
        else this.isBroken = true
        return
      case 'skippable':
        this.frames += 1
        this.await('magic', 4, value)
        return
      case 'descriptor':
        this.beginFrame(value)
        return
      case 'block':
        this.beginBlock(value)
    }
  }

  private beginFrame(descriptor: number): void {
    const isSingle = (descriptor & 0x20) !== 0
    this.hasChecksum = (descriptor & 0x04) !== 0
    const dictionaryBytes = [0, 1, 2, 4][descriptor & 0x03]!
    const sizeBytes = [isSingle ? 1 : 0, 2, 4, 8][descriptor >> 6]!
    this.await('block', BLOCK_HEADER_BYTES, (isSingle ? 0 : 1) + dictionaryBytes + sizeBytes)
  }

  private beginBlock(header: number): void {
    const isLast = (header & 1) === 1
    const bytes = ((header >> 1) & 3) === RLE ? 1 : header >> 3
    if (!isLast) {
      this.await('block', BLOCK_HEADER_BYTES, bytes)
      return
    }
    this.frames += 1
    this.await('magic', 4, bytes + (this.hasChecksum ? CHECKSUM_BYTES : 0))
  }
}

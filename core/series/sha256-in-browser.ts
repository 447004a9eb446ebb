// SHA-256 (FIPS 180-4) of text, synchronously and without a library: what `#sha256` is in a browser, where evaluation
// runs too. The test compares it with the native one.

/** The first 32 bits of the fractions of a root of the first primes: of √p for the start, of ∛p for the rounds. */
function fractions(count: number, root: (prime: number) => number): Int32Array {
  const words = new Int32Array(count)
  let found = 0
  for (let candidate = 2; found < count; candidate++) {
    let divisor = 2
    while (candidate % divisor !== 0) divisor++
    if (divisor === candidate) words[found++] = (root(candidate) % 1) * 2 ** 32
  }
  return words
}

const START = fractions(8, Math.sqrt)
const ROUND = fractions(64, Math.cbrt)
const BLOCK_BYTES = 64

const encoder = new TextEncoder()
const schedule = new Int32Array(64)
let padded = new DataView(new ArrayBuffer(1024))

/** Writes text into `padded`: its bytes, 0x80, zeros, and its length in bits; returns how many bytes these are. */
function pad(text: string): number {
  const bytesMax = text.length * 3 + BLOCK_BYTES + 9
  if (padded.byteLength < bytesMax) padded = new DataView(new ArrayBuffer(bytesMax * 2))
  const bytes = new Uint8Array(padded.buffer)
  const { written } = encoder.encodeInto(text, bytes)
  const length = Math.ceil((written + 9) / BLOCK_BYTES) * BLOCK_BYTES
  bytes.fill(0, written, length)
  bytes[written] = 0x80
  padded.setUint32(length - 8, Math.floor(written / 2 ** 29))
  padded.setUint32(length - 4, written << 3)
  return length
}

const turned = (word: number, bits: number): number => (word >>> bits) | (word << (32 - bits))

/** One block of 64 bytes at `at` into the state of eight words. */
function compress(state: Int32Array, at: number): void {
  const w = schedule
  for (let i = 0; i < 16; i++) w[i] = padded.getInt32(at + i * 4)
  for (let i = 16; i < 64; i++) {
    const x = w[i - 15]!
    const y = w[i - 2]!
    const s0 = turned(x, 7) ^ turned(x, 18) ^ (x >>> 3)
    const s1 = turned(y, 17) ^ turned(y, 19) ^ (y >>> 10)
    w[i] = (w[i - 16]! + s0 + w[i - 7]! + s1) | 0
  }
  let [a, b, c, d, e, f, g, h] = [...state] as [number, number, number, number, number, number, number, number]
  for (let i = 0; i < 64; i++) {
    const s1 = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)
    const one = (h + s1 + ((e & f) ^ (~e & g)) + ROUND[i]! + w[i]!) | 0
    const s0 = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)
    const two = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
    h = g
    g = f
    f = e
    e = (d + one) | 0
    d = c
    c = b
    b = a
    a = (one + two) | 0
  }
  for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) state[i] = state[i]! + word
}

function digestOf(text: string): DataView {
  const state = START.slice()
  const length = pad(text)
  for (let at = 0; at < length; at += BLOCK_BYTES) compress(state, at)
  const digest = new DataView(new ArrayBuffer(32))
  for (const [i, word] of state.entries()) digest.setInt32(i * 4, word)
  return digest
}

/** SHA-256 of UTF-8 text, lowercase hex. */
export function sha256Hex(text: string): string {
  const digest = digestOf(text)
  const bytes = Array.from({ length: 32 }, (_, at) => digest.getUint8(at).toString(16).padStart(2, '0'))
  return bytes.join('')
}

/** The first 8 bytes of SHA-256 as (low, high) unsigned 32-bit words. */
export function sha256Words(text: string): { lo: number; hi: number } {
  const digest = digestOf(text)
  return { lo: digest.getUint32(0, true), hi: digest.getUint32(4, true) }
}

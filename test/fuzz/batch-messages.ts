// MetricsBatch bytes in every form that the wire format allows, and some that it does not: any order of fields, unknown
// fields, groups, repeated map entries, overlong varints, split sub-messages; and mutations of all that.
import type { Random } from './seeded.ts'

const encoder = new TextEncoder()
type Bytes = number[]

function varint(value: bigint, into: Bytes, random: Random, canBeLong = true): void {
  let rest = BigInt.asUintN(64, value)
  const bytes: Bytes = []
  do {
    bytes.push(Number(rest & 0x7fn))
    rest >>= 7n
  } while (rest > 0n)
  // An overlong varint says the same in more bytes.
  if (canBeLong && random.chance(0.03)) while (bytes.length < 9 && random.chance(0.6)) bytes.push(0)
  for (let index = 0; index < bytes.length - 1; index++) bytes[index]! |= 0x80
  into.push(...bytes)
}

/** A tag or a length: it must fit 32 bits, in whatever number of bytes up to 5. */
function small(value: number, into: Bytes, random: Random): void {
  const bytes: Bytes = []
  let rest = value
  do {
    bytes.push(rest & 0x7f)
    rest >>>= 7
  } while (rest > 0)
  if (random.chance(0.02)) while (bytes.length < 4 && random.chance(0.5)) bytes.push(0)
  for (let index = 0; index < bytes.length - 1; index++) bytes[index]! |= 0x80
  into.push(...bytes)
}

const tag = (field: number, wire: number, into: Bytes, random: Random) => small(field * 8 + wire, into, random)

function delimited(field: number, content: Bytes, random: Random): Bytes {
  const bytes: Bytes = []
  tag(field, 2, bytes, random)
  small(content.length, bytes, random)
  for (const byte of content) bytes.push(byte)
  return bytes
}

const text = (field: number, value: string, random: Random): Bytes =>
  delimited(field, [...encoder.encode(value)], random)

function integer(field: number, value: bigint, random: Random): Bytes {
  const bytes: Bytes = []
  tag(field, 0, bytes, random)
  varint(value, bytes, random)
  return bytes
}

function double(field: number, value: number, random: Random): Bytes {
  const bytes: Bytes = []
  tag(field, 1, bytes, random)
  bytes.push(...new Uint8Array(new Float64Array([value]).buffer))
  return bytes
}

/** A field that the contract does not have, of any wire type. */
function unknown(random: Random, depth = 0): Bytes {
  const field = random.pick([15, 16, 100, 2047, 100_000])
  const bytes: Bytes = []
  switch (random.below(depth < 3 ? 5 : 4)) {
    case 0:
      return integer(field, BigInt(random.below(1 << 30)), random)
    case 1:
      return double(field, random.float(), random)
    case 2:
      return delimited(
        field,
        Array.from({ length: random.below(20) }, () => random.below(256)),
        random,
      )
    case 3:
      tag(field, 5, bytes, random)
      for (let index = 0; index < 4; index++) bytes.push(random.below(256))
      return bytes
    default:
      tag(field, 3, bytes, random)
      for (let index = random.below(3); index > 0; index--) bytes.push(...unknown(random, depth + 1))
      tag(field, 4, bytes, random)
      return bytes
  }
}

const NAMES = ['cpu_usage_percent', 'disk_used_bytes', 'x', 'a'.repeat(64), 'net_rx_bytes_per_second']
const BAD_NAMES = ['', 'Cpu', '1cpu', 'a'.repeat(65), 'cpu-usage', 'cpu usage', 'ünicode']
const KEYS = ['mount', 'device', 'fstype', 'core', 'a'.repeat(32), 'constructor', 'interface']
const BAD_KEYS = ['', 'Mount', 'a'.repeat(33), 'a-b', '__proto__', 'company_id', 'server_id', 'agent_id']
const VALUES = [
  '/',
  'eth0',
  '',
  'a"b\\c\nd',
  'ü'.repeat(80),
  'x'.repeat(128),
  'x'.repeat(129),
  '\ufeffbom',
  '😀'.repeat(33),
]

function point(nowMs: number, random: Random): Bytes {
  const dayMs = 24 * 3_600_000
  // Most points of a batch have one time.
  const ts = random.chance(0.5)
    ? nowMs
    : random.chance(0.7)
      ? nowMs - random.below(3_600_000)
      : random.pick([
          0,
          -5,
          nowMs - dayMs,
          nowMs - dayMs - 1,
          nowMs + 300_000,
          nowMs + 300_001,
          Number.MAX_SAFE_INTEGER,
        ])
  const value = random.chance(0.9)
    ? random.float() * 1e6
    : random.pick([0, -0, 1e308, 5e-324, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
  const fields: Bytes[] = []
  if (!random.chance(0.03)) fields.push(integer(1, BigInt(ts), random))
  if (!random.chance(0.05)) fields.push(double(2, value, random))
  if (random.chance(0.02)) fields.push(unknown(random))
  if (random.chance(0.02)) fields.push(integer(1, BigInt(nowMs), random))
  const order = random.chance(0.05) ? random.shuffle(fields) : fields
  return delimited(3, order.flat(), random)
}

function label(random: Random): Bytes {
  const key = random.chance(0.93) ? random.pick(KEYS) : random.pick(BAD_KEYS)
  const fields: Bytes[] = []
  if (!random.chance(0.02)) fields.push(text(1, key, random))
  if (!random.chance(0.03)) fields.push(text(2, random.pick(VALUES), random))
  if (random.chance(0.02)) fields.push(text(1, random.pick(KEYS), random))
  if (random.chance(0.02)) fields.push(unknown(random))
  return delimited(2, (random.chance(0.05) ? random.shuffle(fields) : fields).flat(), random)
}

function series(nowMs: number, random: Random): Bytes {
  const fields: Bytes[] = []
  if (!random.chance(0.02))
    fields.push(text(1, random.chance(0.95) ? random.pick(NAMES) : random.pick(BAD_NAMES), random))
  const labels = random.chance(0.01) ? 33 + random.below(4) : random.below(4)
  for (let index = 0; index < labels; index++)
    fields.push(
      labels > 4
        ? delimited(
            2,
            [
              ...text(
                1,
                `k${'abcdefghijklmnopqrstuvwxyz'[index % 26]}${'ab'[index % 2]}${index > 25 ? 'z' : ''}`,
                random,
              ),
              ...text(2, 'v', random),
            ],
            random,
          )
        : label(random),
    )
  for (let index = random.chance(0.8) ? 1 : random.below(5); index > 0; index--) fields.push(point(nowMs, random))
  if (random.chance(0.03)) fields.push(unknown(random))
  if (random.chance(0.02)) fields.push(text(1, random.pick(NAMES), random))
  return (random.chance(0.08) ? random.shuffle(fields) : fields).flat()
}

function stats(random: Random): Bytes {
  const fields = [integer(1, 1000n, random), double(7, 1.5, random), text(9, 'etag', random)]
  for (let index = random.below(3); index > 0; index--)
    fields.push(text(10, random.pick(['a warning', '', 'warnung: ü', 'w'.repeat(200)]), random))
  if (random.chance(0.8))
    fields.push(integer(2, random.pick([0n, 4096n, 2n ** 32n, 2n ** 53n, 2n ** 64n - 1n]), random))
  if (random.chance(0.8)) fields.push(integer(3, BigInt(random.pick([0, 1, 300, 4_294_967_295])), random))
  if (random.chance(0.9)) fields.push(integer(6, BigInt(random.pick([0, 10, 30, 300, 4_294_967_295])), random))
  if (random.chance(0.05)) fields.push(unknown(random))
  return random.shuffle(fields).flat()
}

/** The fields of a batch, each as bytes: an agent's next batch is made of much the same. */
export function batchFields(nowMs: number, random: Random): Bytes[] {
  const fields: Bytes[] = []
  const seq = random.pick([0n, 1n, 300n, 2n ** 32n, 2n ** 53n, 2n ** 64n - 1n])
  if (random.chance(0.95)) fields.push(integer(1, seq, random))
  if (random.chance(0.9)) fields.push(integer(2, BigInt(nowMs), random))
  for (let index = random.below(12); index > 0; index--) fields.push(delimited(3, series(nowMs, random), random))
  if (random.chance(0.8)) fields.push(delimited(4, stats(random), random))
  if (random.chance(0.05)) fields.push(unknown(random))
  if (random.chance(0.03)) fields.push(delimited(4, stats(random), random))
  return random.chance(0.2) ? random.shuffle(fields) : fields
}

/** Bytes changed, cut, doubled, put in or taken out. */
export function mutate(bytes: Uint8Array, random: Random): Uint8Array {
  const changed = [...bytes]
  for (let times = 1 + random.below(3); times > 0 && changed.length > 0; times--) {
    const at = random.below(changed.length)
    switch (random.below(6)) {
      case 0:
        changed[at] = random.below(256)
        break
      case 1:
        changed[at]! ^= 1 << random.below(8)
        break
      case 2:
        changed.length = at
        break
      case 3:
        changed.splice(at, random.below(8))
        break
      case 4:
        changed.splice(at, 0, ...Array.from({ length: random.below(8) }, () => random.below(256)))
        break
      default:
        changed.splice(at, 0, ...changed.slice(at, at + random.below(40)))
    }
  }
  return new Uint8Array(changed)
}

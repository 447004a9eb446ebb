// The agents of a simulated fleet: each with its own token, sequence, clock phase and random walks, and a way to
// behave. What an agent sends next is decided here; fleet.ts sends it.
import { randomBytes } from 'node:crypto'
import type { Random } from '../test/fuzz/seeded.ts'
import { batchBytes, type NamedSeries } from './batches.ts'

/**
 * What an agent does, and the statuses that a collector may answer it with; 0: the connection ends without an answer.
 */
export const behaviours = {
  good: [200],
  /** Was away for some intervals, and sends what it kept, one batch after the other. */
  backfill: [200, 429],
  /** Sends each batch twice, as after a lost answer. */
  resend: [200, 429],
  /** Sends without a pause. */
  hasty: [200, 429],
  /** Other series with every batch, until its limit is met. */
  unsteady: [200],
  /** Took so many points since the batch before that 5,000 are in each. */
  large: [200],
  /** Its clock is an hour ahead. */
  ahead: [200],
  stranger: [401],
  garbage: [400],
  bomb: [413],
  /** Breaks off in the middle of its body. */
  cut: [0],
  /** A byte a second. */
  slow: [0, 400],
} as const satisfies Record<string, readonly number[]>
export type Behaviour = keyof typeof behaviours
export const behaviourNames = Object.keys(behaviours).filter((name): name is Behaviour => name in behaviours)

const BACKFILL_INTERVALS = 5
const HASTY_BATCHES = 20
const LARGE_POINTS = 5000
const BOMB_BYTES = 64 * 1024 * 1024
const SEQ_AT = 1
const SENT_AT = 7
const HEADER_BYTES = 13
/** Tag, length and tag of the time; the time in six bytes; the tag of the value. */
const POINT_BEFORE_VALUE = 10

function putVarint(bytes: Uint8Array, at: number, value: number, length: number): void {
  let rest = value
  for (let index = 0; index < length; index++) {
    bytes[at + index] = (rest % 128) | (index < length - 1 ? 0x80 : 0)
    rest = Math.floor(rest / 128)
  }
}

/** The bytes of a batch of these series, made once; another batch is other numbers in the same places. */
class BatchTemplate {
  private readonly bytes: Uint8Array<ArrayBuffer>
  private readonly view: DataView
  private readonly points: readonly number[]

  constructor(series: readonly NamedSeries[]) {
    const tsMs = 1_795_000_000_000
    const time = new Uint8Array(6)
    putVarint(time, 0, tsMs, 6)
    const whole = Buffer.from(batchBytes(series, 1, tsMs, () => 1))
    // After seq (one byte) and sent_at come series and stats.
    const rest = whole.subarray(9)
    this.bytes = new Uint8Array(HEADER_BYTES + rest.length)
    this.bytes[0] = 0x08
    this.bytes[SENT_AT - 1] = 0x10
    this.bytes.set(rest, HEADER_BYTES)
    this.view = new DataView(this.bytes.buffer)
    const pattern = Buffer.concat([Buffer.from([0x1a, 0x10, 0x08]), time, Buffer.from([0x11])])
    const found: number[] = []
    const all = Buffer.from(this.bytes.buffer)
    for (let at = all.indexOf(pattern); at >= 0; at = all.indexOf(pattern, at + 1)) found.push(at)
    if (found.length !== series.length) throw new Error('the bytes of a batch are not laid out as expected')
    this.points = found
  }

  /** Valid until the next one. */
  fill(seq: number, tsMs: number, value: (index: number) => number): Uint8Array<ArrayBuffer> {
    putVarint(this.bytes, SEQ_AT, seq, 5)
    putVarint(this.bytes, SENT_AT, tsMs, 6)
    for (const [index, at] of this.points.entries()) {
      putVarint(this.bytes, at + 3, tsMs, 6)
      this.view.setFloat64(at + POINT_BEFORE_VALUE, value(index), true)
    }
    return this.bytes
  }
}

/** One request: what is sent, and how. */
export type Sending = { readonly token: string; readonly body: Uint8Array; readonly manner: 'whole' | 'cut' | 'slow' }

const bomb = () => Bun.zstdCompressSync(new Uint8Array(BOMB_BYTES))

export class FleetAgent {
  private seq = 0
  private readonly walk: Float32Array

  constructor(
    readonly token: string,
    readonly behaviour: Behaviour,
    private readonly shared: {
      readonly template: BatchTemplate
      readonly series: readonly NamedSeries[]
      readonly random: Random
      readonly bomb: () => Uint8Array
      readonly isRandom: boolean
    },
  ) {
    const { random, series } = shared
    this.walk = Float32Array.from(series, () => random.float() * 80)
  }

  /** The requests of one interval at `tsMs`; `intervalMs` before it was the last one. */
  next(tsMs: number, intervalMs: number): Sending[] {
    const { token, shared } = this
    const whole = (body: Uint8Array): Sending => ({ token, body, manner: 'whole' })
    switch (this.behaviour) {
      case 'good':
        return [whole(this.batch(tsMs))]
      case 'backfill':
        return Array.from({ length: BACKFILL_INTERVALS }, (_, index) =>
          whole(this.batch(tsMs - (BACKFILL_INTERVALS - 1 - index) * intervalMs)),
        )
      case 'resend': {
        const body = this.batch(tsMs)
        return [whole(body), whole(body)]
      }
      case 'hasty':
        return Array.from({ length: HASTY_BATCHES }, (_, index) => whole(this.batch(tsMs + index)))
      case 'unsteady': {
        const other = shared.series.map(one => ({ ...one, labels: { ...one.labels, boot: String(this.seq) } }))
        return [whole(Bun.zstdCompressSync(new Uint8Array(batchBytes(other, ++this.seq, tsMs, index => index + 1))))]
      }
      case 'large': {
        const count = Math.ceil(LARGE_POINTS / shared.series.length)
        const instants = Array.from({ length: count }, (_, index) =>
          Math.round(tsMs - (intervalMs * (count - 1 - index)) / count),
        )
        const bytes = batchBytes(shared.series, ++this.seq, tsMs, () => shared.random.float() * 80, instants)
        return [whole(Bun.zstdCompressSync(new Uint8Array(bytes)))]
      }
      case 'ahead':
        return [whole(this.batch(tsMs + 3_600_000))]
      case 'stranger':
        return [{ token: `${token}_wrong`, body: this.batch(tsMs), manner: 'whole' }]
      case 'garbage':
        return [whole(Bun.zstdCompressSync(randomBytes(2000)))]
      case 'bomb':
        return [whole(shared.bomb())]
      case 'cut':
      case 'slow':
        return [{ token, body: this.batch(tsMs), manner: this.behaviour }]
    }
  }

  /** Random walks between 0 and 85, a decimal each, as host values are; or values without a pattern below 85. */
  private batch(tsMs: number): Uint8Array {
    const { walk } = this
    const { template, random, isRandom } = this.shared
    if (isRandom) return Bun.zstdCompressSync(template.fill(++this.seq, tsMs, () => random.float() * 85))
    const bytes = template.fill(++this.seq, tsMs, index => {
      walk[index] = Math.min(85, Math.max(0, walk[index]! + (random.float() - 0.5) * 4))
      return Math.round(walk[index]! * 10) / 10
    })
    return Bun.zstdCompressSync(bytes)
  }
}

/** Agents with these tokens; `shares` of them behave in other ways than well. `isRandom`: values without a pattern. */
export function fleetOf(
  tokens: readonly string[],
  series: readonly NamedSeries[],
  random: Random,
  { shares, isRandom }: { readonly shares: Partial<Readonly<Record<Behaviour, number>>>; readonly isRandom: boolean },
): FleetAgent[] {
  let bytes: Uint8Array | null = null
  const shared = {
    template: new BatchTemplate(series),
    series,
    random,
    isRandom,
    bomb: () => {
      bytes ??= bomb()
      return bytes
    },
  }
  return tokens.map(token => {
    let at = random.float()
    const behaviour = behaviourNames.find(name => {
      at -= shares[name] ?? 0
      return at < 0
    })
    return new FleetAgent(token, behaviour ?? 'good', shared)
  })
}

// What a batch means, said a second time and plainly: a strict walk by the schema that tells well-formed bytes from
// others, and admission over the objects of the generated code. The hand-written decoder is compared with both.
import { fromBinary } from '@bufbuild/protobuf'
import { type AdmissionLimits, AdmissionReport } from '../../core/wire/admission-report.ts'
import { normaliseSeries } from '../../core/wire/normalise-series.ts'
import { type MetricsBatch, MetricsBatchSchema } from '../../proto/gen/svc/agent/v1/agent_pb.ts'

/**
 * `malformed`: no message by the wire format. `loose`: well-formed, but with something that decoders judge differently
 * (a known field of another wire type, text that is no UTF-8). `strict`: every decoder must agree.
 */
type Form = 'malformed' | 'loose' | 'strict'

type Schema = {
  readonly [field: number]: { readonly wire: number; readonly message?: Schema; readonly isText?: boolean }
}
const pointSchema: Schema = { 1: { wire: 0 }, 2: { wire: 1 } }
const labelSchema: Schema = { 1: { wire: 2, isText: true }, 2: { wire: 2, isText: true } }
const seriesSchema: Schema = {
  1: { wire: 2, isText: true },
  2: { wire: 2, message: labelSchema },
  3: { wire: 2, message: pointSchema },
}
const statsSchema: Schema = {
  1: { wire: 0 },
  2: { wire: 0 },
  3: { wire: 0 },
  4: { wire: 0 },
  5: { wire: 0 },
  6: { wire: 0 },
  7: { wire: 1 },
  8: { wire: 0 },
  9: { wire: 2, isText: true },
  10: { wire: 2, isText: true },
}
const batchSchema: Schema = {
  1: { wire: 0 },
  2: { wire: 0 },
  3: { wire: 2, message: seriesSchema },
  4: { wire: 2, message: statsSchema },
}

class Malformed extends Error {}

/** Reads a varint: its value (64 bits) and where it ends. */
function varint(bytes: Uint8Array, from: number, end: number): { value: bigint; at: number } {
  let value = 0n
  for (let index = 0; index < 10; index++) {
    const at = from + index
    if (at >= end) throw new Malformed()
    value |= BigInt(bytes[at]! & 0x7f) << BigInt(index * 7)
    if (bytes[at]! < 0x80) return { value: BigInt.asUintN(64, value), at: at + 1 }
  }
  throw new Malformed()
}

const isUtf8 = (bytes: Uint8Array): boolean => {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return true
  } catch {
    return false
  }
}

/** True when something in the message is loose. Throws Malformed. */
function walk(
  bytes: Uint8Array,
  from: number,
  end: number,
  schema: Schema,
  group: number,
  depth: number,
): { isLoose: boolean; at: number } {
  let at = from
  let isLoose = false
  while (at < end) {
    const head = varint(bytes, at, end)
    if (head.value > 0xffffffffn || head.at - at > 5) throw new Malformed()
    const field = Number(head.value >> 3n)
    const wire = Number(head.value & 7n)
    at = head.at
    if (field === 0) throw new Malformed()
    if (wire === 4) {
      if (group !== field) throw new Malformed()
      return { isLoose, at }
    }
    const known = group === 0 ? schema[field] : undefined
    if (known && known.wire !== wire) isLoose = true
    if (wire === 0) at = varint(bytes, at, end).at
    else if (wire === 1) at += 8
    else if (wire === 5) at += 4
    else if (wire === 2) {
      const length = varint(bytes, at, end)
      if (length.value > 0xffffffffn) throw new Malformed()
      const contentEnd = length.at + Number(length.value)
      if (contentEnd > end) throw new Malformed()
      if (known?.message && known.wire === 2)
        isLoose = walk(bytes, length.at, contentEnd, known.message, 0, depth).isLoose || isLoose
      if (known?.isText && known.wire === 2 && !isUtf8(bytes.subarray(length.at, contentEnd))) isLoose = true
      at = contentEnd
    } else if (wire === 3) {
      if (depth >= 90) throw new Malformed()
      at = walk(bytes, at, end, {}, field, depth + 1).at
    } else throw new Malformed()
    if (at > end) throw new Malformed()
  }
  if (group !== 0) throw new Malformed()
  return { isLoose, at }
}

export function formOf(bytes: Uint8Array): Form {
  try {
    return walk(bytes, 0, bytes.length, batchSchema, 0, 0).isLoose ? 'loose' : 'strict'
  } catch (error) {
    if (error instanceof Malformed) return 'malformed'
    throw error
  }
}

export type Outcome = {
  readonly refusal: string | null
  readonly seq: string
  readonly sentAtMs: number
  readonly intervalSeconds: number
  /** -1: the agent says nothing of itself. */
  readonly bufferBytes: number
  readonly bufferBatches: number
  /** The last warning of the agent; null: it has none. */
  readonly agentWarning: string | null
  /** `key @ time = value`, in order. */
  readonly points: readonly string[]
  readonly dropped: Readonly<Record<string, number>>
  readonly droppedPoints: number
  readonly warnings: readonly string[]
}

export const pointText = (key: string, tsMs: number, value: number): string =>
  `${key} @ ${tsMs} = ${Object.is(value, -0) ? '-0' : value}`

/** An agent as the reference knows it: the keys of its series. */
export class ReferenceAgent {
  private keys = new Set<string>()

  constructor(private readonly limits: AdmissionLimits) {}

  /** Decodes with the generated code and admits one series after another. */
  take(bytes: Uint8Array, nowMs: number): Outcome {
    const batch = fromBinary(MetricsBatchSchema, bytes)
    const before = new Set(this.keys)
    const report = new AdmissionReport()
    const seen = batch.series.reduce((sum, series) => sum + series.points.length, 0)
    const facts = {
      seq: batch.seq.toString(),
      sentAtMs: Number(batch.sentAtMs),
      intervalSeconds: batch.stats?.intervalSeconds ?? 0,
      bufferBytes: Number(batch.stats?.bufferBytes ?? -1),
      bufferBatches: batch.stats?.bufferBatches ?? 0,
      agentWarning: batch.stats?.warnings.at(-1) ?? null,
    }
    if (seen > this.limits.pointsMax) {
      this.keys = before
      return { ...facts, refusal: 'too_many_points', points: [], dropped: {}, droppedPoints: 0, warnings: [] }
    }
    const points = this.admit(batch, nowMs, report)
    const warnings = [...report.finish(this.limits.seriesPerAgentMax)]
    return {
      ...facts,
      refusal: null,
      points,
      dropped: { ...report.dropped },
      droppedPoints: report.droppedPoints,
      warnings,
    }
  }

  private admit(batch: MetricsBatch, nowMs: number, report: AdmissionReport): string[] {
    const { limits } = this
    const points: string[] = []
    for (const series of batch.series) {
      const kept: { tsMs: number; value: number }[] = []
      for (const { tsMs: ts, value } of series.points) {
        const tsMs = Number(ts)
        if (tsMs < nowMs - limits.pointAgeMaxMs) report.drop('too_old', 1)
        else if (tsMs > nowMs + limits.pointAheadMaxMs) report.drop('too_new', 1)
        else if (!Number.isFinite(value)) report.drop('not_finite', 1)
        else kept.push({ tsMs, value })
      }
      if (kept.length === 0) continue
      const normal = normaliseSeries(series.name, new Map(Object.entries(series.labels)), report)
      if ('refused' in normal) {
        report.drop(normal.refused, kept.length)
        continue
      }
      if (!this.keys.has(normal.key)) {
        if (this.keys.size >= limits.seriesPerAgentMax) {
          report.seriesLimit ??= { inUse: this.keys.size, firstDropped: normal.key }
          report.drop('series_limit_dropped', kept.length)
          continue
        }
        this.keys.add(normal.key)
      }
      for (const { tsMs, value } of kept) points.push(pointText(normal.key, tsMs, value))
    }
    return points
  }
}

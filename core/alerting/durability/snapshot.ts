// The evaluation state of one shard as bytes, and back (document 2 "State persistence and restart", decision G-148).
//
// Format 1, little-endian: magic "SVCEVAL1", CRC-32 of all that follows (uint32), header bytes (uint32), header as
// UTF-8 JSON, padding to 8, then columns of n states, server after server in the order of the header:
//   seq, lastValue                        float64
//   id low, id high                       uint32
//   lastTs, lastReceived                  int32, ms before savedAt; states out of that range stand in the extended columns
//   rule                                  uint16, index into the header's rules; uint32 where these are more than 65,536
//   phase | flags << 4 | extended << 7    uint8
// then columns of m extended states (not OK, or out of range): lastTs, lastReceived, since, opened, peak, notified,
// float64. The header names the bus position and the journal record that the state reflects; keys of series are kept
// beside the snapshots (SeriesDictionary).
import { DAY_MS } from '../../limits.ts'
import type { FlapState } from '../evaluate/flapping.ts'
import { NO_SIGNATURE, slotOfSaved } from '../rules/rule-slots.ts'
import { addState } from '../rules/rules-of-series.ts'
import type { EvaluationState } from '../state/evaluation-state.ts'
import type { Presence, ServerSeries } from '../state/server-series.ts'
import { FIRING, NO_ROW, OK, PENDING } from '../state/state-table.ts'
import type { RemovedServerRecord, SavedRule } from './journal-record.ts'
import { savedRule } from './state-record.ts'

const MAGIC = 'SVCEVAL1'
const PREFIX_BYTES = 16
const BYTES_A_STATE = 8 + 8 + 4 + 4 + 4 + 4 + 2 + 1
const EXTENDED_COLUMNS = 6
const DELTA_MAX = 0x7fffffff
const EXTENDED = 0x80
/** The state was evaluated under an earlier signature of its rule. */
const FLAG_LAGS = 4
const NARROW_RULES_MAX = 0x10000

type SavedServer = {
  companyId: string
  serverId: string
  key: string
  presence: Presence
  lastBatchMs: number
  states: number
  /** Snapshots of earlier versions have none. */
  removedSeq?: number
}
type SavedFlap = { state: number; flap: FlapState }
type Header = {
  shard: number
  position: number
  journalMark: number
  savedAtMs: number
  states: number
  extended: number
  rules: SavedRule[]
  servers: SavedServer[]
  flapping: SavedFlap[]
  left: RemovedServerRecord[]
  /** How many of the rule changes at this position came before it. Snapshots of earlier versions do not say. */
  ruleChanges?: number
}

type SnapshotFault = { readonly fault: string }

const padTo8 = (bytes: number): number => Math.ceil(bytes / 8) * 8

/** CRC tables of a byte that is followed by 0 to 3 others. */
const CRC_TABLES = [new Uint32Array(256), new Uint32Array(256), new Uint32Array(256), new Uint32Array(256)] as const
for (let byte = 0; byte < 256; byte++) {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  CRC_TABLES[0][byte] = crc
}
for (let at = 1; at < CRC_TABLES.length; at++)
  for (let byte = 0; byte < 256; byte++) {
    const before = CRC_TABLES[at - 1]![byte]!
    CRC_TABLES[at]![byte] = (before >>> 8) ^ CRC_TABLES[0][before & 0xff]!
  }

/** CRC-32 (ISO 3309), four bytes a step (slicing-by-4: Kounavis and Berry, ISCC 2005). */
function crc32(bytes: Uint8Array): number {
  const [last, third, second, first] = CRC_TABLES
  const whole = bytes.length & ~3
  let crc = 0xffffffff
  for (let at = 0; at < whole; at += 4) {
    crc ^= bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
    crc = first[crc & 0xff]! ^ second[(crc >>> 8) & 0xff]! ^ third[(crc >>> 16) & 0xff]! ^ last[crc >>> 24]!
  }
  for (let at = whole; at < bytes.length; at++) crc = last[(crc ^ bytes[at]!) & 0xff]! ^ (crc >>> 8)
  return (crc ^ 0xffffffff) >>> 0
}

/** Views of the columns of n states and m extended states, over one buffer. */
function columns(buffer: ArrayBuffer, at: number, n: number, m: number, rules: number) {
  let offset = at
  const take = <T>(bytes: number, make: (offset: number) => T): T => {
    const view = make(offset)
    offset = padTo8(offset + bytes)
    return view
  }
  return {
    seq: take(n * 8, o => new Float64Array(buffer, o, n)),
    lastValue: take(n * 8, o => new Float64Array(buffer, o, n)),
    idLo: take(n * 4, o => new Uint32Array(buffer, o, n)),
    idHi: take(n * 4, o => new Uint32Array(buffer, o, n)),
    lastTs: take(n * 4, o => new Int32Array(buffer, o, n)),
    lastReceived: take(n * 4, o => new Int32Array(buffer, o, n)),
    rule:
      rules > NARROW_RULES_MAX
        ? take(n * 4, o => new Uint32Array(buffer, o, n))
        : take(n * 2, o => new Uint16Array(buffer, o, n)),
    phase: take(n, o => new Uint8Array(buffer, o, n)),
    extended: take(m * EXTENDED_COLUMNS * 8, o => new Float64Array(buffer, o, m * EXTENDED_COLUMNS)),
  }
}

const columnsBytesMax = (n: number, m: number, rules: number): number =>
  n * (BYTES_A_STATE + (rules > NARROW_RULES_MAX ? 2 : 0)) + m * EXTENDED_COLUMNS * 8 + 9 * 8

/** The servers and rows of a shard that go into its snapshot, found in one walk. */
function collect(evaluation: EvaluationState, shard: number): { servers: ServerSeries[]; rows: number[] } {
  const { next } = evaluation.states
  const servers: ServerSeries[] = []
  const rows: number[] = []
  for (const server of evaluation.servers) {
    if (!server || server.shard !== shard) continue
    servers.push(server)
    for (let index = 0; index < server.count; index++)
      for (let row = server.head[index]!; row >= 0; row = next[row]!) rows.push(row)
  }
  return { servers, rows }
}

/** The rules of these rows in the order in which they come, and the place of each slot among them. */
function rulesOf(evaluation: EvaluationState, rows: readonly number[]): { rules: SavedRule[]; placeOf: Int32Array } {
  const { rule } = evaluation.states
  const rules: SavedRule[] = []
  const placeOf = new Int32Array(evaluation.slots.length).fill(-1)
  for (const row of rows) {
    const slot = rule[row]!
    if (placeOf[slot]! >= 0) continue
    placeOf[slot] = rules.length
    rules.push(savedRule(evaluation.slots[slot]!.rule.compiled))
  }
  return { rules, placeOf }
}

/** The flapping of those of these rows that have any. */
function flappingOf({ flapping }: EvaluationState, rows: readonly number[]): SavedFlap[] {
  if (flapping.size === 0) return []
  return rows.flatMap((row, state) => {
    const flap = flapping.get(row)
    return flap ? [{ state, flap: { ...flap, transitionsTsMs: [...flap.transitionsTsMs] } }] : []
  })
}

/**
 * The removed servers of the shard. Those removed over a day ago are left out: no batch of their agents can still be on
 * the bus.
 */
function removedServersOf(evaluation: EvaluationState, shard: number, nowMs: number): RemovedServerRecord[] {
  for (const [key, records] of evaluation.removedServers)
    if (records.every(({ leftAtMs }) => nowMs - leftAtMs > DAY_MS)) evaluation.removedServers.delete(key)
  return [...evaluation.removedServers.values()].flat().filter(record => record.shard === shard)
}

const isDelta = (ms: number): boolean => ms >= -DELTA_MAX && ms <= DELTA_MAX

/** A copy of the state of one shard at one instant, which later evaluation does not change. */
type TakenSnapshot = { readonly header: Header; readonly columns: Uint8Array }

/**
 * The state of one shard as bytes. `position`, `journalMark`: the bus and the journal are reflected up to here; the bus
 * may stand still while a sweep writes the journal.
 */
export const encodeSnapshot = (...of: Parameters<typeof takeSnapshot>): Uint8Array => snapshotBytes(takeSnapshot(...of))

/**
 * Copies the state of one shard. `snapshotBytes` encodes the copy, at any later time. `ruleChanges`: how many changes
 * of rules were made at `position` until now.
 */
export function takeSnapshot(
  evaluation: EvaluationState,
  shard: number,
  position: number,
  journalMark: number,
  savedAtMs: number,
  ruleChanges?: number,
): TakenSnapshot {
  const { states } = evaluation
  const { servers, rows } = collect(evaluation, shard)
  const isExtended = (row: number) =>
    states.phase[row] !== OK ||
    !isDelta(savedAtMs - states.lastTsMs[row]!) ||
    !isDelta(savedAtMs - states.lastReceivedMs[row]!)
  let extended = 0
  for (const row of rows) if (isExtended(row)) extended++
  const { rules, placeOf } = rulesOf(evaluation, rows)
  const header: Header = {
    shard,
    position,
    journalMark,
    savedAtMs,
    states: rows.length,
    extended,
    rules,
    servers: servers.map(server => ({
      companyId: server.companyId,
      serverId: server.serverId,
      key: server.key,
      presence: { ...server.presence },
      lastBatchMs: server.lastBatchMs,
      states: server.stateCount,
      removedSeq: server.removedSeq,
    })),
    flapping: flappingOf(evaluation, rows),
    left: removedServersOf(evaluation, shard, savedAtMs),
    ...(ruleChanges === undefined ? {} : { ruleChanges }),
  }
  const buffer = new ArrayBuffer(padTo8(columnsBytesMax(rows.length, extended, rules.length)))
  const to = columns(buffer, 0, rows.length, extended, rules.length)
  writeColumns(evaluation, rows, placeOf, to, savedAtMs, isExtended)
  return { header, columns: new Uint8Array(buffer) }
}

/** Encodes a copied state as the bytes of a snapshot. */
export function snapshotBytes({ header, columns }: TakenSnapshot): Uint8Array {
  const headerBytes = new TextEncoder().encode(JSON.stringify(header))
  const columnsAt = padTo8(PREFIX_BYTES + headerBytes.length)
  const bytes = new Uint8Array(columnsAt + columns.length)
  bytes.set(headerBytes, PREFIX_BYTES)
  bytes.set(columns, columnsAt)
  for (let index = 0; index < MAGIC.length; index++) bytes[index] = MAGIC.charCodeAt(index)
  const view = new DataView(bytes.buffer)
  view.setUint32(12, headerBytes.length, true)
  view.setUint32(8, crc32(bytes.subarray(12)), true)
  return bytes
}

function writeColumns(
  evaluation: EvaluationState,
  rows: readonly number[],
  placeOf: Int32Array,
  to: ReturnType<typeof columns>,
  savedAtMs: number,
  isExtended: (row: number) => boolean,
): void {
  const { states, servers, slots } = evaluation
  const { lastTsMs, lastReceivedMs } = states
  let extendedAt = 0
  for (let at = 0; at < rows.length; at++) {
    const row = rows[at]!
    const server = servers[states.server[row]!]!
    const series = states.series[row]!
    const rule = states.rule[row]!
    // The header has only the present signature of a rule. The flag marks a state that began under an earlier one, so
    // that it restarts after a restore too.
    const flags = states.flags[row]! | (states.signature[row] === slots[rule]!.signature ? 0 : FLAG_LAGS)
    to.seq[at] = states.seq[row]!
    to.lastValue[at] = states.lastValue[row]!
    to.idLo[at] = server.lo(series)
    to.idHi[at] = server.hi(series)
    to.rule[at] = placeOf[rule]!
    const extended = isExtended(row)
    to.phase[at] = states.phase[row]! | (flags << 4) | (extended ? EXTENDED : 0)
    if (!extended) {
      to.lastTs[at] = savedAtMs - lastTsMs[row]!
      to.lastReceived[at] = savedAtMs - lastReceivedMs[row]!
      continue
    }
    const base = EXTENDED_COLUMNS * extendedAt++
    to.extended[base] = lastTsMs[row]!
    to.extended[base + 1] = lastReceivedMs[row]!
    to.extended[base + 2] = states.sinceTsMs(row)
    to.extended[base + 3] = states.openedTsMs(row)
    to.extended[base + 4] = states.peak(row)
    to.extended[base + 5] = states.notifiedAtMs(row)
  }
}

/**
 * Reads a snapshot into the evaluation, which must not have any state of that shard. Returns the bus position and
 * journal mark that the snapshot reaches, and how many of the rule changes at that position it reflects; or what is
 * wrong with its bytes.
 */
export function restoreSnapshot(
  evaluation: EvaluationState,
  source: Uint8Array,
  shard: number,
): { position: number; journalMark: number; ruleChanges?: number } | SnapshotFault {
  const bytes = source.byteOffset % 8 === 0 ? source : new Uint8Array(source)
  if (bytes.length < PREFIX_BYTES || String.fromCharCode(...bytes.subarray(0, 7)) !== MAGIC.slice(0, 7))
    return { fault: 'not a snapshot' }
  const format = String.fromCharCode(bytes[7]!)
  if (format !== MAGIC[7]) return { fault: `format ${format}, this program reads ${MAGIC[7]}` }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (view.getUint32(8, true) !== crc32(bytes.subarray(12))) return { fault: 'checksum does not match' }
  const headerBytes = view.getUint32(12, true)
  const header = JSON.parse(
    new TextDecoder().decode(bytes.subarray(PREFIX_BYTES, PREFIX_BYTES + headerBytes)),
  ) as Header
  if (header.shard !== shard) return { fault: `it is of shard ${header.shard}` }
  const buffer = bytes.buffer as ArrayBuffer
  const from = columns(
    buffer,
    bytes.byteOffset + padTo8(PREFIX_BYTES + headerBytes),
    header.states,
    header.extended,
    header.rules.length,
  )
  evaluation.states.reserve(header.states)
  const slots = header.rules.map(saved => slotOfSaved(evaluation, saved))
  const rows: number[] = []
  let at = 0
  let extendedAt = 0
  for (const saved of header.servers) {
    const server = evaluation.server(saved.key, saved.companyId, saved.serverId, header.shard, saved.presence.agentId)
    Object.assign(server.presence, saved.presence)
    server.lastBatchMs = saved.lastBatchMs
    server.removedSeq = saved.removedSeq ?? 0
    server.reserve(saved.states)
    for (const end = at + saved.states; at < end; at++) {
      if (readState(evaluation, server, from, at, slots, header.savedAtMs, extendedAt, rows)) extendedAt++
    }
  }
  for (const { state, flap } of header.flapping)
    if (rows[state] !== NO_ROW) evaluation.flapping.set(rows[state]!, { ...flap, peak: flap.peak ?? Number.NaN })
  for (const record of header.left) evaluation.noteRemovedServer(record)
  const { position, journalMark, ruleChanges } = header
  return { position, journalMark, ...(ruleChanges === undefined ? {} : { ruleChanges }) }
}

function readState(
  evaluation: EvaluationState,
  server: ServerSeries,
  from: ReturnType<typeof columns>,
  at: number,
  slots: readonly { slot: number; signature: number }[],
  savedAtMs: number,
  extendedAt: number,
  rows: number[],
): boolean {
  const { states } = evaluation
  const lo = from.idLo[at]!
  const hi = from.idHi[at]!
  // States of one series follow each other in the columns, and the server has no other series yet: comparing with the
  // last one is enough.
  const last = server.count - 1
  const isSameSeries = last >= 0 && server.lo(last) === lo && server.hi(last) === hi
  const packed = from.phase[at]!
  if (!isSameSeries && !evaluation.dictionary.use(lo, hi)) {
    // Without the key of its series a state cannot emit events. It is dropped; the series starts again when ingest
    // announces its key.
    rows.push(NO_ROW)
    return (packed & EXTENDED) !== 0
  }
  const index = isSameSeries ? last : server.add(lo, hi)
  const { slot, signature } = slots[from.rule[at]!]!
  const row = addState(evaluation, server, index, slot, from.seq[at]!)
  rows.push(row)
  const flags = (packed >> 4) & 7
  const phase = packed & 3
  states.signature[row] = (flags & FLAG_LAGS) === 0 ? signature : NO_SIGNATURE
  states.lastValue[row] = from.lastValue[at]!
  if ((packed & EXTENDED) === 0) {
    states.lastTsMs[row] = savedAtMs - from.lastTs[at]!
    states.lastReceivedMs[row] = savedAtMs - from.lastReceived[at]!
    return false
  }
  const base = EXTENDED_COLUMNS * extendedAt
  states.lastTsMs[row] = from.extended[base]!
  states.lastReceivedMs[row] = from.extended[base + 1]!
  if (phase !== PENDING && phase !== FIRING) return true
  states.toActive(row, phase)
  states.flags[row] = flags & ~FLAG_LAGS
  const { active, activeRow } = states
  active.sinceTsMs[activeRow[row]!] = from.extended[base + 2]!
  active.openedTsMs[activeRow[row]!] = from.extended[base + 3]!
  active.peak[activeRow[row]!] = from.extended[base + 4]!
  active.notifiedAtMs[activeRow[row]!] = from.extended[base + 5]!
  return true
}

// The open findings of a host as one compact blob: numbers of shared finding contents, each with the time at which the
// host's finding opened (MAT section 9). Most findings of a host opened together, so times stand once.
import { NumberReader, NumberWriter } from './number-list.ts'

/** Number of the content → first_seen in ms. */
export type OpenFindings = Map<number, number>

const writer = new NumberWriter()

export function encodeFindings(findings: OpenFindings): Uint8Array {
  const times = timesOf(findings)
  const places = new Map(times.map((time, place) => [time, place]))
  writer.write(times.length)
  let before = 0
  for (const time of times) {
    writer.write(time - before)
    before = time
  }
  before = 0
  for (const id of sortedIds(findings)) {
    writer.write(id - before)
    before = id
    if (times.length > 1) writer.write(places.get(findings.get(id)!)!)
  }
  return writer.take()
}

/** Ascending, each once. Findings that opened together mostly stand together. */
function timesOf(findings: OpenFindings): number[] {
  const times = new Set<number>()
  let last = Number.NaN
  for (const time of findings.values()) {
    if (time !== last) times.add(time)
    last = time
  }
  return [...times].sort((a, b) => a - b)
}

function sortedIds(findings: OpenFindings): Int32Array {
  const ids = new Int32Array(findings.size)
  let at = 0
  for (const id of findings.keys()) ids[at++] = id
  return ids.sort()
}

export function decodeFindings(bytes: Uint8Array): OpenFindings {
  const reader = new NumberReader(bytes)
  const times: number[] = []
  let before = 0
  for (let left = reader.read(); left > 0; left--) {
    before += reader.read()
    times.push(before)
  }
  const findings: OpenFindings = new Map()
  before = 0
  while (!reader.isAtEnd) {
    before += reader.read()
    const time = times[times.length > 1 ? reader.read() : 0]
    if (time === undefined) throw new Error('cannot read the state: a finding refers to a time that is not there')
    findings.set(before, time)
  }
  return findings
}

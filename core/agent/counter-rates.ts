// Counters turned into rates (metrics.md): the first reading after a start and the one after a reset yield nothing, and
// a rate is never negative. Elapsed time comes from the monotonic clock, so that setting the wall clock makes no
// spikes.

/** One reading of a group of counters, at an instant of the monotonic clock. */
export type CounterReading = {
  readonly elapsedMs: number
  /** Counter values by subject (a device, an interface; '' for the host), in the reader's fixed order. */
  readonly bySubject: ReadonlyMap<string, readonly number[]>
}

/** Two readings closer together than this give no usable rate: kernel counters move in steps of 10 ms. */
const WINDOW_MIN_MS = 900

/** Seconds between two readings; null when there is no earlier one, or both are too close together. */
export function windowSeconds(previous: CounterReading | null, current: CounterReading): number | null {
  if (previous === null) return null
  const elapsedMs = current.elapsedMs - previous.elapsedMs
  return elapsedMs >= WINDOW_MIN_MS ? elapsedMs / 1000 : null
}

/** How far a subject's counters moved; null for a new subject, or when one of them went backwards (a reset). */
export function counterDeltas(
  previous: CounterReading | null,
  current: CounterReading,
  subject: string,
): readonly number[] | null {
  const before = previous?.bySubject.get(subject)
  const after = current.bySubject.get(subject)
  if (!before || !after || before.length !== after.length) return null
  const deltas = after.map((value, index) => value - before[index]!)
  return deltas.every(delta => Number.isFinite(delta) && delta >= 0) ? deltas : null
}

/** The reading that the next one is compared with: a reading too close to the last one does not replace it. */
export function keptReading(previous: CounterReading | null, current: CounterReading): CounterReading {
  return previous !== null && windowSeconds(previous, current) === null ? previous : current
}

/** Whole numbers of a line of fields from `from` on; a field that is no number becomes NaN and fails the deltas. */
export function numbersFrom(fields: readonly string[], from: number): number[] {
  return fields.slice(from).map(field => (/^\d+$/.test(field) ? Number(field) : Number.NaN))
}

/**
 * Lines of a /proc file as fields; empty lines are left out. The kernel parts them by blanks and tabs: what else
 * JavaScript takes for white space may stand in names.
 */
export function fieldsOfLines(text: string): string[][] {
  const lines: string[][] = []
  for (const line of text.split('\n')) {
    const fields = line.split(/[ \t]+/).filter(field => field !== '')
    if (fields.length > 0) lines.push(fields)
  }
  return lines
}

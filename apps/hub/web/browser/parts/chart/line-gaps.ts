// When the line of a chart is interrupted: after a pause that is longer than its values usually are apart.

/** A longer pause than this many usual steps is a gap. */
const GAP_STEPS = 2.5

/** The usual number of steps between two values; 1 where there are too few to say. */
export function usualSteps(values: readonly (number | null)[]): number {
  const counts: number[] = []
  let last = -1
  for (let index = 0; index < values.length; index++) {
    if (values[index] === null) continue
    if (last >= 0) counts[index - last] = (counts[index - last] ?? 0) + 1
    last = index
  }
  let [usual, most] = [1, 0]
  for (let steps = 1; steps < counts.length; steps++) {
    const count = counts[steps] ?? 0
    if (count > most) [usual, most] = [steps, count]
  }
  return usual
}

/**
 * Values as the plot takes them: null is a gap in the line, undefined is nothing at all. A server that sends less often
 * than the grid has instants has no gap between two of its values.
 */
export function withGaps(values: readonly (number | null)[]): (number | null | undefined)[] {
  if (!values.includes(null)) return [...values]
  const longest = usualSteps(values) * GAP_STEPS
  const drawn: (number | null | undefined)[] = [...values]
  let last = -1
  for (let index = 0; index <= values.length; index++) {
    if (index < values.length && values[index] === null) continue
    const isBridged = last >= 0 && index < values.length && index - last <= longest
    if (isBridged) for (let at = last + 1; at < index; at++) drawn[at] = undefined
    last = index
  }
  return drawn
}

/** The places of values without a neighbour to draw a line to. */
export function isolatedPoints(drawn: readonly (number | null | undefined)[]): number[] {
  const found: number[] = []
  // A line without a gap, as nearly all are: a point is alone where it is the only one.
  if (!drawn.includes(null)) {
    const first = drawn.findIndex(value => value !== undefined)
    return first >= 0 && first === drawn.findLastIndex(value => value !== undefined) ? [first] : []
  }
  let before: number | null = null
  for (let index = 0; index < drawn.length; index++) {
    const value = drawn[index]
    if (value === undefined) continue
    if (value !== null && before === null) {
      let next = index + 1
      while (next < drawn.length && drawn[next] === undefined) next++
      if (drawn[next] === null || next >= drawn.length) found.push(index)
    }
    before = value
  }
  return found
}

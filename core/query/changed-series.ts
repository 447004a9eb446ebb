// How much a series differs in a span from what it was before: what the page of a server ranks its charts by.

/**
 * The greatest distance between the distributions of two sets of values, 0 to 1 (the statistic of the two-sample
 * Kolmogorov-Smirnov test): no unit, no scale, no assumption about either. 0 where one of them is empty.
 */
export function distributionDistance(before: readonly number[], within: readonly number[]): number {
  if (before.length === 0 || within.length === 0) return 0
  const [one, other] = [[...before].sort((a, b) => a - b), [...within].sort((a, b) => a - b)]
  let [at, otherAt, greatest] = [0, 0, 0]
  while (at < one.length && otherAt < other.length) {
    const value = Math.min(one[at]!, other[otherAt]!)
    while (at < one.length && one[at]! <= value) at++
    while (otherAt < other.length && other[otherAt]! <= value) otherAt++
    greatest = Math.max(greatest, Math.abs(at / one.length - otherAt / other.length))
  }
  return greatest
}

const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length

/** How far the mean moved, in parts of the greater of the two means' sizes; 0 to 2. */
function movedBy(before: readonly number[], within: readonly number[]): number {
  const [was, is] = [meanOf(before), meanOf(within)]
  const size = Math.max(Math.abs(was), Math.abs(is))
  return size === 0 ? 0 : Math.abs(is - was) / size
}

const VALUES_MIN = 3

/**
 * 0: as before; 1: altogether different. A series that lies wholly apart by a hair counts less than one that lies apart
 * by half its size: the distance is weighed with how far the mean moved.
 */
export function changeOf(before: readonly number[], within: readonly number[]): number {
  if (before.length < VALUES_MIN || within.length < VALUES_MIN) return 0
  return distributionDistance(before, within) * (0.5 + 0.5 * Math.min(1, movedBy(before, within)))
}

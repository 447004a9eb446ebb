// Times of samples as a view carries them: nearly all follow each other in one distance, so a week of them is a few
// numbers. [first, distance, how often, distance, how often, …]

/** `tsMs` ascending. */
export function toRuns(tsMs: readonly number[]): number[] {
  const [first] = tsMs
  if (first === undefined) return []
  const runs = [first]
  for (const [at, time] of tsMs.entries()) {
    if (at === 0) continue
    const distance = time - tsMs[at - 1]!
    if (runs.length > 1 && runs[runs.length - 2] === distance) runs[runs.length - 1] = (runs.at(-1) ?? 0) + 1
    else runs.push(distance, 1)
  }
  return runs
}

export function fromRuns(runs: readonly number[]): number[] {
  const [first] = runs
  if (first === undefined) return []
  const times = [first]
  let time = first
  for (let at = 1; at < runs.length; at += 2)
    for (let step = 0; step < runs[at + 1]!; step++) {
      time += runs[at]!
      times.push(time)
    }
  return times
}

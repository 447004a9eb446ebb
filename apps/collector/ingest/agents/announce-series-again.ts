// How often ingest repeats the definitions of an agent's series, their names and labels, on the bus.

/**
 * How often, at least, the definitions of an agent's series are announced on the bus again, in case a reader lost them:
 * a few with each batch, since a definition costs as much as fifty samples.
 */
const ANNOUNCE_PERIOD_MS = 3_600_000
/** The turns of an hour, see `AgentSeries.announce`. */
const TURNS = 2 ** 32
const turnAt = (atMs: number): number => Math.floor(((atMs % ANNOUNCE_PERIOD_MS) / ANNOUNCE_PERIOD_MS) * TURNS)

/**
 * Which definitions a batch of now announces again, where all that were due before `announcedUpToMs` are: all, or those
 * whose turn is among the `turns` after `from`.
 */
export function seriesToAnnounce(announcedUpToMs: number, nowMs: number) {
  const dueMs = nowMs - announcedUpToMs
  const from = turnAt(announcedUpToMs)
  // A clock that was set back announces nothing before it is where it was.
  const turns = dueMs > 0 ? (turnAt(nowMs) - from) >>> 0 : 0
  return { isAll: dueMs >= ANNOUNCE_PERIOD_MS, from, turns }
}

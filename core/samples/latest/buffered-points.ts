// Points that were read from the bus and are not stored yet, as a reader sees them beside the store.
import type { SeriesId } from '../../series/series-key.ts'
import type { HeldPoint } from '../block/sample-block.ts'
import type { StoredNewest } from './newest-values.ts'

/** The points of a machine that wait to be stored, in the order in which they came. */
export type HeldSource = (companyId: string, serverId: string) => Iterable<HeldPoint>

export const nothingHeld: HeldSource = () => []

export const idOf = ({ lo, hi }: SeriesId): bigint => (BigInt(hi) << 32n) | BigInt(lo)

/** The newest point of each series. */
export function heldNewest(points: Iterable<HeldPoint>): StoredNewest[] {
  const newest = new Map<bigint, HeldPoint>()
  for (const point of points) {
    const id = idOf(point)
    const known = newest.get(id)
    if (!known || point.tsMs >= known.tsMs) newest.set(id, point)
  }
  return [...newest.values()]
}

// Buffered points: read from the bus and not stored yet. Queries add them to what the store has.
import type { SeriesId } from '../../series/series-key.ts'
import type { TakePoint } from '../block/held-batches.ts'
import type { BufferedPoint } from '../block/sample-block.ts'
import type { StoredNewest } from './newest-values.ts'

/** The buffered points of a server, in the order of arrival. */
export type BufferedSource = (companyId: string, serverId: string) => Iterable<BufferedPoint>

/** The buffered points of a whole company, server by server. */
export type BufferedCompany = {
  readonly serversOf: (companyId: string) => Iterable<string>
  readonly eachBuffered: (companyId: string, serverId: string, take: TakePoint) => void
  /** Keys by id of the series of a metric whose definitions are not stored yet. */
  readonly unstoredKeys: (companyId: string, metric: string) => ReadonlyMap<bigint, string>
}

export const nothingBuffered: BufferedSource = () => []

export const idOf = ({ lo, hi }: SeriesId): bigint => (BigInt(hi) << 32n) | BigInt(lo)

/** The newest point of each series. */
export function newestBuffered(points: Iterable<BufferedPoint>): StoredNewest[] {
  const newest = new Map<bigint, BufferedPoint>()
  for (const point of points) {
    const id = idOf(point)
    const known = newest.get(id)
    if (!known || point.tsMs >= known.tsMs) newest.set(id, point)
  }
  return [...newest.values()]
}

// Which series an agent leaves out where its host has more than the ceiling (document 3 "Limits"; decision G-196).
import { catalogueIndex } from '../series/catalogue.ts'
import { type PointSeries, pointCount } from './requests-of-cycles.ts'

/**
 * The first `seriesMax` series, and how many points the others had. Series are kept in the order of the catalogue
 * (decision G-196), which has interfaces and checks, of which a server may have hundreds, after processor, memory and
 * disks.
 */
export function capSeries(
  series: readonly PointSeries[],
  seriesMax: number,
): { kept: readonly PointSeries[]; droppedPoints: number } {
  if (series.length <= seriesMax) return { kept: series, droppedPoints: 0 }
  const ordered = series.toSorted((a, b) => catalogueIndex(a.name) - catalogueIndex(b.name))
  return { kept: ordered.slice(0, seriesMax), droppedPoints: pointCount(ordered.slice(seriesMax)) }
}

// Series of a simulated batch as the evaluation's flat arrays.
import { SampleBatch } from '../../core/series/sample-batch.ts'
import { seriesId } from '../../core/series/series-key.ts'
import type { SimSeries } from './plan.ts'

/** `isAnnounced`: the key of this series goes along. */
export function sampleBatchOf(series: readonly SimSeries[], isAnnounced: (key: string) => boolean): SampleBatch {
  const samples = new SampleBatch()
  for (const { key, points } of series) {
    const { lo, hi } = seriesId(key)
    const index = samples.seriesCount++
    if (index === samples.idLo.length) samples.growSeries()
    samples.idLo[index] = lo
    samples.idHi[index] = hi
    samples.pointStart[index] = samples.pointCount
    for (const [tsMs, value] of points) {
      if (samples.pointCount === samples.tsMs.length) samples.growPoints()
      samples.tsMs[samples.pointCount] = tsMs
      samples.value[samples.pointCount++] = value
    }
    samples.pointStart[index + 1] = samples.pointCount
    if (isAnnounced(key)) samples.definitions.push({ seriesIndex: index, key })
  }
  return samples
}

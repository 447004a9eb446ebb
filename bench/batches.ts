// Metric batches as agents send them, for benchmarks and tests: `seriesCount` series of one point each, names and
// labels like a real host's (cpu, memory, disks by mount, device and file system, interfaces).
import { create, toBinary } from '@bufbuild/protobuf'
import { metrics } from '../core/series/catalogue.ts'
import { MetricsBatchSchema } from '../proto/gen/svc/agent/v1/agent_pb.ts'

export type NamedSeries = { name: string; labels: Record<string, string> }

/** The series of one host: every unlabelled metric, then disks and interfaces until there are `count`. */
export function hostSeries(count: number): NamedSeries[] {
  const series: NamedSeries[] = []
  for (const metric of metrics) if (metric.labels.length === 0) series.push({ name: metric.name, labels: {} })
  for (let unit = 0; series.length < count; unit++) {
    for (const metric of metrics) {
      if (series.length >= count) break
      if (metric.labels.includes('mount'))
        series.push({
          name: metric.name,
          labels: { mount: unit ? `/srv/data${unit}` : '/', device: `/dev/sd${unit}`, fstype: 'ext4' },
        })
      else if (metric.labels.includes('device')) series.push({ name: metric.name, labels: { device: `sd${unit}` } })
      else if (metric.labels.includes('interface'))
        series.push({ name: metric.name, labels: { interface: `eth${unit}` } })
    }
  }
  return series.slice(0, count)
}

/** The uncompressed bytes of a batch of these series, sent at `tsMs`, a point at each instant: by default one, then. */
export function batchBytes(
  series: readonly NamedSeries[],
  seq: number,
  tsMs: number,
  value: (index: number) => number,
  instants: readonly number[] = [tsMs],
): Uint8Array {
  return toBinary(
    MetricsBatchSchema,
    create(MetricsBatchSchema, {
      seq: BigInt(seq),
      sentAtMs: BigInt(tsMs),
      series: series.map((s, index) => ({
        ...s,
        points: instants.map(instant => ({ tsMs: BigInt(instant), value: value(index) })),
      })),
      stats: { intervalSeconds: 30, uptimeSeconds: 1000n, rssBytes: 40_000_000n },
    }),
  )
}

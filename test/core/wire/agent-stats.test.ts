// What the decoder reads of AgentStats; random and damaged bytes are compared with the generated code in test/fuzz.
import { expect, test } from 'bun:test'
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { limits } from '../../../core/limits.ts'
import { SampleBatch } from '../../../core/series/sample-batch.ts'
import { AdmissionReport } from '../../../core/wire/admission-report.ts'
import { AgentSeries, OwnCompanySeries } from '../../../core/wire/agent-series.ts'
import { BatchDecoder } from '../../../core/wire/decode-and-admit.ts'
import { MetricsBatchSchema } from '../../../proto/gen/svc/agent/v1/agent_pb.ts'

const nowMs = 1_795_000_000_000
const decoder = new BatchDecoder(new SampleBatch(), {
  seriesPerAgentMax: limits.seriesPerAgentMax,
  seriesPerCompanyMax: 0,
  pointsMax: limits.pointsPerRequestMax,
  pointAgeMaxMs: limits.pointAgeMaxMs,
  pointAheadMaxMs: limits.pointAheadMaxMs,
})

/** Interval, buffer and last warning of a batch. */
function said(batch: MessageInitShape<typeof MetricsBatchSchema>) {
  const bytes = toBinary(MetricsBatchSchema, create(MetricsBatchSchema, batch))
  expect(decoder.decode(bytes, new AgentSeries(new OwnCompanySeries()), nowMs, new AdmissionReport())).toBeNull()
  const { intervalSeconds, bufferBytes, bufferBatches, warningAt, warningBytes } = decoder.header
  const warning = new TextDecoder().decode(bytes.subarray(warningAt, warningAt + warningBytes))
  return [intervalSeconds, bufferBytes, bufferBatches, warning]
}

test('[WIRE-014] of what an agent says of itself its interval, its buffer and its last warning are read', () => {
  const stats = { intervalSeconds: 30, cpuPercent: 1.5, rssBytes: 9n, configEtag: 'etag' }
  expect(
    said({ stats: { ...stats, bufferBytes: 5_000_000_000n, bufferBatches: 12, warnings: ['one', 'two'] } }),
  ).toEqual([30, 5_000_000_000, 12, 'two'])
  // Nothing of a batch before is left; an agent with an empty buffer says so, one without AgentStats says nothing.
  expect(said({ stats })).toEqual([30, 0, 0, ''])
  expect(said({ seq: 1n })).toEqual([0, -1, 0, ''])
})

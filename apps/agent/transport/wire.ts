// Between the protobuf messages of the contract and what the agent thinks in.
import { create, fromBinary, fromJsonString, toBinary, toJsonString } from '@bufbuild/protobuf'
import type { RawCheck } from '../../../core/agent/check.ts'
import type { RemoteConfig } from '../../../core/agent/remote-config.ts'
import type { PointSeries } from '../../../core/agent/requests-of-cycles.ts'
import type { Manifest } from '../../../core/agent/update-verdict.ts'
import {
  type AgentConfig,
  AgentConfigSchema,
  type AgentStats,
  MetricsBatchSchema,
  type UpdateManifest,
} from '../../../proto/gen/svc/agent/v1/agent_pb.ts'

function seriesMessages(series: readonly PointSeries[]) {
  return series.map(({ name, labels, points }) => ({
    $typeName: 'svc.agent.v1.Series' as const,
    name,
    labels: { ...labels },
    points: points.map(({ tsMs, value }) => ({
      $typeName: 'svc.agent.v1.Point' as const,
      tsMs: BigInt(Math.round(tsMs)),
      value,
    })),
  }))
}

/** Encodes series as a MetricsBatch without its other fields: the format of the buffer. */
export function encodeSeries(series: readonly PointSeries[]): Uint8Array {
  return toBinary(MetricsBatchSchema, create(MetricsBatchSchema, { series: seriesMessages(series) }))
}

/** The inverse of `encodeSeries`. Throws on bytes that are not one. */
export function decodeSeries(bytes: Uint8Array): PointSeries[] {
  return fromBinary(MetricsBatchSchema, bytes).series.map(({ name, labels, points }) => ({
    name,
    labels,
    points: points.map(({ tsMs, value }) => ({ tsMs: Number(tsMs), value })),
  }))
}

/** A whole MetricsBatch, as it is sent. */
export function encodeBatch(
  seq: bigint,
  sentAtMs: number,
  series: readonly PointSeries[],
  stats: AgentStats,
): Uint8Array {
  return toBinary(
    MetricsBatchSchema,
    create(MetricsBatchSchema, { seq, sentAtMs: BigInt(sentAtMs), series: seriesMessages(series), stats }),
  )
}

/** AgentConfig as the merge reads it. log_level and collector_url are left behind: they are not managed remotely. */
export function remoteConfigOf(config: AgentConfig): RemoteConfig {
  const { collectors, limits } = config
  return {
    etag: config.etag,
    intervalSeconds: config.intervalSeconds,
    collectors: collectors
      ? {
          switches: {
            cpu: collectors.cpu?.enabled ?? false,
            memory: collectors.memory?.enabled ?? false,
            disk: collectors.disk?.enabled ?? false,
            net: collectors.net?.enabled ?? false,
            uptime: collectors.uptime?.enabled ?? false,
          },
          diskInclude: collectors.diskInclude,
          diskExclude: collectors.diskExclude,
          netInclude: collectors.netInclude,
          netExclude: collectors.netExclude,
        }
      : null,
    checks: config.checks.map(
      (check): RawCheck => ({
        id: check.id,
        type: check.type,
        name: check.name,
        target: check.target,
        port: check.port,
        proto: check.proto,
        url: check.url,
        expectStatus: check.expectStatus,
        timeoutSeconds: check.timeoutSeconds,
      }),
    ),
    seriesMax: limits?.maxSeries ?? 0,
    batchBytesMax: Number(limits?.maxBatchBytes ?? 0n),
    bufferBytesMax: Number(limits?.bufferBytes ?? 0n),
    minAgentVersion: config.minAgentVersion,
  }
}

/** The format in which the last valid config is stored on disk. */
export const configToText = (config: AgentConfig): string =>
  `${toJsonString(AgentConfigSchema, config, { prettySpaces: 2 })}\n`

/**
 * The config of a file that `configToText` wrote; null for anything else. Unknown fields of a newer agent are skipped.
 */
export function configFromText(text: string): AgentConfig | null {
  try {
    return fromJsonString(AgentConfigSchema, text, { ignoreUnknownFields: true })
  } catch {
    return null
  }
}

export const manifestOf = (manifest: UpdateManifest): Manifest => ({
  version: manifest.version,
  os: manifest.os,
  arch: manifest.arch,
  channel: manifest.channel,
  sha256: manifest.sha256,
  sizeBytes: Number(manifest.sizeBytes),
  minVersion: manifest.minVersion,
  releasedAtMs: Number(manifest.releasedAtMs),
  revokedVersions: manifest.revokedVersions,
  url: manifest.url,
})

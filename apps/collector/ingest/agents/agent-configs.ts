// The managed configuration of each agent, as a message and as the ETag in every acknowledgement (document 3 "Agent
// config semantics"; decisions G-47, G-52, G-54).
import { create, type MessageInitShape, type MessageShape } from '@bufbuild/protobuf'
import { limits } from '../../../../core/limits.ts'
import { configEtag, type ManagedConfig, managedInterval } from '../../../../core/wire/agent-config.ts'
import type { CheckSet } from '../../../../core/wire/checks-of-server.ts'
import { AgentConfigSchema } from '../../../../proto/gen/svc/agent/v1/agent_pb.ts'
import type { IngestConfig } from '../../config.ts'
import type { AgentRecord } from '../../store/registry/agent-record.ts'
import type { AgentRegistry } from '../../store/registry/registry.ts'
import type { AgentSession, Etag } from './agent-session.ts'

const encoder = new TextEncoder()

export class AgentConfigs {
  private readonly config: IngestConfig
  private readonly registry: AgentRegistry
  private readonly checks: () => CheckSet
  private readonly collectorUrl: () => string
  /** Agents without checks and invitation share an ETag by interval. */
  private readonly plain = new Map<number, Etag>()

  constructor(parts: {
    readonly config: IngestConfig
    readonly registry: AgentRegistry
    readonly checks: () => CheckSet
    readonly collectorUrl: () => string
  }) {
    this.config = parts.config
    this.registry = parts.registry
    this.checks = parts.checks
    this.collectorUrl = parts.collectorUrl
  }

  /** The managed configuration of an agent. Only its record decides it, never a request. */
  contentOf(record: AgentRecord): ManagedConfig {
    // When a server has several agents, only the latest one runs its checks.
    const isLatest = this.registry.latestOfServer(record.companyId, record.serverId)?.agentId === record.agentId
    return {
      intervalSeconds: managedInterval(record.intervalSeconds),
      checks: isLatest ? this.checks().checksOf(record.companyId, record.serverId) : [],
      limits: {
        maxSeries: this.config['ingest.limits.max_series_per_agent'],
        maxBatchBytes: this.config['ingest.limits.max_body_bytes'],
        bufferBytes: limits.agentBufferBytes,
      },
      minAgentVersion: this.config['agents.min_version'],
      collectorUrl: this.collectorUrl(),
      ...(isLatest && record.scan ? { scan: record.scan } : {}),
    }
  }

  /** The ETag of an agent's config as it is now. */
  etagOf(session: AgentSession): Etag {
    session.etag ??= this.etagFor(session.record)
    return session.etag
  }

  /** Computes the ETag of a record's config. */
  etagFor(record: AgentRecord): Etag {
    return this.makeEtag(this.contentOf(record))
  }

  /** The message that an agent gets. */
  messageOf(record: AgentRecord): MessageShape<typeof AgentConfigSchema> {
    const content = this.contentOf(record)
    return create(AgentConfigSchema, toMessage(content, configEtag(content)))
  }

  private makeEtag(content: ManagedConfig): Etag {
    const isPlain = content.checks.length === 0 && !content.scan
    const shared = isPlain ? this.plain.get(content.intervalSeconds) : undefined
    if (shared) return shared
    const text = configEtag(content)
    const etag = { text, bytes: encoder.encode(text) }
    if (isPlain) this.plain.set(content.intervalSeconds, etag)
    return etag
  }
}

function toMessage(config: ManagedConfig, etag: string): MessageInitShape<typeof AgentConfigSchema> {
  return {
    etag,
    intervalSeconds: config.intervalSeconds,
    checks: config.checks.map(check => ({ ...check })),
    limits: {
      maxSeries: config.limits.maxSeries,
      maxBatchBytes: BigInt(config.limits.maxBatchBytes),
      bufferBytes: BigInt(config.limits.bufferBytes),
    },
    minAgentVersion: config.minAgentVersion,
    collectorUrl: config.collectorUrl,
    ...(config.scan ? { scan: { ...config.scan } } : {}),
  }
}

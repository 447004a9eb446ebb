// What the admin API needs from the rest of the worker, handed in by main.ts.

import type { ReloadFeed } from '../../../core/admin-api/calls.ts'
import type { PresenceState } from '../../../core/admin-api/status.ts'
import type { SeriesSource } from '../../../core/query/query-plan.ts'
import type { RetentionSettings } from '../../../core/retention/readable-and-deletable.ts'
import type { Tombstone } from '../../../core/retention/tombstone.ts'
import type { AgentRecord, JsonObject } from '../store/registry/agent-record.ts'
import type { SamplesClient } from '../worker/samples/samples-client.ts'
import type { CollectorStatus } from './collector-status.ts'

/** `applied`: pulled and in force. `unavailable`: the hub could not be called, the running set stays. */
export type ReloadOutcome = 'applied' | 'unavailable' | 'not_configured'

/** What a purge needs; the admin API uses it through `createPurger`. */
export type PurgeDeps = {
  readonly nowMs: () => number
  readonly tombstones: {
    /**
     * Makes a tombstone durable and known: at the latest 2 s later every shard and the sample writer drop the tenant's
     * batches and forget its states. Rejects when it cannot be written; then nothing is deleted.
     */
    readonly write: (tombstone: Tombstone) => Promise<void>
  }
  readonly registry: {
    /** Remove every agent of a company or of one server of it; resolve to how many there were. */
    readonly removeCompany: (companyId: string) => Promise<number>
    readonly removeServer: (companyId: string, serverId: string) => Promise<number>
  }
  readonly samples: Pick<SamplesClient, 'purge'>
  readonly tombstoneMs: number
  readonly secondDeleteAfterMs: number
  readonly onPurge: (result: 'done' | 'refused' | 'failed') => void
  readonly onError: (what: string, error: unknown) => void
}

export type AdminDeps = {
  readonly nowMs: () => number
  /** The tokens that open the API now: `admin.token`, and `admin.token_previous` while it is set. */
  readonly tokens: () => readonly string[]
  readonly registry: {
    /**
     * Stores a pushed record; `applied` is false for a version that is not newer, `version` is the one held afterwards.
     */
    readonly push: (record: AgentRecord) => Promise<{ readonly applied: boolean; readonly version: number }>
    /** Revokes at once, for ever; an unknown agent too. */
    readonly revoke: (agentId: string) => Promise<void>
    /** Whether the server has an agent of this company, revoked ones included. */
    readonly hasServer: (companyId: string, serverId: string) => boolean
    readonly summary: (companyId: string) => Promise<{ agentsTotal: number; online: number; offline: number }>
  }
  readonly presence: {
    readonly state: (
      companyId: string,
      serverId: string,
    ) => Promise<{ readonly state: PresenceState; readonly lastSeenAtMs: number | null }>
  }
  readonly reload: (feed: ReloadFeed) => Promise<ReloadOutcome>
  readonly status: () => Promise<CollectorStatus>
  /** The alerting state of a server as JSON, or null when the server is not of the company. */
  readonly alerting: (companyId: string, serverId: string) => Promise<JsonObject | null>
  /** Retention of a company: cached, the last known while the hub is silent, null for one never seen. */
  readonly retention: (companyId: string) => Promise<RetentionSettings | null>
  readonly samples: Pick<
    SamplesClient,
    'companyValues' | 'querySeries' | 'queryMetrics' | 'seriesKeys' | 'latestValues'
  >
  /** Made by `createPurger`. */
  readonly purge: (companyId: string, serverId: string | null) => Promise<PurgeOutcome>
  /** `path` is that of the route, and `other` for one that no route has. */
  readonly onRequest: (method: string, path: string, status: number, seconds: number) => void
  readonly onQuery: (source: SeriesSource, seconds: number) => void
  readonly onError: (what: string, error: unknown) => void
}

/** `no_tombstone`: nothing was deleted. `failed`: the tombstone stands, the deletion is to be called for again. */
export type PurgeOutcome =
  | { readonly outcome: 'done'; readonly registryDeleted: number; readonly tombstoneUntilMs: number }
  | { readonly outcome: 'no_tombstone' | 'failed' }

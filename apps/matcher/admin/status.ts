// GET /internal/v1/status (MAT-210): versions, sources, hosts, what waits for the hub, and how far a re-match is.
import type { SyncStatus } from '../../hub-link/sync-loop.ts'
import type { MatcherState } from '../state/state-types.ts'
import { productVersion } from '../version.ts'
import type { Updater } from '../vulndb/updater.ts'

type StatusParts = {
  readonly state: MatcherState
  readonly matcherId: string | null
  /** In use; 0 without one. */
  readonly dbVersion: () => number
  readonly database: () => ReturnType<Updater['status']>
  readonly hosts: () => SyncStatus | null
  readonly isUnauthorized: () => boolean
  readonly nowMs: () => number
}

const secondsSince = (ms: number | null, nowMs: number): number | null =>
  ms === null ? null : Math.max(0, Math.round((nowMs - ms) / 1000))

export function matcherStatus(parts: StatusParts): Readonly<Record<string, unknown>> {
  const { state, matcherId, database, hosts, isUnauthorized } = parts
  const nowMs = parts.nowMs()
  const counters = state.counters()
  const rematch = state.rematch()
  const feed = hosts()
  const { sources, checked_at_ms, age_seconds, update } = database()
  return {
    version: productVersion,
    matcher_id: matcherId,
    db_version: parts.dbVersion(),
    db_age_seconds: age_seconds,
    checked_at_ms,
    sources,
    update,
    hosts: counters.hosts,
    instances: counters.instances,
    open_findings: counters.findingsOpen,
    outbox: {
      depth: counters.outboxDepth,
      bytes: counters.outboxBytes,
      oldest_seconds: secondsSince(counters.outboxOldestMs, nowMs),
      is_full: counters.isOutboxFull,
      dead_letters: counters.deadLetters,
      unauthorized: isUnauthorized(),
    },
    feed: {
      since: state.feed().since,
      age_seconds: secondsSince(state.feed().syncedAtMs, nowMs),
      last_error: feed?.lastSyncError ?? null,
    },
    rematch: {
      state: rematch.state,
      db_version: rematch.dbVersion,
      keys: rematch.keys,
      hosts_read: rematch.hostsRead,
      hosts_changed: rematch.hostsChanged,
      hosts_left: rematch.hostsLeft,
      last_seconds: rematch.lastSeconds,
    },
  }
}

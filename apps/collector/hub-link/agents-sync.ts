// The agents feed of the hub into the registry (document 1 "Collector-facing endpoints"; decisions G-34, G-43). The
// cursor is kept by the registry's store, beside the records it belongs to; processes that share the store share the
// work.
import type { Logger } from 'pino'
import { limits } from '../../../core/limits.ts'
import { mustFetchAllAnew } from '../../../core/sync/fetch-all-anew.ts'
import { type PullOutcome, SyncLoop } from '../../hub-link/sync-loop.ts'
import { type AgentRecord, isJsonObject } from '../store/registry/agent-record.ts'
import { isRecordFault, parseAgentRecord } from '../store/registry/agent-record-faults.ts'
import type { AgentRegistry } from '../store/registry/registry.ts'
import type { CollectorMetrics } from '../telemetry.ts'
import { pullPages, skipReasons } from './feed-sync.ts'
import type { HubClient } from './hub-client.ts'

/** Records that are put into the registry at once. */
const APPLY_RECORDS = 2000

type AgentsSyncOptions = {
  readonly registry: AgentRegistry
  readonly hub: HubClient | null
  readonly intervalMs: number
  readonly log: Logger
  readonly metrics: CollectorMetrics
  readonly nowMs: () => number
}

/**
 * Returns the records of the feed that can be parsed. A record that cannot is skipped alone, counted and logged, and
 * the registry keeps its earlier version.
 */
function readRecords(rows: readonly unknown[], { log, metrics }: Pick<AgentsSyncOptions, 'log' | 'metrics'>) {
  const records: AgentRecord[] = []
  for (const row of rows) {
    const record = parseAgentRecord(row)
    if (!isRecordFault(record)) {
      records.push(record)
      continue
    }
    const { agent_id, too_large } = isJsonObject(row) ? row : {}
    metrics.syncSkipped.inc({ feed: 'agents', reason: typeof too_large === 'number' ? 'too_large' : 'malformed' })
    log.error({ agent_id, field: record.field, expected: record.expected }, 'an agent record is skipped')
  }
  return records
}

async function pullAgents({ registry, hub, log, metrics, nowMs }: AgentsSyncOptions): Promise<PullOutcome> {
  if (!hub) return { error: 'no hub is configured' }
  registry.refresh()
  const { since, syncedAtMs } = registry.cursor
  const isReplacing = mustFetchAllAnew(syncedAtMs, nowMs())
  const pulled = await pullPages(hub, 'agents', isReplacing ? 0 : since, limits.agentsPageMax)
  if ('error' in pulled) return pulled
  const records = readRecords(pulled.records, { log, metrics })
  // An agent whose record was skipped still exists in the hub, so it is not removed.
  const idOf = (row: unknown): string[] => (isJsonObject(row) && typeof row.agent_id === 'string' ? [row.agent_id] : [])
  if (isReplacing) registry.removeOthers(new Set(pulled.records.flatMap(idOf)))
  // A first pull can bring a hundred thousand agents: they are applied in portions, and batches are answered in
  // between. Each record stands alone; the cursor is stored with the last portion.
  for (let from = 0; from + APPLY_RECORDS < records.length; from += APPLY_RECORDS) {
    registry.apply(records.slice(from, from + APPLY_RECORDS))
    await new Promise(setImmediate)
  }
  const rest = records.length % APPLY_RECORDS || Math.min(records.length, APPLY_RECORDS)
  registry.apply(records.slice(records.length - rest), { since: pulled.nextSince, syncedAtMs: nowMs() })
  return { error: null }
}

/** The loop of the agents feed. */
export function createAgentsSync(options: AgentsSyncOptions): SyncLoop {
  const { registry, intervalMs, log, metrics, nowMs } = options
  const feed = 'agents'
  metrics.syncErrors.inc({ feed }, 0)
  for (const reason of skipReasons) metrics.syncSkipped.inc({ feed, reason }, 0)
  return new SyncLoop({
    feed,
    intervalMs,
    pull: () => pullAgents(options),
    since: () => registry.cursor.since,
    syncedAtMs: registry.cursor.syncedAtMs,
    log,
    nowMs,
    onSynced: atMs => metrics.syncLastSuccess.set({ feed }, atMs / 1000),
    onError: () => metrics.syncErrors.inc({ feed }),
  })
}

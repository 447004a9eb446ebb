// What the collector says of itself, of a company and of a server (document 3 "Hub to collector admin API"; decisions
// G-112 and G-131). Names become snake_case here and nowhere else.
import type {
  CollectorStatusResponse,
  CompanySummaryResponse,
  ServerStatusResponse,
} from '../../../core/admin-api/status.ts'
import { type CompanyValuesResponse, packedParam, packValues } from '../../../core/admin-api/values.ts'
import { limits } from '../../../core/limits.ts'
import { keyMetrics, metricByName } from '../../../core/series/catalogue.ts'
import { AdminError, badField } from '../../admin-api/admin-error.ts'
import { type AdminCall, uuidOf } from '../../admin-api/call.ts'
import type { FeedStatus } from './collector-status.ts'
import type { AdminDeps } from './deps.ts'

const instantOrNull = (ms: number | null): string | null => (ms === null || ms <= 0 ? null : new Date(ms).toISOString())

const feedMembers = (feed: FeedStatus) => ({
  since: feed.since,
  last_sync_at: instantOrNull(feed.lastSyncAtMs),
  last_sync_error: feed.lastSyncError,
})

export async function collectorStatus(deps: AdminDeps): Promise<CollectorStatusResponse> {
  const { rules, silences, checks, retention, ...status } = await deps.status()
  return {
    version: status.version,
    role: status.role,
    started_at: instantOrNull(status.startedAtMs),
    bus_lag: status.busLag,
    outbox_depth: status.outboxDepth,
    outbox_set_aside: status.outboxSetAside,
    agents_online: status.agentsOnline,
    rules: rules && {
      loaded: rules.loaded,
      invalid: rules.invalid,
      pending: rules.pending,
      firing: rules.firing,
      no_data: rules.noData,
      flapping: rules.flapping,
      invalid_rules: rules.invalidRules,
      ...feedMembers(rules),
    },
    silences: silences && { active: silences.active, loaded: silences.loaded, ...feedMembers(silences) },
    checks: checks && {
      loaded: checks.loaded,
      invalid: checks.invalid,
      disabled: checks.disabled,
      servers: checks.servers,
      truncated: checks.truncated,
      ...feedMembers(checks),
    },
    retention: retention && {
      at: instantOrNull(retention.atMs),
      companies: retention.companies,
      skipped: retention.skipped,
      days_deleted: retention.daysDeleted,
      // There is no older layout of the samples tables to move from.
      legacy_samples_moved: 0,
      errors: retention.errors,
      dry_run: retention.dryRun,
      duration_seconds: retention.durationSeconds,
    },
  }
}

export async function companySummary(deps: AdminDeps, { params }: AdminCall): Promise<CompanySummaryResponse> {
  const { agentsTotal, online, offline } = await deps.registry.summary(uuidOf('company_id', params.company_id))
  return { agents_total: agentsTotal, online, offline }
}

/** The newest value of one metric on every server of a company. */
export async function companyValues(deps: AdminDeps, { params, query }: AdminCall): Promise<CompanyValuesResponse> {
  const companyId = uuidOf('company_id', params.company_id)
  const metric = query.get('metric') ?? ''
  if (!metricByName(metric)) throw badField('metric', 'must be one of the metrics of the catalogue')
  const sinceMs = deps.nowMs() - limits.statusValueAgeMs
  const { serverIds, values, tsMs, labels, truncated } = await deps.samples.companyValues(companyId, metric, sinceMs)
  const columns = { server_ids: serverIds, values, ts_ms: tsMs, labels }
  return { company_id: companyId, metric, truncated, ...(query.has(packedParam) ? packValues(columns) : columns) }
}

/** The company and server of a call that is about one server; 404 where they do not belong together. */
function ownedServer(deps: AdminDeps, { params, query }: AdminCall): { companyId: string; serverId: string } {
  const companyId = uuidOf('company_id', query.get('company_id'))
  const serverId = params.server_id?.toLowerCase() ?? ''
  if (!deps.registry.hasServer(companyId, serverId)) throw new AdminError('not_found', 'the company has no such server')
  return { companyId, serverId }
}

export async function serverStatus(deps: AdminDeps, call: AdminCall): Promise<ServerStatusResponse> {
  const { companyId, serverId } = ownedServer(deps, call)
  const sinceMs = deps.nowMs() - limits.statusValueAgeMs
  const [{ state, lastSeenAtMs }, values] = await Promise.all([
    deps.presence.state(companyId, serverId),
    deps.samples.latestValues(companyId, serverId, keyMetrics, sinceMs),
  ])
  const metrics = Object.fromEntries(
    keyMetrics.map(metric => [
      metric,
      values
        .filter(value => value.metric === metric)
        .map(({ labels, value, tsMs }) => ({ labels, value, ts_ms: tsMs })),
    ]),
  )
  return { server_id: serverId, company_id: companyId, state, last_seen: instantOrNull(lastSeenAtMs), metrics }
}

export async function serverAlerting(deps: AdminDeps, call: AdminCall) {
  const { companyId, serverId } = ownedServer(deps, call)
  const state = await deps.alerting(companyId, serverId)
  if (state === null) throw new AdminError('not_found', 'the company has no such server')
  return state
}

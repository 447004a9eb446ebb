// A matcher, wired: state, vulnerability database, scan API, internal API and the link to the hub. Used by the
// executable and by the all-in-one.
import type { Logger } from 'pino'
import { TrustedProxies } from '../../core/network/trusted-proxies.ts'
import { startAdminListener } from '../admin-api/listener.ts'
import type { ReadyPart } from '../http/ops-server.ts'
import { createMatcherAdmin } from './admin/admin-api.ts'
import { Cursors } from './admin/cursor.ts'
import { matcherStatus } from './admin/status.ts'
import type { MatcherConfig } from './config.ts'
import type { DatabaseLink } from './database-link.ts'
import { CompanySettingsCache } from './hub-link/settings-freshness.ts'
import { type HubParts, startHubParts } from './hub-parts.ts'
import { CallRates } from './scan-api/call-rates.ts'
import { startScanApi } from './scan-api/scan-api.ts'
import type { MatcherState } from './state/state-types.ts'
import { type MatcherMetrics, showState } from './telemetry.ts'

const HOUR_MS = 3_600_000

type MatcherParts = {
  readonly config: MatcherConfig
  /** Open; `startMatcher` closes it at the stop. */
  readonly state: MatcherState
  readonly database: DatabaseLink
  readonly metrics: MatcherMetrics
  readonly log: Logger
  readonly nowMs: () => number
}

export type RunningMatcher = {
  readonly scanUrl: string
  readonly adminUrl: string
  readonly ready: readonly ReadyPart[]
  /** Takes tokens and certificates of a configuration that was read again; throws for what cannot be used. */
  reload(fresh: MatcherConfig): Promise<void>
  /** No more intake, then the link to the hub, then the state. */
  stop(): Promise<void>
}

/** Both while the token is being changed. */
const adminTokensOf = (config: MatcherConfig): readonly string[] =>
  [config['admin.token'], config['admin.token_previous']].filter(token => token !== null)

/** Work of an hour, and ends of support that the day has passed. */
function startSweeps(state: MatcherState, log: Logger): { stop(): Promise<void> } {
  let running: Promise<void> | null = null
  const sweep = async (): Promise<void> => {
    try {
      state.dayChanged()
      await state.sweep()
    } catch (error) {
      log.error({ err: error }, 'cannot sweep the state; it is tried again in an hour')
    }
    running = null
  }
  const timer = setInterval(() => {
    running ??= sweep()
  }, HOUR_MS)
  return {
    stop: async () => {
      clearInterval(timer)
      await running
    },
  }
}

const readyParts = (state: MatcherState, hubParts: HubParts | null): readonly ReadyPart[] => [
  { name: 'state', isReady: () => isAnswering(state) },
  { name: 'hub', isReady: () => hubParts === null || state.feed().syncedAtMs !== null },
  { name: 'unauthorized', isReady: () => hubParts === null || !hubParts.hub.isUnauthorized },
  { name: 'outbox_full', isReady: () => !state.counters().isOutboxFull },
]

function isAnswering(state: MatcherState): boolean {
  try {
    state.counters()
    return true
  } catch {
    return false
  }
}

type Tokens = { admin: readonly string[]; hub: string }

function startAdmin(parts: MatcherParts, hubParts: HubParts | null, tokens: Tokens) {
  const { config, state, database, log, metrics, nowMs } = parts
  const app = createMatcherAdmin({
    state,
    cursors: new Cursors(() => tokens.admin),
    tokens: () => tokens.admin,
    untilUnsent: async companyId => hubParts?.events.idle(companyId),
    updateDatabase: () => database.update(),
    status: () =>
      matcherStatus({
        state,
        nowMs,
        matcherId: config.matcher_id,
        dbVersion: () => database.version,
        database: () => database.updater.status(),
        hosts: () => hubParts?.hosts.status() ?? null,
        isUnauthorized: () => hubParts?.hub.isUnauthorized ?? false,
      }),
    onRequest: (_method, path, status) => metrics.adminRequests.inc({ path, code: String(status) }),
    onError: (what, error) => log.error({ err: error }, what),
  })
  return startAdminListener(config, request => app.handle(request))
}

/** Serves at once, with what is on the disk; the hub is asked for what has changed meanwhile. */
export function startMatcher(parts: MatcherParts): RunningMatcher {
  const { config, state, database, metrics, log, nowMs } = parts
  const tokens: Tokens = { admin: adminTokensOf(config), hub: config['hub.token'] ?? '' }
  const dbVersion = (): number => database.version
  const hubParts = startHubParts({ config, token: () => tokens.hub, state, dbVersion, metrics, log, nowMs })
  const settings = new CompanySettingsCache({ state, hub: hubParts?.hub ?? null, log, nowMs })
  const scan = startScanApi({
    config,
    state,
    hub: hubParts?.hub ?? null,
    limits: new CallRates(config, nowMs),
    proxies: new TrustedProxies(config.trusted_proxies),
    settingsOf: companyId => settings.of(companyId),
    onSeen: (hostId, version, atMs) => hubParts?.seen.note(hostId, version, atMs),
    syncHosts: async () => hubParts?.hosts.reload(),
    metrics,
    log,
    nowMs,
  })
  const admin = startAdmin(parts, hubParts, tokens)
  showState(metrics, state, nowMs)
  const sweeps = startSweeps(state, log)
  return {
    scanUrl: scan.url,
    adminUrl: admin.url,
    ready: readyParts(state, hubParts),
    reload: async fresh => {
      // Certificates first: tokens are taken only with certificates that can be used.
      await scan.reloadCertificate()
      admin.reloadCertificate()
      tokens.admin = adminTokensOf(fresh)
      tokens.hub = fresh['hub.token'] ?? ''
      hubParts?.events.release()
    },
    stop: async () => {
      await Promise.all([scan.stop(), admin.stop(), sweeps.stop()])
      await Promise.all([hubParts?.stop(), database.stop()])
      await state.close()
      database.close()
    },
  }
}

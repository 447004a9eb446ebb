// The link of a matcher to its hub, wired: feed, settings, events, heartbeat, what is told in passing.
import type { Logger } from 'pino'
import type { SyncLoop } from '../hub-link/sync-loop.ts'
import type { MatcherConfig } from './config.ts'
import { startHeartbeat } from './hub-link/heartbeat.ts'
import { MatcherHub } from './hub-link/matcher-hub.ts'
import { EventSender } from './hub-link/send-events.ts'
import { ReferenceSender } from './hub-link/send-references.ts'
import { createHostsSync } from './hub-link/sync-hosts.ts'
import { SeenTeller } from './hub-link/tell-seen.ts'
import type { MatcherState } from './state/state-types.ts'
import type { MatcherMetrics } from './telemetry.ts'

export type HubParts = {
  readonly hub: MatcherHub
  readonly hosts: SyncLoop
  readonly events: EventSender
  readonly seen: SeenTeller
  stop(): Promise<void>
}

type HubPartsDeps = {
  readonly config: MatcherConfig
  /** The token in force; it may be replaced while the matcher runs. */
  readonly token: () => string
  readonly state: MatcherState
  /** The version of the vulnerability database in use; 0 without one. */
  readonly dbVersion: () => number
  readonly metrics: MatcherMetrics
  readonly log: Logger
  readonly nowMs: () => number
}

/** Null when no hub is configured: then no host is known, and events stay in the outbox. */
export function startHubParts(deps: HubPartsDeps): HubParts | null {
  const { config, state, metrics, log, nowMs, token } = deps
  const url = config['hub.url']
  if (url === null) {
    log.warn('no hub is configured: no scan host is known, and events stay in the outbox')
    return null
  }
  const hub = new MatcherHub({
    url,
    token,
    isPlainAllowed: config['listen.insecure'],
    log,
    nowMs,
    onClockSkew: seconds => metrics.clockSkew.set(seconds),
    onRequest: status => metrics.hubRequests.inc({ code: String(status) }),
  })
  const hosts = createHostsSync({ state, hub, log, nowMs, intervalMs: config['hosts.sync_interval'] })
  const references = new ReferenceSender({ state, hub, log })
  const events = new EventSender({
    state,
    hub,
    log,
    onRejected: reason => metrics.eventsRejected.inc({ reason }),
    onFeedBehind: () => void hosts.reload(),
    onEmpty: () => references.wake(),
  })
  const seen = new SeenTeller({ state, hub, log })
  const stopHeartbeat = startHeartbeat(hub, { state, dbVersion: deps.dbVersion, log })
  void hosts.start()
  events.start()
  references.wake()
  return {
    hub,
    hosts,
    events,
    seen,
    stop: async () => {
      stopHeartbeat()
      seen.stop()
      await Promise.all([hosts.stop(), events.stop(), references.stop()])
    },
  }
}

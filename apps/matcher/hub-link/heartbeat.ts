// How often the matcher tells the hub that it lives, and what it says of itself (MAT-222).
import type { Logger } from 'pino'
import { describeResponse } from '../../hub-link/hub-connection.ts'
import type { MatcherState } from '../state/state-types.ts'
import { productVersion } from '../version.ts'
import type { MatcherHub } from './matcher-hub.ts'

const HEARTBEAT_MS = 30_000

type HeartbeatParts = {
  readonly state: MatcherState
  readonly dbVersion: () => number
  readonly log: Logger
}

/** Sends a heartbeat at once and every 30 s. Returns what ends it. */
export function startHeartbeat(hub: MatcherHub, { state, dbVersion, log }: HeartbeatParts): () => void {
  let isFailing = false
  let isBusy = false
  const send = async (): Promise<void> => {
    if (isBusy) return
    isBusy = true
    const response = await hub.heartbeat({
      version: productVersion,
      db_version: dbVersion(),
      queue_depth: state.counters().outboxDepth,
    })
    isBusy = false
    if (response.kind !== 'ok' && !isFailing)
      log.warn({ reason: describeResponse(response) }, 'cannot send a heartbeat to the hub')
    isFailing = response.kind !== 'ok'
  }
  const timer = setInterval(() => void send(), HEARTBEAT_MS)
  void send()
  return () => clearInterval(timer)
}

// The hub that the configuration names.
import type { Logger } from 'pino'
import type { CollectorMetrics } from '../telemetry.ts'
import { HubClient } from './hub-client.ts'

type HubKeys = {
  readonly 'hub.url': string | null
  readonly 'hub.token': string | null
  readonly 'listen.insecure': boolean
  readonly collector_id: string | null
}

/** A client of the hub; null when none is configured. `without`: what the process does then, for the log. */
export function connectHub(config: HubKeys, log: Logger, metrics: CollectorMetrics, without: string): HubClient | null {
  const url = config['hub.url']
  const token = config['hub.token']
  if (url === null || token === null) {
    log.warn(`no hub is configured: ${without}`)
    return null
  }
  return new HubClient({
    url,
    token,
    collectorId: config.collector_id,
    isPlainAllowed: config['listen.insecure'],
    log,
    nowMs: Date.now,
    onClockSkew: seconds => metrics.clockSkew.set(seconds),
  })
}

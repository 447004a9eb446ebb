// Status responses of a collector: its own, of a company and of a server (document 3 "Hub to collector admin API";
// decisions G-112, G-131).
import type { RejectedRule } from '../alerting/rules/rule.ts'
import { isObject } from '../json-object.ts'
import { keyMetrics } from '../series/catalogue.ts'
import { dataOf, labelsOf } from './envelope.ts'

const presenceStates = ['online', 'down', 'unknown'] as const
export type PresenceState = (typeof presenceStates)[number]

/** GET /servers/{server_id}/status. */
export const serverStatusPath = (companyId: string, serverId: string): string =>
  `/servers/${serverId}/status?company_id=${companyId}`

export type LatestSample = {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
  readonly ts_ms: number
}
/** The newest values of the key metrics, by metric. */
type LatestSamples = Readonly<Record<string, readonly LatestSample[]>>

export type ServerStatusResponse = {
  readonly server_id: string
  readonly company_id: string
  readonly state: PresenceState
  readonly last_seen: string | null
  readonly metrics: LatestSamples
}

function toSample(raw: unknown): LatestSample[] {
  if (!isObject(raw) || typeof raw.value !== 'number' || typeof raw.ts_ms !== 'number') return []
  return [{ labels: labelsOf(raw.labels), value: raw.value, ts_ms: raw.ts_ms }]
}

/** State and newest values of a response; null when it is malformed. Malformed values are left out. */
export function parseServerStatus(body: unknown): Pick<ServerStatusResponse, 'state' | 'last_seen' | 'metrics'> | null {
  const data = dataOf(body)
  const state = presenceStates.find(known => known === data?.state)
  if (!data || !state) return null
  const raw = isObject(data.metrics) ? data.metrics : {}
  const metrics = keyMetrics.map(name => {
    const list: unknown = raw[name]
    return [name, Array.isArray(list) ? list.flatMap(toSample) : []] as const
  })
  return {
    state,
    last_seen: typeof data.last_seen === 'string' ? data.last_seen : null,
    metrics: Object.fromEntries(metrics),
  }
}

/** GET /companies/{company_id}/summary. */
export const summaryPath = (companyId: string): string => `/companies/${companyId}/summary`

export type CompanySummaryResponse = {
  readonly agents_total: number
  readonly online: number
  readonly offline: number
}

/** How many agents of a company are online; null when the response does not say. */
export function parseOnline(body: unknown): number | null {
  const online = dataOf(body)?.online
  return typeof online === 'number' ? online : null
}

/** GET /status. */
export const collectorStatusPath = '/status'

type FeedSection = {
  readonly since: number
  readonly last_sync_at: string | null
  readonly last_sync_error: string | null
}

export type CollectorStatusResponse = {
  readonly version: string
  readonly role: 'ingest' | 'worker' | 'all'
  readonly started_at: string | null
  /** Batches. */
  readonly bus_lag: number
  readonly outbox_depth: number
  /** Alert keys, and whole companies, whose events the hub answers with a server error. */
  readonly outbox_set_aside: number
  readonly agents_online: number
  /** Sections are null in a process without a worker. */
  readonly rules:
    | (FeedSection & {
        readonly loaded: number
        readonly invalid: number
        readonly pending: number
        readonly firing: number
        readonly no_data: number
        readonly flapping: number
        readonly invalid_rules: readonly RejectedRule[]
      })
    | null
  readonly silences: (FeedSection & { readonly active: number; readonly loaded: number }) | null
  readonly checks:
    | (FeedSection & {
        readonly loaded: number
        readonly invalid: number
        readonly disabled: number
        readonly servers: number
        readonly truncated: number
      })
    | null
  readonly retention: {
    readonly at: string | null
    readonly companies: number
    readonly skipped: number
    readonly days_deleted: number
    readonly legacy_samples_moved: number
    readonly errors: number
    readonly dry_run: boolean
    readonly duration_seconds: number
  } | null
}

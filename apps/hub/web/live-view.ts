// The messages of the live page's stream, shared by the hub, which makes them, and the browser, which shows them. Only
// names and plain values.

type Severity = 'critical' | 'warning' | 'info'
type AlertType = 'threshold' | 'check' | 'no_data' | 'agent_down' | 'group_down'
export type Connectivity = 'online' | 'down' | 'unknown'
export const connectivities: readonly Connectivity[] = ['online', 'down', 'unknown']

/** Which servers are shown: of one state, or with open alerts. */
export type ServerState = Connectivity | 'alerts'

/** Percent, 0 to 100; load as it is; null: not known. */
export type LatestValues = {
  readonly cpu: number | null
  readonly memory: number | null
  readonly disk: number | null
  readonly load1: number | null
  readonly sampledAtMs: number | null
}

export type ServerPicture = {
  readonly id: string
  readonly name: string
  readonly hostname: string | null
  readonly status: 'active' | 'maintenance' | 'decommissioned' | 'draft'
  readonly connectivity: Connectivity
  readonly lastSeenAtMs: number | null
  readonly openAlerts: number
  /** Null: the collector has not answered. */
  readonly latest: LatestValues | null
}

export type AlertPicture = {
  readonly id: string
  readonly type: AlertType
  readonly severity: Severity
  readonly state: 'open' | 'acknowledged'
  readonly serverName: string
  readonly ruleName: string | null
  readonly metric: string | null
  /** The series without the name of its metric: `mount=/ device=sda1`. */
  readonly series: string
  readonly openedAtMs: number
  readonly lastValue: number | null
  readonly threshold: number | null
  readonly acknowledgedBy: string | null
  readonly isSuppressed: boolean
  readonly isFlapping: boolean
  readonly groupSize: number | null
}

export type CollectorState = 'ok' | 'unavailable' | 'not_configured'

export type LiveSnapshot = {
  readonly nowMs: number
  readonly counts: Readonly<Record<Connectivity, number>> & { readonly all: number; readonly alerts: number }
  readonly severities: Readonly<Record<Severity, number>>
  /** One page of those that match search and state; how many match. */
  readonly servers: readonly ServerPicture[]
  readonly matching: number
  readonly page: number
  readonly pageSize: number
  readonly alerts: readonly AlertPicture[]
  readonly alertsTotal: number
  readonly alertsPage: number
  readonly alertsPageSize: number
  readonly collector: CollectorState
}

/** One server's sparkline, both values on the same instants: seconds, percent, null where one is missing. */
export type ServerSeries = {
  readonly serverId: string
  readonly stepSeconds: number
  readonly times: readonly number[]
  readonly cpu: readonly (number | null)[]
  readonly memory: readonly (number | null)[]
}

export const chartMinutes = 60

/** Why the stream ended, when it did not just break. */
export type EndReason = 'signed_out' | 'refused'

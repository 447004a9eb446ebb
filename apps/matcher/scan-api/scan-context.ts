// What the endpoints of the scan API stand on: one context for each process, and nothing global.
import type { Logger } from 'pino'
import type { TrustedProxies } from '../../../core/network/trusted-proxies.ts'
import type { MatcherConfig } from '../config.ts'
import type { MatcherHub } from '../hub-link/matcher-hub.ts'
import type { CompanySettings, MatcherState } from '../state/state-types.ts'
import type { MatcherMetrics } from '../telemetry.ts'
import type { CallRates } from './call-rates.ts'

export type ScanContext = {
  readonly config: MatcherConfig
  readonly state: MatcherState
  readonly hub: MatcherHub | null
  readonly limits: CallRates
  readonly proxies: TrustedProxies
  /** The settings of a company as last known, asked for where they are old; null for one never seen. */
  readonly settingsOf: (companyId: string) => Promise<CompanySettings | null>
  /** A host has reported: the hub is told, now and then. */
  readonly onSeen: (hostId: string, scannerVersion: string, atMs: number) => void
  /** Reads the feed of scan hosts now. */
  readonly syncHosts: () => Promise<unknown>
  readonly metrics: MatcherMetrics
  readonly log: Logger
  readonly nowMs: () => number
}

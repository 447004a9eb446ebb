// What every part of the hub is handed: configuration, database, clock, log, metrics, and the services built from them.
import type { Logger } from 'pino'
import type { FixedWindows } from '../http/fixed-windows.ts'
import type { CollectorClient } from './collectors/collector-client.ts'
import type { HubConfig } from './config.ts'
import type { Sealer } from './identity/sealer.ts'
import type { Bell } from './notifications/bell.ts'
import type { Database } from './platform/db/connect.ts'
import type { Identity } from './platform/http/caller.ts'
import type { Links } from './platform/http/link-origin.ts'
import type { OpenStreams } from './platform/http/open-streams.ts'
import type { Jobs } from './platform/jobs/jobs.ts'
import type { HubMetrics } from './platform/telemetry.ts'
import type { Kinds } from './resources/kind-info.ts'
import type { EarlySums } from './security/findings/early-sums.ts'
import type { MatcherClient } from './security/packages/matcher-client.ts'
import type { MatcherStatus } from './security/packages/matcher-status.ts'
import type { SystemState } from './system-state/system-state.ts'

export type Hub = {
  /** The id of this process among those that share the database. */
  readonly processId: string
  readonly startedAtMs: number
  readonly config: HubConfig
  readonly database: Database
  readonly log: Logger
  readonly metrics: HubMetrics
  readonly sealer: Sealer
  readonly identity: Identity
  readonly collectors: CollectorClient
  readonly matcher: MatcherClient
  readonly matcherStatus: MatcherStatus
  readonly findingSums: EarlySums
  readonly jobs: Jobs
  readonly state: SystemState
  readonly bell: Bell
  readonly links: Links
  readonly streams: OpenStreams
  /** What is known of every kind of resource (resources/kind-info.ts). */
  readonly kinds: Kinds
  /** Windows of 60 seconds for requests. */
  readonly requestWindows: FixedWindows
  /** Windows of 10 minutes for failed enrollments. */
  readonly failureWindows: FixedWindows
  now(): number
}

// What the rest of the matcher asks of its store (MAT sections 3, 7 to 11). `openState` of open-state.ts gives a
// MatcherState. All that is returned is on the disk when it is returned; nothing here opens a connection.
import type { AdvisoryReader, Affected, Vulnerability } from '../../../core/matching/advisory.ts'
import type { MatchStatus, SecurityEvent } from '../../../core/matching/finding-event.ts'
import type { HostInfo } from '../../../core/matching/match-status.ts'
import type { PackageInstance } from '../../../core/matching/package-instance.ts'
import type { Report } from '../../../core/matching/report-schema.ts'

export type StateOptions = {
  /** Options of the configuration that change what is found; another value re-matches all (MAT-231). */
  readonly match: {
    readonly centosAsRedhat: boolean
    readonly undetermined: boolean
    readonly rebuildsUnfixed: boolean
  }
  /** `outbox.max_bytes` (MAT-169). */
  readonly outboxBytesMax: number
  /** `hosts.forget_after` (MAT-188). */
  readonly forgetAfterMs: number
  /** Wall clock in ms; seq, times of events and ends of support are taken from it. */
  readonly now: () => number
  /** Told of what failed in work that nobody waits for; it is tried again. */
  readonly onError?: (what: string, error: unknown) => void
}

/** A scan host as the hub's feed names it (MAT-050). `publicKey` is base64 of the 32 raw bytes. */
export type ScanHost = {
  readonly hostId: string
  readonly companyId: string
  readonly serverId: string | null
  readonly publicKey: string
  readonly state: 'active' | 'revoked'
  readonly isInactive: boolean
  /** sync_version of the feed; 0 for a host that only the response to an enrollment has named. */
  readonly version: number
}

/** What the scan API needs to know before it looks at a body. */
export type KnownHost = ScanHost & {
  /** `X-SVC-Scan-Time` of the last report that was kept; 0 before the first. */
  readonly lastTimeMs: number
  /** When the last report was received; 0 before the first. */
  readonly reportedAtMs: number
  /** SHA-256 of the machine-id, as enrolled or as first reported; empty when unknown. */
  readonly machineIdHash: string
  readonly seenToldAtMs: number
}

/** A host's inventory with what else its findings depend on: what `matcher explain --host` looks at. */
export type StoredHost = { readonly host: HostInfo; readonly instances: readonly PackageInstance[] }

export type ReportInput = {
  readonly hostId: string
  /** Null: a report by hash only (`X-SVC-Scan-Content`). Already valid by reportSchema, its packages in any order. */
  readonly report: Report | null
  /** Hex of MAT-023. */
  readonly contentHash: string
  /** `X-SVC-Scan-Time`. */
  readonly requestTimeMs: number
  /** The signature: tells the same request sent again from another one with the same time (MAT-034). */
  readonly signature: string
  readonly receivedAtMs: number
  /** The plan's minimum interval (MAT-040); 0 takes every report. */
  readonly minIntervalMs: number
}

export type ReportOutcome =
  /** Committed, or the same request again (`isRepeat`), which gets what it got. */
  | ({ readonly outcome: 'kept'; readonly isRepeat: boolean; readonly isUnchanged: boolean } & MatchSummary)
  | { readonly outcome: 'too_soon'; readonly retryAfterMs: number }
  /** `disabled`: scanning is switched off in the company's settings (MAT-221); `inactive`: MAT-055. */
  | ({ readonly outcome: 'inactive' | 'disabled' } & MatchSummary)
  | {
      readonly outcome:
        | 'unknown_host'
        | 'host_revoked'
        | 'machine_changed'
        | 'need_report'
        | 'replayed'
        | 'purged'
        | 'outbox_full'
    }

type MatchSummary = { readonly match_status: MatchStatus; readonly open_findings: number }

/** One row of affected whose rules differ between two databases. */
export type AdvisoryKey = Pick<Affected, 'release' | 'package' | 'by'>

export type RematchProgress = {
  readonly state: 'idle' | 'running' | 'paused'
  readonly dbVersion: number
  readonly startedAtMs: number | null
  /** Keys, and hosts so far: read because they have a package of a changed key, and of them those with events. */
  readonly keys: number
  readonly hostsRead: number
  readonly hostsChanged: number
  readonly hostsLeft: number
  readonly lastSeconds: number | null
}

/** Events of one company in the order of their commit. */
export type EventBatch = {
  readonly companyId: string
  readonly events: readonly SecurityEvent[]
  /** Wall clock of the oldest event's commit. */
  readonly oldestAtMs: number
}

export type DeadLetter = {
  readonly id: number
  readonly companyId: string
  readonly eventId: string
  readonly atMs: number
  /** What the hub answered: status, code and message, at most 500 characters. */
  readonly reason: string
  readonly event: SecurityEvent
}

export type PackageRow = {
  readonly server_id: string
  readonly name: string
  readonly version: string
  readonly arch: string
  readonly source_name: string
  readonly source_version: string
  readonly ecosystem: string
}

/** Where the next page of packages begins: after this one. */
export type PackagePosition = { readonly name: string; readonly arch: string; readonly version: string }

export type SearchQuery = {
  readonly name: string
  readonly versionGte: string | null
  readonly versionLt: string | null
  readonly ecosystem: string | null
  /** server_id after which the page begins. */
  readonly after: string | null
  readonly limit: number
  /** Stops with what it has after this long; 4,000 by MAT-205. */
  readonly deadlineMs: number
}

export type CompanySettings = {
  readonly companyId: string
  readonly version: number
  readonly isEnabled: boolean
  readonly scanIntervalHours: number
  /** Of the plan (MAT-040); the interval where the hub does not name it. */
  readonly minIntervalHours: number
  readonly fetchedAtMs: number
  /** When enabled was first seen false since it was last true; null while enabled. */
  readonly disabledSinceMs: number | null
}

export type Reference = Vulnerability & { readonly digest: string }

export type StateCounters = {
  readonly instances: number
  readonly hosts: Readonly<Record<MatchStatus, number>>
  readonly findingsOpen: number
  readonly outboxDepth: number
  readonly outboxBytes: number
  /** Commit of the oldest waiting event; null when none waits. */
  readonly outboxOldestMs: number | null
  readonly deadLetters: number
  readonly events: Readonly<Record<SecurityEvent['type'], number>>
  readonly isOutboxFull: boolean
}

export interface MatcherState {
  // Feed of scan hosts.

  /** Cursor to ask the feed from, and when a whole pull last ended (null: never, unknown hosts answer 503, MAT-052). */
  feed(): { readonly since: number; readonly syncedAtMs: number | null }
  /**
   * Applies one page in one transaction (MAT-050, 051). `deleted` hosts and revoked ones lose inventory, findings and
   * waiting events (MAT-054). `isLast` says that the pull is whole.
   */
  applyHostsPage(
    hosts: readonly (ScanHost & { readonly isDeleted: boolean })[],
    page: { readonly nextSince: number; readonly isLast: boolean },
  ): Promise<void>
  /** Stores the response of the hub to an enrollment, so that the host is known before the feed names it. */
  enrolled(host: ScanHost, machineIdHash: string): Promise<void>
  host(hostId: string): KnownHost | null
  /** Null when the host is unknown or has no inventory. */
  storedHost(hostId: string): StoredHost | null
  /** Notes that the hub was told `seen` (MAT-056). Held in memory only. */
  seenTold(hostId: string, atMs: number): void

  // Reports.

  /**
   * Takes a report: inventory, findings and events are on the disk when the promise resolves (MAT-032). Reports that
   * wait together share a commit. Rejects only when the disk refuses; nothing of the report is kept then.
   */
  acceptReport(input: ReportInput): Promise<ReportOutcome>

  // Vulnerability database.

  /** `current` of the state (MAT-071); 0 when there was none. */
  currentVersion(): number
  /**
   * Called once after opening, with the reader of `currentVersion()`, or one whose version is 0 when there is none or
   * its file cannot be opened. Goes on with a re-match that was cut short. `previous` is the version before, if its
   * file is there; it spares hosts whose verdicts are the same.
   */
  startWith(reader: AdvisoryReader, previous: AdvisoryReader | null): void
  /**
   * Commits a new database as current, with the journal of its re-match, and matches reports with it from then on.
   * Resolves at the commit; the re-match goes on by itself. The old reader may be closed once `rematched()` resolves
   * or another switch came.
   */
  switchTo(reader: AdvisoryReader, changed: Iterable<AdvisoryKey>): Promise<void>
  /** Looks for ends of support that the day has passed, and re-matches their hosts (MAT-128). To be called hourly. */
  dayChanged(): void
  rematch(): RematchProgress
  /** Resolves when no re-match is left to do or the state is closed. */
  rematched(): Promise<void>

  // Outbox.

  /** Companies with events to send or a resync to make, oldest first. */
  companiesWaiting(): readonly string[]
  /**
   * The next events of a company, at most 200, made from the state; null when none waits. The same until `settle`,
   * except that later ones may join and purged ones leave. Makes events of a resync when its turn comes.
   */
  nextBatch(companyId: string): Promise<EventBatch | null>
  /**
   * False when events of the batch were purged since it was read: then it must not be sent (again), and the next one is
   * read. To be asked before each try (MAT-209).
   */
  isCurrent(batch: EventBatch): boolean
  /**
   * Removes the events of the batch; those in `dead` become dead letters in the same transaction (MAT-164, 167). Those
   * in `unknownServer` the hub rejected as of another server than it knows: once the feed says otherwise of an active
   * host, what it has is told anew. Resolves to true when hosts wait for that, and the feed should be pulled.
   */
  settle(
    batch: EventBatch,
    dead?: readonly { readonly eventId: string; readonly reason: string }[],
    unknownServer?: readonly string[],
  ): Promise<boolean>
  /** Called when there is something to send again; replaces the one before. */
  onWaiting(listener: () => void): void
  deadLetters(after: number, limit: number): readonly DeadLetter[]
  /** Puts them back behind what waits (`retry`), or forgets them; all when ids is null. Resolves to their count. */
  retryDeadLetters(ids: readonly number[] | null): Promise<number>
  dropDeadLetters(ids: readonly number[] | null): Promise<number>

  // Internal API.

  /** Null: no inventory, unknown, or of another company (MAT-200). `q` lower-case or not, literal; order of MAT-201. */
  packages(
    companyId: string,
    serverId: string,
    page: { readonly q: string | null; readonly after: PackagePosition | null; readonly limit: number },
  ): { readonly items: readonly PackageRow[]; readonly next: PackagePosition | null } | null
  /** `invalid_bound`: the version bound names is invalid for the only possible system (MAT-204). */
  search(
    companyId: string,
    query: SearchQuery,
  ): Promise<{ readonly items: readonly PackageRow[]; readonly nextAfter: string | null } | 'invalid_bound'>
  summary(companyId: string): {
    readonly servers: number
    readonly oldest_report_ms: number | null
    readonly ecosystems: Readonly<Record<string, number>>
    readonly open_findings: number
  }
  /** MAT-207 to 209; serverId null: the whole company. Batches read before are not current any more. */
  purge(companyId: string, serverId: string | null): Promise<void>
  /** MAT-171: commits the marker and resolves to the count of events that will be made. */
  resync(companyId: string): Promise<number>

  // Settings of companies and reference data.

  settings(companyId: string): CompanySettings | null
  putSettings(settings: Omit<CompanySettings, 'disabledSinceMs'>): Promise<void>
  /** Vulnerabilities with an open finding that the hub does not have, or has otherwise (MAT-223). */
  referencesToSend(limit: number): readonly Reference[]
  referencesSent(references: readonly Pick<Reference, 'id' | 'digest'>[]): Promise<void>
  /** Distributions whose rows concern hosts that have reported: `db.sources: auto` (MAT-062). */
  distrosSeen(): readonly string[]

  // Operation.

  /**
   * Work of an hour, in slices: hosts to forget (MAT-188), findings of companies switched off for 24 hours (MAT-221),
   * ended tombstones, what nobody refers to any more.
   */
  sweep(): Promise<void>
  counters(): StateCounters
  /** Resolves once the hosts of every package are in memory: until then searches read lists host by host. */
  loaded(): Promise<void>
  /** True once after a backup took the place of the state: the hub may know of events that it does not (MAT-190). */
  takeRestored(): Promise<boolean>
  /** Writes a consistent copy to a file that does not exist yet, while others go on (MAT-190). */
  backup(file: string): Promise<void>
  /** Ends jobs between two slices and closes. Reports that wait are committed first. */
  close(): Promise<void>
}

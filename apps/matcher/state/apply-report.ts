// What becomes of a report: the inventory and findings that it leaves, and the events that tell of it (MAT-152 to 154,
// 181). One report is one work of the writer. Whether it is taken: report-refusal.ts.

import { isConclusive } from '../../../core/matching/conclusive-report.ts'
import type { Report, ScanErrorCode } from '../../../core/matching/report-schema.ts'
import { ecosystemOf, releaseOf } from '../../../core/matching/whose-advisories.ts'
import type { SettingsRows } from './company-settings.ts'
import { contextOf } from './context-rows.ts'
import { type HostRow, STALE } from './host-rows.ts'
import { encodeSorted } from './number-list.ts'
import { dayNumber, isEarly, reportRefusal } from './report-refusal.ts'
import type { StateParts } from './state-parts.ts'
import type { ReportInput, ReportOutcome } from './state-types.ts'
import type { Tombstones } from './tombstones.ts'
import type { WaitingEvent } from './waiting-event.ts'

/** What server.scanned says that does not change with the database: shared by equal servers. */
export type ScanBody = {
  readonly scanner_version: string
  readonly os: { readonly id: string; readonly version_id: string; readonly codename: string }
  readonly kernel_running: string
  readonly reboot_required: boolean
  readonly livepatch_active: boolean
  readonly package_count: number
  readonly error_codes: readonly ScanErrorCode[]
}

/** What a report leaves of a host: columns of its row, and what is told. */
type Kept = Pick<HostRow, 'context' | 'scan' | 'list' | 'finding_count' | 'is_stale'> & {
  readonly events: readonly WaitingEvent[]
}

export class ReportIntake {
  readonly #parts: StateParts
  readonly #tombstones: Tombstones
  readonly #settings: SettingsRows

  constructor(parts: StateParts, tombstones: Tombstones, settings: SettingsRows) {
    this.#parts = parts
    this.#tombstones = tombstones
    this.#settings = settings
  }

  /** Within a work of the writer only. */
  accept(input: ReportInput): ReportOutcome {
    const host = this.#parts.hosts.byHostId.get(input.hostId)
    if (host === null) return { outcome: 'unknown_host' }
    const refusal = reportRefusal(host, input, {
      isSwitchedOff: this.#settings.get(host.company_id)?.isEnabled === false,
      purgedAtMs: () => this.#tombstones.purgedAtMs(host.company_id, host.server_id),
      isOutboxFull: this.#parts.outbox.isFull,
    })
    return refusal ?? this.#keep(host, input)
  }

  #keep(host: HostRow, input: ReportInput): ReportOutcome {
    const parts = this.#parts
    const { report, receivedAtMs } = input
    const clockMs = parts.options.now()
    parts.matcher.keepDay(clockMs)
    const isUnchanged = host.scan !== null && input.contentHash === host.content_hash && host.is_stale === 0
    const kept = isUnchanged
      ? { ...host, events: [] }
      : report === null
        ? this.#matchAgain(host, receivedAtMs)
        : this.#replaceInventory(host, report, receivedAtMs)
    if (kept.context === null || kept.scan === null) throw new Error('cannot keep a report without its context')
    const { match } = parts.matcher.matchOf(kept.context)
    const scanned: WaitingEvent = {
      type: 'server.scanned',
      scan: kept.scan,
      status: match.status,
      support: match.support,
      openFindings: kept.finding_count,
    }
    const lastSeq = parts.outbox.tell(
      host,
      [...kept.events, scanned],
      receivedAtMs,
      clockMs,
      parts.matcher.reader.version,
    )
    parts.hosts.afterReport.run({
      id: host.id,
      last_seq: lastSeq,
      last_time_ms: input.requestTimeMs,
      last_signature: input.signature,
      last_status: match.status,
      last_open: kept.finding_count,
      reported_ms: receivedAtMs,
      early_day: isEarly(host, input) ? dayNumber(receivedAtMs) : host.early_day,
      content_hash: input.contentHash,
      machine_hash: host.machine_hash || (report?.machine_id_hash ?? ''),
      context: kept.context,
      scan: kept.scan,
      list: kept.list,
      finding_count: kept.finding_count,
      is_stale: kept.is_stale,
    })
    if (host.list !== null && host.list !== kept.list) parts.lists.dropUnused(host.list)
    return {
      outcome: 'kept',
      isRepeat: false,
      isUnchanged,
      match_status: match.status,
      open_findings: kept.finding_count,
    }
  }

  /** A report with a list that differs from the one held, or one that says that the list cannot be had. */
  #replaceInventory(host: HostRow, report: Report, atMs: number): Kept {
    const { instances, contexts, matcher, lists, inventory, writer } = this.#parts
    const { packages, system } = report
    const ecosystem = ecosystemOf(report.os, this.#parts.options.match)
    const release = releaseOf(report.os, this.#parts.options.match)?.database ?? ecosystem
    const context = contexts.intern(contextOf(report), ecosystem, body => matcher.matchOfContext(body).key)
    const isKnown = packages !== undefined && packages.name.length > 0 && system !== '' && isConclusive(report, 'ok')
    const list = isKnown ? instances.intern(system, release, packages) : null
    // Nothing is opened or resolved by a report whose packages are not known; the inventory stays (MAT-152).
    if (list === null || matcher.isTooMuch(list)) {
      const scan = this.#internScan(report, new Set(list === null ? [] : ['too_many_packages' as const]))
      return { ...host, context: host.context ?? context, scan, events: [] }
    }
    this.#parts.marks.addList(list)
    const before = this.#parts.listOf(host)
    const listId = lists.intern(encodeSorted(list))
    if (listId !== host.list) writer.afterCommit(() => inventory.replace(host.id, before, list))
    const found = matcher.find(context, list, null)
    const scan = this.#internScan(report, found.errorCodes)
    return { scan, list: listId, ...this.#match(host, context, list, found.ids, atMs) }
  }

  /** The same packages, but findings that are to be made anew. */
  #matchAgain(host: HostRow, atMs: number): Kept {
    const list = this.#parts.listOf(host)
    if (host.context === null || list === null) return { ...host, events: [] }
    const found = this.#parts.matcher.find(host.context, list, null)
    return { scan: host.scan, list: host.list, ...this.#match(host, host.context, list, found.ids, atMs) }
  }

  #match(host: HostRow, context: number, list: Int32Array, ids: ReadonlySet<number>, atMs: number) {
    const { matcher, changes, contexts } = this.#parts
    const { match, isMatched } = matcher.matchOf(context)
    if (!isMatched) return { context, finding_count: host.finding_count, is_stale: STALE, events: [] }
    const open = this.#parts.openFindings(host.id)
    const kernelRunning = contexts.get(context).kernel.running
    const now = { ids, onlyGroups: null, match, kernelRunning, list, isSwitchedOff: false }
    const change = changes.compare(open, now, atMs)
    if (change.open !== null) this.#parts.putFindings(host.id, change.open)
    return { context, finding_count: (change.open ?? open).size, is_stale: 0, events: change.events }
  }

  #internScan(report: Report, found: ReadonlySet<ScanErrorCode>): number {
    const { os, kernel } = report
    const body: ScanBody = {
      scanner_version: report.scanner_version,
      os: { id: os.id, version_id: os.version_id, codename: os.codename },
      kernel_running: kernel.running,
      reboot_required: report.reboot_required,
      livepatch_active: report.livepatch_active,
      package_count: report.packages?.name.length ?? 0,
      error_codes: [...new Set([...report.error_codes, ...found])].sort(),
    }
    const id = this.#parts.scans.intern(JSON.stringify(body))
    this.#parts.marks.scans.add(id)
    return id
  }
}

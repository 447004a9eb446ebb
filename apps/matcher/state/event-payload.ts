// Waiting events → events as the hub takes them (document 3, MAT-148, MAT-155, MAT-162).

import type { FindingColumns, SecurityEvent } from '../../../core/matching/finding-event.ts'
import { eventId, findingKey } from '../../../core/matching/finding-key.ts'
import type { ScanBody } from './apply-report.ts'
import type { HostRow } from './host-rows.ts'
import type { StateParts } from './state-parts.ts'
import type { WaitingEvent } from './waiting-event.ts'

/** Identity, and when and with what it was committed. */
export type EventFrame = {
  readonly host: Pick<HostRow, 'host_id' | 'company_id' | 'server_id'>
  readonly seq: number
  readonly occurredAtMs: number
  readonly dbVersion: number
}

const timeText = (ms: number): string => new Date(ms).toISOString()

export function securityEvent(parts: StateParts, frame: EventFrame, event: WaitingEvent): SecurityEvent {
  const { host, seq, occurredAtMs, dbVersion } = frame
  const occurredAt = timeText(occurredAtMs)
  const envelope = {
    event_id: eventId(host.host_id, seq),
    company_id: host.company_id,
    server_id: host.server_id,
    host_id: host.host_id,
    seq,
    occurred_at: occurredAt,
  }
  switch (event.type) {
    case 'finding.opened':
    case 'finding.updated': {
      const columns = parts.contents.columns(event.finding)
      const payload = {
        finding_key: findingKeyOf(host, columns),
        ...columns,
        kev: false as const,
        epss: null,
        first_seen_at: timeText(event.firstSeenMs),
        db_version: dbVersion,
      }
      return { ...envelope, type: event.type, payload }
    }
    case 'finding.resolved': {
      const columns = parts.contents.columns(event.finding)
      const payload = {
        finding_key: findingKeyOf(host, columns),
        kind: columns.kind,
        resolved_reason: event.reason,
        resolved_at: occurredAt,
        db_version: dbVersion,
      }
      return { ...envelope, type: event.type, payload }
    }
    case 'server.scanned': {
      const scan: ScanBody = JSON.parse(parts.scans.body(event.scan))
      const payload = {
        scanned_at: occurredAt,
        ...scan,
        db_version: dbVersion,
        match_status: event.status,
        release_support: event.support,
        open_findings: event.openFindings,
      }
      return { ...envelope, type: event.type, payload }
    }
  }
}

export function findingKeyOf(
  host: Pick<EventFrame['host'], 'company_id' | 'host_id'>,
  columns: FindingColumns,
): string {
  const { kind, ecosystem, package_key, vuln_id } = columns
  // The release is no part of the key: a finding survives its upgrade (MAT-140).
  const distro = ecosystem.slice(0, ecosystem.indexOf(':'))
  return findingKey(host.company_id, host.host_id, { kind, distro, package_key, vuln_id })
}

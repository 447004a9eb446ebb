// One report against one database, without a server or state: what the command `match` prints (MAT-232).
import type { AdvisoryReader, Affected } from './advisory.ts'
import { isConclusive } from './conclusive-report.ts'
import type { FindingColumns, FindingPayload, MatchStatus, ReleaseSupport } from './finding-event.ts'
import { findingKey } from './finding-key.ts'
import { distroOf, findingsOfHost, type HostFindings } from './findings-of-host.ts'
import type { MatchOptions } from './match-options.ts'
import { instancesOfReport, type PackageInstance } from './package-instance.ts'
import type { Report, ScanErrorCode } from './report-schema.ts'
import { evaluateInstance, type Verdict } from './verdict.ts'

export type MatchedReport = {
  readonly match_status: MatchStatus
  readonly release_support: ReleaseSupport
  readonly error_codes: readonly ScanErrorCode[]
  readonly findings: readonly FindingPayload[]
}

/** Findings of a report; none when its packages are not known, or without a database (MAT-152, MAT-153). */
export function matchReport(
  report: Report,
  reader: AdvisoryReader,
  nowMs: number,
  options: MatchOptions,
): MatchedReport {
  const { match, match_status, release_support, error_codes, findings } = findingsOfReport(
    report,
    reader,
    nowMs,
    options,
  )
  const context = {
    companyId: '',
    hostId: '',
    firstSeenAt: new Date(nowMs).toISOString(),
    dbVersion: reader.version,
    distro: findings[0] ? distroOf(findings[0]) : '',
  }
  return {
    match_status,
    release_support,
    error_codes,
    findings: isConclusive(report, match.status) ? findings.map(finding => payloadOf(finding, context)) : [],
  }
}

function findingsOfReport(report: Report, reader: AdvisoryReader, nowMs: number, options: MatchOptions): HostFindings {
  const rows = rememberSources(reader)
  const known = new Map<PackageInstance, readonly Verdict[]>()
  const verdictsOf = (instance: PackageInstance): readonly Verdict[] => {
    const held = known.get(instance)
    if (held) return held
    const verdicts = evaluateInstance(instance, rows, options)
    known.set(instance, verdicts)
    return verdicts
  }
  return findingsOfHost({
    host: report,
    instances: instancesOfReport(report, options),
    verdictsOf,
    reader,
    nowMs,
    options,
  })
}

/** All binaries of a source ask for the same row. */
function rememberSources(reader: AdvisoryReader): Pick<AdvisoryReader, 'affected'> {
  const known = new Map<string, Affected | null>()
  return {
    affected(releaseId, packageName, by) {
      if (by === 'binary') return reader.affected(releaseId, packageName, by)
      const key = `${releaseId} ${packageName}`
      const held = known.get(key)
      if (held !== undefined) return held ?? undefined
      const row = reader.affected(releaseId, packageName, by)
      known.set(key, row ?? null)
      return row
    },
  }
}

type FindingContext = {
  /** Both empty in the output of `match`, which knows no server: equal findings have equal keys there. */
  readonly companyId: string
  readonly hostId: string
  /** RFC 3339 with milliseconds, UTC. */
  readonly firstSeenAt: string
  readonly dbVersion: number
  /** Of all findings of the server. */
  readonly distro: string
}

/**
 * The payload of finding.opened and finding.updated, its members in the order of document 3. A server has thousands of
 * findings: members that are named cost less than a copy of whatever there is.
 */
function payloadOf(finding: FindingColumns, context: FindingContext): FindingPayload {
  const { kind, package_key, vuln_id, cvss_score, cvss_vector, score_source } = finding
  const identity = { kind, distro: context.distro, package_key, vuln_id }
  return {
    finding_key: findingKey(context.companyId, context.hostId, identity),
    kind,
    vuln_id,
    aliases: finding.aliases,
    advisory_ids: finding.advisory_ids,
    ecosystem: finding.ecosystem,
    package_key,
    packages: finding.packages,
    installed_version: finding.installed_version,
    fixed_version: finding.fixed_version,
    fix_status: finding.fix_status,
    fix_channel: finding.fix_channel,
    severity_label: finding.severity_label,
    minor: finding.minor,
    kernel: finding.kernel,
    reboot_required: finding.reboot_required,
    no_distro_fix: finding.no_distro_fix,
    eol_date: finding.eol_date,
    upgrade_to: finding.upgrade_to,
    ...(cvss_score !== undefined && { cvss_score }),
    ...(cvss_vector !== undefined && { cvss_vector }),
    ...(score_source !== undefined && { score_source }),
    kev: false,
    epss: null,
    first_seen_at: context.firstSeenAt,
    db_version: context.dbVersion,
  }
}

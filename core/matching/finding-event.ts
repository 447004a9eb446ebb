// Events of the matcher as the hub takes them (document 3, Security matcher to hub, and Security ingest payloads).
import type { FixChannel, FixStatus } from './advisory.ts'
import type { ScanErrorCode } from './report-schema.ts'

export type FindingKind = 'vulnerability' | 'release_eol'

export type FindingPackage = { readonly name: string; readonly version: string; readonly arch: string }

/** A finding without the identity that a host gives it: all that `matcher match` prints beside key and times. */
export type FindingColumns = {
  readonly kind: FindingKind
  readonly vuln_id: string
  readonly aliases: readonly string[]
  readonly advisory_ids: readonly string[]
  /** `<distro>:<release>`. */
  readonly ecosystem: string
  /** Source package; the kernel's canonical source; empty for release_eol. */
  readonly package_key: string
  readonly packages: readonly FindingPackage[]
  readonly installed_version: string
  readonly fixed_version: string
  readonly fix_status: FixStatus | 'upgrade_release'
  readonly fix_channel: FixChannel
  readonly severity_label: string
  readonly minor: boolean
  readonly kernel: boolean
  readonly reboot_required: boolean
  readonly no_distro_fix: boolean
  /** `YYYY-MM-DD`, filled for release_eol only. */
  readonly eol_date: string
  readonly upgrade_to: readonly string[]
  readonly cvss_score?: number
  readonly cvss_vector?: string
  readonly score_source?: string
}

/** Payload of finding.opened and finding.updated. */
export type FindingPayload = FindingColumns & {
  readonly finding_key: string
  readonly kev: false
  readonly epss: null
  readonly first_seen_at: string
  readonly db_version: number
}

export type ResolvedReason =
  | 'release_upgraded'
  | 'package_removed'
  | 'package_updated'
  | 'out_of_scope'
  | 'advisory_changed'

type ResolvedPayload = {
  readonly finding_key: string
  readonly kind: FindingKind
  readonly resolved_reason: ResolvedReason
  readonly resolved_at: string
  readonly db_version: number
}

export type MatchStatus = 'ok' | 'unsupported_os' | 'unsupported_release' | 'release_eol' | 'no_db'

export type ReleaseSupport = 'standard' | 'esm_only' | 'eol' | ''

type ScannedPayload = {
  readonly scanned_at: string
  readonly scanner_version: string
  readonly db_version: number
  readonly os: { readonly id: string; readonly version_id: string; readonly codename: string }
  readonly kernel_running: string
  readonly reboot_required: boolean
  readonly livepatch_active: boolean
  readonly package_count: number
  readonly error_codes: readonly ScanErrorCode[]
  readonly match_status: MatchStatus
  readonly release_support: ReleaseSupport
  readonly open_findings: number
}

/** One of the 1 to 200 events of a batch. */
export type SecurityEvent = {
  readonly event_id: string
  readonly company_id: string
  readonly server_id: string | null
  readonly host_id: string
  readonly seq: number
  readonly occurred_at: string
} & (
  | { readonly type: 'finding.opened' | 'finding.updated'; readonly payload: FindingPayload }
  | { readonly type: 'finding.resolved'; readonly payload: ResolvedPayload }
  | { readonly type: 'server.scanned'; readonly payload: ScannedPayload }
)

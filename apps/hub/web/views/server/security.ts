// How secure a server is: its last scan and what that left out, and what was found; its packages, which only the
// matcher knows.
import { findingsByIds } from '../../../security/findings/finding-list.ts'
import { idsOfPage } from '../../../security/findings/finding-page.ts'
import { hiddenKinds } from '../../../security/findings/hidden-kinds.ts'
import { matcherState, serverStanding } from '../../../security/findings/overview.ts'
import type { MatcherReason } from '../../../security/packages/matcher-note.ts'
import { packagesOfServer } from '../../../security/packages/packages.ts'
import { type FindingRow, type FindingsView, SEES_KINDS, toFindingRow } from '../findings.ts'
import type { View, ViewContext } from '../view.ts'
import { shownServer } from './head.ts'

const ROWS_MAX = 200
const PACKAGES_SHOWN = 200
/** The matcher is asked anew so often while somebody looks; packages change once a day. */
const PACKAGES_AGE_MS = 60_000
/** As the matcher takes a search. */
const Q_CHARS_MAX = 128

type Security = Awaited<ReturnType<typeof serverStanding>>

export type SecurityView = {
  /** Null: no scanner has ever been enrolled for the server. */
  readonly host: {
    readonly state: string
    /** The plan has no place for it. */
    readonly isInactive: boolean
    readonly isStale: boolean
    readonly lastSeenAtMs: number | null
    /** When its last report came, whatever was made of that. */
    readonly lastReportAtMs: number | null
  } | null
  /** Null: no report has been compared yet. */
  readonly scan: {
    /** It is of a scanner that the server had before. */
    readonly isOfOtherHost: boolean
    readonly scannedAtMs: number
    readonly match: NonNullable<Security['scan']>['match_status']
    readonly errorCodes: readonly string[]
    readonly os: string
    readonly support: string | null
    readonly kernel: string | null
    readonly needsReboot: boolean | null
    readonly isLivepatched: boolean | null
    readonly packages: number | null
    readonly scannerVersion: string | null
    readonly dbVersion: number
  } | null
  readonly byStatus: Security['by_status']
  readonly byPriority: Security['by_priority']
  readonly matcher: FindingsView['matcher']
  readonly matching: number
  readonly rows: readonly FindingRow[]
}

const keys = {
  permissions: ['monitoring.view', 'servers.view', 'security.view'],
  optional: ['servers.delete', ...SEES_KINDS],
}

const askerOf = ({ hub, companyId, may }: ViewContext) => ({
  ...{ hub, companyId },
  caller: { permissions: { has: may } },
})

async function findingsOf(context: ViewContext, serverId: string): Promise<Pick<SecurityView, 'matching' | 'rows'>> {
  const { hub, companyId } = context
  const { db } = hub.database
  const filter = { status: 'open', server_id: serverId, hidden_kinds: hiddenKinds(askerOf(context).caller) } as const
  const page = await idsOfPage(db, companyId, filter, { limit: ROWS_MAX, offset: 0 })
  return { matching: page.total, rows: (await findingsByIds(db, companyId, page.ids)).map(toFindingRow) }
}

function scanOf({ scan, host }: Security): SecurityView['scan'] {
  if (scan === null) return null
  return {
    isOfOtherHost: host !== null && scan.host_id !== host.host_id,
    scannedAtMs: scan.scanned_at.getTime(),
    ...{ match: scan.match_status, errorCodes: scan.error_codes, support: scan.release_support || null },
    os: [scan.os.id, scan.os.version_id].filter(Boolean).join(' '),
    ...{ kernel: scan.kernel_running, needsReboot: scan.reboot_required, isLivepatched: scan.livepatch_active },
    ...{ packages: scan.package_count, scannerVersion: scan.scanner_version, dbVersion: scan.db_version },
  }
}

export const serverSecurityView: View<SecurityView> = {
  ...keys,
  params: ['server'],
  async make(context) {
    const { server } = await shownServer(context)
    const [security, matcher, findings] = await Promise.all([
      serverStanding(askerOf(context), server.id),
      matcherState(context),
      findingsOf(context, server.id),
    ])
    const { host } = security
    return {
      host:
        host === null
          ? null
          : {
              ...{ state: host.state, isInactive: host.inactive, isStale: host.stale },
              lastSeenAtMs: host.last_seen_at?.getTime() ?? null,
              lastReportAtMs: host.last_report_at?.getTime() ?? null,
            },
      scan: scanOf(security),
      ...{ byStatus: security.by_status, byPriority: security.by_priority },
      matcher: {
        ...{ isThere: matcher.available, state: matcher.state, databaseHours: matcher.db_age_hours },
        fault: matcher.fault,
      },
      ...findings,
    }
  },
}

type PackageRow = {
  readonly name: string
  readonly version: string
  readonly arch: string
  readonly source: string
  readonly ecosystem: string
}

export type PackagesView = {
  readonly rows: readonly PackageRow[]
  /** Where the next ones begin; null after the last. */
  readonly next: string | null
  /** Why there are none; null: the matcher has answered. */
  readonly reason: MatcherReason | null
}

export const serverPackagesView: View<PackagesView> = {
  ...keys,
  params: ['server', 'q', 'cursor'],
  ageMs: PACKAGES_AGE_MS,
  async make(context) {
    const { server } = await shownServer(context)
    const { data, next_cursor, matcher } = await packagesOfServer(context, server.id, {
      q: context.param('q').slice(0, Q_CHARS_MAX) || undefined,
      cursor: context.param('cursor') || undefined,
      limit: PACKAGES_SHOWN,
    })
    return {
      rows: data.map(({ name, version, arch, source_name, ecosystem }) => ({
        ...{ name, version, arch, source: source_name, ecosystem },
      })),
      next: next_cursor,
      reason: matcher.reason,
    }
  },
}

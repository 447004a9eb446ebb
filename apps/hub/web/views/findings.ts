// The findings of a company, the highest risk first, under a filter; what waits in all, how well the servers are
// scanned, and what the matcher knows.

import { sql } from 'drizzle-orm'
import {
  type FindingFilter,
  findingKinds,
  findingStatuses,
  fixStatuses,
  priorities,
} from '../../security/findings/finding-filter.ts'
import { findingGroups, type Grouping, groupings } from '../../security/findings/finding-groups.ts'
import { findingsByIds } from '../../security/findings/finding-list.ts'
import { idsOfPage } from '../../security/findings/finding-page.ts'
import { hiddenKinds } from '../../security/findings/hidden-kinds.ts'
import { findingCounts, matcherState } from '../../security/findings/overview.ts'
import { type FilterTerm, parseFilter, vulnerabilityName } from '../address/filter-language.ts'
import { sitePages } from '../address/site-map.ts'
import { askedOffset, type View, type ViewContext } from './view.ts'

const WINDOW = 120
/** The most findings that a selection of all that match names: a request for an exception takes no more. */
const MATCHING_MAX = 10_000
export const SEES_KINDS = ['security.secrets.view', 'security.pii.view'] as const

type FindingState = (typeof findingStatuses)[number]
type Priority = (typeof priorities)[number]

export type FindingRow = {
  readonly id: string
  readonly risk: number
  readonly priority: Priority
  readonly state: FindingState
  readonly kind: (typeof findingKinds)[number]
  readonly vulnId: string
  readonly title: string | null
  readonly packageKey: string
  readonly installed: string
  readonly fixed: string
  readonly fix: (typeof fixStatuses)[number]
  readonly isExploited: boolean
  readonly needsReboot: boolean
  readonly serverId: string | null
  readonly serverName: string | null
  readonly firstSeenAtMs: number
  readonly dueAtMs: number | null
}

export type FindingsView = {
  readonly open: number
  readonly byPriority: Readonly<Record<Priority, number>>
  readonly byState: Readonly<Record<FindingState, number>>
  readonly exploited: number
  readonly overdue: number
  readonly dueSoon: number
  readonly scans: {
    readonly servers: number
    readonly scanned: number
    readonly stale: number
    readonly neverScanned: number
    readonly oldestAtMs: number | null
  }
  readonly matcher: {
    readonly isThere: boolean
    /** What it does with its database; null while it does not say. */
    readonly state: string | null
    readonly databaseHours: number | null
    readonly fault: string | null
  }
  readonly facets: Readonly<Record<string, readonly (readonly [value: string, count: number])[]>>
  readonly matching: number
  readonly offset: number
  readonly rows: readonly FindingRow[]
  /** What the groups have in common; null: there are none. */
  readonly groupedBy: Grouping | null
  readonly groups: readonly FindingGroup[]
  /** The filter as an export takes it; null: nothing matches, or an export cannot say it. */
  readonly exported: Readonly<Record<string, string | boolean>> | null
}

export type FindingGroup = {
  /** The vulnerability, the package or the id of the server; empty: of no server. */
  readonly key: string
  /** What a vulnerability is about; the name of a server. */
  readonly title: string | null
  readonly risk: number
  readonly priority: Priority
  readonly isExploited: boolean
  readonly findings: number
  readonly open: number
  /** Of these findings, how many an upgrade mends. */
  readonly fixed: number
  readonly packages: number
  readonly vulnerabilities: number
}

const CHOICES = { state: findingStatuses, kind: findingKinds, priority: priorities, fix: fixStatuses } as const

/** The values of a key that the terms leave: those named, else all, without those excluded. Null: it is not named. */
function valuesOf<T extends string>(terms: readonly FilterTerm[], all: readonly T[]): readonly T[] | undefined {
  if (terms.length === 0) return undefined
  const named = (isExcluded: boolean) =>
    new Set(terms.filter(term => term.isExcluded === isExcluded).map(({ value }) => value.toLowerCase()))
  const [chosen, excluded] = [named(false), named(true)]
  return all.filter(value => (chosen.size === 0 || chosen.has(value)) && !excluded.has(value))
}

const KEYS = new Set([...Object.keys(CHOICES), 'exploited', 'cve', 'package', 'server', 'attached'])

/** What the terms ask for; null where nothing can meet them. Without a state: what is open. */
async function toFilter(context: ViewContext, terms: readonly FilterTerm[]): Promise<FindingFilter | null> {
  const of = (key: string) => terms.filter(term => term.key === key)
  if (terms.some(({ key, operator }) => key !== null && (!KEYS.has(key) || operator !== '='))) return null
  const words = terms.filter(term => term.key === null)
  const single = [of('cve'), of('package'), [...of('server'), ...of('attached')]]
  if ([...words, ...single.flat()].some(term => term.isExcluded) || single.some(({ length }) => length > 1)) return null
  const [cve, packageTerm, server] = single.map(([term]) => term)
  const chosen = {
    status: valuesOf(of('state'), CHOICES.state) ?? (['open'] as const),
    kind: valuesOf(of('kind'), CHOICES.kind),
    priority: valuesOf(of('priority'), CHOICES.priority),
    fix_status: valuesOf(of('fix'), CHOICES.fix),
  }
  const exploited = valuesOf(of('exploited'), ['yes', 'no'])
  if ([...Object.values(chosen), exploited].some(values => values?.length === 0)) return null
  const serverId = server && (await serverOf(context, server))
  if (serverId === null) return null
  return {
    ...chosen,
    kev: exploited?.length === 1 ? exploited[0] === 'yes' : undefined,
    vuln_id: cve && vulnerabilityName(cve.value),
    package_key: packageTerm?.value,
    server_id: serverId,
    search: words.length === 0 ? undefined : words.map(({ value }) => value).join(' '),
    hidden_kinds: hiddenKinds({ permissions: { has: context.may } }),
  }
}

/** By its name, or none: of hosts that are attached to no server. Null: the company has no such server. */
async function serverOf({ hub, companyId }: ViewContext, { key, value: name }: FilterTerm): Promise<string | null> {
  if (key === 'attached') return name.toLowerCase() === 'no' ? 'none' : null
  const [row] = await hub.database.db.execute<{ id: string }>(sql`
    select id from servers where company_id = ${companyId} and deleted_at is null and lower(name) = lower(${name}) limit 1`)
  return row?.id ?? null
}

export const toFindingRow = ({
  finding,
  server,
  title,
}: Awaited<ReturnType<typeof findingsByIds>>[number]): FindingRow => ({
  ...{ id: finding.id, risk: finding.risk, priority: finding.priority, state: finding.status, kind: finding.kind },
  ...{ vulnId: finding.vulnId, title, packageKey: finding.packageKey, installed: finding.installedVersion },
  ...{ fixed: finding.fixedVersion, fix: finding.fixStatus, isExploited: finding.kev },
  ...{ needsReboot: finding.rebootRequired, serverId: server?.id ?? null, serverName: server?.name ?? null },
  firstSeenAtMs: finding.firstSeenAt.getTime(),
  dueAtMs: finding.slaDueAt?.getTime() ?? null,
})

/** The filter as the API takes it, which knows one value of a key and no package; null: it cannot say it. */
function exportedFilter({ hidden_kinds: _, ...filter }: FindingFilter): FindingsView['exported'] {
  const given: Record<string, string | boolean> = {}
  for (const [name, value] of Object.entries(filter)) {
    if (value === undefined) continue
    if (name === 'package_key') return null
    const [first, ...others] = Array.isArray(value) ? value : [value]
    if (others.length > 0) return null
    given[name] = first
  }
  return given
}

/** A page of what there is; what is asked for beyond its end is the last row. */
async function lastRange<T extends { readonly total: number }>(
  asked: number,
  read: (offset: number) => Promise<T>,
): Promise<{ readonly offset: number; readonly page: T }> {
  const page = await read(asked)
  if (asked < page.total || page.total === 0) return { offset: page.total === 0 ? 0 : asked, page }
  return { offset: page.total - 1, page: await read(page.total - 1) }
}

type Grouped = { readonly filter: FindingFilter; readonly by: Grouping }

async function groupsOf({ hub, companyId }: ViewContext, grouped: Grouped, asked: number) {
  const read = (offset: number) => findingGroups(hub.database.db, companyId, grouped, { limit: WINDOW, offset })
  const { offset, page } = await lastRange(asked, read)
  const groups = page.groups.map(
    ({ kev, ...group }): FindingGroup => ({
      ...{ key: group.key, title: group.title, risk: group.risk, priority: group.priority, isExploited: kev },
      ...{ findings: group.findings, open: group.open, fixed: group.fixed },
      ...{ packages: group.packages, vulnerabilities: group.vulnerabilities },
    }),
  )
  return { matching: page.total, offset, rows: [], groups }
}

async function windowOf(context: ViewContext, asked: number) {
  const { hub, companyId, param } = context
  const { db } = hub.database
  const filter = await toFilter(context, parseFilter(param('q')))
  const groupedBy = groupings.find(each => each === param('group')) ?? null
  const none = { matching: 0, offset: 0, rows: [], groups: [], groupedBy, exported: null }
  if (filter === null) return none
  const exported = exportedFilter(filter)
  if (groupedBy !== null) return { ...none, ...(await groupsOf(context, { filter, by: groupedBy }, asked)), exported }
  const read = (offset: number) => idsOfPage(db, companyId, filter, { limit: WINDOW, offset })
  const { offset, page } = await lastRange(asked, read)
  const rows = (await findingsByIds(db, companyId, page.ids)).map(toFindingRow)
  return { ...none, matching: page.total, offset, rows, exported }
}

const instantMs = (text: string | null): number | null => (text === null ? null : new Date(text).getTime())

export const findingsView: View<FindingsView> = {
  permissions: ['security.view'],
  optional: SEES_KINDS,
  params: sitePages.findings.takes,
  async make(context) {
    const { hub, companyId, param } = context
    const { db } = hub.database
    const asked = askedOffset(param('offset'))
    const [counts, scans, matcher, window] = await Promise.all([
      findingCounts(db, companyId),
      context.scans.of(companyId),
      matcherState(context),
      windowOf(context, asked),
    ])
    return {
      open: counts.by_status.open,
      ...{ byPriority: counts.by_priority, byState: counts.by_status, exploited: counts.kev },
      ...{ overdue: scans.overdue, dueSoon: scans.due_soon },
      scans: {
        ...{ servers: scans.servers, scanned: scans.scanned_servers, stale: scans.stale_hosts },
        ...{ neverScanned: scans.never_scanned_hosts, oldestAtMs: instantMs(scans.oldest_scan_at) },
      },
      matcher: {
        ...{ isThere: matcher.available, state: matcher.state, databaseHours: matcher.db_age_hours },
        fault: matcher.fault,
      },
      facets: {
        priority: Object.entries(counts.by_priority),
        state: Object.entries(counts.by_status),
        kind: Object.entries(counts.by_kind),
        fix: fixStatuses.map(fix => [fix, -1] as const),
        exploited: [['yes', counts.kev]],
      },
      ...window,
    }
  },
}

/** Grouped by server, for which all findings are read: made anew less often than what is read of kept counts. */
export const findingsByServerView: View<FindingsView> = { ...findingsView, ageMs: 20_000 }

export type MatchingFindingsView = { readonly ids: readonly string[] }

/** All findings that match, for what is done with them. */
export const matchingFindingsView: View<MatchingFindingsView> = {
  permissions: ['security.view'],
  optional: SEES_KINDS,
  params: ['q'],
  async make(context) {
    const { hub, companyId, param } = context
    const filter = await toFilter(context, parseFilter(param('q')))
    if (filter === null) return { ids: [] }
    const { ids } = await idsOfPage(hub.database.db, companyId, filter, { limit: MATCHING_MAX, offset: 0 })
    return { ids }
  },
}

// Findings as people see them: lists by risk, and one with its events (decisions G-160, G-172).
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { and, desc, eq, getTableColumns, type SQL, sql } from 'drizzle-orm'
import type { Executor } from '../../platform/db/connect.ts'
import { servers } from '../../platform/db/schema.ts'
import { securityFindingEvents, securityFindings, securityVulnerabilities } from '../../platform/db/schema-security.ts'
import { isAnyOf } from '../../platform/db/transaction.ts'
import { notFound } from '../../platform/http/api-error.ts'
import { type Asker, collectionReadBy } from '../../platform/http/collection.ts'
import { flag, flagOf, isUuid, oneOf, optional, text, uuid } from '../../platform/http/request-schema.ts'
import { type FindingFilter, findingKinds, findingStatuses, fixStatuses, priorities } from './finding-filter.ts'
import { idsOfPage } from './finding-page.ts'
import { findingResponse } from './finding-response.ts'
import { hiddenKinds } from './hidden-kinds.ts'

const EVENTS_SHOWN = 100
const TEXT_MAX = 256

/** The server by id, or `none`: findings of scan hosts that are attached to no server. */
const serverOrNone = () => Type.Union([uuid(), Type.Literal('none')])

/** What a caller may filter the list by, and exports and requests for exceptions too. */
const findingFilters = {
  status: oneOf(findingStatuses),
  kind: oneOf(findingKinds),
  priority: oneOf(priorities),
  severity_label: text(TEXT_MAX),
  server_id: serverOrNone(),
  vuln_id: text(TEXT_MAX),
  fix_status: oneOf(fixStatuses),
  kev: flag(),
  search: text(TEXT_MAX),
}

const allOptional = <const T extends Record<string, TSchema>>(schemas: T) =>
  Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, optional(schema)])) as {
    [K in keyof T]: ReturnType<typeof optional<T[K]>>
  }

const { kev: _kev, ...filtersWithoutFlag } = findingFilters

/** The filters as members of a body (decision G-176): null and empty ones are absent, and `kev` may be a boolean. */
export const findingFilterBody = Type.Object({
  ...allOptional(filtersWithoutFlag),
  kev: optional(Type.Union([Type.Boolean(), flag()])),
})

/** The filter that a body says: of the members that there are, those that are given. */
export function findingFilterOf(body: Static<typeof findingFilterBody>): FindingFilter {
  const { kev } = body
  const values: Readonly<Record<string, unknown>> = { ...body, kev: typeof kev === 'string' ? flagOf(kev) : kev }
  const given = Object.keys(findingFilters).filter(name => values[name] != null)
  return Object.fromEntries(given.map(name => [name, values[name]]))
}

const { nameDigest: _digest, isAttached: _attached, slaTold: _told, ...columns } = getTableColumns(securityFindings)

const selectFindings = (db: Executor, where: SQL | undefined) =>
  db
    .select({
      finding: columns,
      server: { id: servers.id, name: servers.name, hostname: servers.hostname },
      // A source that knows no title sends an empty one.
      title: sql<string | null>`nullif(${securityVulnerabilities.title}, '')`,
    })
    .from(securityFindings)
    .leftJoin(servers, eq(servers.id, securityFindings.serverId))
    .leftJoin(securityVulnerabilities, eq(securityVulnerabilities.id, securityFindings.vulnId))
    .where(where)

type FindingRow = Awaited<ReturnType<typeof selectFindings>>[number]

/** Findings by id, in the order of the ids; those that are gone meanwhile are left out. */
export async function findingsByIds(db: Executor, companyId: string, ids: readonly string[]): Promise<FindingRow[]> {
  if (ids.length === 0) return []
  const where = and(eq(securityFindings.companyId, companyId), isAnyOf(securityFindings.id, ids))
  const byId = new Map((await selectFindings(db, where)).map(row => [row.finding.id, row]))
  return ids.flatMap(id => byId.get(id) ?? [])
}

export function presentFinding({ finding, server, title }: FindingRow) {
  return {
    id: finding.id,
    company_id: finding.companyId,
    server_id: finding.serverId,
    server,
    host_id: finding.hostId,
    finding_key: finding.findingKey,
    kind: finding.kind,
    vuln_id: finding.vulnId,
    title,
    aliases: finding.aliases,
    advisory_ids: finding.advisoryIds,
    ecosystem: finding.ecosystem,
    package_key: finding.packageKey,
    packages: finding.packages,
    installed_version: finding.installedVersion,
    fixed_version: finding.fixedVersion,
    fix_status: finding.fixStatus,
    fix_channel: finding.fixChannel,
    no_distro_fix: finding.noDistroFix,
    eol_date: finding.eolDate,
    upgrade_to: finding.upgradeTo,
    severity_label: finding.severityLabel,
    minor: finding.minor,
    kernel: finding.kernel,
    reboot_required: finding.rebootRequired,
    cvss_score: finding.cvssScore,
    cvss_vector: finding.cvssVector,
    score_source: finding.scoreSource,
    kev: finding.kev,
    kev_due_date: finding.kevDueDate,
    epss: finding.epss,
    risk: finding.risk,
    priority: finding.priority,
    status: finding.status,
    exception_id: finding.exceptionId,
    first_seen_at: finding.firstSeenAt,
    last_seen_at: finding.lastSeenAt,
    reopened_at: finding.reopenedAt,
    resolved_at: finding.resolvedAt,
    resolved_reason: finding.resolvedReason,
    sla_due_at: finding.slaDueAt,
    last_event_seq: finding.lastEventSeq,
    db_version: finding.dbVersion,
  }
}

const pageOf = async ({ hub, companyId }: Asker, filter: FindingFilter, range: { limit: number; offset: number }) => {
  const { db } = hub.database
  const { ids, total } = await idsOfPage(db, companyId, filter, range)
  return { rows: await findingsByIds(db, companyId, ids), total }
}

/** The highest risk first. */
export const findingCollection = collectionReadBy({
  filters: findingFilters,
  within: { server: uuid() },
  read: (asker, { kev, server, ...given }, range) =>
    pageOf(
      asker,
      {
        ...given,
        kev: flagOf(kev),
        hidden_kinds: hiddenKinds(asker.caller),
        ...(server === undefined ? {} : { server_id: server }),
      },
      range,
    ),
  response: findingResponse,
  present: presentFinding,
})

const withoutKind = {
  filters: { status: findingFilters.status, server_id: serverOrNone(), search: findingFilters.search },
  within: {},
  response: findingResponse,
  present: presentFinding,
}

/** Found secrets, for callers that may see them; a finding has no value of a secret. */
export const secretCollection = collectionReadBy({
  ...withoutKind,
  read: (asker, given, range) => pageOf(asker, { ...given, kind: 'secret' }, range),
})

/** Where personal data were found. */
export const personalDataCollection = collectionReadBy({
  ...withoutKind,
  read: (asker, given, range) => pageOf(asker, { ...given, kind: 'sensitive_data' }, range),
})

type Seeing = Pick<Asker, 'hub' | 'companyId'> & { readonly caller: Parameters<typeof hiddenKinds>[0] }

/** A finding of the company that the caller may see. Throws 404. */
export async function findFinding({ hub, companyId, caller }: Seeing, id: string): Promise<FindingRow> {
  const [row] = isUuid(id) ? await findingsByIds(hub.database.db, companyId, [id.toLowerCase()]) : []
  if (!row || hiddenKinds(caller).some(kind => kind === row.finding.kind)) throw notFound()
  return row
}

/** A finding with its newest events, and what is known of its vulnerability. */
export async function findingWithEvents({ hub: { database } }: Pick<Asker, 'hub'>, row: FindingRow) {
  const { finding } = row
  const [events, [vulnerability]] = await Promise.all([
    database.db
      .select()
      .from(securityFindingEvents)
      .where(eq(securityFindingEvents.findingId, finding.id))
      .orderBy(desc(securityFindingEvents.seq), sql`${securityFindingEvents.eventId}`)
      .limit(EVENTS_SHOWN),
    database.db.select().from(securityVulnerabilities).where(eq(securityVulnerabilities.id, finding.vulnId)),
  ])
  return {
    ...presentFinding(row),
    vulnerability: vulnerability
      ? {
          vuln_id: vulnerability.id,
          title: vulnerability.title,
          description: vulnerability.description,
          severity: vulnerability.severity,
          cvss_score: vulnerability.cvssScore,
          cvss_vector: vulnerability.cvssVector,
          published_at: vulnerability.publishedAt,
          modified_at: vulnerability.modifiedAt,
          references: vulnerability.referenceUrls,
        }
      : null,
    events: events.map(event => ({
      event_id: event.eventId,
      seq: event.seq,
      type: event.type,
      occurred_at: event.occurredAt,
      received_at: event.receivedAt,
      payload: event.payload,
    })),
  }
}

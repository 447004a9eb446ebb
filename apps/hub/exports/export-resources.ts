// What can be exported (decision R-069): lists that stand, each with the permission that shows it. A kind of the
// registry follows by itself. A resource is read by key, in steps, whatever its list's order is.
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import { agentCollection } from '../agents/agent-list.ts'
import { alertCollection, alertEventCollection } from '../alerts/alert-list.ts'
import { ticketCollection } from '../approvals/ticket-list.ts'
import { auditCollection, presentAuditEntry } from '../audit/audit-list.ts'
import { checkCollection } from '../checks/check-list.ts'
import { fileCollection } from '../files/files.ts'
import { userCollection } from '../identity/user-list.ts'
import { kinds } from '../kinds.ts'
import { licenseCollection } from '../licenses/license-list.ts'
import { runCollection } from '../manifest-runs/run-list.ts'
import { deliveryCollection } from '../notifications/deliveries.ts'
import { itemMembers, itemsAfter } from '../options/option-items.ts'
import { optionLists } from '../options/option-lists.ts'
import { type Asker, collection, type Schemas } from '../platform/http/collection.ts'
import { flag, flagOf, instant, oneOf, text, uuid } from '../platform/http/request-schema.ts'
import { string } from '../platform/http/response-schema.ts'
import type { Kind } from '../resources/kind.ts'
import { rowCollection } from '../resources/resource-list.ts'
import { listResponse } from '../resources/resource-response.ts'
import type { Found } from '../resources/resource-rows.ts'
import { presentList } from '../resources/resource-show.ts'
import { ruleCollection } from '../rules/rule-list.ts'
import { serverCollection } from '../servers/server-list.ts'
import { silenceCollection } from '../silences/silence-list.ts'
import { teamCollection } from '../teams/teams.ts'
import { webhookCollection } from '../webhooks/webhooks.ts'

export type Exported = Readonly<Record<string, unknown>>
export type ExportFilters = Readonly<Record<string, unknown>>

/** A step: what it shows, and the key after which the next one begins. Null: there is no more. */
type Step = { readonly rows: readonly Exported[]; readonly key: string | null }

export type ExportResource = {
  readonly name: string
  readonly permission: string
  readonly response: TSchema
  readonly filters: Schemas
  /** A member of its rows that they have only where these filters ask for it, and who has this permission may. */
  readonly asked?: {
    readonly member: string
    readonly permission: string
    readonly filters: ExportFilters
  }
  /** Lists of which an empty cell of a table would mean the usual value, not the empty list. */
  readonly listsWithUsual?: ReadonlySet<string>
  /** The rows after a key (null: from the first), in the order of the keys. */
  readonly readAfter: (asker: Asker, filters: ExportFilters, key: string | null, limit: number) => Promise<Step>
  readonly estimate: (asker: Asker) => Promise<number>
}

const FIRST_ID = '00000000-0000-0000-0000-000000000000'

/** What reading a list by key needs of its collection. */
type KeyedList<Row> = {
  readonly response: TSchema
  readonly filters: Schemas
  readonly present: (row: Row, asker: Asker) => unknown
  readonly presentPage?: (rows: readonly Row[], asker: Asker, given: never) => Promise<readonly unknown[]>
  readonly readAfter: (asker: Asker, given: never, afterId: string, limit: number) => Promise<readonly Row[]>
  readonly read: (
    asker: Asker,
    given: never,
    range: { readonly limit: number; readonly offset: number },
  ) => Promise<{ readonly total: number }>
}

const WITHOUT_EFFECT = new Set(['sort'])

function listed<Row>(name: string, permission: string, list: KeyedList<Row>): ExportResource {
  const filters = Object.fromEntries(Object.entries(list.filters).filter(([filter]) => !WITHOUT_EFFECT.has(filter)))
  return {
    name,
    permission,
    response: list.response,
    filters,
    async readAfter(asker, given, key, limit) {
      // The filters were held to their schemas when the export was asked for.
      const rows = await list.readAfter(asker, given as never, key ?? FIRST_ID, limit)
      const shown = list.presentPage
        ? await list.presentPage(rows, asker, given as never)
        : rows.map(row => list.present(row, asker))
      const last = shown.at(-1) as Exported | undefined
      return { rows: shown as readonly Exported[], key: rows.length < limit || !last ? null : String(last.id) }
    },
    estimate: async asker => (await list.read(asker, {} as never, { limit: 1, offset: 0 })).total,
  }
}

/** The name of a kind's list: the words of its path. */
const nameOf = (kind: Kind): string =>
  kind.info.path
    .split('/')
    .filter(part => part !== '' && !part.startsWith(':'))
    .join('-')

function ofKind(kind: Kind): ExportResource {
  // Nothing of a secret is exported, not even whether there is one.
  const secrets = new Set(
    Object.entries(kind.fields).flatMap(([name, { isSecret }]) => (isSecret ? [`${name}_set`] : [])),
  )
  const without = (row: Exported): Exported =>
    Object.fromEntries(Object.entries(row).filter(([member]) => !secrets.has(member)))
  const rows = collection({
    ...rowCollection(kind),
    response: Type.Omit(listResponse(kind), [...secrets]),
    present: () => ({}),
    presentPage: async (found, asker) => (await presentList(kind, asker, found as readonly Found[])).map(without),
  })
  const listsWithUsual = new Set(
    Object.entries(kind.fields).flatMap(([name, { fallback }]) =>
      Array.isArray(fallback) && fallback.length > 0 ? [name] : [],
    ),
  )
  return { ...listed(nameOf(kind), kind.info.permissions.view, rows as KeyedList<unknown>), listsWithUsual }
}

type EventRow = Static<typeof alertEventCollection.response> & { key: string }

/** Events of all alerts: there is a list only within an alert. */
const alertEvents: ExportResource = {
  name: 'alert-events',
  permission: 'monitoring.view',
  response: alertEventCollection.response,
  filters: { alert_id: uuid(), type: text(64), from: instant(), to: instant() },
  async readAfter({ hub, companyId }, { alert_id: alertId = null, type = null, from = null, to = null }, key, limit) {
    const [at, id] = key?.split(' ') ?? ['-infinity', '']
    const rows = await hub.database.db.execute<EventRow>(sql`
      select id, alert_id, event_id, seq::float8 as seq, type, occurred_at, payload,
        to_char(occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || ' ' || event_id as key
      from monitoring_alert_events
      where company_id = ${companyId} and (occurred_at, event_id) > (${at}::timestamptz, ${id}::text)
        and (${alertId}::uuid is null or alert_id = ${alertId}::uuid) and (${type}::text is null or type = ${type})
        and (${from}::timestamptz is null or occurred_at >= ${from}::timestamptz)
        and (${to}::timestamptz is null or occurred_at <= ${to}::timestamptz)
      order by occurred_at, event_id limit ${limit}`)
    const last = rows.at(-1)?.key ?? null
    const shown = rows.map(({ key: _key, ...row }) => ({ ...row, occurred_at: new Date(row.occurred_at) }))
    return { rows: shown, key: rows.length < limit ? null : last }
  },
  async estimate({ hub, companyId }) {
    const [row] = await hub.database.db.execute<{ count: number }>(
      sql`select count(*)::int as count from monitoring_alert_events where company_id = ${companyId}`,
    )
    return row?.count ?? 0
  },
}

type AuditRow = {
  id: string
  company_id: string
  actor_type: string
  actor_id: string | null
  actor_name: string | null
  action: string
  subject_type: string
  subject_id: string | null
  subject_name: string | null
  changes: Parameters<typeof presentAuditEntry>[0]['changes']
  ip: string | null
  user_agent: string | null
  token_id: string | null
  created_at: string
  key: string
}

const presentAuditRow = (row: AuditRow) =>
  presentAuditEntry({
    id: row.id,
    companyId: row.company_id,
    actorType: row.actor_type,
    actorId: row.actor_id,
    actorName: row.actor_name,
    action: row.action,
    subjectType: row.subject_type,
    subjectId: row.subject_id,
    subjectName: row.subject_name,
    changes: row.changes,
    ip: row.ip,
    userAgent: row.user_agent,
    tokenId: row.token_id,
    createdAt: new Date(row.created_at),
  })

/** The audit log is read from its oldest entry on, by the index of its list. */
const auditLog: ExportResource = {
  name: 'audit-log',
  permission: 'audit.view',
  response: auditCollection.response,
  filters: auditCollection.filters,
  async readAfter({ hub, companyId }, given, key, limit) {
    const { action = null, actor = null, subject = null, from = null, to = null } = given
    const [at, position] = key?.split(' ') ?? ['-infinity', '0']
    const rows = await hub.database.db.execute<AuditRow>(sql`
      select id, company_id, actor_type, actor_id, actor_name, action, subject_type, subject_id, subject_name, changes,
        ip, user_agent, token_id, created_at,
        to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || ' ' || position as key
      from audit_log
      where company_id = ${companyId} and (created_at, position) > (${at}::timestamptz, ${position}::bigint)
        and (${action}::text is null or action = ${action}) and (${actor}::uuid is null or actor_id = ${actor}::uuid)
        and (${subject}::text is null or subject_type = ${subject} or subject_id = ${subject})
        and (${from}::timestamptz is null or created_at >= ${from}::timestamptz)
        and (${to}::timestamptz is null or created_at <= ${to}::timestamptz)
      order by created_at, position limit ${limit}`)
    return { rows: rows.map(presentAuditRow), key: rows.length < limit ? null : (rows.at(-1)?.key ?? null) }
  },
  estimate: async asker => (await auditCollection.read(asker, {}, { limit: 1, offset: 0 })).total,
}

/** There are lists of items only within an option list. */
const optionItems: ExportResource = {
  name: 'option-items',
  permission: 'options.view',
  response: Type.Object({ list: string(), ...itemMembers }),
  filters: { list: oneOf(Object.keys(optionLists)), enabled: flag() },
  async readAfter(asker, { list, enabled }, key, limit) {
    // The filters were held to their schemas when the export was asked for.
    const isEnabled = flagOf(enabled as Parameters<typeof flagOf>[0]) ?? null
    const wanted = { list: typeof list === 'string' ? list : null, enabled: isEnabled }
    const rows = await itemsAfter(asker, wanted, key ?? FIRST_ID, limit)
    return { rows, key: rows.length < limit ? null : (rows.at(-1)?.id ?? null) }
  },
  async estimate({ hub, companyId }) {
    const [row] = await hub.database.db.execute<{ count: number }>(
      sql`select count(*)::int as count from option_items where company_id = ${companyId}`,
    )
    return row?.count ?? 0
  },
}

/** Tickets are read page after page: there are few, and what one shows depends on who looks. */
const approvals: ExportResource = {
  name: 'approvals',
  permission: 'approvals.view',
  response: ticketCollection.response,
  filters: ticketCollection.filters,
  async readAfter(asker, given, key, limit) {
    const offset = Number(key ?? 0)
    // The filters were held to their schemas when the export was asked for.
    const { rows } = await ticketCollection.read(asker, given as never, { limit, offset })
    const shown = rows.map(row => ticketCollection.present(row, asker))
    return { rows: shown, key: rows.length < limit ? null : String(offset + limit) }
  },
  estimate: async asker => (await ticketCollection.read(asker, {}, { limit: 1, offset: 0 })).total,
}

export const exportResources: readonly ExportResource[] = [
  {
    ...listed('servers', 'servers.view', serverCollection),
    asked: { member: 'health', permission: 'monitoring.view', filters: { include: 'health' } },
  },
  listed('agents', 'monitoring.view', agentCollection),
  listed('licenses', 'monitoring.view', licenseCollection),
  listed('rules', 'monitoring.manage', ruleCollection),
  listed('silences', 'monitoring.manage', silenceCollection),
  listed('checks', 'monitoring.view', checkCollection),
  listed('alerts', 'monitoring.view', alertCollection),
  alertEvents,
  listed('notifications-deliveries', 'notifications.view', deliveryCollection),
  auditLog,
  listed('users', 'identity.view', userCollection),
  listed('teams', 'identity.view', teamCollection),
  listed('webhooks', 'webhooks.view', webhookCollection),
  listed('files', 'files.view', fileCollection),
  optionItems,
  listed('iac-runs', 'iac.view', runCollection),
  approvals,
  ...kinds.map(ofKind),
]

const byName = new Map(exportResources.map(resource => [resource.name, resource]))
/** A kind may be asked for by its own name too, as audit log, search and manifests call it. */
const byKind = new Map([
  ...kinds.map(kind => [kind.info.kind, byName.get(nameOf(kind))] as const),
  ['option_item', optionItems] as const,
  ['file', byName.get('files')] as const,
])

export const exportResourceOf = (name: string): ExportResource | null => byName.get(name) ?? byKind.get(name) ?? null

/** The filters of a resource as one schema. */
export const filterSchema = ({ filters }: ExportResource) =>
  Type.Object(Object.fromEntries(Object.entries(filters).map(([name, schema]) => [name, Type.Optional(schema)])), {
    additionalProperties: false,
  })

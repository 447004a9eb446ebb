// People are told of conditions that open and end (R-010), once: that they were told is written in the transaction that
// writes the notifications, so a hub that dies has told everybody or nobody. What opens while a resource or a server
// that it is bound to is in maintenance, or silenced, waits until that is over (R-011).
import { type SQL, sql } from 'drizzle-orm'
import type { Severity } from '../../../core/alerting/rules/rule.ts'
import type { Unchecked } from '../../../core/json-object.ts'
import type { Hub } from '../hub-context.ts'
import type { Attributes } from '../notifications/choose-channels.ts'
import { loadChannelPreferences } from '../notifications/deliveries.ts'
import { type Message, tellMessages } from '../notifications/messages.ts'
import type { Recipient } from '../notifications/recipients.ts'
import { linkTo, type NotificationLanguage } from '../notifications/templates.ts'
import { inTransaction, type Tx } from '../platform/db/transaction.ts'
import { conditionText } from './conditions.ts'
import type { KindInfo, Kinds } from './kind-info.ts'
import { membersOf, peopleFor } from './people-of-owner-team.ts'

const AT_ONCE = 200

/** The conditions that people are to be told of; the two halves are those of the indexes in sql/hub/0039. */
const OPENED = sql.raw(`(c.since is not null and c.resolved_at is null and c.severity <> 'info'
  and (c.told_at is null or c.severity = 'critical' and c.told_severity <> 'critical'
    or c.told_stage is distinct from c.stage))`)
const ENDED = sql.raw('(c.told_at is not null and c.resolved_at is not null and c.recovery_told_at is null)')

export const UNTOLD_CONDITIONS = sql`resource_conditions c where ${OPENED} or ${ENDED}`

type Row = {
  id: string
  resource_id: string
  code: string
  severity: Severity
  detail: Unchecked
  since: string
  resolved_at: string | null
  name: string
  /** The resource that is looked at: a part has no page of its own. */
  shown_id: string
  owner_id: string | null
  owner_name: string | null
  servers: readonly (Attributes & { readonly name: string })[]
}

/** Whether server `s` is one that a row (by the alias of its table) names. */
function namesServer({ references }: KindInfo, alias: string): SQL[] {
  return references.flatMap(({ to, column, isList, isText, kindColumn }) => {
    if (isText || (to !== 'server' && (to !== null || kindColumn === undefined))) return []
    const value = sql`${sql.identifier(alias)}.${sql.identifier(column)}`
    const isNamed = isList ? sql`s.id = any(${value})` : sql`s.id = ${value}`
    return [
      kindColumn ? sql`(${sql.identifier(alias)}.${sql.identifier(kindColumn)} = 'server' and ${isNamed})` : isNamed,
    ]
  })
}

type Ancestor = { readonly info: KindInfo; readonly alias: string }

/** What a kind is a part of, and that of, up to what stands alone; each with an alias for queries. */
function ancestorsOf(info: KindInfo, kinds: Kinds): Ancestor[] {
  const ancestors: Ancestor[] = []
  for (let of = kinds.get(info.parent?.kind ?? ''); of; of = kinds.get(of.parent?.kind ?? ''))
    ancestors.push({ info: of, alias: `p${ancestors.length}` })
  return ancestors
}

/** The servers of resource `r`: those that it names itself, or what it is a part of does. */
function boundServers(info: KindInfo, ancestors: readonly Ancestor[]): SQL {
  const named = [{ info, alias: 'r' }, ...ancestors].flatMap(each => namesServer(each.info, each.alias))
  const isNamed = named.length === 0 ? sql`false` : sql.join(named, sql` or `)
  return sql`from servers s where s.company_id = r.company_id and s.deleted_at is null and (${isNamed})`
}

/** A server of which nothing is told now. */
const IS_QUIET = sql.raw(`(s.status in ('maintenance', 'decommissioned') or exists (
  select 1 from monitoring_silences q where q.company_id = s.company_id and q.deleted_at is null
    and q.cancelled_at is null and q.starts_at <= now() and q.ends_at > now() and cardinality(q.rule_ids) = 0
    and ((q.scope->>'all')::boolean or s.id = any(q.resolved_server_ids))))`)
const UNTOLD_STATUSES = sql.raw(`('maintenance', 'planned', 'retired')`)

/** The oldest conditions of a kind in a company that are due, locked so that no other hub tells of them too. */
async function takeDue(tx: Tx, info: KindInfo, ancestors: readonly Ancestor[], companyId: string): Promise<Row[]> {
  const servers = boundServers(info, ancestors)
  const joins = ancestors.map(({ info: { table }, alias }, at) => {
    const part = at === 0 ? { alias: 'r', info } : ancestors[at - 1]
    return sql`join ${sql.identifier(table)} ${sql.identifier(alias)}
      on ${sql.identifier(alias)}.id = ${sql.identifier(part?.alias ?? '')}.${sql.identifier(part?.info.parent?.column ?? '')}
      and ${sql.identifier(alias)}.deleted_at is null and ${sql.identifier(alias)}.status not in ${UNTOLD_STATUSES}`
  })
  const root = sql.identifier(ancestors.at(-1)?.alias ?? 'r')
  const rows = await tx.db.execute<Row>(sql`
    select c.id, c.resource_id, c.code, case when c.resolved_at is null then c.severity else c.told_severity end as severity,
      c.detail, c.since, c.resolved_at, r.${sql.identifier(info.nameColumn)} as name,
      ${root}.id as shown_id, ${root}.owner_team_id as owner_id,
      (select t.name from teams t where t.id = ${root}.owner_team_id) as owner_name,
      coalesce((select jsonb_agg(jsonb_build_object('id', s.id, 'name', s.name, 'tags', s.tags, 'environment', s.environment,
        'role', s.role, 'datacenter', s.datacenter) order by s.name) ${servers}), '[]') as servers
    from resource_conditions c
    join ${sql.identifier(info.table)} r on r.id = c.resource_id and r.company_id = c.company_id
      and r.deleted_at is null and r.status not in ${UNTOLD_STATUSES}
    ${sql.join(joins, sql` `)}
    where c.company_id = ${companyId} and c.kind = ${info.kind} and (${OPENED} or ${ENDED})
      and not exists (select 1 ${servers} and ${IS_QUIET})
    order by coalesce(c.resolved_at, c.since), c.id limit ${AT_ONCE} for update of c skip locked`)
  return [...rows]
}

async function markTold(tx: Tx, rows: readonly Row[]): Promise<void> {
  await tx.db.execute(sql`
    update resource_conditions c set told_at = case when resolved_at is null then now() else told_at end,
      told_severity = case when resolved_at is null and told_severity is distinct from 'critical' then severity else told_severity end,
      told_stage = case when resolved_at is null then stage else told_stage end,
      recovery_told_at = case when resolved_at is not null then now() end
    where id in (select jsonb_array_elements_text(${JSON.stringify(rows.map(row => row.id))}::jsonb)::uuid)`)
}

function messageOf(hub: Hub, info: KindInfo, root: KindInfo, row: Row, people: readonly Recipient[]): Message {
  const isOver = row.resolved_at !== null
  const path = `${root.path}/${row.shown_id}`
  const text = (language: NotificationLanguage) => conditionText(info, row.code, row.detail, language)
  const resource = {
    kind: info.kind,
    id: row.resource_id,
    name: row.name,
    code: row.code,
    severity: row.severity,
    message: text('en'),
    since: new Date(row.since).toISOString(),
    resolved_at: row.resolved_at && new Date(row.resolved_at).toISOString(),
    owner_team: row.owner_id === null ? null : { id: row.owner_id, name: row.owner_name },
    servers: row.servers.map(({ id, name }) => ({ id, name })),
    link: linkTo(hub.config.public_url, path),
  }
  return {
    type: isOver ? 'resource.recovered' : 'resource.problem',
    severity: row.severity,
    path,
    values: language => ({
      kind: info.title.one[language],
      name: row.name,
      code: row.code,
      message: text(language),
      severity: row.severity,
      owner: row.owner_name ?? '',
    }),
    people,
    isForGroups: true,
    servers: row.servers,
    items: [{ servers: row.servers, data: { resource } }],
    push: { id: row.resource_id, permission: info.permissions.view },
  }
}

/** Tells of the oldest conditions of a kind. Returns how many there were. */
async function tellSome(hub: Hub, info: KindInfo, companyId: string): Promise<number> {
  return inTransaction(hub.database.db, async tx => {
    const ancestors = ancestorsOf(info, hub.kinds)
    const rows = await takeDue(tx, info, ancestors, companyId)
    if (rows.length === 0) return 0
    const voices = await loadChannelPreferences(tx.db, companyId, info.permissions.view)
    const members = await membersOf(tx, [...new Set(rows.flatMap(row => row.owner_id ?? []))])
    const root = ancestors.at(-1)?.info ?? info
    const told = rows.map(row => {
      const people = peopleFor(voices, members.get(row.owner_id ?? ''))
      return { voices, message: messageOf(hub, info, root, row, people) }
    })
    await markTold(tx, rows)
    await tellMessages(hub, tx, companyId, told)
    return rows.length
  })
}

/** Tells of every condition that is due, of whatever kind. */
export async function tellConditions(hub: Hub): Promise<void> {
  const due = await hub.database.db.execute<{ company_id: string; kind: string }>(sql`
    select distinct c.company_id, c.kind from resource_conditions c
    join companies o on o.id = c.company_id and o.deleted_at is null where ${OPENED} or ${ENDED}`)
  for (const { company_id, kind } of due) {
    const info = hub.kinds.get(kind)
    while (info && (await tellSome(hub, info, company_id)) === AT_ONCE) {
      // Each round is a transaction of its own.
    }
  }
}

// Schedules of exports (decision R-072): an export a day, a week or a month, at a local time, with the rights that its
// owner has then.
import { Type } from '@sinclair/typebox'
import { desc, eq, sql } from 'drizzle-orm'
import { recorded } from '../audit/change-with-audit.ts'
import type { Hub } from '../hub-context.ts'
import { callerOfUser } from '../identity/authenticate.ts'
import type { Executor } from '../platform/db/connect.ts'
import { exportSchedules } from '../platform/db/schema.ts'
import { users } from '../platform/db/schema-identity.ts'
import { inTransaction, lockCompany, type Tx, uuidList } from '../platform/db/transaction.ts'
import { ApiError, invalid, invalidField, notFound } from '../platform/http/api-error.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { collection, ofCompany } from '../platform/http/collection.ts'
import {
  boolean,
  clock,
  integer,
  listOf,
  oneOf,
  optional,
  text,
  timeZone,
  uuid,
} from '../platform/http/request-schema.ts'
import {
  amount,
  anyObject,
  id,
  listed,
  named,
  nullable,
  reference,
  string,
  time,
  wordOf,
} from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { columnList } from './export-columns.ts'
import { type ExportFormat, exportFormats } from './export-format.ts'
import type { ExportFilters } from './export-resources.ts'
import { checkedExport, insertExport } from './exports.ts'
import { nextRunAfter, periods, type When } from './next-run.ts'

const SCHEDULES_MAX = 50
export const RECIPIENTS_MAX = 20
const OPTIONS = { delimiter: ',', bom: false, raw: false }

const scheduleResponse = named('ExportSchedule', {
  id: id(),
  company_id: id(),
  name: string(),
  resource: string(),
  format: wordOf(exportFormats),
  filters: anyObject(),
  columns: nullable(listed(string())),
  every: wordOf(periods),
  at: string(),
  weekday: nullable(amount()),
  day: nullable(amount()),
  time_zone: string(),
  recipients: listed(id()),
  enabled: Type.Boolean(),
  disabled_reason: nullable(string()),
  owner: nullable(reference),
  next_run_at: nullable(time()),
  last_run_at: nullable(time()),
  created_at: time(),
})

const fields = {
  format: Type.Optional(oneOf(exportFormats)),
  filters: optional(Type.Record(Type.String(), Type.Unknown())),
  columns: optional(columnList()),
  weekday: optional(integer(1, 7)),
  day: optional(integer(1, 28)),
  recipients: Type.Optional(listOf(uuid(), RECIPIENTS_MAX)),
  enabled: Type.Optional(boolean()),
}
export const newScheduleBody = Type.Object({
  name: text(255),
  resource: text(64),
  every: oneOf(periods),
  at: clock('07:30'),
  time_zone: timeZone(),
  ...fields,
})
export const scheduleBody = Type.Object({
  name: Type.Optional(text(255)),
  resource: Type.Optional(text(64)),
  every: Type.Optional(oneOf(periods)),
  at: Type.Optional(clock('07:30')),
  time_zone: Type.Optional(timeZone()),
  ...fields,
})

type Row = {
  readonly schedule: typeof exportSchedules.$inferSelect
  readonly owner: { readonly id: string; readonly name: string } | null
}

/** One's own, and with the key of the audit log all of the company. */
export const scheduleCollection = collection({
  table: exportSchedules,
  scope: ofCompany(exportSchedules.companyId),
  always: (_given, { caller }) =>
    caller.permissions.has('audit.view') ? undefined : eq(exportSchedules.ownerId, caller.user.id),
  select: (db: Executor) =>
    db
      .select({ schedule: exportSchedules, owner: { id: users.id, name: users.name } })
      .from(exportSchedules)
      .leftJoin(users, eq(users.id, exportSchedules.ownerId)),
  order: [desc(exportSchedules.createdAt), desc(exportSchedules.id)],
  response: scheduleResponse,
  present: ({ schedule, owner }: Row) => ({
    id: schedule.id,
    company_id: schedule.companyId,
    name: schedule.name,
    resource: schedule.resource,
    format: schedule.format,
    filters: schedule.filters,
    columns: schedule.columns,
    every: schedule.every,
    at: schedule.atTime.slice(0, 5),
    weekday: schedule.weekday,
    day: schedule.day,
    time_zone: schedule.timeZone,
    recipients: schedule.recipients,
    enabled: schedule.enabled,
    disabled_reason: schedule.disabledReason,
    owner,
    next_run_at: schedule.nextRunAt,
    last_run_at: schedule.lastRunAt,
    created_at: schedule.createdAt,
  }),
})

const changes = recorded({
  type: 'export_schedule',
  of: scheduleCollection,
  named: ({ schedule }: Row) => ({ id: schedule.id, name: schedule.name }),
})

/** The schedule of the path. Throws 404 for one of somebody else, unless the caller reads the audit log. */
export async function findSchedule(context: RouteContext, scheduleId: string): Promise<Row> {
  const { hub, companyId, caller } = context
  const found = await scheduleCollection.find(hub.database.db, companyId, scheduleId)
  if (found.schedule.ownerId !== caller.user.id && !caller.permissions.has('audit.view')) throw notFound()
  return found
}

export type ScheduleInput = {
  readonly name?: string | undefined
  readonly resource?: string | undefined
  readonly format?: ExportFormat | undefined
  readonly filters?: ExportFilters | null | undefined
  readonly columns?: readonly string[] | null | undefined
  readonly every?: (typeof periods)[number] | undefined
  readonly at?: string | undefined
  readonly weekday?: number | null | undefined
  readonly day?: number | null | undefined
  readonly time_zone?: string | undefined
  readonly recipients?: readonly string[] | undefined
  readonly enabled?: boolean | undefined
}

/** The faults of a schedule that no single member has. */
async function faultsOf(db: Executor, companyId: string, when: When, recipients: readonly string[]) {
  const faults: Record<string, Words> = {}
  if (when.every === 'week' && when.weekday === null) faults.weekday = words('required')
  if (when.every === 'month' && when.day === null) faults.day = words('required')
  const known = await db.execute<{ id: string }>(sql`
    select id from users where company_id = ${companyId} and kind = 'person' and id = any(${uuidList(recipients)}::uuid[])`)
  const ids = new Set(known.map(row => row.id))
  for (const [index, person] of recipients.entries())
    if (!ids.has(person.toLowerCase())) faults[`recipients.${index}`] = words('unknown_reference')
  return faults
}

const whenOf = (given: ScheduleInput, before: Row['schedule'] | null): When => ({
  every: given.every ?? before?.every ?? 'day',
  at: given.at ?? before?.atTime ?? '00:00',
  weekday: given.weekday === undefined ? (before?.weekday ?? null) : given.weekday,
  day: given.day === undefined ? (before?.day ?? null) : given.day,
  timeZone: given.time_zone ?? before?.timeZone ?? 'UTC',
})

/** What a schedule that is whole could be refused for, whoever asks. */
export async function scheduleFaults(
  { db, companyId }: { readonly db: Executor; readonly companyId: string },
  given: ScheduleInput,
): Promise<(readonly [string, Words])[]> {
  const faults = Object.entries(await faultsOf(db, companyId, whenOf(given, null), given.recipients ?? []))
  try {
    checkedExport(null, { ...given, resource: given.resource ?? '' })
    return faults
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const refused = Object.entries(error.more.errors ?? {})
    return [...faults, ...refused.flatMap(([field, [fault]]) => (fault ? [[field, fault] as const] : []))]
  }
}

/** The columns of a schedule as it is to be. Throws 422 and 403. */
async function columnsFor(context: RouteContext, tx: Tx, before: Row['schedule'] | null, given: ScheduleInput) {
  const { hub, companyId, caller } = context
  const checked = checkedExport(caller, {
    resource: given.resource ?? before?.resource ?? '',
    format: given.format ?? before?.format,
    filters: given.filters === undefined ? before?.filters : given.filters,
    columns: given.columns === undefined ? before?.columns : given.columns,
  })
  const when = whenOf(given, before)
  const recipients = given.recipients ?? before?.recipients ?? []
  const faults = await faultsOf(tx.db, companyId, when, recipients)
  if (Object.keys(faults).length > 0) throw invalid(faults)
  const enabled = given.enabled ?? before?.enabled ?? true
  return {
    name: given.name ?? before?.name ?? '',
    resource: checked.resource.name,
    format: checked.format,
    filters: checked.filters,
    columns: checked.columns === null ? null : [...checked.columns],
    every: when.every,
    atTime: when.at,
    weekday: when.weekday,
    day: when.day,
    timeZone: when.timeZone,
    recipients: [...recipients],
    enabled,
    // Who enables it again begins anew.
    ...(enabled ? { disabledReason: null, failuresInARow: 0 } : {}),
    nextRunAt: await nextRunAfter(tx.db, when, hub.now()),
  }
}

export const createSchedule = (context: RouteContext, given: ScheduleInput): Promise<Row> =>
  changes.create(context, async (tx, scheduleId) => {
    const { companyId, caller } = context
    const columns = await columnsFor(context, tx, null, given)
    await lockCompany(tx, companyId)
    const [kept] = await tx.db.execute<{ count: number }>(
      sql`select count(*)::int as count from export_schedules where company_id = ${companyId}`,
    )
    if ((kept?.count ?? 0) >= SCHEDULES_MAX) throw invalidField('limit', 'list_max', { max: SCHEDULES_MAX })
    return tx.db.insert(exportSchedules).values({ id: scheduleId, companyId, ownerId: caller.user.id, ...columns })
  })

export const changeSchedule = (context: RouteContext, { schedule }: Row, given: ScheduleInput): Promise<Row> =>
  changes.change(context, schedule.id, async (tx, before) => {
    const columns = await columnsFor(context, tx, before.schedule, given)
    return tx.db.update(exportSchedules).set(columns).where(eq(exportSchedules.id, schedule.id))
  })

export const deleteSchedule = (context: RouteContext, { schedule }: Row): Promise<void> =>
  changes.delete(context, schedule.id, tx => tx.db.delete(exportSchedules).where(eq(exportSchedules.id, schedule.id)))

/** Begins the export of a schedule that is due, or disables one whose owner is gone. */
async function runDue(hub: Hub, tx: Tx, schedule: typeof exportSchedules.$inferSelect): Promise<void> {
  const caller = schedule.ownerId ? await callerOfUser(tx.db, schedule.ownerId, ['*']) : null
  const disable = (reason: string) =>
    tx.db
      .update(exportSchedules)
      .set({ enabled: false, disabledReason: reason })
      .where(eq(exportSchedules.id, schedule.id))
  if (!caller?.permissions.has('export.run')) {
    await disable('owner_gone')
    return
  }
  let checked: ReturnType<typeof checkedExport>
  try {
    checked = checkedExport(caller, schedule)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    await disable(error.status === 403 ? 'permission_lost' : 'not_valid')
    return
  }
  const when: When = {
    every: schedule.every,
    at: schedule.atTime,
    weekday: schedule.weekday,
    day: schedule.day,
    timeZone: schedule.timeZone,
  }
  await insertExport(hub, tx, {
    ...checked,
    companyId: schedule.companyId,
    userId: caller.user.id,
    permissions: ['*'],
    options: OPTIONS,
    scheduleId: schedule.id,
    recipients: schedule.recipients,
  })
  await tx.db
    .update(exportSchedules)
    .set({ lastRunAt: new Date(hub.now()), nextRunAt: await nextRunAfter(tx.db, when, hub.now()) })
    .where(eq(exportSchedules.id, schedule.id))
}

/** Begins what is due. What a time without hubs has missed is done once. */
export async function runSchedules(hub: Hub): Promise<void> {
  const { db } = hub.database
  const now = new Date(hub.now()).toISOString()
  const due = await db.execute<{ id: string }>(sql`
    select s.id from export_schedules s join companies c on c.id = s.company_id
    where s.enabled and s.next_run_at <= ${now}::timestamptz and c.deleted_at is null order by s.next_run_at, s.id limit 500`)
  for (const { id: scheduleId } of due)
    await inTransaction(db, async tx => {
      const [locked] = await tx.db
        .select()
        .from(exportSchedules)
        .where(eq(exportSchedules.id, scheduleId))
        .for('update', { skipLocked: true })
      if (locked?.enabled && locked.nextRunAt !== null && locked.nextRunAt.getTime() <= hub.now())
        await runDue(hub, tx, locked)
    })
}

// Schedules of exports in manifests: the fields of the API, with recipients by their e-mail addresses. Whoever applies
// one that is new becomes its owner.
import { Type } from '@sinclair/typebox'
import { and, eq, type SQL, sql } from 'drizzle-orm'
import type { Unchecked } from '../../../../core/json-object.ts'
import { filterTexts } from '../../exports/exports.ts'
import {
  changeSchedule,
  createSchedule,
  deleteSchedule,
  newScheduleBody,
  RECIPIENTS_MAX,
  type ScheduleInput,
  scheduleCollection,
  scheduleFaults,
} from '../../exports/schedules.ts'
import { exportSchedules } from '../../platform/db/schema.ts'
import { type Words, words } from '../../platform/http/api-texts.ts'
import { listOf, optional, text } from '../../platform/http/request-schema.ts'
import type { Existing, ExportFilter, ManifestKind, Reading } from './manifest-kind.ts'
import { isNamed, namedRows } from './named-rows.ts'

const spec = Type.Object({
  ...newScheduleBody.properties,
  name: optional(text(255)),
  recipients: Type.Optional(listOf(text(254), RECIPIENTS_MAX)),
})
const DEFAULTS: Unchecked = {
  format: 'csv',
  filters: {},
  columns: null,
  weekday: null,
  day: null,
  recipients: [],
  enabled: true,
}

const filtered = ({ companyId }: Reading, { tag, origin, ...named }: ExportFilter): SQL | undefined =>
  and(
    eq(exportSchedules.companyId, companyId),
    isNamed(exportSchedules.id, exportSchedules.name, named),
    tag === undefined && (origin === undefined || origin === 'manual') ? undefined : sql`false`,
  )

const isText = (value: unknown): value is string => typeof value === 'string'
const mailsOf = (recipients: unknown): string[] =>
  Array.isArray(recipients) ? [...new Set(recipients.filter(isText).map(mail => mail.toLowerCase()))].sort() : []

/** The people of the company, by e-mail address or id. */
async function peopleOf({ db, companyId }: Reading, by: 'email' | 'id', texts: readonly string[]) {
  const rows = await db.execute<{ id: string; email: string }>(sql`
    select id, lower(email) as email from users where company_id = ${companyId} and kind = 'person'
      and ${by === 'id' ? sql`id::text` : sql`lower(email)`} in (
        select jsonb_array_elements_text(${JSON.stringify(texts)}::jsonb))`)
  return new Map(rows.map(row => [row[by], row[by === 'id' ? 'email' : 'id']]))
}

async function read(reading: Reading, rows: readonly (typeof exportSchedules.$inferSelect)[]): Promise<Existing[]> {
  const mails = await peopleOf(
    reading,
    'id',
    rows.flatMap(row => row.recipients),
  )
  return rows.map(row => ({
    id: row.id,
    name: row.name,
    version: 0,
    spec: {
      name: row.name,
      resource: row.resource,
      format: row.format,
      filters: row.filters,
      columns: row.columns,
      every: row.every,
      at: row.atTime.slice(0, 5),
      weekday: row.weekday,
      day: row.day,
      time_zone: row.timeZone,
      recipients: row.recipients.flatMap(id => mails.get(id) ?? []).sort(),
      enabled: row.enabled,
    },
  }))
}

/** A spec in the names of the API. Whom an address does not lead to is left out: the plan told of them. */
async function inputOf(reading: Reading, given: Unchecked): Promise<ScheduleInput> {
  const mails = mailsOf(given.recipients)
  const people = await peopleOf(reading, 'email', mails)
  return { ...given, recipients: mails.flatMap(mail => people.get(mail) ?? []) } as ScheduleInput
}

async function faultsOf(reading: Reading, given: Unchecked): Promise<Map<string, Words>> {
  const faults = new Map(await scheduleFaults(reading, { ...given, recipients: [] } as ScheduleInput))
  const people = await peopleOf(reading, 'email', mailsOf(given.recipients))
  for (const [index, mail] of (Array.isArray(given.recipients) ? given.recipients : []).entries())
    if (!people.has(String(mail).toLowerCase())) faults.set(`recipients.${index}`, words('unknown_reference'))
  return faults
}

export const exportScheduleKind: ManifestKind = {
  kind: 'export-schedule',
  title: 'Export schedules',
  order: 10,
  resourceKind: 'export_schedule',
  permissions: { view: 'export.run', manage: 'export.run' },
  dependsOn: [],
  spec,
  defaults: DEFAULTS,
  whole: { filters: [] },
  isNameUnique: false,
  referencesOf: () => [],
  normal: given => ({
    ...given,
    ...(given.filters === undefined ? {} : { filters: filterTexts(given.filters ?? {}) }),
    ...(given.recipients === undefined ? {} : { recipients: mailsOf(given.recipients) }),
  }),
  faults: faultsOf,
  ...namedRows({
    table: exportSchedules,
    name: exportSchedules.name,
    ofCompany: companyId => eq(exportSchedules.companyId, companyId),
    filtered,
    read,
  }),
  create: async (writing, given) => (await createSchedule(writing.context, await inputOf(writing, given))).schedule.id,
  async update(writing, { id }, changed, given) {
    const { tx, companyId, context } = writing
    const row = await scheduleCollection.find(tx.db, companyId, id)
    const input = await inputOf(writing, given)
    await changeSchedule(context, row, Object.fromEntries(Object.entries(input).filter(([name]) => changed.has(name))))
  },
  remove: async ({ context, tx, companyId }, { id }) =>
    deleteSchedule(context, await scheduleCollection.find(tx.db, companyId, id)),
}

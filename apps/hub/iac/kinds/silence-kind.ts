// Silences in manifests (decision G-126). A silence has no name: one without binding is known by its reason and end.
import { Type } from '@sinclair/typebox'
import { and, eq, isNull, type SQL, sql } from 'drizzle-orm'
import { isObject, type Unchecked } from '../../../../core/json-object.ts'
import { frequencies } from '../../../../core/lifecycle/silence-windows.ts'
import { limits } from '../../../../core/limits.ts'
import { rules, silences } from '../../platform/db/schema.ts'
import { isAnyOf } from '../../platform/db/transaction.ts'
import { type Words, words } from '../../platform/http/api-texts.ts'
import { instant, integer, listOf, oneOf, optional, text, timeZone } from '../../platform/http/request-schema.ts'
import { createSilence, deleteSilence, updateSilence } from '../../silences/silences.ts'
import type { Existing, ExportFilter, ManifestKind, NameFinder, Reading } from './manifest-kind.ts'
import { isNamed, namedRows } from './named-rows.ts'
import { namedScope, normalScope, scopeInput, scopeReferences, withServerNames } from './named-scope.ts'

const REASON_MAX = 500
const spec = Type.Object({
  scope: namedScope(),
  starts_at: optional(instant()),
  ends_at: instant(),
  reason: text(REASON_MAX),
  // Names of rules.
  rule_ids: optional(listOf(text(255), limits.silenceRuleIdsMax)),
  recurrence: optional(
    Type.Object({
      frequency: oneOf(frequencies),
      weekdays: optional(listOf(integer(1, 7), 7)),
      until: optional(instant()),
      time_zone: optional(timeZone()),
    }),
  ),
})

const ofCompany = (companyId: string): SQL | undefined =>
  and(eq(silences.companyId, companyId), isNull(silences.deletedAt), isNull(silences.recurrenceOf))
/** What is over is not exported: it could not be made again. */
const filtered = ({ companyId }: Reading, { tag, origin, ...named }: ExportFilter): SQL | undefined =>
  and(
    ofCompany(companyId),
    sql`${silences.cancelledAt} is null and (${silences.endsAt} > now() or (${silences.recurrence} is not null
      and coalesce((${silences.recurrence}->>'until')::timestamptz > now(), true)))`,
    isNamed(silences.id, silences.reason, named),
    tag === undefined ? undefined : sql`jsonb_exists(${silences.scope}->'tags', ${tag})`,
    origin === undefined || origin === 'manual' ? undefined : sql`false`,
  )

type Row = typeof silences.$inferSelect

async function read(reading: Reading, rows: readonly Row[]): Promise<Existing[]> {
  const named = await withServerNames(
    reading.db,
    reading.companyId,
    rows.map(row => row.scope),
  )
  const ruleName = await ruleNames(reading, [...new Set(rows.flatMap(row => row.ruleIds))])
  return rows.map(row => ({
    id: row.id,
    name: row.reason.slice(0, 100),
    version: row.syncVersion,
    spec: {
      scope: named(row.scope),
      starts_at: row.startsAt.toISOString(),
      ends_at: row.endsAt.toISOString(),
      reason: row.reason,
      rule_ids: row.ruleIds.map(ruleName).sort(),
      recurrence: row.recurrence && { ...row.recurrence, until: isoOf(row.recurrence.until) },
    },
  }))
}

async function ruleNames({ db, companyId }: Reading, ids: readonly string[]): Promise<(id: string) => string> {
  const rows =
    ids.length === 0
      ? []
      : await db
          .select({ id: rules.id, name: rules.name })
          .from(rules)
          .where(and(eq(rules.companyId, companyId), isAnyOf(rules.id, ids)))
  const nameOf = new Map(rows.map(row => [row.id, row.name]))
  return id => nameOf.get(id) ?? id
}

const textsOf = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : [])

function normalRecurrence(value: unknown): Unchecked | null {
  if (!isObject(value)) return null
  return {
    frequency: value.frequency,
    weekdays: Array.isArray(value.weekdays) ? [...new Set(value.weekdays.map(Number))].sort() : [],
    until: isoOf(value.until),
    time_zone: value.time_zone ?? 'UTC',
  }
}

const isoOf = (value: unknown): string | null => (typeof value === 'string' ? new Date(value).toISOString() : null)
const windowOf = (given: Unchecked): Unchecked => ({
  ...(given.starts_at == null ? {} : { starts_at: isoOf(given.starts_at) }),
  ...(given.ends_at === undefined ? {} : { ends_at: isoOf(given.ends_at) }),
})

type SilenceInput = Parameters<typeof createSilence>[1]

const inputOf = (given: Unchecked, find: NameFinder): SilenceInput =>
  ({
    ...given,
    scope: scopeInput(given.scope, find),
    ...(given.rule_ids === undefined
      ? {}
      : { rule_ids: textsOf(given.rule_ids).map(name => find('alert-rule', name)?.id ?? name) }),
  }) as SilenceInput

export const silenceKind: ManifestKind = {
  kind: 'silence',
  title: 'Silences',
  order: 5,
  resourceKind: 'silence',
  permissions: { view: 'monitoring.manage', manage: 'monitoring.manage' },
  dependsOn: ['server', 'alert-rule'],
  spec,
  defaults: { rule_ids: [], recurrence: null },
  whole: { recurrence: [] },
  isNameUnique: false,
  referencesOf: given => [
    ...scopeReferences(given),
    ...textsOf(given.rule_ids).map((name, index) => ({ kind: 'alert-rule', name, at: ['rule_ids', index] })),
  ],
  normal: ({ starts_at: _from, ends_at: _to, scope, ...rest }, find) => ({
    ...rest,
    ...windowOf({ starts_at: _from, ends_at: _to }),
    ...(scope === undefined ? {} : { scope: normalScope(scope, find) }),
    ...(rest.rule_ids === undefined
      ? {}
      : {
          rule_ids: textsOf(rest.rule_ids)
            .map(name => find('alert-rule', name)?.name ?? name)
            .sort(),
        }),
    ...(rest.recurrence === undefined ? {} : { recurrence: normalRecurrence(rest.recurrence) }),
  }),
  faults: async ({ hub }, given) => {
    const faults = new Map<string, Words>()
    const endMs = Date.parse(String(given.ends_at))
    if (given.starts_at != null && endMs <= Date.parse(String(given.starts_at)))
      faults.set('ends_at', words('after_start'))
    else if (endMs <= hub.now() && given.recurrence == null) faults.set('ends_at', words('future'))
    return faults
  },
  ...namedRows({
    table: silences,
    name: silences.reason,
    ofCompany,
    filtered,
    isMeant: given =>
      and(
        isNull(silences.cancelledAt),
        eq(silences.reason, String(given.reason)),
        sql`${silences.endsAt} = ${isoOf(given.ends_at)}::timestamptz`,
      ),
    read,
  }),
  create: async ({ context }, given, find) => {
    const row = await createSilence(context, inputOf(given, find))
    return row.silence.id
  },
  update: async ({ context }, { id }, changed, given, find) => {
    const input = inputOf(given, find)
    await updateSilence(context, id, Object.fromEntries(Object.entries(input).filter(([name]) => changed.has(name))))
  },
  remove: ({ context }, { id }) => deleteSilence(context, id),
}

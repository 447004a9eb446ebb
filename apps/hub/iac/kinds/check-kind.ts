// Active checks in manifests (decision G-126).
import { Type } from '@sinclair/typebox'
import { and, eq, isNull, type SQL, sql } from 'drizzle-orm'
import { isObject, type Unchecked } from '../../../../core/json-object.ts'
import { limits } from '../../../../core/limits.ts'
import { checkTypes, parseTarget, STATUS_DEFAULT } from '../../checks/check-target.ts'
import { createCheck, deleteCheck, updateCheck } from '../../checks/checks.ts'
import { checks } from '../../platform/db/schema.ts'
import { type Words, words } from '../../platform/http/api-texts.ts'
import { boolean, integer, oneOf, optional, text } from '../../platform/http/request-schema.ts'
import type { Existing, ExportFilter, ManifestKind, NameFinder, Reading } from './manifest-kind.ts'
import { isNamed, namedRows } from './named-rows.ts'
import { namedScope, normalScope, scopeInput, scopeReferences, withServerNames } from './named-scope.ts'

const spec = Type.Object({
  name: optional(text(255)),
  type: oneOf(checkTypes),
  target: Type.Object({
    name: Type.Optional(text(128)),
    port: Type.Optional(integer(1, 65_535)),
    proto: Type.Optional(oneOf(['tcp', 'udp'])),
    target: Type.Optional(text(260)),
    url: Type.Optional(text(2048)),
    expect_status: Type.Optional(integer(100, 599)),
  }),
  scope: namedScope(),
  interval_seconds: optional(integer(limits.checkIntervalSecondsMin, limits.checkIntervalSecondsMax)),
  timeout_seconds: optional(integer(1, limits.checkTimeoutSecondsMax)),
  enabled: optional(boolean()),
})

const DEFAULTS: Unchecked = {
  target: { expect_status: STATUS_DEFAULT },
  interval_seconds: 60,
  timeout_seconds: limits.checkTimeoutSecondsDefault,
  enabled: true,
}

/** What belongs to a resource comes and goes with that resource's manifest. */
const ofCompany = (companyId: string): SQL | undefined =>
  and(eq(checks.companyId, companyId), isNull(checks.deletedAt), isNull(checks.managedByKind))
// A tag is one of the scope.
const filtered = ({ companyId }: Reading, { tag, origin, ...named }: ExportFilter): SQL | undefined =>
  and(
    ofCompany(companyId),
    isNamed(checks.id, checks.name, named),
    tag === undefined ? undefined : sql`jsonb_exists(${checks.scope}->'tags', ${tag})`,
    origin === undefined || origin === 'manual' ? undefined : sql`false`,
  )

async function read(reading: Reading, rows: readonly (typeof checks.$inferSelect)[]): Promise<Existing[]> {
  const named = await withServerNames(
    reading.db,
    reading.companyId,
    rows.map(row => row.scope),
  )
  return rows.map(row => ({
    id: row.id,
    name: row.name,
    version: row.syncVersion,
    spec: {
      name: row.name,
      type: row.type,
      target: row.target,
      scope: named(row.scope),
      interval_seconds: row.intervalSeconds,
      timeout_seconds: row.timeoutSeconds,
      enabled: row.enabled,
    },
  }))
}

/** A target without what its type does not have: it is not kept. */
function ownTarget({ type, target }: Unchecked): unknown {
  const known = checkTypes.find(each => each === type)
  const parsed = known && isObject(target) ? parseTarget(known, target) : null
  if (!isObject(target) || parsed === null || 'field' in parsed) return target
  return Object.fromEntries(Object.entries(target).filter(([name]) => Object.hasOwn(parsed.target, name)))
}

/** A spec in the names of the API. Its schema was checked. */
const inputOf = (given: Unchecked, find: NameFinder) => ({ ...given, scope: scopeInput(given.scope, find) }) as unknown

type CheckInput = Parameters<typeof createCheck>[1]

export const checkKind: ManifestKind = {
  kind: 'check',
  title: 'Active checks',
  order: 5,
  resourceKind: 'check',
  permissions: { view: 'monitoring.view', manage: 'monitoring.manage' },
  dependsOn: ['server'],
  spec,
  defaults: DEFAULTS,
  isNameUnique: false,
  referencesOf: scopeReferences,
  normal: (given, find) => ({
    ...Object.fromEntries(Object.entries(given).map(([key, value]) => [key, value ?? DEFAULTS[key] ?? null])),
    ...(given.scope === undefined ? {} : { scope: normalScope(given.scope, find) }),
    ...(given.target === undefined ? {} : { target: ownTarget(given) }),
  }),
  faults: async (_reading, given, existing) => {
    const faults = new Map<string, Words>()
    const type = checkTypes.find(each => each === given.type)
    const parsed = type && parseTarget(type, isObject(given.target) ? given.target : {})
    if (parsed && 'field' in parsed) faults.set(parsed.field, parsed.text)
    if (existing !== null && existing.spec.type !== given.type) faults.set('type', words('immutable'))
    return faults
  },
  ...namedRows({
    table: checks,
    name: checks.name,
    ofCompany,
    filtered,
    read,
  }),
  create: async ({ context }, given, find) => {
    const row = await createCheck(context, inputOf(given, find) as CheckInput)
    return row.check.id
  },
  update: async ({ context }, { id }, changed, given, find) => {
    const input = inputOf(given, find) as CheckInput
    const patch = Object.fromEntries(Object.entries(input).filter(([name]) => changed.has(name)))
    await updateCheck(context, id, patch)
  },
  remove: ({ context }, { id }) => deleteCheck(context, id),
}

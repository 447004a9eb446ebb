// Alert rules in manifests (decision G-126). The rules that a check brought belong to the check and are none.
import { Type } from '@sinclair/typebox'
import { and, eq, isNull, type SQL, sql } from 'drizzle-orm'
import { ruleKinds, severities } from '../../../../core/alerting/rules/rule.ts'
import type { Unchecked } from '../../../../core/json-object.ts'
import { rules } from '../../platform/db/schema.ts'
import type { Words } from '../../platform/http/api-texts.ts'
import { boolean, oneOf, optional, text } from '../../platform/http/request-schema.ts'
import { conditionSchema, presentCondition } from '../../rules/rule-condition.ts'
import { createRule, deleteRule, faultsOfRule, type RuleInput, updateRule } from '../../rules/rules.ts'
import type { Existing, ExportFilter, ManifestKind, NameFinder, Reading } from './manifest-kind.ts'
import { isNamed, namedRows } from './named-rows.ts'
import { namedScope, normalScope, scopeInput, scopeReferences, withServerNames } from './named-scope.ts'

const spec = Type.Object({
  name: optional(text(255)),
  kind: Type.Optional(oneOf(ruleKinds)),
  scope: namedScope(),
  severity: oneOf(severities),
  ...conditionSchema,
  enabled: optional(boolean()),
})

/** What an absent member means where the API writes a rule (rule-condition.ts). */
const THRESHOLD_DEFAULTS: Unchecked = {
  for_seconds: 0,
  recover_threshold: null,
  recover_for_seconds: 0,
  no_data: 'ignore',
  renotify_seconds: 0,
  matchers: {},
  enabled: true,
}

const ofCompany = (companyId: string): SQL | undefined =>
  and(eq(rules.companyId, companyId), isNull(rules.deletedAt), isNull(rules.checkId))
const filtered = ({ companyId }: Reading, { tag, origin, ...named }: ExportFilter): SQL | undefined =>
  and(
    ofCompany(companyId),
    isNamed(rules.id, rules.name, named),
    tag === undefined ? undefined : sql`jsonb_exists(${rules.scope}->'tags', ${tag})`,
    origin === undefined || origin === 'manual' ? undefined : sql`false`,
  )

type Row = typeof rules.$inferSelect

/** A rule of kind agent_down has no condition. */
const conditionOf = (row: Row): Unchecked =>
  Object.fromEntries(Object.entries(presentCondition(row)).filter(([, value]) => value !== null))

async function read(reading: Reading, rows: readonly Row[]): Promise<Existing[]> {
  const named = await withServerNames(
    reading.db,
    reading.companyId,
    rows.map(row => row.scope),
  )
  return rows.map(row => ({
    id: row.id,
    name: row.name,
    version: row.version,
    spec: {
      name: row.name,
      kind: row.kind,
      scope: named(row.scope),
      severity: row.severity,
      ...conditionOf(row),
      enabled: row.enabled,
    },
  }))
}

const kindOf = (given: Unchecked) => ruleKinds.find(kind => kind === given.kind) ?? 'threshold'

/** A spec in the names of the API. Its schema was checked. */
const inputOf = (given: Unchecked, find: NameFinder): RuleInput =>
  ({ ...given, kind: kindOf(given), scope: scopeInput(given.scope, find) }) as RuleInput

const isCovered = (spec: Unchecked): boolean => spec.scope !== undefined

export const ruleKind: ManifestKind = {
  kind: 'alert-rule',
  title: 'Alert rules',
  order: 5,
  resourceKind: 'rule',
  permissions: { view: 'monitoring.manage', manage: 'monitoring.manage', delete: 'monitoring.delete' },
  dependsOn: ['server'],
  spec,
  defaults: THRESHOLD_DEFAULTS,
  whole: { matchers: [] },
  isNameUnique: false,
  referencesOf: scopeReferences,
  normal: (given, find) => ({
    ...Object.fromEntries(Object.entries(given).map(([key, value]) => [key, value ?? THRESHOLD_DEFAULTS[key] ?? null])),
    ...(isCovered(given) ? { scope: normalScope(given.scope, find) } : {}),
  }),
  faults: async ({ db, companyId }, given) => {
    // Servers are references, which the plan has looked up: the scope counts as one that covers something.
    const faults = await faultsOfRule(db, companyId, { ...given, kind: kindOf(given), scope: { all: true } })
    return new Map<string, Words>([...faults].filter(([field]) => !field.startsWith('scope')))
  },
  ...namedRows({
    table: rules,
    name: rules.name,
    ofCompany,
    filtered,
    read,
  }),
  create: async ({ context }, given, find) => {
    const row = await createRule(context, inputOf(given, find))
    return row.rule.id
  },
  update: async ({ context }, { id }, _changed, given, find) => {
    await updateRule(context, id, inputOf(given, find), true)
  },
  remove: ({ context }, { id }) => deleteRule(context, id),
}

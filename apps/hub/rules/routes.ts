// REST: /monitoring/rules (decisions G-66, G-67).

import { Type } from '@sinclair/typebox'
import { inArray, sql } from 'drizzle-orm'
import { noDataModes, operators, ruleKinds, severities } from '../../../core/alerting/rules/rule.ts'
import { limits } from '../../../core/limits.ts'
import { metrics } from '../../../core/series/catalogue.ts'
import type { Unchecked } from '../../../core/unchecked.ts'
import { auditRequest } from '../audit/audit.ts'
import { reloadCollectors } from '../collectors/collector-jobs.ts'
import { rules } from '../platform/db/schema.ts'
import { inTransaction, lockCompany, uuidList } from '../platform/db/transaction.ts'
import { bulkAnswer, forEachId } from '../platform/http/bulk.ts'
import { paged, pageOf, pageQuery } from '../platform/http/paging.ts'
import {
  boolean,
  flag,
  flagOf,
  integer,
  listOf,
  oneOf,
  optional,
  scope,
  text,
  uuid,
} from '../platform/http/request-schema.ts'
import { amount, answer, answerList, answerPage, serverReference } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { resolveScope } from '../scopes/scope.ts'
import { createDefaultRules } from './default-rules.ts'
import { PREVIEW_HOURS_MAX, previewRule } from './preview.ts'
import { metricAnswer, previewAnswer, ruleAnswer } from './rule-response.ts'
import {
  createRule,
  deleteRule,
  duplicateRule,
  faultsOfRule,
  findRule,
  listRules,
  presentRule,
  type RuleInput,
  setRuleEnabled,
  toInput,
  updateRule,
} from './rules.ts'

const TAG = 'Rules'
const MANAGE = ['monitoring.manage']
const BULK_MAX = 200
const subject = ({ hub, companyId, params }: RouteContext) => findRule(hub.database.db, companyId, params.rule ?? '')

const heldSeconds = optional(integer(0, limits.forSecondsMax))
const condition = {
  metric: optional(text(64)),
  matchers: optional(Type.Record(Type.String(), Type.Unknown())),
  operator: optional(oneOf(operators)),
  threshold: optional(Type.Number()),
  for_seconds: heldSeconds,
  recover_threshold: optional(Type.Number()),
  recover_for_seconds: heldSeconds,
  no_data: optional(oneOf(noDataModes)),
  renotify_seconds: optional(integer(0, limits.renotifySecondsMax)),
  enabled: optional(boolean()),
}
const whole = Type.Object({
  name: text(255),
  kind: Type.Optional(oneOf(ruleKinds)),
  scope: scope(),
  severity: oneOf(severities),
  ...condition,
})
const part = Type.Object({
  name: Type.Optional(text(255)),
  kind: Type.Optional(oneOf(ruleKinds)),
  scope: Type.Optional(scope()),
  severity: Type.Optional(oneOf(severities)),
  ...condition,
})
const bulk = Type.Object({ rule_ids: listOf(uuid(), BULK_MAX, 1) })

async function setMany(context: RouteContext & { body: { rule_ids: string[] } }, enabled: boolean) {
  const { hub, companyId, language, body } = context
  const { done, refused } = await forEachId(
    body.rule_ids,
    language,
    id => findRule(hub.database.db, companyId, id),
    id => setRuleEnabled(context, id, enabled),
  )
  return { data: done.map(presentRule), refused }
}

async function createDefaults(context: RouteContext) {
  const { hub, companyId } = context
  const ids = await inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const created = await createDefaultRules(tx, companyId, context.caller.user.id)
    if (created.length > 0) {
      await reloadCollectors(hub, tx, 'rules')
      await auditRequest(tx, context, 'rule.defaults', { type: 'rule', id: null, name: null })
    }
    return created
  })
  const rows = []
  const all = await hub.database.db
    .select({ id: rules.id })
    .from(rules)
    .where(sql`${inArray(rules.companyId, [companyId])} and ${rules.isDefault} and ${rules.deletedAt} is null`)
    .orderBy(rules.createdAt, rules.id)
  for (const { id } of all) rows.push(await findRule(hub.database.db, companyId, id))
  return { data: rows.map(presentRule), created: ids.length }
}

/** What is wrong with a draft beyond its form. */
const faultsOfDraft = ({ hub, companyId }: RouteContext, given: Unchecked) =>
  faultsOfRule(hub.database.db, companyId, { ...given, kind: given.kind ?? 'threshold' })

export const ruleRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/monitoring/rules',
    tag: TAG,
    summary: 'List rules, newest first',
    permissions: MANAGE,
    query: Type.Object({
      kind: Type.Optional(oneOf(ruleKinds)),
      metric: Type.Optional(text(64)),
      severity: Type.Optional(oneOf(severities)),
      enabled: flag(),
      search: Type.Optional(text(255)),
      ...pageQuery,
    }),
    answer: answerPage(ruleAnswer),
    async handle({ hub, companyId, query, url }) {
      const page = pageOf(query)
      const filter = { ...query, enabled: flagOf(query.enabled) }
      const { rows, total } = await listRules(hub.database.db, companyId, filter, page)
      return paged(url, page, total, rows.map(presentRule))
    },
  }),
  route({
    method: 'POST',
    path: '/monitoring/rules',
    tag: TAG,
    summary: 'Create a rule',
    permissions: MANAGE,
    status: 201,
    body: whole,
    furtherFaults: faultsOfDraft,
    answer: answer(ruleAnswer),
    async handle(context) {
      const input: RuleInput = { ...context.body, kind: context.body.kind ?? 'threshold' }
      return { data: presentRule(await createRule(context, input)) }
    },
  }),
  route({
    method: 'GET',
    path: '/monitoring/rules/metrics',
    tag: TAG,
    summary: 'The metric catalogue with the labels of each metric',
    permissions: MANAGE,
    answer: answerList(metricAnswer),
    handle: async () => ({ data: metrics }),
  }),
  route({
    method: 'POST',
    path: '/monitoring/rules/defaults',
    tag: TAG,
    summary: 'Create the default rules that are missing',
    permissions: MANAGE,
    answer: Type.Object({ ...answerList(ruleAnswer).properties, created: amount() }),
    handle: createDefaults,
  }),
  route({
    method: 'POST',
    path: '/monitoring/rules/preview',
    tag: TAG,
    summary: 'What a draft covers, what violates it now, and when it would have fired over the last hours',
    permissions: MANAGE,
    body: Type.Object({
      ...whole.properties,
      name: optional(text(255)),
      severity: Type.Optional(oneOf(severities)),
      hours: optional(integer(1, PREVIEW_HOURS_MAX)),
    }),
    furtherFaults: (context, given) => faultsOfDraft(context, { ...given, severity: given.severity ?? 'info' }),
    answer: previewAnswer,
    handle: context =>
      previewRule(context, {
        ...context.body,
        name: context.body.name ?? 'draft',
        severity: context.body.severity ?? 'info',
        kind: context.body.kind ?? 'threshold',
      }),
  }),
  route({
    method: 'POST',
    path: '/monitoring/rules/bulk/enable',
    tag: TAG,
    summary: 'Enable many rules',
    permissions: MANAGE,
    body: bulk,
    answer: bulkAnswer(ruleAnswer),
    mayMiss: true,
    handle: context => setMany(context, true),
  }),
  route({
    method: 'POST',
    path: '/monitoring/rules/bulk/disable',
    tag: TAG,
    summary: 'Disable many rules',
    permissions: MANAGE,
    body: bulk,
    answer: bulkAnswer(ruleAnswer),
    mayMiss: true,
    handle: context => setMany(context, false),
  }),
  route({
    method: 'GET',
    path: '/monitoring/rules/:rule',
    tag: TAG,
    summary: 'Show a rule',
    permissions: MANAGE,
    subject,
    answer: answer(ruleAnswer),
    handle: async ({ subject }) => ({ data: presentRule(subject) }),
  }),
  route({
    method: 'PUT',
    path: '/monitoring/rules/:rule',
    tag: TAG,
    summary: 'Replace a rule',
    permissions: MANAGE,
    subject,
    body: whole,
    furtherFaults: (context, given) =>
      faultsOfDraft(context, { ...given, kind: given.kind ?? context.subject.rule.kind }),
    answer: answer(ruleAnswer),
    async handle(context) {
      const input = { ...context.body, kind: context.body.kind ?? context.subject.rule.kind }
      return { data: presentRule(await updateRule(context, context.subject.rule.id, input, true)) }
    },
  }),
  route({
    method: 'PATCH',
    path: '/monitoring/rules/:rule',
    tag: TAG,
    summary: 'Change a rule',
    permissions: MANAGE,
    subject,
    body: part,
    furtherFaults: (context, given) => faultsOfDraft(context, { ...toInput(context.subject), ...given }),
    answer: answer(ruleAnswer),
    handle: async context => ({
      data: presentRule(await updateRule(context, context.subject.rule.id, context.body, false)),
    }),
  }),
  route({
    method: 'DELETE',
    path: '/monitoring/rules/:rule',
    tag: TAG,
    summary: 'Delete a rule',
    permissions: ['monitoring.delete'],
    subject,
    async handle(context) {
      await deleteRule(context, context.subject.rule.id)
      return undefined
    },
  }),
  ...(['enable', 'disable'] as const).map(action =>
    route({
      method: 'POST',
      path: `/monitoring/rules/:rule/${action}`,
      tag: TAG,
      summary: action === 'enable' ? 'Enable a rule' : 'Disable a rule',
      permissions: MANAGE,
      subject,
      answer: answer(ruleAnswer),
      handle: async context => ({
        data: presentRule(await setRuleEnabled(context, context.subject.rule.id, action === 'enable')),
      }),
    }),
  ),
  route({
    method: 'POST',
    path: '/monitoring/rules/:rule/duplicate',
    tag: TAG,
    summary: 'Copy a rule, disabled',
    permissions: MANAGE,
    subject,
    status: 201,
    answer: answer(ruleAnswer),
    handle: async context => ({ data: presentRule(await duplicateRule(context, context.subject.rule.id)) }),
  }),
  route({
    method: 'GET',
    path: '/monitoring/rules/:rule/servers',
    tag: TAG,
    summary: 'The machines that a rule covers',
    permissions: MANAGE,
    subject,
    query: Type.Object(pageQuery),
    answer: answerPage(serverReference),
    async handle({ hub, companyId, query, url, subject }) {
      const page = pageOf(query)
      const { db } = hub.database
      const ids = await resolveScope(db, companyId, subject.rule.scope)
      const rows = await db.execute<{ id: string; name: string; hostname: string | null }>(sql`
        select id, name, hostname from servers where company_id = ${companyId} and id = any(${uuidList(ids)}::uuid[])
        order by lower(name), id limit ${page.limit} offset ${page.offset}`)
      return paged(url, page, ids.length, [...rows])
    },
  }),
]

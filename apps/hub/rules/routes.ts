// REST: /monitoring/rules (decisions G-66, G-67).

import { Type } from '@sinclair/typebox'
import { ruleKinds, severities } from '../../../core/alerting/rules/rule.ts'
import type { Unchecked } from '../../../core/json-object.ts'
import { metrics } from '../../../core/series/catalogue.ts'
import { list } from '../platform/http/list.ts'
import { boolean, integer, oneOf, optional, scope, text } from '../platform/http/request-schema.ts'
import { resourceRoutes } from '../platform/http/resource.ts'
import { amount, answerList } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { refuseManaged } from '../resources/manifest-lock.ts'
import { PREVIEW_HOURS_MAX, previewRule } from './preview.ts'
import { conditionSchema } from './rule-condition.ts'
import { coveredServers, presentRule, ruleCollection } from './rule-list.ts'
import { metricResponse, previewResponse, ruleResponse } from './rule-response.ts'
import {
  createDefaults,
  createRule,
  deleteRule,
  duplicateRule,
  faultsOfRule,
  setRuleEnabled,
  toInput,
  updateRule,
} from './rules.ts'

const TAG = 'Rules'
const PATH = '/monitoring/rules'
const MANAGE = ['monitoring.manage']
const rule = resourceRoutes({ path: PATH, parameter: 'rule', tag: TAG, of: ruleCollection })

const condition = { ...conditionSchema, enabled: optional(boolean()) }
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

/** The faults of a draft that its schema cannot express. */
const faultsOfDraft = ({ hub, companyId }: RouteContext, given: Unchecked) =>
  faultsOfRule(hub.database.db, companyId, { ...given, kind: given.kind ?? 'threshold' })

async function enableRule(context: RouteContext, id: string, isEnabled: boolean) {
  await refuseManaged(context, 'rule', id)
  return setRuleEnabled(context, id, isEnabled)
}

export const ruleRoutes: readonly Route[] = [
  list({ path: PATH, tag: TAG, summary: 'List rules, newest first', permissions: MANAGE, of: ruleCollection }),
  rule.create({
    summary: 'Create a rule',
    permissions: MANAGE,
    body: whole,
    crossFieldErrors: faultsOfDraft,
    act: (context, body) => createRule(context, { ...body, kind: body.kind ?? 'threshold' }),
  }),
  route({
    method: 'GET',
    path: `${PATH}/metrics`,
    tag: TAG,
    summary: 'The metric catalogue with the labels of each metric',
    permissions: MANAGE,
    answer: answerList(metricResponse),
    handle: async () => ({ data: metrics }),
  }),
  route({
    method: 'POST',
    path: `${PATH}/defaults`,
    tag: TAG,
    summary: 'Create the default rules that are missing',
    permissions: MANAGE,
    answer: Type.Object({ ...answerList(ruleResponse).properties, created: amount() }),
    async handle(context) {
      const { rows, created } = await createDefaults(context)
      return { data: rows.map(presentRule), created }
    },
  }),
  route({
    method: 'POST',
    path: `${PATH}/preview`,
    tag: TAG,
    summary: 'What a draft covers, what violates it now, and when it would have fired over the last hours',
    permissions: MANAGE,
    body: Type.Object({
      ...whole.properties,
      name: optional(text(255)),
      severity: Type.Optional(oneOf(severities)),
      hours: optional(integer(1, PREVIEW_HOURS_MAX)),
    }),
    crossFieldErrors: (context, given) => faultsOfDraft(context, { ...given, severity: given.severity ?? 'info' }),
    answer: previewResponse,
    handle: context =>
      previewRule(context, {
        ...context.body,
        name: context.body.name ?? 'draft',
        severity: context.body.severity ?? 'info',
        kind: context.body.kind ?? 'threshold',
      }),
  }),
  rule.bulk('enable', {
    summary: 'Enable many rules',
    permissions: MANAGE,
    ids: 'rule_ids',
    act: (context, id) => enableRule(context, id, true),
  }),
  rule.bulk('disable', {
    summary: 'Disable many rules',
    permissions: MANAGE,
    ids: 'rule_ids',
    act: (context, id) => enableRule(context, id, false),
  }),
  rule.show({ summary: 'Show a rule', permissions: MANAGE }),
  rule.replace({
    summary: 'Replace a rule',
    permissions: MANAGE,
    body: whole,
    crossFieldErrors: (context, given) =>
      faultsOfDraft(context, { ...given, kind: given.kind ?? context.resource.rule.kind }),
    act: async (context, row, body) => {
      await refuseManaged(context, 'rule', row.rule.id)
      return updateRule(context, row.rule.id, { ...body, kind: body.kind ?? row.rule.kind }, true)
    },
  }),
  rule.change({
    summary: 'Change a rule',
    permissions: MANAGE,
    body: part,
    crossFieldErrors: (context, given) => faultsOfDraft(context, { ...toInput(context.resource), ...given }),
    act: async (context, row, body) => {
      await refuseManaged(context, 'rule', row.rule.id)
      return updateRule(context, row.rule.id, body, false)
    },
  }),
  rule.delete({
    summary: 'Delete a rule',
    permissions: ['monitoring.delete'],
    act: async (context, row) => {
      await refuseManaged(context, 'rule', row.rule.id)
      await deleteRule(context, row.rule.id)
    },
  }),
  rule.act('enable', {
    summary: 'Enable a rule',
    permissions: MANAGE,
    act: (context, row) => enableRule(context, row.rule.id, true),
  }),
  rule.act('disable', {
    summary: 'Disable a rule',
    permissions: MANAGE,
    act: (context, row) => enableRule(context, row.rule.id, false),
  }),
  rule.act('duplicate', {
    summary: 'Copy a rule, disabled',
    permissions: MANAGE,
    status: 201,
    act: (context, row) => duplicateRule(context, row.rule.id),
  }),
  list({
    path: `${PATH}/:rule/servers`,
    tag: TAG,
    summary: 'The servers that a rule covers',
    permissions: MANAGE,
    resource: rule.resource,
    of: coveredServers,
    within: ({ resource }) => ({ scope: resource.rule.scope }),
  }),
]

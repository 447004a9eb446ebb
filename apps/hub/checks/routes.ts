// REST: /monitoring/checks (decision G-119).

import { Type } from '@sinclair/typebox'
import { limits } from '../../../core/limits.ts'
import { paged, pageOf, pageQuery } from '../platform/http/paging.ts'
import { boolean, flag, flagOf, integer, oneOf, optional, scope, text } from '../platform/http/request-schema.ts'
import { answer, answerPage, collectorNote } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { findServer } from '../servers/server-list.ts'
import { checkAnswer, checkResultAnswer } from './check-response.ts'
import { checkTypes } from './check-target.ts'
import { createCheck, deleteCheck, findCheck, listChecks, presentCheck, updateCheck } from './checks.ts'
import { checkResults } from './results.ts'

const TAG = 'Active checks'
const VIEW = ['monitoring.view']
const MANAGE = ['monitoring.manage']
const subject = ({ hub, companyId, params }: RouteContext) => findCheck(hub.database.db, companyId, params.check ?? '')

const common = {
  interval_seconds: optional(integer(limits.checkIntervalSecondsMin, limits.checkIntervalSecondsMax)),
  timeout_seconds: optional(integer(1, limits.checkTimeoutSecondsMax)),
  enabled: optional(boolean()),
}
const target = Type.Record(Type.String(), Type.Unknown())

export const checkRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/monitoring/checks',
    tag: TAG,
    summary: 'List checks, newest first',
    permissions: VIEW,
    query: Type.Object({
      type: Type.Optional(oneOf(checkTypes)),
      enabled: flag(),
      search: Type.Optional(text(255)),
      ...pageQuery,
    }),
    answer: answerPage(checkAnswer),
    async handle({ hub, companyId, query, url }) {
      const page = pageOf(query)
      const filter = { ...query, enabled: flagOf(query.enabled) }
      const { rows, total } = await listChecks(hub.database.db, companyId, filter, page)
      return paged(url, page, total, rows.map(presentCheck))
    },
  }),
  route({
    method: 'POST',
    path: '/monitoring/checks',
    tag: TAG,
    summary: 'Create a check with its default rules',
    permissions: MANAGE,
    status: 201,
    body: Type.Object({ name: text(255), scope: scope(), type: oneOf(checkTypes), target, ...common }),
    answer: answer(checkAnswer),
    handle: async context => ({ data: presentCheck(await createCheck(context, context.body)) }),
  }),
  route({
    method: 'GET',
    path: '/monitoring/checks/:check',
    tag: TAG,
    summary: 'Show a check',
    permissions: VIEW,
    subject,
    answer: answer(checkAnswer),
    handle: async ({ subject }) => ({ data: presentCheck(subject) }),
  }),
  route({
    method: 'PATCH',
    path: '/monitoring/checks/:check',
    tag: TAG,
    summary: 'Change a check; its type stays',
    permissions: MANAGE,
    subject,
    body: Type.Object({
      name: Type.Optional(text(255)),
      scope: Type.Optional(scope()),
      type: Type.Optional(oneOf(checkTypes)),
      target: Type.Optional(target),
      ...common,
    }),
    answer: answer(checkAnswer),
    handle: async context => ({
      data: presentCheck(await updateCheck(context, context.subject.check.id, context.body)),
    }),
  }),
  route({
    method: 'DELETE',
    path: '/monitoring/checks/:check',
    tag: TAG,
    summary: 'Delete a check and its rules',
    permissions: MANAGE,
    subject,
    async handle(context) {
      await deleteCheck(context, context.subject.check.id)
      return undefined
    },
  }),
  ...(['enable', 'disable'] as const).map(action =>
    route({
      method: 'POST',
      path: `/monitoring/checks/:check/${action}`,
      tag: TAG,
      summary: action === 'enable' ? 'Enable a check' : 'Disable a check',
      permissions: MANAGE,
      subject,
      answer: answer(checkAnswer),
      async handle(context) {
        const { check } = context.subject
        const enabled = action === 'enable'
        if (check.enabled === enabled) return { data: presentCheck(context.subject) }
        return { data: presentCheck(await updateCheck(context, check.id, { enabled }, `check.${action}`)) }
      },
    }),
  ),
  route({
    method: 'POST',
    path: '/monitoring/checks/:check/duplicate',
    tag: TAG,
    summary: 'Copy a check, disabled; it can be enabled once its target is its own',
    permissions: MANAGE,
    subject,
    status: 201,
    body: Type.Object({ target: optional(target), name: optional(text(255)) }),
    answer: answer(checkAnswer),
    async handle(context) {
      const { check } = context.subject
      const isCopy = !context.body.target
      const copy = {
        name: context.body.name ?? `${check.name.slice(0, 248)} (copy)`,
        scope: check.scope,
        type: check.type,
        target: context.body.target ?? check.target,
        interval_seconds: check.intervalSeconds,
        timeout_seconds: check.timeoutSeconds,
        enabled: false,
      }
      const row = await createCheck(context, copy, isCopy)
      return { data: presentCheck(row) }
    },
  }),
  route({
    method: 'GET',
    path: '/monitoring/checks/:check/results',
    tag: TAG,
    summary: 'The latest result on each machine',
    permissions: VIEW,
    subject,
    query: Type.Object(pageQuery),
    answer: Type.Object({ ...answerPage(checkResultAnswer).properties, collector: collectorNote }),
    async handle({ hub, query, url, subject }) {
      const page = pageOf(query)
      const { results, total, collector } = await checkResults(hub, subject, page)
      return { ...paged(url, page, total, results), collector }
    },
  }),
  route({
    method: 'GET',
    path: '/servers/:server/checks',
    tag: TAG,
    summary: 'Checks that apply to a server',
    permissions: VIEW,
    subject: ({ hub, companyId, params }) => findServer(hub.database.db, companyId, params.server ?? ''),
    query: Type.Object(pageQuery),
    answer: answerPage(checkAnswer),
    async handle({ hub, companyId, query, url, subject }) {
      const page = pageOf(query)
      const filter = { serverId: subject.server.id }
      const { rows, total } = await listChecks(hub.database.db, companyId, filter, page)
      return paged(url, page, total, rows.map(presentCheck))
    },
  }),
]

// REST: /monitoring/checks (decision G-119).

import { Type } from '@sinclair/typebox'
import { limits } from '../../../core/limits.ts'
import { list } from '../platform/http/list.ts'
import { paged, pageOf, pageQuery } from '../platform/http/paging.ts'
import { boolean, integer, oneOf, optional, scope, text } from '../platform/http/request-schema.ts'
import { resourceRoutes } from '../platform/http/resource.ts'
import { answerPage, collectorNote } from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import { refuseManaged } from '../resources/manifest-lock.ts'
import { findServer } from '../servers/server-list.ts'
import { checkCollection } from './check-list.ts'
import { checkResultResponse } from './check-response.ts'
import { checkTypes } from './check-target.ts'
import { createCheck, deleteCheck, duplicateCheck, setCheckEnabled, updateCheck } from './checks.ts'
import { checkResults } from './latest-check-results.ts'

const TAG = 'Active checks'
const PATH = '/monitoring/checks'
const VIEW = ['monitoring.view']
const MANAGE = ['monitoring.manage']
const check = resourceRoutes({ path: PATH, parameter: 'check', tag: TAG, of: checkCollection })
const { resource } = check

const common = {
  interval_seconds: optional(integer(limits.checkIntervalSecondsMin, limits.checkIntervalSecondsMax)),
  timeout_seconds: optional(integer(1, limits.checkTimeoutSecondsMax)),
  enabled: optional(boolean()),
}
const target = Type.Record(Type.String(), Type.Unknown())

export const checkRoutes: readonly Route[] = [
  list({ path: PATH, tag: TAG, summary: 'List checks, newest first', permissions: VIEW, of: checkCollection }),
  check.create({
    summary: 'Create a check with its default rules',
    permissions: MANAGE,
    body: Type.Object({ name: text(255), scope: scope(), type: oneOf(checkTypes), target, ...common }),
    act: createCheck,
  }),
  check.show({ summary: 'Show a check', permissions: VIEW }),
  check.change({
    summary: 'Change a check; its type stays',
    permissions: MANAGE,
    body: Type.Object({
      name: Type.Optional(text(255)),
      scope: Type.Optional(scope()),
      type: Type.Optional(oneOf(checkTypes)),
      target: Type.Optional(target),
      ...common,
    }),
    act: async (context, row, body) => {
      await refuseManaged(context, 'check', row.check.id)
      return updateCheck(context, row.check.id, body)
    },
  }),
  check.delete({
    summary: 'Delete a check and its rules',
    permissions: MANAGE,
    act: async (context, row) => {
      await refuseManaged(context, 'check', row.check.id)
      await deleteCheck(context, row.check.id)
    },
  }),
  check.act('enable', {
    summary: 'Enable a check',
    permissions: MANAGE,
    act: async (context, row) => {
      await refuseManaged(context, 'check', row.check.id)
      return setCheckEnabled(context, row, true)
    },
  }),
  check.act('disable', {
    summary: 'Disable a check',
    permissions: MANAGE,
    act: async (context, row) => {
      await refuseManaged(context, 'check', row.check.id)
      return setCheckEnabled(context, row, false)
    },
  }),
  check.act('duplicate', {
    summary: 'Copy a check, disabled; it can be enabled once its target is its own',
    permissions: MANAGE,
    status: 201,
    body: Type.Object({ target: optional(target), name: optional(text(255)) }),
    act: duplicateCheck,
  }),
  route({
    method: 'GET',
    path: '/monitoring/checks/:check/results',
    tag: TAG,
    summary: 'The latest result on each server',
    permissions: VIEW,
    resource,
    query: Type.Object(pageQuery),
    answer: Type.Object({ ...answerPage(checkResultResponse).properties, collector: collectorNote }),
    async handle({ hub, query, url, resource }) {
      const page = pageOf(query)
      const { results, total, collector } = await checkResults(hub, resource, page)
      return { ...paged(url, page, total, results), collector }
    },
  }),
  list({
    path: '/servers/:server/checks',
    tag: TAG,
    summary: 'Checks that apply to a server',
    permissions: VIEW,
    resource: ({ hub, companyId, params }) => findServer(hub.database.db, companyId, params.server ?? ''),
    of: checkCollection,
    within: ({ resource }) => ({ server_id: resource.server.id }),
  }),
]

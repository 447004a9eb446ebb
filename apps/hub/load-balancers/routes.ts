// REST: /load-balancers, their pools, members and virtual servers (group "Load balancers").
import { Type } from '@sinclair/typebox'
import type { Unchecked } from '../../../core/json-object.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import { boolean, flag, flagOf, oneOf } from '../platform/http/request-schema.ts'
import { answer, named } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { takeAct } from '../resources/act-rate.ts'
import { editorOf } from '../resources/editor.ts'
import { bodyOf, type Kind } from '../resources/kind.ts'
import {
  answerOf,
  expectedOf,
  onePath,
  refuseManagedParts,
  refuseManagedRow,
  replyUnlessKnown,
  replyWith,
  resourceOf,
} from '../resources/kind-routes.ts'
import { runResponse, showResponse } from '../resources/resource-response.ts'
import { findRow } from '../resources/resource-rows.ts'
import { presentRun, startRun } from '../resources/runs.ts'
import { deleteResource } from '../resources/write-resource.ts'
import { configFormats, configOf, configResponse, usualFormat } from './device-config.ts'
import { lbMemberKind } from './lb-member.ts'
import { loadBalancerKind } from './load-balancer.ts'
import { createPool, membersSchema, poolKind } from './pool-with-members.ts'
import { statusOf, statusResponse } from './status-tree.ts'

const TAG = loadBalancerKind.group
const { view, manage } = loadBalancerKind.info.permissions
const VIEW = [view]
const MANAGE = [manage]
const ONE = onePath(loadBalancerKind)
const deviceOf = (context: RouteContext) => resourceOf(loadBalancerKind, context)

const createPoolRoute = route({
  method: 'POST',
  path: poolKind.info.path,
  tag: TAG,
  summary: 'Create a pool, with its members',
  permissions: MANAGE,
  resource: deviceOf,
  status: 201,
  body: Type.Object({ members: Type.Optional(Type.Array(Type.Unknown(), { maxItems: 200 })) }),
  docBody: Type.Object({ ...bodyOf(poolKind, true).properties, members: Type.Optional(membersSchema()) }),
  answer: answerOf(poolKind),
  async handle(context) {
    const { hub, companyId, resource: device } = context
    await refuseManagedParts(context, poolKind as Kind, device.id)
    const body = context.body as Unchecked & { readonly members?: readonly unknown[] }
    const id = await inTransaction(hub.database.db, tx => createPool(tx, editorOf(context), device.id, body))
    const made = await findRow(poolKind, hub.database.db, companyId, id)
    return replyWith(poolKind, context, made, { headers: { Location: `${context.url.pathname}/${id}` } })
  },
})

const deleteMember = route({
  method: 'DELETE',
  path: onePath(lbMemberKind),
  tag: TAG,
  summary: 'Remove a member; PATCH with deleted_at null restores',
  permissions: MANAGE,
  resource: context => resourceOf(lbMemberKind, context),
  query: Type.Object({ force: flag() }),
  refusals: [409, 412],
  async handle(context) {
    await refuseManagedRow(context, lbMemberKind as Kind, context.resource)
    const input = { force: flagOf(context.query.force) === true }
    await inTransaction(context.hub.database.db, tx =>
      deleteResource(tx, lbMemberKind, editorOf(context), context.resource.id, expectedOf(context), input),
    )
    return undefined
  },
})

const sync = route({
  method: 'POST',
  path: `${ONE}/sync`,
  tag: TAG,
  summary: 'Read a load balancer: show where it differs, or take over what it has',
  permissions: MANAGE,
  resource: deviceOf,
  status: 202,
  body: Type.Object({ apply: Type.Optional(boolean()) }),
  answer: answer(runResponse),
  async handle(context) {
    const { hub, companyId, resource: device, body } = context
    if (device.integration === 'none') throw invalidField('integration', 'lb_no_integration')
    takeAct(hub, companyId)
    const input = { apply: body.apply ?? false }
    const run = await inTransaction(hub.database.db, tx =>
      startRun(tx, editorOf(context), loadBalancerKind as Kind, device, 'sync', input),
    )
    return { data: presentRun(run) }
  },
})

const showDevice = route({
  method: 'GET',
  path: ONE,
  tag: TAG,
  summary: 'Show a load balancer; with its configuration on request',
  permissions: VIEW,
  query: Type.Object({ include: Type.Optional(oneOf(['config'])), format: Type.Optional(oneOf(configFormats)) }),
  resource: deviceOf,
  answer: answer(
    named('LoadBalancerWithConfig', {
      ...showResponse(loadBalancerKind).properties,
      config: Type.Optional(configResponse),
    }),
  ),
  otherResponses: { 304: null },
  async handle(context) {
    const { resource: device, query } = context
    if (query.include === undefined) return replyUnlessKnown(loadBalancerKind, context, device)
    const config = await configOf(context, device, query.format ?? usualFormat(device))
    return replyUnlessKnown(loadBalancerKind, context, device, { members: { config }, tag: `"${config.sha256}"` })
  },
})

const status = route({
  method: 'GET',
  path: `${ONE}/status`,
  tag: TAG,
  summary: 'What of a load balancer can still answer: the whole tree',
  permissions: VIEW,
  resource: deviceOf,
  answer: answer(statusResponse),
  handle: async context => ({ data: await statusOf(context, context.resource) }),
})

export const loadBalancerRoutes: readonly Route[] = [showDevice, status, sync, createPoolRoute, deleteMember]

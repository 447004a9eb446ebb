// REST: /servers/{server}/inventory (decision G-113).
import { Type } from '@sinclair/typebox'
import { listOf, oneOf, optional, text } from '../platform/http/request-schema.ts'
import { answer, listed } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { findServer } from '../servers/server-list.ts'
import { serverResponse } from '../servers/server-response.ts'
import { inventoryFields } from './differences.ts'
import { applyInventory, showInventory } from './inventory.ts'
import { inventoryResponse } from './inventory-response.ts'

const TAG = 'Servers'

const applyBody = Type.Object({
  fields: listOf(oneOf(inventoryFields), inventoryFields.length, 1),
  values: optional(Type.Object({ ip_address: optional(text(64)) })),
})

const resource = ({ hub, companyId, params }: RouteContext) =>
  findServer(hub.database.db, companyId, params.server ?? '')

export const inventoryRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/servers/:server/inventory',
    tag: TAG,
    summary: 'Inventory facts and how the server record differs',
    permissions: ['monitoring.view'],
    resource,
    answer: answer(inventoryResponse),
    handle: async context => ({ data: await showInventory(context, context.resource) }),
  }),
  route({
    method: 'POST',
    path: '/servers/:server/inventory/apply',
    tag: TAG,
    summary: 'Take over selected fields',
    permissions: ['monitoring.view', 'servers.manage'],
    resource,
    body: applyBody,
    answer: Type.Object({ data: serverResponse, applied: listed(oneOf(inventoryFields)) }),
    handle: context => applyInventory(context, context.resource.server.id, context.body),
  }),
]

// REST: /servers (document 1 "Servers"; decision G-108).

import { Type } from '@sinclair/typebox'
import { agentCollection } from '../agents/agent-list.ts'
import { alertCollection } from '../alerts/alert-list.ts'
import { invalidField } from '../platform/http/api-error.ts'
import { bulkResponse } from '../platform/http/bulk.ts'
import { list } from '../platform/http/list.ts'
import { flag, flagOf, listOf, oneOf, optional, text, uuid } from '../platform/http/request-schema.ts'
import { resourceRoutes } from '../platform/http/resource.ts'
import { answer } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { refuseManaged } from '../resources/manifest-lock.ts'
import { type BulkChange, changeServers } from './change-many-servers.ts'
import { serverHealth, serverSeries } from './health.ts'
import { existingChoices, importBody, importServers, serversOfCsv } from './import.ts'
import { checkAddress, newServer, serverFields, serverTags, TAGS_MAX } from './server-fields.ts'
import { allServers, presentServer, serverCollection, trashedServers } from './server-list.ts'
import { healthResponse, importResponse, seriesResponse, serverResponse, settableStatuses } from './server-response.ts'
import {
  approveServer,
  createServer,
  deleteServer,
  deleteServerForGood,
  restoreServer,
  updateServer,
} from './servers.ts'

const TAG = 'Servers'
const VIEW = ['servers.view']
const MANAGE = ['servers.manage']
const DELETE = ['servers.delete']
const BULK_MAX = 10_000

/** Throws 422 when a server would have more tags than it may. */
function changedTags(
  tags: readonly string[],
  { add, remove }: { add?: readonly string[] | null | undefined; remove?: readonly string[] | null | undefined },
): string[] {
  const removed = new Set(remove ?? [])
  const fresh = [...new Set([...tags.filter(tag => !removed.has(tag)), ...(add ?? [])])]
  if (fresh.length > TAGS_MAX) throw invalidField('tags', 'list_max', { max: TAGS_MAX })
  return fresh
}

async function changeMany(context: RouteContext, ids: readonly string[], change: BulkChange) {
  await refuseManaged(context, 'server', ids)
  const { done, refused } = await changeServers(context, ids, change)
  return { data: done.map(presentServer), refused }
}

const one = { path: '/servers', parameter: 'server', tag: TAG }
const server = resourceRoutes({ ...one, of: serverCollection })
/** Deleted ones too. */
const anyServer = resourceRoutes({ ...one, of: allServers })
const { resource } = server

export const serverRoutes: readonly Route[] = [
  list({
    path: '/servers',
    tag: TAG,
    summary: 'List servers by name; include=health adds a health block',
    permissions: VIEW,
    of: serverCollection,
  }),
  server.create({
    summary: 'Create a server',
    permissions: MANAGE,
    body: newServer,
    async act(context, body) {
      checkAddress(body)
      return createServer(context, body)
    },
  }),
  route({
    method: 'POST',
    path: '/servers/import',
    tag: TAG,
    summary: 'Create and change servers from comma-separated values; existing=keep only creates. All of them or none',
    permissions: MANAGE,
    query: Type.Object({ dry_run: flag(), existing: Type.Optional(oneOf(existingChoices)) }),
    body: importBody,
    textBody: { type: 'text/csv', member: 'csv' },
    answer: answer(importResponse),
    handle: async context => {
      const rows = serversOfCsv(context.body.csv, newServer)
      const { dry_run: dryRun, existing = 'update' } = context.query
      return { data: await importServers(context, rows, { isDryRun: flagOf(dryRun) ?? false, existing }) }
    },
  }),
  list({
    path: '/servers/trashed',
    tag: TAG,
    summary: 'Servers that were deleted and can be restored',
    permissions: DELETE,
    of: trashedServers,
  }),
  server.show({ summary: 'Show a server', permissions: VIEW }),
  server.change({
    summary: 'Change a server',
    permissions: MANAGE,
    body: Type.Object({ name: Type.Optional(text(255)), ...serverFields }),
    async act(context, row, body) {
      checkAddress(body)
      await refuseManaged(context, 'server', row.server.id)
      return updateServer(context, row.server.id, body)
    },
  }),
  server.delete({
    summary: 'Delete a server; it can be restored',
    permissions: DELETE,
    act: async (context, row) => {
      await refuseManaged(context, 'server', row.server.id)
      await deleteServer(context, row.server.id)
    },
  }),
  anyServer.act('restore', {
    summary: 'Undo a deletion',
    permissions: DELETE,
    act: (context, row) => restoreServer(context, row.server.id),
  }),
  route({
    method: 'DELETE',
    path: '/servers/:server/permanent',
    tag: TAG,
    summary: 'Delete a server and its data for good',
    permissions: DELETE,
    resource: anyServer.resource,
    async handle(context) {
      const { id, deletedAt } = context.resource.server
      if (deletedAt === null) await refuseManaged(context, 'server', id)
      await deleteServerForGood(context, id)
      return undefined
    },
  }),
  server.act('approve', {
    summary: 'Approve a draft server',
    permissions: MANAGE,
    act: (context, row) => approveServer(context, row.server.id),
  }),
  server.act('status', {
    method: 'PUT',
    summary: 'Set active, maintenance or decommissioned',
    permissions: MANAGE,
    body: Type.Object({ status: oneOf(settableStatuses) }),
    act: async (context, row, body) => {
      await refuseManaged(context, 'server', row.server.id)
      return updateServer(context, row.server.id, body)
    },
  }),
  server.act('tags', {
    method: 'PUT',
    summary: 'Replace the tags',
    permissions: MANAGE,
    body: Type.Object({ tags: serverTags }),
    act: async (context, row, body) => {
      await refuseManaged(context, 'server', row.server.id)
      return updateServer(context, row.server.id, body)
    },
  }),
  route({
    method: 'POST',
    path: '/servers/bulk/status',
    tag: TAG,
    summary: 'Set the status of many servers',
    permissions: MANAGE,
    body: Type.Object({ server_ids: listOf(uuid(), BULK_MAX, 1), status: oneOf(settableStatuses) }),
    answer: bulkResponse(serverResponse),
    may404: true,
    handle: context => changeMany(context, context.body.server_ids, () => ({ status: context.body.status })),
  }),
  route({
    method: 'POST',
    path: '/servers/bulk/tags',
    tag: TAG,
    summary: 'Add tags to many servers, or remove them',
    permissions: MANAGE,
    body: Type.Object({
      server_ids: listOf(uuid(), BULK_MAX, 1),
      add: optional(serverTags),
      remove: optional(serverTags),
    }),
    answer: bulkResponse(serverResponse),
    may404: true,
    handle: context =>
      changeMany(context, context.body.server_ids, server => ({ tags: changedTags(server.tags, context.body) })),
  }),
  route({
    method: 'GET',
    path: '/servers/:server/health',
    tag: TAG,
    summary: 'Latest values and open alerts',
    permissions: ['monitoring.view', 'servers.view'],
    resource,
    answer: healthResponse,
    handle: ({ hub, resource }) => serverHealth(hub, resource),
  }),
  route({
    method: 'GET',
    path: '/servers/:server/health/series',
    tag: TAG,
    summary: 'Time series of a metric',
    permissions: ['monitoring.view', 'servers.view'],
    resource,
    query: Type.Object({
      metric: text(64),
      from: Type.Optional(text(64)),
      to: Type.Optional(text(64)),
      step: Type.Optional(text(32)),
      agg: Type.Optional(oneOf(['avg', 'min', 'max', 'last'])),
    }),
    answer: seriesResponse,
    handle: ({ hub, resource, url }) => serverSeries(hub, resource, url.searchParams),
  }),
  list({
    path: '/servers/:server/agents',
    tag: TAG,
    summary: 'Agents of a server',
    permissions: ['monitoring.view'],
    resource,
    of: agentCollection,
    within: ({ resource }) => ({ server_id: resource.server.id }),
  }),
  list({
    path: '/servers/:server/alerts',
    tag: TAG,
    summary: 'Alerts of a server',
    permissions: ['monitoring.view'],
    resource,
    of: alertCollection,
    within: ({ resource }) => ({ server_id: resource.server.id }),
  }),
]

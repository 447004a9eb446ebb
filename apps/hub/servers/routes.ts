// REST: /servers (document 1 "Servers"; decision G-108).

import { isIP } from 'node:net'
import { Type } from '@sinclair/typebox'
import { agentAnswer } from '../agents/agent-response.ts'
import { listAgents, presentAgents } from '../agents/agents.ts'
import { alertAnswer } from '../alerts/alert-response.ts'
import { listAlerts, presentAlerts } from '../alerts/alerts.ts'
import { ApiError, invalidField } from '../platform/http/api-error.ts'
import { bulkAnswer } from '../platform/http/bulk.ts'
import { paged, pageOf, pageQuery } from '../platform/http/paging.ts'
import { flag, flagOf, integer, listOf, oneOf, optional, text, uuid } from '../platform/http/request-schema.ts'
import { answer, answerPage } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { words } from '../platform/http/texts.ts'
import { type BulkChange, changeServers } from './bulk.ts'
import { healthBlocks, serverHealth, serverSeries } from './health.ts'
import { importBody, importServers, serversOfCsv } from './import.ts'
import { healthAnswer, importAnswer, seriesAnswer, serverAnswer } from './server-response.ts'
import {
  approveServer,
  createServer,
  deleteServer,
  deleteServerForGood,
  findServer,
  listServers,
  presentServer,
  restoreServer,
  serverStatuses,
  settableStatuses,
  updateServer,
} from './servers.ts'

const TAG = 'Servers'
const VIEW = ['servers.view']
const MANAGE = ['servers.manage']
const DELETE = ['servers.delete']
const BULK_MAX = 10_000
const TAGS_MAX = 50
const COUNT_MAX = 2_147_483_647

const subject = ({ hub, companyId, params }: RouteContext) =>
  findServer(hub.database.db, companyId, params.server ?? '')
const trashedSubject = ({ hub, companyId, params }: RouteContext) =>
  findServer(hub.database.db, companyId, params.server ?? '', true)

const tags = listOf(text(128), TAGS_MAX)
const fields = {
  hostname: optional(text(253)),
  ip_address: optional(text(64)),
  environment: optional(text(128)),
  role: optional(text(128)),
  datacenter: optional(text(128)),
  subnet_id: optional(text(64)),
  tags: optional(tags),
  operating_system: optional(text(255)),
  cpu_cores: optional(integer(1, COUNT_MAX)),
  memory_mb: optional(integer(1, COUNT_MAX)),
  disk_gb: optional(integer(1, COUNT_MAX)),
  status: Type.Optional(oneOf(settableStatuses)),
  notes: optional(text(10_000)),
}

const newServer = Type.Object({ name: text(255), ...fields })

function checkAddress(body: { ip_address?: string | null | undefined }): void {
  if (body.ip_address != null && isIP(body.ip_address) === 0) throw invalidField('ip_address', 'pattern')
}

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

async function listWithHealth(
  context: RouteContext & {
    query: {
      search?: string
      environment?: string
      role?: string
      status?: (typeof serverStatuses)[number]
      include?: string
      page?: number
    }
  },
) {
  const { hub, companyId, query, url, caller } = context
  const hasHealth = query.include?.split(',').some(part => part.trim() === 'health') ?? false
  if (hasHealth && !caller.permissions.has('monitoring.view'))
    throw new ApiError(403, 'forbidden', words('permission_denied', { permission: 'monitoring.view' }), {
      reason: 'permission_denied',
    })
  const page = pageOf(query)
  const { rows, total } = await listServers(hub.database.db, companyId, query, page)
  const block = hasHealth
    ? await healthBlocks(
        hub,
        companyId,
        rows.map(row => row.server.id),
      )
    : null
  const data = rows.map(row => (block ? { ...presentServer(row), health: block(row.server.id) } : presentServer(row)))
  return paged(url, page, total, data)
}

async function changeMany(context: RouteContext, ids: readonly string[], change: BulkChange) {
  const { done, refused } = await changeServers(context, ids, change)
  return { data: done.map(presentServer), refused }
}

export const serverRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/servers',
    tag: TAG,
    summary: 'List servers by name; include=health adds a health block',
    permissions: VIEW,
    query: Type.Object({
      search: Type.Optional(text(255)),
      environment: Type.Optional(text(128)),
      role: Type.Optional(text(128)),
      status: Type.Optional(oneOf(serverStatuses)),
      include: Type.Optional(text(255)),
      ...pageQuery,
    }),
    answer: answerPage(serverAnswer),
    handle: listWithHealth,
  }),
  route({
    method: 'POST',
    path: '/servers',
    tag: TAG,
    summary: 'Create a server',
    permissions: MANAGE,
    status: 201,
    body: newServer,
    answer: answer(serverAnswer),
    async handle(context) {
      checkAddress(context.body)
      return { data: presentServer(await createServer(context, context.body)) }
    },
  }),
  route({
    method: 'POST',
    path: '/servers/import',
    tag: TAG,
    summary: 'Create and change servers from comma-separated values, all of them or none',
    permissions: MANAGE,
    query: Type.Object({ dry_run: flag() }),
    body: importBody,
    textBody: { type: 'text/csv', member: 'csv' },
    answer: answer(importAnswer),
    handle: async context => {
      const rows = serversOfCsv(context.body.csv, newServer)
      return { data: await importServers(context, rows, flagOf(context.query.dry_run) ?? false) }
    },
  }),
  route({
    method: 'GET',
    path: '/servers/trashed',
    tag: TAG,
    summary: 'Servers that were deleted and can be restored',
    permissions: DELETE,
    query: Type.Object(pageQuery),
    answer: answerPage(serverAnswer),
    async handle({ hub, companyId, query, url }) {
      const page = pageOf(query)
      const { rows, total } = await listServers(hub.database.db, companyId, { trashed: true }, page)
      return paged(url, page, total, rows.map(presentServer))
    },
  }),
  route({
    method: 'GET',
    path: '/servers/:server',
    tag: TAG,
    summary: 'Show a server',
    permissions: VIEW,
    subject,
    answer: answer(serverAnswer),
    handle: async ({ subject }) => ({ data: presentServer(subject) }),
  }),
  route({
    method: 'PATCH',
    path: '/servers/:server',
    tag: TAG,
    summary: 'Change a server',
    permissions: MANAGE,
    subject,
    body: Type.Object({ name: Type.Optional(text(255)), ...fields }),
    answer: answer(serverAnswer),
    async handle(context) {
      checkAddress(context.body)
      return { data: presentServer(await updateServer(context, context.subject.server.id, context.body)) }
    },
  }),
  route({
    method: 'DELETE',
    path: '/servers/:server',
    tag: TAG,
    summary: 'Delete a server; it can be restored',
    permissions: DELETE,
    subject,
    async handle(context) {
      await deleteServer(context, context.subject.server.id)
      return undefined
    },
  }),
  route({
    method: 'POST',
    path: '/servers/:server/restore',
    tag: TAG,
    summary: 'Undo a deletion',
    permissions: DELETE,
    subject: trashedSubject,
    answer: answer(serverAnswer),
    handle: async context => ({ data: presentServer(await restoreServer(context, context.subject.server.id)) }),
  }),
  route({
    method: 'DELETE',
    path: '/servers/:server/permanent',
    tag: TAG,
    summary: 'Delete a server and its data for good',
    permissions: DELETE,
    subject: trashedSubject,
    async handle(context) {
      await deleteServerForGood(context, context.subject.server.id)
      return undefined
    },
  }),
  route({
    method: 'POST',
    path: '/servers/:server/approve',
    tag: TAG,
    summary: 'Approve a draft server',
    permissions: MANAGE,
    subject,
    answer: answer(serverAnswer),
    handle: async context => ({ data: presentServer(await approveServer(context, context.subject.server.id)) }),
  }),
  route({
    method: 'PUT',
    path: '/servers/:server/status',
    tag: TAG,
    summary: 'Set active, maintenance or decommissioned',
    permissions: MANAGE,
    subject,
    body: Type.Object({ status: oneOf(settableStatuses) }),
    answer: answer(serverAnswer),
    handle: async context => ({
      data: presentServer(await updateServer(context, context.subject.server.id, context.body)),
    }),
  }),
  route({
    method: 'PUT',
    path: '/servers/:server/tags',
    tag: TAG,
    summary: 'Replace the tags',
    permissions: MANAGE,
    subject,
    body: Type.Object({ tags }),
    answer: answer(serverAnswer),
    handle: async context => ({
      data: presentServer(await updateServer(context, context.subject.server.id, context.body)),
    }),
  }),
  route({
    method: 'POST',
    path: '/servers/bulk/status',
    tag: TAG,
    summary: 'Set the status of many servers',
    permissions: MANAGE,
    body: Type.Object({ server_ids: listOf(uuid(), BULK_MAX, 1), status: oneOf(settableStatuses) }),
    answer: bulkAnswer(serverAnswer),
    mayMiss: true,
    handle: context => changeMany(context, context.body.server_ids, () => ({ status: context.body.status })),
  }),
  route({
    method: 'POST',
    path: '/servers/bulk/tags',
    tag: TAG,
    summary: 'Add tags to many servers, or remove them',
    permissions: MANAGE,
    body: Type.Object({ server_ids: listOf(uuid(), BULK_MAX, 1), add: optional(tags), remove: optional(tags) }),
    answer: bulkAnswer(serverAnswer),
    mayMiss: true,
    handle: context =>
      changeMany(context, context.body.server_ids, server => ({ tags: changedTags(server.tags, context.body) })),
  }),
  route({
    method: 'GET',
    path: '/servers/:server/health',
    tag: TAG,
    summary: 'Latest values and open alerts',
    permissions: ['monitoring.view', 'servers.view'],
    subject,
    answer: healthAnswer,
    handle: ({ hub, subject }) => serverHealth(hub, subject),
  }),
  route({
    method: 'GET',
    path: '/servers/:server/health/series',
    tag: TAG,
    summary: 'Time series of a metric',
    permissions: ['monitoring.view', 'servers.view'],
    subject,
    query: Type.Object({
      metric: text(64),
      from: Type.Optional(text(64)),
      to: Type.Optional(text(64)),
      step: Type.Optional(text(32)),
      agg: Type.Optional(oneOf(['avg', 'min', 'max', 'last'])),
    }),
    answer: seriesAnswer,
    handle: ({ hub, subject, url }) => serverSeries(hub, subject, url.searchParams),
  }),
  route({
    method: 'GET',
    path: '/servers/:server/agents',
    tag: TAG,
    summary: 'Agents of a server',
    permissions: ['monitoring.view'],
    subject,
    query: Type.Object(pageQuery),
    answer: answerPage(agentAnswer),
    async handle({ hub, companyId, query, url, subject }) {
      const page = pageOf(query)
      const { rows, total } = await listAgents(hub, companyId, { serverId: subject.server.id }, page)
      return paged(url, page, total, presentAgents(hub, rows))
    },
  }),
  route({
    method: 'GET',
    path: '/servers/:server/alerts',
    tag: TAG,
    summary: 'Alerts of a server',
    permissions: ['monitoring.view'],
    subject,
    query: Type.Object(pageQuery),
    answer: answerPage(alertAnswer),
    async handle({ hub, companyId, query, url, subject }) {
      const page = pageOf(query)
      const { rows, total } = await listAlerts(hub.database.db, companyId, { serverId: subject.server.id }, page)
      return paged(url, page, total, presentAlerts(rows))
    },
  }),
]

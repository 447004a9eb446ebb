// REST: /monitoring/agents (decision G-25).

import { Type } from '@sinclair/typebox'
import { agentStates } from '../../../core/lifecycle/agent.ts'
import { alertAnswer } from '../alerts/alert-response.ts'
import { listAlerts, presentAlerts } from '../alerts/alerts.ts'
import { bulkAnswer, forEachId } from '../platform/http/bulk.ts'
import { paged, pageOf, pageQuery } from '../platform/http/paging.ts'
import { flag, flagOf, listOf, oneOf, optional, text, uuid } from '../platform/http/request-schema.ts'
import { answer, answerPage } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { agentAnswer } from './agent-response.ts'
import {
  deleteAgent,
  findAgent,
  listAgents,
  presentAgent,
  presentAgents,
  reassignAgent,
  revokeAgent,
} from './agents.ts'

const TAG = 'Monitoring agents'
const VIEW = ['monitoring.view']
const MANAGE = ['monitoring.manage']
const DEFAULT_REASON = 'revoked by user'
const BULK_MAX = 200
const subject = ({ hub, companyId, params }: RouteContext) => findAgent(hub.database.db, companyId, params.agent ?? '')

export const agentRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/monitoring/agents',
    tag: TAG,
    summary: 'List agents, newest enrolment first',
    permissions: VIEW,
    query: Type.Object({
      state: Type.Optional(oneOf(agentStates)),
      server_id: Type.Optional(uuid()),
      collector_id: Type.Optional(uuid()),
      online: flag(),
      search: Type.Optional(text(255)),
      ...pageQuery,
    }),
    answer: answerPage(agentAnswer),
    async handle({ hub, companyId, query, url }) {
      const page = pageOf(query)
      const filter = {
        state: query.state,
        serverId: query.server_id,
        collectorId: query.collector_id,
        online: flagOf(query.online),
        search: query.search,
      }
      const { rows, total } = await listAgents(hub, companyId, filter, page)
      return paged(url, page, total, presentAgents(hub, rows))
    },
  }),
  route({
    method: 'GET',
    path: '/monitoring/agents/:agent',
    tag: TAG,
    summary: 'Show an agent',
    permissions: VIEW,
    subject,
    answer: answer(agentAnswer),
    handle: async ({ hub, subject }) => ({ data: presentAgent(hub, subject) }),
  }),
  route({
    method: 'POST',
    path: '/monitoring/agents/:agent/revoke',
    tag: TAG,
    summary: 'Revoke an agent for good',
    permissions: MANAGE,
    subject,
    body: Type.Object({ reason: optional(text(255)) }),
    answer: answer(agentAnswer),
    async handle(context) {
      const row = await revokeAgent(context, context.subject.agent.id, context.body.reason ?? DEFAULT_REASON)
      return { data: presentAgent(context.hub, row) }
    },
  }),
  route({
    method: 'POST',
    path: '/monitoring/agents/:agent/reassign',
    tag: TAG,
    summary: 'Move an agent to another server',
    permissions: MANAGE,
    subject,
    body: Type.Object({ server_id: uuid() }),
    answer: answer(agentAnswer),
    async handle(context) {
      const row = await reassignAgent(context, context.subject.agent.id, context.body.server_id)
      return { data: presentAgent(context.hub, row) }
    },
  }),
  route({
    method: 'DELETE',
    path: '/monitoring/agents/:agent',
    tag: TAG,
    summary: 'Delete a revoked agent',
    permissions: ['monitoring.delete'],
    subject,
    async handle(context) {
      await deleteAgent(context, context.subject.agent.id)
      return undefined
    },
  }),
  route({
    method: 'POST',
    path: '/monitoring/agents/bulk/revoke',
    tag: TAG,
    summary: 'Revoke many agents',
    permissions: MANAGE,
    body: Type.Object({ agent_ids: listOf(uuid(), BULK_MAX, 1), reason: optional(text(255)) }),
    answer: bulkAnswer(agentAnswer),
    mayMiss: true,
    async handle(context) {
      const { body, hub, companyId, language } = context
      const { done, refused } = await forEachId(
        body.agent_ids,
        language,
        id => findAgent(hub.database.db, companyId, id),
        id => revokeAgent(context, id, body.reason ?? DEFAULT_REASON),
      )
      return { data: presentAgents(hub, done), refused }
    },
  }),
  route({
    method: 'GET',
    path: '/monitoring/agents/:agent/alerts',
    tag: TAG,
    summary: 'Alerts of an agent',
    permissions: VIEW,
    subject,
    query: Type.Object(pageQuery),
    answer: answerPage(alertAnswer),
    async handle({ hub, companyId, query, url, subject }) {
      const page = pageOf(query)
      const { rows, total } = await listAlerts(hub.database.db, companyId, { agentId: subject.agent.id }, page)
      return paged(url, page, total, presentAlerts(rows))
    },
  }),
]

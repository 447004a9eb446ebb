// REST: /monitoring/agents (decision G-25).
import { Type } from '@sinclair/typebox'
import { alertCollection } from '../alerts/alert-list.ts'
import { list } from '../platform/http/list.ts'
import { optional, text, uuid } from '../platform/http/request-schema.ts'
import { resourceRoutes } from '../platform/http/resource.ts'
import type { Route } from '../platform/http/route.ts'
import { agentCollection } from './agent-list.ts'
import { deleteAgent, reassignAgent, revokeAgent } from './agents.ts'

const TAG = 'Monitoring agents'
const PATH = '/monitoring/agents'
const VIEW = ['monitoring.view']
const MANAGE = ['monitoring.manage']
const DEFAULT_REASON = 'revoked by user'
const reason = { reason: optional(text(255)) }
const agent = resourceRoutes({ path: PATH, parameter: 'agent', tag: TAG, of: agentCollection })

export const agentRoutes: readonly Route[] = [
  list({
    path: PATH,
    tag: TAG,
    summary: 'List agents, newest enrollment first',
    permissions: VIEW,
    of: agentCollection,
  }),
  agent.show({ summary: 'Show an agent', permissions: VIEW }),
  agent.act('revoke', {
    summary: 'Revoke an agent for good',
    permissions: MANAGE,
    body: Type.Object(reason),
    act: (context, row, body) => revokeAgent(context, row.agent.id, body.reason ?? DEFAULT_REASON),
  }),
  agent.act('reassign', {
    summary: 'Move an agent to another server',
    permissions: MANAGE,
    body: Type.Object({ server_id: uuid() }),
    act: (context, row, body) => reassignAgent(context, row.agent.id, body.server_id),
  }),
  agent.delete({
    summary: 'Delete a revoked agent',
    permissions: ['monitoring.delete'],
    act: (context, row) => deleteAgent(context, row.agent.id),
  }),
  agent.bulk('revoke', {
    summary: 'Revoke many agents',
    permissions: MANAGE,
    ids: 'agent_ids',
    body: reason,
    act: (context, id, body) => revokeAgent(context, id, body.reason ?? DEFAULT_REASON),
  }),
  list({
    path: `${PATH}/:agent/alerts`,
    tag: TAG,
    summary: 'Alerts of an agent',
    permissions: VIEW,
    resource: agent.resource,
    of: alertCollection,
    within: ({ resource }) => ({ agent_id: resource.agent.id }),
  }),
]

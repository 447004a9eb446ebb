// REST: /monitoring/licenses (document 1 "Licenses").

import { Type } from '@sinclair/typebox'
import { licenseStatuses } from '../../../core/lifecycle/license.ts'
import { limits } from '../../../core/limits.ts'
import { agentCollection } from '../agents/agent-list.ts'
import { agentQuota, countedAgents, licensedUses } from '../companies/agent-quota.ts'
import { list } from '../platform/http/list.ts'
import { paged, pageOf, pageQuery } from '../platform/http/paging.ts'
import { instant, integer, oneOf, optional, text, uuid } from '../platform/http/request-schema.ts'
import { answer, answerPage } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { licenseAnswer, licenseWithToken, quotaAnswer } from './license-response.ts'
import {
  createLicense,
  findLicense,
  listLicenses,
  presentLicense,
  regenerateLicense,
  revokeLicense,
  updateLicense,
} from './licenses.ts'

const TAG = 'Monitoring licenses'
const VIEW = ['monitoring.view']
const MANAGE = ['monitoring.manage']
const subject = ({ hub, companyId, params }: RouteContext) =>
  findLicense(hub.database.db, companyId, params.license ?? '')
const maxUses = integer(1, limits.licenseUsesMax)

export const licenseRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/monitoring/licenses',
    tag: TAG,
    summary: 'Create a license; the clear token is shown once',
    permissions: MANAGE,
    status: 201,
    body: Type.Object({
      name: text(limits.licenseNameMax),
      server_id: optional(uuid()),
      collector_id: optional(uuid()),
      expires_at: optional(instant()),
      max_uses: optional(maxUses),
    }),
    answer: licenseWithToken,
    async handle(context) {
      const { row, token } = await createLicense(context, context.body)
      return { data: presentLicense(row, context.hub.now()), token }
    },
  }),
  route({
    method: 'GET',
    path: '/monitoring/licenses',
    tag: TAG,
    summary: 'List licenses, newest first',
    permissions: VIEW,
    query: Type.Object({
      status: Type.Optional(oneOf(licenseStatuses)),
      server_id: Type.Optional(uuid()),
      search: Type.Optional(text(255)),
      ...pageQuery,
    }),
    answer: answerPage(licenseAnswer),
    async handle({ hub, companyId, query, url }) {
      const page = pageOf(query)
      const filter = { status: query.status, serverId: query.server_id, search: query.search }
      const { rows, total } = await listLicenses(hub.database.db, companyId, filter, page)
      return paged(
        url,
        page,
        total,
        rows.map(row => presentLicense(row, hub.now())),
      )
    },
  }),
  route({
    method: 'GET',
    path: '/monitoring/licenses/quota',
    tag: TAG,
    summary: 'The agent quota of the plan and what all companies that share it use of it',
    permissions: VIEW,
    answer: answer(quotaAnswer),
    async handle({ hub, companyId }) {
      const { db } = hub.database
      const quota = await agentQuota(db, companyId)
      const [licensed, agents] = await Promise.all([licensedUses(db, quota), countedAgents(db, quota)])
      return {
        data: {
          plan: quota.plan,
          agent_quota: quota.max,
          licensed_uses: licensed,
          remaining: quota.max === null ? null : Math.max(0, quota.max - licensed),
          agents,
        },
      }
    },
  }),
  route({
    method: 'GET',
    path: '/monitoring/licenses/:license',
    tag: TAG,
    summary: 'Show a license',
    permissions: VIEW,
    subject,
    answer: answer(licenseAnswer),
    handle: async context => ({ data: presentLicense(context.subject, context.hub.now()) }),
  }),
  route({
    method: 'PATCH',
    path: '/monitoring/licenses/:license',
    tag: TAG,
    summary: 'Change a license',
    permissions: MANAGE,
    subject,
    body: Type.Object({
      name: Type.Optional(text(limits.licenseNameMax)),
      expires_at: optional(instant()),
      max_uses: Type.Optional(maxUses),
    }),
    answer: answer(licenseAnswer),
    async handle(context) {
      const row = await updateLicense(context, context.subject.license.id, context.body)
      return { data: presentLicense(row, context.hub.now()) }
    },
  }),
  route({
    method: 'POST',
    path: '/monitoring/licenses/:license/regenerate',
    tag: TAG,
    summary: 'Retire the key and issue a new one, shown once',
    permissions: MANAGE,
    subject,
    answer: licenseWithToken,
    async handle(context) {
      const { row, token } = await regenerateLicense(context, context.subject.license.id)
      return { data: presentLicense(row, context.hub.now()), token }
    },
  }),
  route({
    method: 'POST',
    path: '/monitoring/licenses/:license/revoke',
    tag: TAG,
    summary: 'Stop a license from enrolling',
    permissions: MANAGE,
    subject,
    answer: answer(licenseAnswer),
    async handle(context) {
      const row = await revokeLicense(context, context.subject.license.id)
      return { data: presentLicense(row, context.hub.now()) }
    },
  }),
  list({
    path: '/monitoring/licenses/:license/agents',
    tag: TAG,
    summary: 'Agents enrolled with a license',
    permissions: VIEW,
    subject,
    of: agentCollection,
    within: ({ subject }) => ({ license_id: subject.license.id }),
  }),
]

// REST: /monitoring/licenses (document 1 "Licenses"; decision G-180).
import { Type } from '@sinclair/typebox'
import { limits } from '../../../core/limits.ts'
import { agentCollection } from '../agents/agent-list.ts'
import { list } from '../platform/http/list.ts'
import { instant, integer, optional, text, uuid } from '../platform/http/request-schema.ts'
import { resourceRoutes } from '../platform/http/resource.ts'
import { answer, listed } from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import { licenseCollection } from './license-list.ts'
import { licenseToken, quotaResponse } from './license-response.ts'
import { createLicense, quotaOf, regenerateLicense, revokeLicense, updateLicense } from './licenses.ts'
import { refusalResponse, refusalsOf } from './refusals.ts'

const TAG = 'Monitoring licenses'
const PATH = '/monitoring/licenses'
const VIEW = ['monitoring.view']
const MANAGE = ['monitoring.manage']
const maxUses = integer(1, limits.licenseUsesMax)
const license = resourceRoutes({ path: PATH, parameter: 'license', tag: TAG, of: licenseCollection })

export const licenseRoutes: readonly Route[] = [
  license.createWith({
    summary: 'Create a license; the clear token is shown once',
    permissions: MANAGE,
    body: Type.Object({
      name: text(limits.licenseNameMax),
      server_id: optional(uuid()),
      collector_id: optional(uuid()),
      expires_at: optional(instant()),
      max_uses: optional(maxUses),
    }),
    beside: licenseToken,
    act: createLicense,
  }),
  list({ path: PATH, tag: TAG, summary: 'List licenses, newest first', permissions: VIEW, of: licenseCollection }),
  route({
    method: 'GET',
    path: `${PATH}/quota`,
    tag: TAG,
    summary: 'The agent quota of the plan and what all companies that share it use of it',
    permissions: VIEW,
    answer: answer(quotaResponse),
    handle: async ({ hub, companyId }) => ({ data: await quotaOf(hub.database.db, companyId) }),
  }),
  license.show({ summary: 'Show a license', permissions: VIEW }),
  license.change({
    summary: 'Change a license',
    permissions: MANAGE,
    body: Type.Object({
      name: Type.Optional(text(limits.licenseNameMax)),
      expires_at: optional(instant()),
      max_uses: Type.Optional(maxUses),
    }),
    act: (context, row, body) => updateLicense(context, row.license.id, body),
  }),
  license.actWith('regenerate', {
    summary: 'Retire the key and issue a new one, shown once',
    permissions: MANAGE,
    beside: licenseToken,
    act: (context, row) => regenerateLicense(context, row.license.id),
  }),
  license.act('revoke', {
    summary: 'Stop a license from enrolling',
    permissions: MANAGE,
    act: (context, row) => revokeLicense(context, row.license.id),
  }),
  list({
    path: `${PATH}/:license/agents`,
    tag: TAG,
    summary: 'Agents enrolled with a license, and the enrollments that were refused within a week',
    permissions: VIEW,
    resource: license.resource,
    of: agentCollection,
    within: ({ resource }) => ({ license_id: resource.license.id }),
    beside: {
      answer: { refused: listed(refusalResponse) },
      read: async ({ hub, companyId, resource }) => ({
        refused: await refusalsOf(hub.database.db, companyId, resource.license.id),
      }),
    },
  }),
]

// REST: /monitoring/collectors, for super administrators only (decision G-33).
import { Type } from '@sinclair/typebox'
import { reloadFeeds } from '../../../core/admin-api/calls.ts'
import { dataOf } from '../../../core/admin-api/envelope.ts'
import { collectorStatusPath } from '../../../core/admin-api/status.ts'
import { list } from '../platform/http/list.ts'
import { HTTP, oneOf, optional, text } from '../platform/http/request-schema.ts'
import { resourceRoutes } from '../platform/http/resource.ts'
import { answer, anyObject, collectorNote, nullable, string } from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import { requestReload } from './collector-jobs.ts'
import { reloadResponse } from './collector-response.ts'
import { addCollector, changeCollector, collectorCollection, deleteCollector } from './collectors.ts'

const TAG = 'Monitoring overview and settings'
const PATH = '/monitoring/collectors'
const superAdmin = true
const url = () => Type.String({ format: 'uri', pattern: HTTP, maxLength: 512 })
const fields = {
  base_url: optional(url()),
  admin_url: optional(url()),
  settings: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
}
export const newCollector = Type.Object({ name: text(255), ...fields })
const collector = resourceRoutes({ path: PATH, parameter: 'collector', tag: TAG, of: collectorCollection })
const { resource } = collector

export const collectorAdminRoutes: readonly Route[] = [
  list({ path: PATH, tag: TAG, summary: 'List collectors', superAdmin, of: collectorCollection }),
  collector.createWith({
    summary: 'Create a collector; its tokens are shown once',
    superAdmin,
    body: newCollector,
    beside: { token: string(), admin_token: nullable(string()) },
    act: addCollector,
  }),
  collector.show({ summary: 'Show a collector', superAdmin }),
  collector.change({
    summary: 'Change a collector',
    superAdmin,
    body: Type.Object({ name: Type.Optional(text(255)), ...fields }),
    act: changeCollector,
  }),
  collector.delete({ summary: 'Delete a collector; its token stops working', superAdmin, act: deleteCollector }),
  route({
    method: 'GET',
    path: `${PATH}/:collector/status`,
    tag: TAG,
    summary: 'What the collector says of itself',
    superAdmin,
    resource,
    answer: Type.Object({ data: nullable(anyObject()), collector: collectorNote }),
    async handle({ hub, resource }) {
      const target = await hub.collectors.target(resource.id)
      const answer = target ? await hub.collectors.query(target, 'collector_status', collectorStatusPath) : null
      const data = answer?.status === 200 ? dataOf(answer.body) : null
      const reason = data !== null ? null : target ? 'unavailable' : 'not_configured'
      return { data, collector: { available: data !== null, reason } }
    },
  }),
  route({
    method: 'POST',
    path: `${PATH}/:collector/reload`,
    tag: TAG,
    summary: 'Have rules, silences, checks or settings pulled now',
    superAdmin,
    resource,
    status: 202,
    body: Type.Object({ what: oneOf(reloadFeeds) }),
    answer: answer(reloadResponse),
    async handle({ hub, body }) {
      await requestReload(hub, body.what)
      return { data: { reload: body.what, accepted: true } }
    },
  }),
]

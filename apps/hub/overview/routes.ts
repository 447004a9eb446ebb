// REST: /monitoring/overview (decision G-116).
import { Type } from '@sinclair/typebox'
import { overviewResponse, timelineDay } from '../alerts/alert-response.ts'
import { integer } from '../platform/http/request-schema.ts'
import { answerList, collectorNote } from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import { resourcesOverview, resourcesResponse } from '../resources/resource-overview.ts'
import { overview, timeline } from './overview.ts'

const TAG = 'Monitoring overview and settings'
const DAYS_DEFAULT = 14

export const overviewRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/monitoring/overview',
    tag: TAG,
    summary: 'The company at a glance',
    permissions: ['monitoring.view'],
    answer: Type.Object({
      data: Type.Object(
        { ...overviewResponse.properties, resources: resourcesResponse },
        { $id: 'OverviewWithResources' },
      ),
      collector: collectorNote,
    }),
    async handle(context) {
      const [{ data, collector }, resources] = await Promise.all([overview(context), resourcesOverview(context)])
      return { data: { ...data, resources }, collector }
    },
  }),
  route({
    method: 'GET',
    path: '/monitoring/overview/timeline',
    tag: TAG,
    summary: 'Alerts opened and resolved per day',
    permissions: ['monitoring.view'],
    query: Type.Object({ days: Type.Optional(integer(1, 90)) }),
    answer: answerList(timelineDay),
    handle: async ({ hub, companyId, query }) => ({
      data: await timeline(hub, companyId, query.days ?? DAYS_DEFAULT),
    }),
  }),
]

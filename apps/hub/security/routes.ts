// REST: /security, and what belongs to a server (decisions G-160, G-172, G-176).
import { Type } from '@sinclair/typebox'
import { list } from '../platform/http/list.ts'
import { paged, pageOf, pageQuery } from '../platform/http/paging.ts'
import { text } from '../platform/http/request-schema.ts'
import { amount, answer, answerList, answerPage, nullable, time } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { findServer } from '../servers/server-list.ts'
import {
  findFinding,
  findingCollection,
  findingWithEvents,
  personalDataCollection,
  secretCollection,
} from './findings/finding-list.ts'
import { findingDetail } from './findings/finding-response.ts'
import {
  securityOverview,
  securityOverviewResponse,
  securityTrends,
  serverSecurity,
  serverSecurityResponse,
  trendDay,
} from './findings/overview.ts'
import { matcherNote } from './packages/matcher-note.ts'
import { inventorySummary, packagePage, packagesOfServer, resyncCompany, searchPackages } from './packages/packages.ts'
import { serviceCollection, softwareCollection } from './packages/software.ts'

const TAG = 'Security'
const VIEW = ['security.view']
const MANAGE = ['security.manage']
const NAME_MAX = 256
/** What the matcher gives for packages with the longest names that a report may have. */
const CURSOR_MAX = 8192

const serverOf = ({ hub, companyId, params }: RouteContext) =>
  findServer(hub.database.db, companyId, params.server ?? '')
const cursorQuery = {
  cursor: Type.Optional(text(CURSOR_MAX)),
  limit: Type.Optional(Type.Integer({ minimum: 1 })),
}
const softwareQuery = {
  search: Type.Optional(text(NAME_MAX)),
  ...pageQuery,
}

const findingRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/security/overview',
    tag: TAG,
    summary: 'Findings, coverage by scans and the matcher at a glance',
    permissions: VIEW,
    answer: answer(securityOverviewResponse),
    handle: async context => ({ data: await securityOverview(context) }),
  }),
  route({
    method: 'GET',
    path: '/security/trends',
    tag: TAG,
    summary: 'Findings opened and resolved on each of the last 30 days',
    permissions: VIEW,
    answer: answerList(trendDay),
    handle: async context => ({ data: await securityTrends(context) }),
  }),
  list({
    path: '/security/findings',
    tag: TAG,
    summary: 'List findings, the highest risk first',
    permissions: VIEW,
    of: findingCollection,
  }),
  route({
    method: 'GET',
    path: '/security/findings/:finding',
    tag: TAG,
    summary: 'Show a finding with its events',
    permissions: VIEW,
    resource: context => findFinding(context, context.params.finding ?? ''),
    answer: answer(findingDetail),
    handle: async context => ({ data: await findingWithEvents(context, context.resource) }),
  }),
  route({
    method: 'GET',
    path: '/servers/:server/security',
    tag: TAG,
    summary: 'Findings and the last scan of a server',
    permissions: VIEW,
    legacy: false,
    resource: serverOf,
    answer: answer(serverSecurityResponse),
    handle: async context => ({ data: await serverSecurity(context, context.resource.server.id) }),
  }),
  list({
    path: '/security/secrets',
    tag: TAG,
    summary: 'Where secrets were found; values are never shown',
    permissions: ['security.secrets.view'],
    of: secretCollection,
  }),
  list({
    path: '/security/pii-map',
    tag: TAG,
    summary: 'Where personal data were found',
    permissions: ['security.pii.view'],
    of: personalDataCollection,
  }),
]

const packageRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/servers/:server/packages',
    tag: TAG,
    summary: 'Packages of a server',
    permissions: VIEW,
    legacy: false,
    resource: serverOf,
    query: Type.Object({ q: Type.Optional(text(NAME_MAX)), ...cursorQuery }),
    answer: packagePage,
    handle: context => packagesOfServer(context, context.resource.server.id, context.query),
  }),
  route({
    method: 'GET',
    path: '/security/packages/search',
    tag: TAG,
    summary: 'Servers that have a package',
    permissions: VIEW,
    query: Type.Object({
      name: text(NAME_MAX),
      version_lt: Type.Optional(text(NAME_MAX)),
      version_gte: Type.Optional(text(NAME_MAX)),
      ecosystem: Type.Optional(text(NAME_MAX)),
      ...cursorQuery,
    }),
    answer: packagePage,
    handle: context => searchPackages(context, context.query),
  }),
  route({
    method: 'GET',
    path: '/security/software',
    tag: TAG,
    summary: 'Software with open findings, the highest risk first, and what the matcher counts',
    permissions: VIEW,
    query: Type.Object(softwareQuery),
    answer: Type.Object({
      ...answerPage(softwareCollection.response).properties,
      inventory: nullable(
        Type.Object({
          servers: amount(),
          oldest_report_at: nullable(time()),
          ecosystems: Type.Record(Type.String(), amount()),
        }),
      ),
      matcher: Type.Object(matcherNote),
    }),
    async handle(context) {
      const { page: number, search } = context.query
      const page = pageOf({ page: number })
      const [{ rows, total }, summary] = await Promise.all([
        softwareCollection.read(context, { search }, page),
        inventorySummary(context),
      ])
      return { ...paged(context.url, page, total, rows), ...summary }
    },
  }),
  list({
    path: '/security/services',
    tag: TAG,
    summary: 'Services and ports that checks watch',
    permissions: VIEW,
    of: serviceCollection,
  }),
  route({
    method: 'POST',
    path: '/security/resync',
    tag: TAG,
    summary: 'Let the matcher tell every open finding again',
    permissions: MANAGE,
    status: 202,
    answer: answer(Type.Object({ events: amount() })),
    handle: async ({ hub, companyId }) => ({ data: { events: await resyncCompany(hub, companyId) } }),
  }),
]

export const securityRoutes: readonly Route[] = [...findingRoutes, ...packageRoutes]

// REST: /monitoring/collector, for collectors' service accounts only (document 1 "Collector-facing endpoints").
import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import { limits } from '../../../core/limits.ts'
import type { Db } from '../platform/db/connect.ts'
import type { FeedPage } from '../platform/db/feed-page.ts'
import { notFound } from '../platform/http/api-error.ts'
import { isUuid, optional, text, uuid } from '../platform/http/request-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { recordSeen, seenBody } from './agents-seen.ts'
import {
  agentLookup,
  agentsResponse,
  checkRecord,
  companySettings,
  enrollResponse,
  eventsBody,
  eventsResponse,
  feedResponse,
  heartbeatResponse,
  inventoryBody,
  inventoryTaken,
  renewResponse,
  ruleRecord,
  seenResponse,
  serverRecord,
  silenceRecord,
} from './collector-response.ts'
import { collectorSettings } from './company-settings.ts'
import { enroll, enrollBody } from './enroll.ts'
import { receiveEvents } from './events.ts'
import {
  agentById,
  agentByTokenHash,
  agentsFeed,
  checksFeed,
  rulesFeed,
  serverAttributesFeed,
  silencesFeed,
} from './feeds.ts'
import { heartbeatBody, recordHeartbeat } from './heartbeat.ts'
import { takeInventory } from './receive-inventory.ts'
import { renewToken } from './renew-token.ts'

const TAG = 'Collector endpoints'
const COLLECTOR = ['monitoring.collector']
const PREFIX = '/monitoring/collector'
const SINCE_MAX = Number.MAX_SAFE_INTEGER

const feedQuery = {
  since: Type.Optional(Type.Integer({ minimum: 0, maximum: SINCE_MAX })),
  limit: Type.Optional(Type.Integer({ minimum: 1 })),
}
/** The handler validates the body event by event; the schema is only for the OpenAPI document. */
const anyBody: TObject = Type.Object({}, { additionalProperties: true })

type PageReader = (db: Db, since: number, limit: number) => Promise<FeedPage>

const answer = (name: string, page: FeedPage) => ({
  data: { [name]: page.records, next_since: page.nextSince, more: page.more },
})

async function servePage(
  context: RouteContext & { query: { since?: number | undefined; limit?: number | undefined } },
  name: string,
  read: PageReader,
  limitMax: number,
) {
  const limit = Math.min(context.query.limit ?? limits.syncPageDefault, limitMax)
  return answer(name, await read(context.hub.database.db, context.query.since ?? 0, limit))
}

const feed = (path: string, name: string, item: TSchema, read: PageReader): Route =>
  route({
    method: 'GET',
    path: `${PREFIX}${path}`,
    tag: TAG,
    summary: `Changes of ${name} since a number`,
    permissions: COLLECTOR,
    query: Type.Object(feedQuery),
    answer: feedResponse(name, item),
    handle: context => servePage(context, name, read, limits.syncPageMax),
  })

async function lookUpAgent({ hub, url }: RouteContext) {
  const id = url.searchParams.get('agent_id') ?? ''
  const agent = isUuid(id) ? await agentById(hub, id) : null
  if (!agent) throw notFound()
  return { data: { agent } }
}

export const collectorRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: `${PREFIX}/enroll`,
    tag: TAG,
    summary: 'Exchange a license for an agent token',
    permissions: COLLECTOR,
    status: 201,
    body: enrollBody,
    answer: enrollResponse,
    refusals: [409],
    handle: async context => ({ data: await enroll(context, context.body) }),
  }),
  route({
    method: 'GET',
    path: `${PREFIX}/agents`,
    tag: TAG,
    summary: 'Changes of agents since a number, or the one agent with a token hash',
    permissions: COLLECTOR,
    query: Type.Object({ ...feedQuery, token_hash: Type.Optional(Type.String()) }),
    answer: agentsResponse,
    may404: true,
    async handle(context) {
      const { hub, query } = context
      if (query.token_hash === undefined)
        return servePage(context, 'agents', (_db, since, limit) => agentsFeed(hub, since, limit), limits.agentsPageMax)
      const agent = await agentByTokenHash(hub, query.token_hash.toLowerCase())
      if (!agent) throw notFound()
      return { data: { agent } }
    },
  }),
  route({
    method: 'GET',
    path: `${PREFIX}/agents/lookup`,
    tag: TAG,
    summary: 'The agent with an id',
    permissions: COLLECTOR,
    query: Type.Object({ agent_id: Type.Optional(Type.String()) }),
    answer: agentLookup,
    may404: true,
    handle: lookUpAgent,
  }),
  feed('/rules', 'rules', ruleRecord, rulesFeed),
  feed('/silences', 'silences', silenceRecord, silencesFeed),
  feed('/checks', 'checks', checkRecord, checksFeed),
  feed('/servers/attributes', 'servers', serverRecord, serverAttributesFeed),
  route({
    method: 'POST',
    path: `${PREFIX}/events`,
    tag: TAG,
    summary: 'Up to 200 events',
    permissions: COLLECTOR,
    invalidCode: 'invalid_batch',
    body: anyBody,
    docBody: eventsBody,
    answer: eventsResponse,
    handle: async ({ hub, body }) => ({ data: await receiveEvents(hub, body) }),
  }),
  route({
    method: 'POST',
    path: `${PREFIX}/agents/seen`,
    tag: TAG,
    summary: 'When agents were last seen',
    permissions: COLLECTOR,
    body: seenBody,
    answer: seenResponse,
    handle: async ({ hub, body }) => ({ data: await recordSeen(hub, body) }),
  }),
  route({
    method: 'POST',
    path: `${PREFIX}/inventory`,
    tag: TAG,
    summary: 'Facts of up to 100 servers',
    permissions: COLLECTOR,
    bodyBytesMax: limits.inventoryBodyBytesMax,
    invalidCode: 'invalid_batch',
    body: anyBody,
    docBody: inventoryBody,
    answer: inventoryTaken,
    handle: async ({ hub, body }) => ({ data: await takeInventory(hub, body) }),
  }),
  route({
    method: 'POST',
    path: `${PREFIX}/heartbeat`,
    tag: TAG,
    summary: 'A collector runs',
    permissions: COLLECTOR,
    body: heartbeatBody,
    answer: heartbeatResponse,
    may404: true,
    handle: async ({ hub, body }) => ({ data: await recordHeartbeat(hub, body) }),
  }),
  route({
    method: 'GET',
    path: `${PREFIX}/settings/:company_id`,
    tag: TAG,
    summary: 'Settings of a company',
    permissions: COLLECTOR,
    answer: companySettings,
    handle: collectorSettings,
  }),
  route({
    method: 'POST',
    path: `${PREFIX}/agents/:agent_id/renew`,
    tag: TAG,
    summary: "Rotate an agent's token",
    permissions: COLLECTOR,
    body: Type.Object({ token_hash: text(64), collector_id: optional(uuid()) }),
    answer: renewResponse,
    handle: async context => ({
      data: await renewToken(context, context.params.agent_id ?? '', context.body.token_hash),
    }),
  }),
]

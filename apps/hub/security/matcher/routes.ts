// REST: /security/matcher, for service accounts of security matchers only (document 3 "Security matcher to hub").
import { type TObject, Type } from '@sinclair/typebox'
import { limits } from '../../../../core/limits.ts'
import { type Route, route } from '../../platform/http/route.ts'
import { enrollBody, enrollScanHost } from '../scan-hosts/enroll.ts'
import { recordHostSeen, rotateBody, rotateKey, seenBody } from '../scan-hosts/host-key-and-last-seen.ts'
import { scanHostsFeed } from '../scan-hosts/scan-host-feed.ts'
import { scanSettings } from './company-settings.ts'
import { receiveEvents } from './events.ts'
import { heartbeatBody, recordHeartbeat } from './heartbeat.ts'
import {
  enrolledResponse,
  eventsBody,
  eventsResponse,
  heartbeatResponse,
  rotatedResponse,
  scanHostsResponse,
  seenResponse,
  settingsResponse,
  vulnerabilitiesResponse,
} from './matcher-response.ts'
import { putVulnerabilities, vulnerabilitiesBody } from './vulnerabilities.ts'

const TAG = 'Matcher endpoints'
const MATCHER = ['security.matcher']
const PREFIX = '/security/matcher'
const INVALID = 'invalid_data'

/** The handler validates the body event by event; the schema is only for the OpenAPI document. */
const anyBody: TObject = Type.Object({}, { additionalProperties: true })

export const matcherRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: `${PREFIX}/events`,
    tag: TAG,
    summary: 'Up to 200 events',
    permissions: MATCHER,
    invalidCode: 'invalid_envelope',
    keepsText: true,
    body: anyBody,
    docBody: eventsBody,
    answer: eventsResponse,
    handle: async ({ hub, body }) => ({ data: await receiveEvents(hub, body) }),
  }),
  route({
    method: 'PUT',
    path: `${PREFIX}/vulnerabilities`,
    tag: TAG,
    summary: 'Reference data of up to 500 vulnerabilities',
    permissions: MATCHER,
    invalidCode: INVALID,
    body: vulnerabilitiesBody,
    answer: vulnerabilitiesResponse,
    handle: async ({ hub, body }) => ({ data: await putVulnerabilities(hub, body) }),
  }),
  route({
    method: 'GET',
    path: `${PREFIX}/settings/:company_id`,
    tag: TAG,
    summary: 'How a company is scanned, within its plan',
    permissions: MATCHER,
    answer: settingsResponse,
    handle: scanSettings,
  }),
  route({
    method: 'POST',
    path: `${PREFIX}/scan-hosts/enroll`,
    tag: TAG,
    summary: 'Exchange a code for a scan host',
    permissions: MATCHER,
    invalidCode: INVALID,
    status: 201,
    body: enrollBody,
    answer: enrolledResponse,
    handle: async context => ({ data: await enrollScanHost(context, context.body) }),
  }),
  route({
    method: 'GET',
    path: `${PREFIX}/scan-hosts`,
    tag: TAG,
    summary: 'Changes of scan hosts since a number',
    permissions: MATCHER,
    query: Type.Object({
      since: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
      limit: Type.Optional(Type.Integer({ minimum: 1 })),
    }),
    answer: scanHostsResponse,
    async handle({ hub, query }) {
      const limit = Math.min(query.limit ?? limits.syncPageDefault, limits.agentsPageMax)
      const page = await scanHostsFeed(hub.database.db, query.since ?? 0, limit)
      return {
        data: { scan_hosts: page.records, next_since: page.nextSince, more: page.more },
        server_time: new Date(hub.now()).toISOString(),
      }
    },
  }),
  route({
    method: 'POST',
    path: `${PREFIX}/scan-hosts/:host_id/rotate`,
    tag: TAG,
    summary: 'A new key of a scan host, signed with the old one',
    permissions: MATCHER,
    invalidCode: INVALID,
    body: rotateBody,
    answer: rotatedResponse,
    handle: async context => ({ data: await rotateKey(context, context.body) }),
  }),
  route({
    method: 'POST',
    path: `${PREFIX}/scan-hosts/:host_id/seen`,
    tag: TAG,
    summary: 'When a scan host was last seen',
    permissions: MATCHER,
    invalidCode: INVALID,
    body: seenBody,
    answer: seenResponse,
    handle: async context => ({ data: await recordHostSeen(context, context.body) }),
  }),
  route({
    method: 'POST',
    path: `${PREFIX}/heartbeat`,
    tag: TAG,
    summary: 'A matcher runs',
    permissions: MATCHER,
    invalidCode: INVALID,
    body: heartbeatBody,
    answer: heartbeatResponse,
    handle: async context => ({ data: await recordHeartbeat(context, context.body) }),
  }),
]

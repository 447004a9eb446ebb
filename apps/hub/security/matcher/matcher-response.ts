// The bodies that matchers send, where the handler looks at them itself, and the responses to them (document 3).
import { Type } from '@sinclair/typebox'
import {
  amount,
  answer,
  anyObject,
  id,
  listed,
  named,
  nullable,
  string,
  time,
  wordOf,
} from '../../platform/http/response-schema.ts'

const hex = () => Type.String({ pattern: '^[0-9a-f]{64}$', examples: ['0'.repeat(64)] })

export const eventsBody = Type.Object({
  events: Type.Array(
    Type.Object({
      event_id: hex(),
      type: wordOf(['finding.opened', 'finding.updated', 'finding.resolved', 'server.scanned']),
      company_id: id(),
      server_id: nullable(id()),
      host_id: id(),
      seq: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
      occurred_at: Type.String({ format: 'date-time', examples: ['2026-01-31T12:00:00.000Z'] }),
      payload: anyObject(),
    }),
    { minItems: 1, maxItems: 200 },
  ),
})

export const eventsResponse = answer(
  named('SecurityEventsTaken', {
    accepted: listed(string()),
    rejected: listed(
      Type.Object({
        event_id: string(),
        reason: wordOf(['unknown_server', 'unsupported_type', 'invalid_payload']),
      }),
    ),
  }),
)

export const vulnerabilitiesResponse = answer(named('VulnerabilitiesTaken', { upserted: amount() }))

export const settingsResponse = Type.Object({
  data: named('ScanSettings', {
    company_id: id(),
    version: amount(),
    enabled: Type.Boolean(),
    scan_interval_hours: amount(),
    /** Of the plan: a matcher keeps no report that comes sooner. */
    min_scan_interval_hours: amount(),
    content_scan: Type.Boolean(),
    history_days: nullable(amount()),
  }),
  server_time: time(),
})

export const enrolledResponse = answer(
  named('EnrolledScanHost', { host_id: id(), company_id: id(), server_id: nullable(id()) }),
)
export const rotatedResponse = answer(named('RotatedScanHost', { host_id: id(), public_key: string() }))
export const seenResponse = answer(named('SeenScanHost', { host_id: id(), last_seen_at: time() }))
export const heartbeatResponse = answer(named('MatcherHeartbeat', { matcher_id: id() }))

const hostRecord = Type.Unsafe<Readonly<Record<string, unknown>>>(
  named('ScanHostRecord', {
    host_id: id(),
    company_id: id(),
    state: wordOf(['active', 'revoked']),
    server_id: Type.Optional(nullable(id())),
    public_key: Type.Optional(string()),
    hostname: Type.Optional(string()),
    inactive: Type.Optional(Type.Boolean()),
    deleted: Type.Boolean(),
    version: amount(),
    sync_version: amount(),
  }),
)
export const scanHostsResponse = Type.Object({
  data: Type.Object({ scan_hosts: listed(hostRecord), next_since: amount(), more: Type.Boolean() }),
  server_time: time(),
})

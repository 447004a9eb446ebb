// Scan hosts as people see them. Keys and hashes never leave this file towards people.
import { Type } from '@sinclair/typebox'
import { desc, eq } from 'drizzle-orm'
import { servers } from '../../platform/db/schema.ts'
import { scanHosts } from '../../platform/db/schema-security.ts'
import { collection, equals, ofCompany, search } from '../../platform/http/collection.ts'
import { oneOf, uuid } from '../../platform/http/request-schema.ts'
import {
  id,
  listed,
  named,
  nullable,
  serverReference,
  string,
  texts,
  time,
} from '../../platform/http/response-schema.ts'

const STATES = ['active', 'revoked'] as const

const scanHostResponse = named('ScanHost', {
  id: id(),
  host_id: id(),
  company_id: id(),
  server_id: nullable(id()),
  server: nullable(serverReference),
  state: oneOf(STATES),
  /** True while it is over the plan's number of scan hosts. */
  inactive: Type.Boolean(),
  inactive_at: nullable(time()),
  hostname: string(),
  ip_addresses: listed(string()),
  os: texts(),
  scanner_version: nullable(string()),
  enrolled_at: time(),
  last_seen_at: nullable(time()),
  last_report_at: nullable(time()),
  revoked_at: nullable(time()),
  revoked_reason: nullable(string()),
})

export const scanHostCollection = collection({
  table: scanHosts,
  scope: ofCompany(scanHosts.companyId),
  filters: {
    state: equals(scanHosts.state, oneOf(STATES)),
    server_id: equals(scanHosts.serverId, uuid()),
    search: search(scanHosts.hostname),
  },
  select: db =>
    db
      .select({ host: scanHosts, server: { id: servers.id, name: servers.name, hostname: servers.hostname } })
      .from(scanHosts)
      .leftJoin(servers, eq(servers.id, scanHosts.serverId)),
  order: [desc(scanHosts.enrolledAt), desc(scanHosts.id)],
  pageBy: 'ids',
  response: scanHostResponse,
  present: ({ host, server }) => ({
    id: host.id,
    host_id: host.id,
    company_id: host.companyId,
    server_id: host.serverId,
    server,
    state: host.state,
    inactive: host.inactiveAt !== null,
    inactive_at: host.inactiveAt,
    hostname: host.hostname,
    ip_addresses: host.ipAddresses,
    os: host.os,
    scanner_version: host.scannerVersion,
    enrolled_at: host.enrolledAt,
    last_seen_at: host.lastSeenAt,
    last_report_at: host.lastReportAt,
    revoked_at: host.revokedAt,
    revoked_reason: host.revokedReason,
  }),
})

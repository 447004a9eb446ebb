// The deployments of a certificate as a list: where it is served, and what was seen there last.
import { Type } from '@sinclair/typebox'
import { asc, eq, sql } from 'drizzle-orm'
import { boolean, integer, pgTable, text, timestamp, uuid as uuidColumn } from 'drizzle-orm/pg-core'
import { collection, equals, ofCompany } from '../platform/http/collection.ts'
import { oneOf, uuid } from '../platform/http/request-schema.ts'
import { id, named, nullable, string, time, wordOf } from '../platform/http/response-schema.ts'
import { deploymentKinds, deploymentStates } from './deployments.ts'
import { placeText } from './endpoint.ts'

const at = (name: string) => timestamp(name, { withTimezone: true, precision: 3, mode: 'date' })
const deployments = pgTable('certificate_deployments', {
  id: uuidColumn('id').primaryKey(),
  companyId: uuidColumn('company_id').notNull(),
  certificateId: uuidColumn('certificate_id').notNull(),
  kind: text('kind').notNull(),
  targetId: uuidColumn('target_id'),
  host: text('host'),
  port: integer('port').notNull(),
  sni: text('sni'),
  madeBy: text('made_by').notNull(),
  state: text('state').notNull(),
  error: text('error'),
  fingerprint: text('fingerprint_sha256'),
  notAfter: at('not_after'),
  chainComplete: boolean('chain_complete'),
  tlsVersion: text('tls_version'),
  checkedAt: at('checked_at'),
  createdAt: at('created_at').notNull(),
})

export const deploymentResponse = named('CertificateDeployment', {
  id: id(),
  kind: wordOf(deploymentKinds),
  /** What it is on: a server, virtual server or site, by its name; for an endpoint host and port. */
  target: string(),
  target_id: nullable(id()),
  host: nullable(string()),
  port: Type.Integer(),
  sni: nullable(string()),
  state: wordOf(deploymentStates),
  error: nullable(string()),
  observed: nullable(
    named('ObservedCertificate', {
      fingerprint: string(),
      not_after: time(),
      chain_complete: Type.Boolean(),
      tls_version: string(),
    }),
  ),
  checked_at: nullable(time()),
  made_by: wordOf(['hand', 'link']),
  created_at: time(),
})

export const deploymentCollection = collection({
  table: deployments,
  scope: ofCompany(deployments.companyId),
  filters: {
    state: equals(deployments.state, oneOf(deploymentStates)),
    kind: equals(deployments.kind, oneOf(deploymentKinds)),
  },
  within: { certificate_id: equals(deployments.certificateId, uuid()) },
  select: db =>
    db
      .select({
        deployment: deployments,
        targetName: sql<string | null>`(select x.name from search_documents x where x.kind = ${deployments.kind}
          and x.resource_id = ${deployments.targetId} and x.company_id = ${deployments.companyId})`,
        address: sql<string | null>`(select coalesce(s.ip_address, s.hostname) from servers s
          where ${eq(deployments.kind, 'server')} and s.id = ${deployments.targetId} and s.deleted_at is null)`,
      })
      .from(deployments),
  order: [asc(deployments.createdAt), asc(deployments.id)],
  response: deploymentResponse,
  present: ({ deployment: row, targetName, address }) => {
    const host = row.host ?? address
    return {
      id: row.id,
      kind: row.kind,
      target: targetName ?? placeText(host ?? '?', row.port),
      target_id: row.targetId,
      host,
      port: row.port,
      sni: row.sni,
      state: row.state,
      error: row.error,
      observed:
        row.fingerprint === null || row.notAfter === null
          ? null
          : {
              fingerprint: row.fingerprint,
              not_after: row.notAfter,
              chain_complete: row.chainComplete === true,
              tls_version: row.tlsVersion ?? 'unknown',
            },
      checked_at: row.checkedAt,
      made_by: row.madeBy,
      created_at: row.createdAt,
    }
  },
})

// REST: /monitoring/collectors, for super administrators only (decision G-33).

import { Type } from '@sinclair/typebox'
import { asc, count, eq } from 'drizzle-orm'
import { collectorStatus } from '../../../core/lifecycle/agent.ts'
import { isObject } from '../../../core/unchecked.ts'
import { auditRequest, changesBetween } from '../audit/audit.ts'
import type { Hub } from '../hub-context.ts'
import { createCollector } from '../identity/accounts.ts'
import type { Executor } from '../platform/db/connect.ts'
import { collectors } from '../platform/db/schema.ts'
import { users } from '../platform/db/schema-identity.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { notFound } from '../platform/http/api-error.ts'
import { paged, pageOf, pageQuery } from '../platform/http/paging.ts'
import { isUuid, oneOf, optional, text } from '../platform/http/request-schema.ts'
import {
  amount,
  answer,
  answerPage,
  anyObject,
  collectorNote,
  id,
  named,
  nullable,
  string,
  time,
  wordOf,
} from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { reloadCollectors } from './collector-jobs.ts'

const TAG = 'Monitoring overview and settings'
const url = () => Type.String({ format: 'uri', maxLength: 512 })

type Collector = typeof collectors.$inferSelect

const present = (hub: Hub, row: Collector) => ({
  id: row.id,
  name: row.name,
  base_url: row.baseUrl,
  admin_url: row.adminUrl,
  status: collectorStatus(row.lastHeartbeatAt?.getTime() ?? null, hub.now()),
  version: row.version,
  last_heartbeat_at: row.lastHeartbeatAt,
  agent_count: row.agentCount,
  ingest_rps: row.ingestRps,
  outbox_depth: row.outboxDepth,
  settings: row.settings,
})

const collectorAnswer = named('Collector', {
  id: id(),
  name: string(),
  base_url: nullable(string()),
  admin_url: nullable(string()),
  status: wordOf(['online', 'offline', 'never']),
  version: nullable(string()),
  last_heartbeat_at: nullable(time()),
  agent_count: nullable(amount()),
  ingest_rps: nullable(Type.Number()),
  outbox_depth: nullable(amount()),
  settings: anyObject(),
})
const reloadAnswer = named('Reload', { reload: string(), accepted: Type.Boolean() })

async function find(db: Executor, id: string): Promise<Collector> {
  if (!isUuid(id)) throw notFound()
  const [row] = await db.select().from(collectors).where(eq(collectors.id, id))
  if (!row) throw notFound()
  return row
}

const subject = ({ hub, params }: RouteContext) => find(hub.database.db, params.collector ?? '')
const fields = {
  base_url: optional(url()),
  admin_url: optional(url()),
  settings: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
}

export const collectorAdminRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/monitoring/collectors',
    tag: TAG,
    summary: 'List collectors',
    superAdmin: true,
    query: Type.Object(pageQuery),
    answer: answerPage(collectorAnswer),
    async handle({ hub, query, url }) {
      const page = pageOf(query)
      const { db } = hub.database
      const [rows, totals] = await Promise.all([
        db
          .select()
          .from(collectors)
          .orderBy(asc(collectors.name), asc(collectors.id))
          .limit(page.limit)
          .offset(page.offset),
        db.select({ total: count() }).from(collectors),
      ])
      return paged(
        url,
        page,
        totals[0]?.total ?? 0,
        rows.map(row => present(hub, row)),
      )
    },
  }),
  route({
    method: 'POST',
    path: '/monitoring/collectors',
    tag: TAG,
    summary: 'Create a collector; its tokens are shown once',
    superAdmin: true,
    status: 201,
    body: Type.Object({ name: text(255), ...fields }),
    answer: Type.Object({ data: collectorAnswer, token: string(), admin_token: nullable(string()) }),
    async handle(context) {
      const { hub, body } = context
      const made = await inTransaction(hub.database.db, async tx => {
        const input = { name: body.name, baseUrl: body.base_url ?? null, adminUrl: body.admin_url ?? null }
        const account = await createCollector(hub, tx, input)
        if (body.settings)
          await tx.db.update(collectors).set({ settings: body.settings }).where(eq(collectors.id, account.id))
        await auditRequest(tx, context, 'collector.create', { type: 'collector', id: account.id, name: body.name })
        return account
      })
      const data = present(hub, await find(hub.database.db, made.id))
      return { data, token: made.token, admin_token: made.adminToken }
    },
  }),
  route({
    method: 'GET',
    path: '/monitoring/collectors/:collector',
    tag: TAG,
    summary: 'Show a collector',
    superAdmin: true,
    subject,
    answer: answer(collectorAnswer),
    handle: async ({ hub, subject }) => ({ data: present(hub, subject) }),
  }),
  route({
    method: 'PATCH',
    path: '/monitoring/collectors/:collector',
    tag: TAG,
    summary: 'Change a collector',
    superAdmin: true,
    subject,
    body: Type.Object({ name: Type.Optional(text(255)), ...fields }),
    answer: answer(collectorAnswer),
    async handle(context) {
      const { hub, body, subject: before } = context
      const after = await inTransaction(hub.database.db, async tx => {
        await tx.db
          .update(collectors)
          .set({
            name: body.name ?? before.name,
            baseUrl: body.base_url === undefined ? before.baseUrl : body.base_url,
            adminUrl: body.admin_url === undefined ? before.adminUrl : body.admin_url,
            settings: body.settings ?? before.settings,
          })
          .where(eq(collectors.id, before.id))
        const row = await find(tx.db, before.id)
        const changes = changesBetween(present(hub, before), present(hub, row))
        await auditRequest(tx, context, 'collector.update', { type: 'collector', id: row.id, name: row.name }, changes)
        return row
      })
      return { data: present(hub, after) }
    },
  }),
  route({
    method: 'DELETE',
    path: '/monitoring/collectors/:collector',
    tag: TAG,
    summary: 'Delete a collector; its token stops working',
    superAdmin: true,
    subject,
    async handle(context) {
      const { hub, subject: row } = context
      await inTransaction(hub.database.db, async tx => {
        await tx.db.delete(collectors).where(eq(collectors.id, row.id))
        if (row.serviceUserId) await tx.db.delete(users).where(eq(users.id, row.serviceUserId))
        await auditRequest(tx, context, 'collector.delete', { type: 'collector', id: row.id, name: row.name })
      })
      return undefined
    },
  }),
  route({
    method: 'GET',
    path: '/monitoring/collectors/:collector/status',
    tag: TAG,
    summary: 'What the collector says of itself',
    superAdmin: true,
    subject,
    answer: Type.Object({ data: nullable(anyObject()), collector: collectorNote }),
    async handle({ hub, subject }) {
      const target = await hub.collectors.target(subject.id)
      const answer = target ? await hub.collectors.query(target, 'collector_status', '/status') : null
      const body = answer?.status === 200 ? answer.body : null
      const data = isObject(body) && isObject(body.data) ? body.data : null
      const reason = data !== null ? null : target ? 'unavailable' : 'not_configured'
      return { data, collector: { available: data !== null, reason } }
    },
  }),
  route({
    method: 'POST',
    path: '/monitoring/collectors/:collector/reload',
    tag: TAG,
    summary: 'Have rules, silences, checks or settings pulled now',
    superAdmin: true,
    subject,
    status: 202,
    body: Type.Object({ what: oneOf(['rules', 'silences', 'checks', 'settings']) }),
    answer: answer(reloadAnswer),
    async handle({ hub, body }) {
      await inTransaction(hub.database.db, tx => reloadCollectors(hub, tx, body.what))
      return { data: { reload: body.what, accepted: true } }
    },
  }),
]

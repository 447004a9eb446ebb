// REST: /webhooks (decision G-105).

import { randomUUID } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { and, count, desc, eq } from 'drizzle-orm'
import { severities } from '../../../core/alerting/rules/rule.ts'
import { auditRequest, changesBetween } from '../audit/audit.ts'
import type { Hub } from '../hub-context.ts'
import { newWebhookSecret } from '../identity/secrets.ts'
import { addDeliveries, deliveryAnswer, deliveryPage, queuedAnswer, redeliver } from '../notifications/deliveries.ts'
import { templateTypes } from '../notifications/templates.ts'
import { mayCall } from '../notifications/webhook.ts'
import type { Executor } from '../platform/db/connect.ts'
import { notificationDeliveries, webhooks } from '../platform/db/schema-identity.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { invalidField, notFound } from '../platform/http/api-error.ts'
import { paged, pageOf, pageQuery } from '../platform/http/paging.ts'
import { boolean, isUuid, listOf, oneOf, optional, scope, text } from '../platform/http/request-schema.ts'
import {
  amount,
  answer,
  answerList,
  answerPage,
  anyObject,
  id,
  listed,
  named,
  nullable,
  string,
  time,
  wordOf,
} from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { validScope } from '../scopes/scope.ts'

const TAG = 'Webhooks'
const VIEW = ['webhooks.view']
const MANAGE = ['webhooks.manage']
const URL_MAX = 2048

export const webhookEvents = [...templateTypes, 'ping'] as const

type Webhook = typeof webhooks.$inferSelect

const present = (row: Webhook) => ({
  id: row.id,
  company_id: row.companyId,
  name: row.name,
  url: row.url,
  events: row.events,
  min_severity: row.minSeverity,
  scope: row.scope,
  enabled: row.enabled,
  failures_in_a_row: row.failuresInARow,
  disabled_reason: row.disabledReason,
  created_at: row.createdAt,
})

const webhookAnswer = named('Webhook', {
  id: id(),
  company_id: id(),
  name: string(),
  url: string(),
  events: listed(string()),
  min_severity: wordOf(severities),
  scope: anyObject(),
  enabled: Type.Boolean(),
  failures_in_a_row: amount(),
  disabled_reason: nullable(string()),
  created_at: time(),
})
/** The secret stands beside the webhook, once. */
const webhookWithSecret = Type.Object({ data: webhookAnswer, secret: string() })

async function find(db: Executor, companyId: string, id: string): Promise<Webhook> {
  if (!isUuid(id)) throw notFound()
  const [row] = await db
    .select()
    .from(webhooks)
    .where(and(eq(webhooks.companyId, companyId), eq(webhooks.id, id)))
  if (!row) throw notFound()
  return row
}

const subject = ({ hub, companyId, params }: RouteContext) => find(hub.database.db, companyId, params.webhook ?? '')
const subjectOf = (row: Webhook) => ({ type: 'webhook', id: row.id, name: row.name })

const common = {
  events: optional(listOf(oneOf(templateTypes), templateTypes.length)),
  min_severity: Type.Optional(oneOf(severities)),
  scope: Type.Optional(scope()),
  enabled: Type.Optional(boolean()),
}

/** One that is enabled begins anew: its failures are forgotten. */
const switched = (enabled: boolean): Partial<Webhook> =>
  enabled ? { enabled, failuresInARow: 0, disabledReason: null } : { enabled }

async function checkUrl(hub: Hub, url: string | undefined): Promise<void> {
  if (url !== undefined && !(await mayCall(hub, url))) throw invalidField('url', 'private_url')
}

async function change(context: RouteContext, row: Webhook, set: Partial<Webhook>, action: string): Promise<Webhook> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await tx.db.update(webhooks).set(set).where(eq(webhooks.id, row.id))
    const after = await find(tx.db, companyId, row.id)
    await auditRequest(tx, context, action, subjectOf(row), changesBetween(present(row), present(after)))
    return after
  })
}

export const webhookRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/webhooks',
    tag: TAG,
    summary: 'List webhooks',
    permissions: VIEW,
    query: Type.Object(pageQuery),
    answer: answerPage(webhookAnswer),
    async handle({ hub, companyId, query, url }) {
      const page = pageOf(query)
      const { db } = hub.database
      const where = eq(webhooks.companyId, companyId)
      const [rows, totals] = await Promise.all([
        db
          .select()
          .from(webhooks)
          .where(where)
          .orderBy(desc(webhooks.createdAt), desc(webhooks.id))
          .limit(page.limit)
          .offset(page.offset),
        db.select({ total: count() }).from(webhooks).where(where),
      ])
      return paged(url, page, totals[0]?.total ?? 0, rows.map(present))
    },
  }),
  route({
    method: 'POST',
    path: '/webhooks',
    tag: TAG,
    summary: 'Create a webhook; its secret is shown once',
    permissions: MANAGE,
    status: 201,
    body: Type.Object({ name: text(255), url: text(URL_MAX), ...common }),
    answer: webhookWithSecret,
    async handle(context) {
      const { hub, companyId, body } = context
      await checkUrl(hub, body.url)
      const secret = newWebhookSecret()
      const id = randomUUID()
      const row = await inTransaction(hub.database.db, async tx => {
        await tx.db.insert(webhooks).values({
          id,
          companyId,
          name: body.name,
          url: body.url,
          secretSealed: hub.sealer.seal(secret),
          events: body.events ?? [],
          minSeverity: body.min_severity ?? 'info',
          scope: await validScope(tx.db, companyId, body.scope ?? { all: true }),
          enabled: body.enabled ?? true,
        })
        const made = await find(tx.db, companyId, id)
        await auditRequest(tx, context, 'webhook.create', subjectOf(made))
        return made
      })
      return { data: present(row), secret }
    },
  }),
  route({
    method: 'GET',
    path: '/webhooks/events',
    tag: TAG,
    summary: 'Event types',
    permissions: VIEW,
    answer: answerList(string()),
    handle: async () => ({ data: webhookEvents }),
  }),
  route({
    method: 'GET',
    path: '/webhooks/:webhook',
    tag: TAG,
    summary: 'Show a webhook',
    permissions: VIEW,
    subject,
    answer: answer(webhookAnswer),
    handle: async ({ subject }) => ({ data: present(subject) }),
  }),
  route({
    method: 'PATCH',
    path: '/webhooks/:webhook',
    tag: TAG,
    summary: 'Change a webhook',
    permissions: MANAGE,
    subject,
    body: Type.Object({ name: Type.Optional(text(255)), url: Type.Optional(text(URL_MAX)), ...common }),
    answer: answer(webhookAnswer),
    async handle(context) {
      const { hub, companyId, body, subject: before } = context
      await checkUrl(hub, body.url)
      const set = {
        name: body.name ?? before.name,
        url: body.url ?? before.url,
        events: body.events === undefined ? before.events : (body.events ?? []),
        minSeverity: body.min_severity ?? before.minSeverity,
        scope: body.scope ? await validScope(hub.database.db, companyId, body.scope) : before.scope,
        ...(body.enabled === undefined ? {} : switched(body.enabled)),
      }
      return { data: present(await change(context, before, set, 'webhook.update')) }
    },
  }),
  route({
    method: 'DELETE',
    path: '/webhooks/:webhook',
    tag: TAG,
    summary: 'Delete a webhook',
    permissions: MANAGE,
    subject,
    async handle(context) {
      const { hub, subject: row } = context
      await inTransaction(hub.database.db, async tx => {
        await tx.db.delete(webhooks).where(eq(webhooks.id, row.id))
        await auditRequest(tx, context, 'webhook.delete', subjectOf(row))
      })
      return undefined
    },
  }),
  ...(['enable', 'disable'] as const).map(action =>
    route({
      method: 'POST',
      path: `/webhooks/:webhook/${action}`,
      tag: TAG,
      summary: action === 'enable' ? 'Enable a webhook' : 'Disable a webhook',
      permissions: MANAGE,
      subject,
      answer: answer(webhookAnswer),
      async handle(context) {
        const set = switched(action === 'enable')
        return { data: present(await change(context, context.subject, set, `webhook.${action}`)) }
      },
    }),
  ),
  route({
    method: 'POST',
    path: '/webhooks/:webhook/test',
    tag: TAG,
    summary: 'Send a ping',
    permissions: MANAGE,
    subject,
    status: 202,
    answer: answer(queuedAnswer),
    async handle({ hub, companyId, subject: row }) {
      const ids = await inTransaction(hub.database.db, tx =>
        addDeliveries(hub, tx, [
          {
            companyId,
            channel: 'webhook',
            target: row.url,
            webhookId: row.id,
            type: 'ping',
            payload: { company_id: companyId, data: { webhook_id: row.id } },
          },
        ]),
      )
      return { data: { delivery_id: ids[0] ?? null } }
    },
  }),
  route({
    method: 'POST',
    path: '/webhooks/:webhook/rotate-secret',
    tag: TAG,
    summary: 'A new secret, shown once',
    permissions: MANAGE,
    subject,
    answer: webhookWithSecret,
    async handle(context) {
      const secret = newWebhookSecret()
      const set = { secretSealed: context.hub.sealer.seal(secret) }
      return { data: present(await change(context, context.subject, set, 'webhook.rotate_secret')), secret }
    },
  }),
  route({
    method: 'GET',
    path: '/webhooks/:webhook/deliveries',
    tag: TAG,
    summary: 'Deliveries, newest first',
    permissions: VIEW,
    subject,
    query: Type.Object(pageQuery),
    answer: answerPage(deliveryAnswer),
    handle: ({ hub, query, url, subject }) =>
      deliveryPage(hub, eq(notificationDeliveries.webhookId, subject.id), url, query),
  }),
  route({
    method: 'POST',
    path: '/webhooks/:webhook/deliveries/:delivery/redeliver',
    tag: TAG,
    summary: 'Send a delivery again',
    permissions: MANAGE,
    subject,
    status: 202,
    answer: answer(queuedAnswer),
    handle: async ({ hub, params, subject }) => ({
      data: {
        delivery_id: await redeliver(hub, params.delivery, eq(notificationDeliveries.webhookId, subject.id)),
      },
    }),
  }),
]

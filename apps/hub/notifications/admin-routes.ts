// REST: /notifications/channels, templates and deliveries: what a company sets for everybody (decision G-104).

import { randomUUID } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { and, count, desc, eq } from 'drizzle-orm'
import { severities } from '../../../core/alerting/rules/rule.ts'
import { auditRequest, changesBetween } from '../audit/audit.ts'
import type { Executor } from '../platform/db/connect.ts'
import { notificationChannels, notificationDeliveries, notificationTemplates } from '../platform/db/schema-identity.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { invalidField, notFound } from '../platform/http/api-error.ts'
import { paged, pageOf, pageQuery } from '../platform/http/paging.ts'
import { boolean, email, isUuid, oneOf, scope, text } from '../platform/http/request-schema.ts'
import {
  answer,
  answerList,
  answerPage,
  anyObject,
  id,
  named,
  string,
  time,
  wordOf,
} from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { languages } from '../platform/http/texts.ts'
import { validScope } from '../scopes/scope.ts'
import { addDeliveries, deliveryAnswer, deliveryPage, findDelivery, queuedAnswer, redeliver } from './deliveries.ts'
import { defaultTemplate, fillTemplate, templateTypes } from './templates.ts'

const TAG = 'Notifications'
const VIEW = ['notifications.view']
const MANAGE = ['notifications.manage']

type Channel = typeof notificationChannels.$inferSelect

const presentChannel = (row: Channel) => ({
  id: row.id,
  company_id: row.companyId,
  name: row.name,
  type: row.type,
  address: row.address,
  min_severity: row.minSeverity,
  scope: row.scope,
  enabled: row.enabled,
  created_at: row.createdAt,
})

const channelAnswer = named('NotificationChannel', {
  id: id(),
  company_id: id(),
  name: string(),
  type: wordOf(['email']),
  address: string(),
  min_severity: wordOf(severities),
  scope: anyObject(),
  enabled: Type.Boolean(),
  created_at: time(),
})
const textAnswer = { title: string(), body: string() }
const templateAnswer = named('NotificationTemplate', {
  template: wordOf(templateTypes),
  language: wordOf(languages),
  ...textAnswer,
  is_default: Type.Boolean(),
})
const templatePreview = named('FilledTemplate', textAnswer)

async function findChannel(db: Executor, companyId: string, id: string): Promise<Channel> {
  if (!isUuid(id)) throw notFound()
  const [row] = await db
    .select()
    .from(notificationChannels)
    .where(and(eq(notificationChannels.companyId, companyId), eq(notificationChannels.id, id)))
  if (!row) throw notFound()
  return row
}

const channelSubject = ({ hub, companyId, params }: RouteContext) =>
  findChannel(hub.database.db, companyId, params.channel ?? '')
const channelFields = {
  min_severity: Type.Optional(oneOf(severities)),
  scope: Type.Optional(scope()),
  enabled: Type.Optional(boolean()),
}

const testTexts = {
  en: (name: string) => ({ title: 'Test', body: `This is a test of ${name}.` }),
  vi: (name: string) => ({ title: 'Thử', body: `Đây là thư thử của ${name}.` }),
} as const

/** Company channels are group addresses; webhooks have a group of their own, with secrets. */
const channelRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/notifications/channels',
    tag: TAG,
    summary: 'Group addresses of the company',
    permissions: VIEW,
    query: Type.Object(pageQuery),
    answer: answerPage(channelAnswer),
    async handle({ hub, companyId, query, url }) {
      const page = pageOf(query)
      const { db } = hub.database
      const where = eq(notificationChannels.companyId, companyId)
      const [rows, totals] = await Promise.all([
        db
          .select()
          .from(notificationChannels)
          .where(where)
          .orderBy(desc(notificationChannels.createdAt), desc(notificationChannels.id))
          .limit(page.limit)
          .offset(page.offset),
        db.select({ total: count() }).from(notificationChannels).where(where),
      ])
      return paged(url, page, totals[0]?.total ?? 0, rows.map(presentChannel))
    },
  }),
  route({
    method: 'POST',
    path: '/notifications/channels',
    tag: TAG,
    summary: 'Create a group address',
    permissions: MANAGE,
    status: 201,
    body: Type.Object({ name: text(255), type: Type.Optional(oneOf(['email'])), address: email(), ...channelFields }),
    answer: answer(channelAnswer),
    async handle(context) {
      const { hub, companyId, body } = context
      const id = randomUUID()
      const row = await inTransaction(hub.database.db, async tx => {
        await tx.db.insert(notificationChannels).values({
          id,
          companyId,
          name: body.name,
          type: 'email',
          address: body.address,
          minSeverity: body.min_severity ?? 'info',
          scope: await validScope(tx.db, companyId, body.scope ?? { all: true }),
          enabled: body.enabled ?? true,
        })
        await auditRequest(tx, context, 'channel.create', { type: 'channel', id, name: body.name })
        return findChannel(tx.db, companyId, id)
      })
      return { data: presentChannel(row) }
    },
  }),
  route({
    method: 'GET',
    path: '/notifications/channels/:channel',
    tag: TAG,
    summary: 'Show a group address',
    permissions: VIEW,
    subject: channelSubject,
    answer: answer(channelAnswer),
    handle: async ({ subject }) => ({ data: presentChannel(subject) }),
  }),
  route({
    method: 'PATCH',
    path: '/notifications/channels/:channel',
    tag: TAG,
    summary: 'Change a group address',
    permissions: MANAGE,
    subject: channelSubject,
    body: Type.Object({ name: Type.Optional(text(255)), address: Type.Optional(email()), ...channelFields }),
    answer: answer(channelAnswer),
    async handle(context) {
      const { hub, companyId, body, subject: before } = context
      const row = await inTransaction(hub.database.db, async tx => {
        await tx.db
          .update(notificationChannels)
          .set({
            name: body.name ?? before.name,
            address: body.address ?? before.address,
            minSeverity: body.min_severity ?? before.minSeverity,
            scope: body.scope ? await validScope(tx.db, companyId, body.scope) : before.scope,
            enabled: body.enabled ?? before.enabled,
          })
          .where(eq(notificationChannels.id, before.id))
        const after = await findChannel(tx.db, companyId, before.id)
        const changes = changesBetween(presentChannel(before), presentChannel(after))
        await auditRequest(
          tx,
          context,
          'channel.update',
          { type: 'channel', id: before.id, name: before.name },
          changes,
        )
        return after
      })
      return { data: presentChannel(row) }
    },
  }),
  route({
    method: 'DELETE',
    path: '/notifications/channels/:channel',
    tag: TAG,
    summary: 'Delete a group address',
    permissions: MANAGE,
    subject: channelSubject,
    async handle(context) {
      const { hub, subject: row } = context
      await inTransaction(hub.database.db, async tx => {
        await tx.db.delete(notificationChannels).where(eq(notificationChannels.id, row.id))
        await auditRequest(tx, context, 'channel.delete', { type: 'channel', id: row.id, name: row.name })
      })
      return undefined
    },
  }),
  route({
    method: 'POST',
    path: '/notifications/channels/:channel/test',
    tag: TAG,
    summary: 'Send a test',
    permissions: MANAGE,
    subject: channelSubject,
    status: 202,
    answer: answer(queuedAnswer),
    async handle({ hub, companyId, language, subject: row }) {
      const payload = testTexts[language](row.name)
      const ids = await inTransaction(hub.database.db, tx =>
        addDeliveries(hub, tx, [
          { companyId, channel: 'email', target: row.address, webhookId: null, type: 'ping', payload },
        ]),
      )
      return { data: { delivery_id: ids[0] ?? null } }
    },
  }),
]

const isTemplate = (name: string | undefined): name is (typeof templateTypes)[number] =>
  templateTypes.some(type => type === name)

function templateOf({ params }: RouteContext): (typeof templateTypes)[number] {
  if (!isTemplate(params.template)) throw notFound()
  return params.template
}

const sample = (nowMs: number) => ({
  id: '00000000-0000-4000-8000-000000000000',
  server: { name: 'web-1' },
  rule: { name: 'High CPU' },
  series_key: 'cpu_usage_percent',
  severity: 'warning',
  state: 'open',
  last_value: 93.5,
  threshold: 90,
  opened_at: new Date(nowMs - 600_000),
  resolved_at: null,
  suppressed: false,
})

const templateBody = Type.Object({ language: oneOf(languages), title: text(255), body: text(4000) })

const templateParameter = { template: oneOf(templateTypes) }

const templateRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/notifications/templates',
    tag: TAG,
    summary: 'Texts by event type and language',
    permissions: VIEW,
    answer: answerList(templateAnswer),
    async handle({ hub, companyId }) {
      const rows = await hub.database.db
        .select()
        .from(notificationTemplates)
        .where(eq(notificationTemplates.companyId, companyId))
      const own = new Map(rows.map(row => [`${row.template} ${row.language}`, row]))
      const data = templateTypes.flatMap(template =>
        languages.map(language => {
          const row = own.get(`${template} ${language}`)
          const { title, body } = row ?? defaultTemplate(template, language)
          return { template, language, title, body, is_default: row === undefined }
        }),
      )
      return { data }
    },
  }),
  route({
    method: 'PUT',
    path: '/notifications/templates/:template',
    pathParameters: templateParameter,
    tag: TAG,
    summary: 'Change a text',
    permissions: MANAGE,
    subject: async context => templateOf(context),
    body: templateBody,
    answer: answer(templateAnswer),
    async handle(context) {
      const { hub, companyId, body, subject: template } = context
      await inTransaction(hub.database.db, async tx => {
        const { title, body: own, language } = body
        await tx.db
          .insert(notificationTemplates)
          .values({ companyId, template, language, title, body: own })
          .onConflictDoUpdate({
            target: [notificationTemplates.companyId, notificationTemplates.template, notificationTemplates.language],
            set: { title, body: own },
          })
        await auditRequest(tx, context, 'template.update', { type: 'template', id: template, name: template })
      })
      return { data: { template, ...body, is_default: false } }
    },
  }),
  route({
    method: 'DELETE',
    path: '/notifications/templates/:template',
    pathParameters: templateParameter,
    tag: TAG,
    summary: 'Back to the default texts',
    permissions: MANAGE,
    subject: async context => templateOf(context),
    async handle(context) {
      const { hub, companyId, subject: template } = context
      await inTransaction(hub.database.db, async tx => {
        await tx.db
          .delete(notificationTemplates)
          .where(and(eq(notificationTemplates.companyId, companyId), eq(notificationTemplates.template, template)))
        await auditRequest(tx, context, 'template.reset', { type: 'template', id: template, name: template })
      })
      return undefined
    },
  }),
  route({
    method: 'POST',
    path: '/notifications/templates/:template/preview',
    pathParameters: templateParameter,
    tag: TAG,
    summary: 'Fill a text with a sample alert',
    permissions: MANAGE,
    subject: async context => templateOf(context),
    body: templateBody,
    answer: answer(templatePreview),
    async handle({ hub, body }) {
      const fill = (source: string) => fillTemplate(source, sample(hub.now()), hub.config.public_url, hub.now())
      return { data: { title: fill(body.title), body: fill(body.body) } }
    },
  }),
]

const deliveryRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/notifications/deliveries',
    tag: TAG,
    summary: 'Deliveries, newest first',
    permissions: VIEW,
    query: Type.Object({ state: Type.Optional(oneOf(['waiting', 'delivered', 'failed'])), ...pageQuery }),
    answer: answerPage(deliveryAnswer),
    handle: ({ hub, companyId, query, url }) =>
      deliveryPage(
        hub,
        and(
          eq(notificationDeliveries.companyId, companyId),
          query.state ? eq(notificationDeliveries.state, query.state) : undefined,
        ),
        url,
        query,
      ),
  }),
  route({
    method: 'POST',
    path: '/notifications/deliveries/:delivery/retry',
    tag: TAG,
    summary: 'Send a delivery again',
    permissions: MANAGE,
    status: 202,
    answer: answer(queuedAnswer),
    async handle({ hub, companyId, params }) {
      const ofCompany = eq(notificationDeliveries.companyId, companyId)
      const row = await findDelivery(hub.database.db, params.delivery, ofCompany)
      if (row.state === 'delivered') throw invalidField('state', 'state_refused', { state: row.state })
      return { data: { delivery_id: await redeliver(hub, row.id, ofCompany) } }
    },
  }),
]

export const notificationAdminRoutes: readonly Route[] = [...channelRoutes, ...templateRoutes, ...deliveryRoutes]

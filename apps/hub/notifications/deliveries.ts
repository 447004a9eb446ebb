// Deliveries by webhook and e-mail: which messages of an event go where. Each delivery is a row that shows its outcome
// and a job that attempts it; what becomes of an attempt: delivery-outcome.ts.
import { randomUUID } from 'node:crypto'
import { and, desc, eq, sql } from 'drizzle-orm'
import type { Severity } from '../../../core/alerting/rules/rule.ts'
import type { NotifyType } from '../../../core/lifecycle/alert.ts'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import { notificationChannels, notificationDeliveries, webhooks } from '../platform/db/schema-identity.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { collection, equals, ofCompany, ofParent } from '../platform/http/collection.ts'
import { oneOf, uuid } from '../platform/http/request-schema.ts'
import { amount, anyObject, id, named, nullable, string, time, wordOf } from '../platform/http/response-schema.ts'
import { type Recipient, reaches, recipientsOf } from './recipients.ts'
import { loadTexts, type NotificationLanguage, renderText, type ShownAlert, type TextBook } from './templates.ts'

/** The attributes of a server by which scopes select. */
export type Attributes = {
  readonly id: string
  readonly tags: readonly string[]
  readonly environment: string | null
  readonly role: string | null
  readonly datacenter: string | null
}

/** The channels of a company: its users, their texts, its webhooks and group addresses. */
export type ChannelPreferences = {
  readonly recipients: readonly Recipient[]
  readonly texts: TextBook
  readonly hooks: readonly (typeof webhooks.$inferSelect)[]
  readonly channels: readonly (typeof notificationChannels.$inferSelect)[]
}

/** The users are those that hold the permission; nobody for null. */
export async function loadChannelPreferences(
  db: Executor,
  companyId: string,
  permission: string | null = 'monitoring.view',
): Promise<ChannelPreferences> {
  const [recipients, texts, hooks, channels] = await Promise.all([
    permission === null ? [] : recipientsOf(db, companyId, permission),
    loadTexts(db, companyId),
    db
      .select()
      .from(webhooks)
      .where(and(eq(webhooks.companyId, companyId), eq(webhooks.enabled, true))),
    db
      .select()
      .from(notificationChannels)
      .where(and(eq(notificationChannels.companyId, companyId), eq(notificationChannels.enabled, true))),
  ])
  return { recipients, texts, hooks, channels }
}

export type NewDelivery = {
  readonly companyId: string
  readonly channel: 'webhook' | 'email'
  readonly target: string
  readonly webhookId: string | null
  readonly type: string
  readonly payload: Readonly<Record<string, unknown>>
  /** The alert that it is about; missing: it is about something else. */
  readonly alertId?: string
}

/**
 * In the payload of a message to an address that may have to be confirmed: the language of the request to confirm
 * (mail-address.ts).
 */
export const toConfirm = (language: NotificationLanguage) => ({ to_confirm: language })

/** The job that attempts a delivery. */
export const jobOf = (row: { id: string; channel: string; webhookId: string | null }) => ({
  queue: row.channel === 'webhook' ? ('notifications.webhook' as const) : ('notifications.email' as const),
  payload: { delivery_id: row.id },
  ...(row.webhookId === null ? {} : { group: row.webhookId }),
})

/** Writes deliveries and the jobs that attempt them. Returns their ids. */
export async function addDeliveries(hub: Hub, tx: Tx, deliveries: readonly NewDelivery[]): Promise<string[]> {
  if (deliveries.length === 0) return []
  const rows = deliveries.map(delivery => ({ id: randomUUID(), ...delivery }))
  const records = rows.map(({ companyId, webhookId, alertId, ...row }) => ({
    ...row,
    company_id: companyId,
    webhook_id: webhookId,
    alert_id: alertId ?? null,
  }))
  await tx.db.execute(sql`
    insert into notification_deliveries (id, company_id, channel, target, webhook_id, type, payload, alert_id)
    select x.id, x.company_id, x.channel, x.target, x.webhook_id, x.type, x.payload, x.alert_id
    from jsonb_to_recordset(${JSON.stringify(records)}::jsonb) as x (id uuid, company_id uuid, channel text,
      target text, webhook_id uuid, type text, payload jsonb, alert_id uuid)`)
  hub.jobs.enqueue(tx, rows.map(jobOf))
  return rows.map(row => row.id)
}

/** True when the scope of a webhook or a group address covers the server. */
export function covers(scope: Readonly<Record<string, unknown>>, server: Attributes): boolean {
  const has = (list: unknown, value: string | null) => Array.isArray(list) && value !== null && list.includes(value)
  return (
    scope.all === true ||
    has(scope.server_ids, server.id) ||
    server.tags.some(tag => has(scope.tags, tag)) ||
    has(scope.environments, server.environment) ||
    has(scope.roles, server.role) ||
    has(scope.datacenters, server.datacenter)
  )
}

type ToDeliver = {
  readonly type: NotifyType
  readonly companyId: string
  readonly severity: Severity
  readonly shown: ShownAlert
  /** The alert in the shape that webhooks receive; null when the company has no webhook. */
  readonly forWebhooks: Readonly<Record<string, unknown>> | null
  readonly server: Attributes
}

/** The deliveries of an event: to webhooks, and by mail to group addresses and users. */
export function deliveriesOf(hub: Hub, voices: ChannelPreferences, told: ToDeliver): NewDelivery[] {
  const { type, companyId, severity, shown } = told
  const base = { companyId, type, webhookId: null, alertId: shown.id }
  const hooks = told.forWebhooks ? voices.hooks : []
  const deliveries: NewDelivery[] = hooks
    .filter(hook => hook.events.length === 0 || hook.events.includes(type))
    .filter(hook => reaches(severity, hook.minSeverity) && covers(hook.scope, told.server))
    .map(hook => ({
      ...base,
      channel: 'webhook',
      target: hook.url,
      webhookId: hook.id,
      payload: { company_id: companyId, data: { alert: told.forWebhooks } },
    }))
  if (!hub.config['smtp.url']) return deliveries
  const mail = (target: string, language: NotificationLanguage, isUnconfirmed: boolean): NewDelivery => ({
    ...base,
    channel: 'email',
    target,
    payload: { ...renderText(hub, voices.texts, type, language, shown), ...(isUnconfirmed ? toConfirm(language) : {}) },
  })
  // A mailbox gets one message about an event, even when it is both a group address and a user's own; the user's is
  // kept, since it has the user's language.
  const mails = new Map<string, NewDelivery>()
  for (const channel of voices.channels)
    if (channel.type === 'email' && reaches(severity, channel.minSeverity) && covers(channel.scope, told.server))
      mails.set(channel.address.toLowerCase(), mail(channel.address, 'en', true))
  for (const person of voices.recipients)
    if (reaches(severity, person.emailFrom))
      mails.set(person.email.toLowerCase(), mail(person.email, person.language, person.isUnconfirmed))
  return [...deliveries, ...mails.values()]
}

export type Delivery = typeof notificationDeliveries.$inferSelect

const deliveryStates = ['waiting', 'delivered', 'failed'] as const

const deliveryResponse = named('Delivery', {
  id: id(),
  channel: string(),
  target: string(),
  webhook_id: nullable(id()),
  type: string(),
  state: wordOf(deliveryStates),
  tries: amount(),
  response_code: nullable(amount()),
  last_error: nullable(string()),
  payload: anyObject(),
  created_at: time(),
  finished_at: nullable(time()),
})
export const queuedResponse = named('QueuedDelivery', { delivery_id: nullable(id()) })

const shown = {
  table: notificationDeliveries,
  select: (db: Executor) => db.select().from(notificationDeliveries),
  order: [desc(notificationDeliveries.position)],
  pageBy: 'ids' as const,
  response: deliveryResponse,
  present: (row: Delivery) => ({
    id: row.id,
    channel: row.channel,
    target: row.target,
    webhook_id: row.webhookId,
    type: row.type,
    state: row.state,
    tries: row.tries,
    response_code: row.responseCode,
    last_error: row.lastError,
    payload: row.payload,
    created_at: row.createdAt,
    finished_at: row.finishedAt,
  }),
}

/** The deliveries of a company, newest first. */
export const deliveryCollection = collection({
  ...shown,
  scope: ofCompany(notificationDeliveries.companyId),
  filters: { state: equals(notificationDeliveries.state, oneOf(deliveryStates)) },
})

/** Those of one webhook. */
export const webhookDeliveries = collection({
  ...shown,
  scope: ofParent(),
  within: { webhook_id: equals(notificationDeliveries.webhookId, uuid()) },
})

// Deliveries by webhook and e-mail: each is a row that shows its outcome and a job that attempts it. Who gets one:
// choose-channels.ts, one-message-a-mailbox.ts; what becomes of an attempt: delivery-outcome.ts.
import { randomUUID } from 'node:crypto'
import { and, desc, eq, sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import { notificationChannels, notificationDeliveries, webhooks } from '../platform/db/schema-identity.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { type Asker, collection, equals, ofCompany, ofParent } from '../platform/http/collection.ts'
import { oneOf, uuid } from '../platform/http/request-schema.ts'
import { amount, anyObject, id, named, nullable, string, time, wordOf } from '../platform/http/response-schema.ts'
import { type Attributes, type ToTell, webhooksOf } from './choose-channels.ts'
import { mailboxesOf } from './one-message-a-mailbox.ts'
import { type Recipient, recipientsOf } from './recipients.ts'
import { loadTexts, type NotificationLanguage, type TextBook } from './templates.ts'

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
 * (unconfirmed-addresses.ts).
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

/** What a webhook receives of one event: `data` as it is sent. */
export type WebhookItem = {
  readonly servers: readonly Attributes[]
  readonly data: Readonly<Record<string, unknown>>
}

type ToDeliver = ToTell & {
  /** What webhooks receive, one by one. */
  readonly items: readonly WebhookItem[]
  readonly textIn: (language: NotificationLanguage) => { readonly title: string; readonly body: string }
  /** The alert that it is about; missing: it is about something else. */
  readonly alertId?: string
}

/** The deliveries of an event: to webhooks, and by mail to group addresses and users. */
export function deliveriesOf(
  hub: Hub,
  companyId: string,
  voices: ChannelPreferences,
  toDeliver: ToDeliver,
): NewDelivery[] {
  const { type, alertId, items, textIn } = toDeliver
  const base = { companyId, type, ...(alertId === undefined ? {} : { alertId }) }
  const deliveries: NewDelivery[] = webhooksOf(toDeliver, voices.hooks, items).flatMap(({ hook, items: selected }) =>
    selected.map(({ data }) => ({
      ...base,
      channel: 'webhook',
      target: hook.url,
      webhookId: hook.id,
      payload: { company_id: companyId, data },
    })),
  )
  if (!hub.config['smtp.url']) return deliveries
  for (const { address, language, isUnconfirmed } of mailboxesOf(toDeliver, voices.channels))
    deliveries.push({
      ...base,
      channel: 'email',
      target: address,
      webhookId: null,
      payload: { ...textIn(language), ...(isUnconfirmed ? toConfirm(language) : {}) },
    })
  return deliveries
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

/**
 * Where a delivery goes, as a caller is shown it. The address of a webhook may be what a receiver knows the hub by, so
 * that without the right to see webhooks only its origin is told.
 */
export function shownTarget({ channel, target }: { channel: string; target: string }, maySeeWebhooks: boolean): string {
  if (channel !== 'webhook' || maySeeWebhooks) return target
  return URL.canParse(target) ? new URL(target).origin : ''
}

const shown = {
  table: notificationDeliveries,
  select: (db: Executor) => db.select().from(notificationDeliveries),
  order: [desc(notificationDeliveries.position)],
  pageBy: 'ids' as const,
  response: deliveryResponse,
  present: (row: Delivery, { caller }: Asker) => ({
    id: row.id,
    channel: row.channel,
    target: shownTarget(row, caller.permissions.has('webhooks.view')),
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

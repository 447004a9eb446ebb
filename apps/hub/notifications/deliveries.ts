// Deliveries outside the hub: webhooks (signed, decision G-105) and e-mail. Each is a row that shows what became of it, and
// a job that tries it again.

import { createHmac, randomUUID } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { and, eq, sql } from 'drizzle-orm'
import nodemailer from 'nodemailer'
import type { Severity } from '../../../core/alerting/rule.ts'
import type { NotifyType } from '../../../core/lifecycle/alert.ts'
import { notificationChannels, notificationDeliveries, webhooks } from '../db/schema-identity.ts'
import type { Tx } from '../db/transaction.ts'
import { isPrivateAddress } from '../http/addresses.ts'
import { amount, anyObject, id, named, nullable, string, time, wordOf } from '../http/answer.ts'
import type { Hub } from '../hub-context.ts'
import { type JobPayload, PermanentJobFailure } from '../jobs/jobs.ts'
import { type Recipient, reaches, recipientsOf } from './recipients.ts'
import { loadTexts, type NotificationLanguage, renderText, type ShownAlert, type TextBook } from './templates.ts'

const WEBHOOK_WAITS_SECONDS = [10, 30, 120, 600, 3600]
const EMAIL_WAITS_SECONDS = [10, 30, 60, 300]
const EMAIL_TIMEOUT_MS = 15_000
const FAILURES_TO_DISABLE = 50

type Attributes = {
  readonly id: string
  readonly tags: readonly string[]
  readonly environment: string | null
  readonly role: string | null
  readonly datacenter: string | null
}

/** What a company has to tell with: its people, their texts, its webhooks and group addresses. */
export type Voices = {
  readonly recipients: readonly Recipient[]
  readonly texts: TextBook
  readonly hooks: readonly (typeof webhooks.$inferSelect)[]
  readonly channels: readonly (typeof notificationChannels.$inferSelect)[]
}

export async function loadVoices(hub: Hub, companyId: string): Promise<Voices> {
  const { db } = hub.database
  const [recipients, texts, hooks, channels] = await Promise.all([
    recipientsOf(hub, companyId),
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
}

/** Writes deliveries and the jobs that try them. Returns their ids. */
export async function addDeliveries(hub: Hub, tx: Tx, deliveries: readonly NewDelivery[]): Promise<string[]> {
  if (deliveries.length === 0) return []
  const rows = deliveries.map(delivery => ({ id: randomUUID(), ...delivery }))
  await tx.db.insert(notificationDeliveries).values(rows)
  await hub.jobs.enqueue(
    tx,
    rows.map(row => ({ queue: `notifications.${row.channel}`, payload: { delivery_id: row.id } })),
  )
  return rows.map(row => row.id)
}

/** True when the scope of a group address covers the machine. */
function covers(scope: Readonly<Record<string, unknown>>, server: Attributes): boolean {
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

export type ToDeliver = {
  readonly type: NotifyType
  readonly companyId: string
  readonly severity: Severity
  readonly shown: ShownAlert & Readonly<Record<string, unknown>>
  readonly server: Attributes
}

/** What of an event goes out of the hub: to webhooks, and by mail to group addresses and people. */
export function deliveriesOf(hub: Hub, voices: Voices, told: ToDeliver): NewDelivery[] {
  const { type, companyId, severity, shown } = told
  const base = { companyId, type, webhookId: null }
  const deliveries: NewDelivery[] = voices.hooks
    .filter(hook => (hook.events.length === 0 || hook.events.includes(type)) && reaches(severity, hook.minSeverity))
    .map(hook => ({
      ...base,
      channel: 'webhook',
      target: hook.url,
      webhookId: hook.id,
      payload: { company_id: companyId, data: { alert: shown } },
    }))
  if (!hub.config['smtp.url']) return deliveries
  const mail = (target: string, language: NotificationLanguage): NewDelivery => ({
    ...base,
    channel: 'email',
    target,
    payload: renderText(hub, voices.texts, type, language, shown),
  })
  for (const channel of voices.channels)
    if (channel.type === 'email' && reaches(severity, channel.minSeverity) && covers(channel.scope, told.server))
      deliveries.push(mail(channel.address, 'en'))
  for (const person of voices.recipients)
    if (reaches(severity, person.emailFrom)) deliveries.push(mail(person.email, person.language))
  return deliveries
}

/** Whether a webhook may go to an address: https and public, unless the configuration allows private ones. */
export async function mayCall(hub: Hub, address: string): Promise<boolean> {
  const url = URL.parse(address)
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:') || url.username || url.password) return false
  if (hub.config['webhooks.allow_private']) return true
  if (url.protocol !== 'https:') return false
  try {
    const found = await lookup(url.hostname.replace(/^\[|\]$/g, ''), { all: true })
    return found.length > 0 && found.every(item => !isPrivateAddress(item.address))
  } catch {
    return false
  }
}

/** The signature header of a webhook body at a time. */
export const webhookSignature = (secret: string, timestampSeconds: number, body: string): string =>
  `sha256=${createHmac('sha256', secret).update(`${timestampSeconds}.${body}`).digest('hex')}`

type Delivery = typeof notificationDeliveries.$inferSelect

export const deliveryAnswer = named('Delivery', {
  id: id(),
  channel: string(),
  target: string(),
  webhook_id: nullable(id()),
  type: string(),
  state: wordOf(['waiting', 'delivered', 'failed']),
  tries: amount(),
  response_code: nullable(amount()),
  last_error: nullable(string()),
  payload: anyObject(),
  created_at: time(),
  finished_at: nullable(time()),
})
export const queuedAnswer = named('QueuedDelivery', { delivery_id: nullable(id()) })

export const presentDelivery = (row: typeof notificationDeliveries.$inferSelect) => ({
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
})

async function loadDelivery(hub: Hub, payload: JobPayload): Promise<Delivery> {
  const id = String(payload.delivery_id)
  const { db } = hub.database
  const [row] = await db.select().from(notificationDeliveries).where(eq(notificationDeliveries.id, id))
  if (!row) throw new PermanentJobFailure('the delivery is gone')
  return row
}

async function record(hub: Hub, delivery: Delivery, code: number | null, error: string | null): Promise<void> {
  const isDelivered = error === null
  hub.metrics.notifications.inc({ channel: delivery.channel, result: isDelivered ? 'delivered' : 'error' })
  await hub.database.db.execute(sql`
    update notification_deliveries set tries = tries + 1, response_code = ${code}, last_error = ${error},
      state = ${isDelivered ? 'delivered' : 'waiting'}, finished_at = case when ${isDelivered} then now() end
    where id = ${delivery.id}`)
  if (delivery.webhookId === null) return
  await hub.database.db.execute(sql`
    update webhooks set failures_in_a_row = case when ${isDelivered} then 0 else failures_in_a_row + 1 end,
      enabled = enabled and (${isDelivered} or failures_in_a_row + 1 < ${FAILURES_TO_DISABLE}),
      disabled_reason = case when not ${isDelivered} and failures_in_a_row + 1 >= ${FAILURES_TO_DISABLE}
        then 'too many failed deliveries' else disabled_reason end
    where id = ${delivery.webhookId}`)
}

async function deliverWebhook(hub: Hub, payload: JobPayload): Promise<void> {
  const delivery = await loadDelivery(hub, payload)
  const [hook] = delivery.webhookId
    ? await hub.database.db.select().from(webhooks).where(eq(webhooks.id, delivery.webhookId))
    : []
  if (!hook) throw new PermanentJobFailure('the webhook is gone')
  const secret = hub.sealer.open(hook.secretSealed)
  if (secret === null) throw new PermanentJobFailure("the webhook's secret cannot be opened")
  if (!(await mayCall(hub, hook.url))) {
    await record(hub, delivery, null, 'the address is not allowed')
    throw new PermanentJobFailure('the address of the webhook is not allowed')
  }
  const body = JSON.stringify({
    id: delivery.id,
    type: delivery.type,
    created_at: delivery.createdAt,
    ...delivery.payload,
  })
  const timestamp = Math.floor(hub.now() / 1000)
  let code: number | null = null
  let error: string | null = null
  try {
    const response = await fetch(hook.url, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        'User-Agent': 'svc-hub',
        'X-Hub-Event': delivery.type,
        'X-Hub-Delivery': delivery.id,
        'X-Hub-Timestamp': String(timestamp),
        'X-Hub-Signature': webhookSignature(secret, timestamp, body),
      },
      redirect: 'manual',
      signal: AbortSignal.timeout(hub.config['webhooks.timeout']),
      body,
    })
    await response.body?.cancel()
    code = response.status
    if (response.status < 200 || response.status > 299) error = `answered ${response.status}`
  } catch {
    error = 'no answer'
  }
  await record(hub, delivery, code, error)
  if (error !== null) throw new Error(`webhook: ${error}`)
}

async function deliverEmail(hub: Hub, payload: JobPayload): Promise<void> {
  const delivery = await loadDelivery(hub, payload)
  const url = hub.config['smtp.url']
  if (!url) throw new PermanentJobFailure('smtp.url is not set')
  const transport = nodemailer.createTransport({
    url,
    connectionTimeout: EMAIL_TIMEOUT_MS,
    greetingTimeout: EMAIL_TIMEOUT_MS,
    socketTimeout: EMAIL_TIMEOUT_MS,
  })
  try {
    await transport.sendMail({
      from: hub.config['mail.from'] ?? 'hub@localhost',
      to: delivery.target,
      subject: String(delivery.payload.title ?? delivery.type),
      text: String(delivery.payload.body ?? ''),
    })
  } catch (cause) {
    await record(hub, delivery, null, 'the mail server refused')
    throw new Error('e-mail: the mail server refused or did not answer', { cause })
  } finally {
    transport.close()
  }
  await record(hub, delivery, null, null)
}

async function giveUp(hub: Hub, payload: JobPayload): Promise<void> {
  await hub.database.db.execute(sql`
    update notification_deliveries set state = 'failed', finished_at = now() where id = ${String(payload.delivery_id)}`)
}

export function registerDeliveryJobs(hub: Hub): void {
  const onFailed = (payload: JobPayload) => giveUp(hub, payload)
  hub.jobs.register({
    name: 'notifications.webhook',
    waitsSeconds: WEBHOOK_WAITS_SECONDS,
    handle: payload => deliverWebhook(hub, payload),
    onFailed,
  })
  hub.jobs.register({
    name: 'notifications.email',
    waitsSeconds: EMAIL_WAITS_SECONDS,
    handle: payload => deliverEmail(hub, payload),
    onFailed,
  })
}

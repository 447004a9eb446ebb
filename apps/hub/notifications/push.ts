// Push to devices of people (decision R-051): a delivery a device, each tried on its own, and what the answer of the
// push service means for the device. Whether it is sent after all: push-still-wanted.ts; what it says: push-message.ts.
import { createHash, randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import type { Severity } from '../../../core/alerting/rules/rule.ts'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import { type Tx, uuidList } from '../platform/db/transaction.ts'
import { type JobPayload, PermanentJobFailure } from '../platform/jobs/jobs.ts'
import { callAddress } from '../platform/outbound-guard.ts'
import { wayOutOf } from '../way-out/forward-proxy.ts'
import { DEFAULT_LEVELS } from './default-levels.ts'
import { type AppPlatform, postToApp } from './fcm-and-apns.ts'
import { messageOf } from './push-message.ts'
import { loadWaiting, type PushPayload, reasonToDrop, type WaitingPush } from './push-still-wanted.ts'
import type { NotificationLanguage } from './templates.ts'
import { encryptPush, newPushKeys, type PushKeys, proofFor, type Subscription } from './web-push.ts'
import { destinationOf } from './webhook.ts'

const TTL_SECONDS = 3600
const TOPIC_CHARS = 32
const USUAL_SUBJECT = 'mailto:hub@localhost'

type PushTarget = {
  readonly deviceId: string
  readonly userId: string
  readonly language: NotificationLanguage
  readonly from: string
}

/** The enabled devices of people, and from which severity on each is pushed to. */
export async function pushTargets(db: Executor, userIds: readonly string[]): Promise<PushTarget[]> {
  const rows = await db.execute<{
    id: string
    user_id: string
    language: NotificationLanguage
    level: string | null
  }>(sql`
    select d.id, d.user_id, d.language, p.min_severity as level from mobile_devices d
      left join notification_preferences p on p.user_id = d.user_id and p.channel = 'push'
    where d.user_id = any(${uuidList(userIds)}::uuid[]) and d.enabled`)
  return rows.map(row => ({
    deviceId: row.id,
    userId: row.user_id,
    language: row.language,
    from: row.level ?? DEFAULT_LEVELS.push,
  }))
}

export type NewPush = {
  readonly deviceId: string
  readonly companyId: string
  readonly topic: string
  readonly type: string
  readonly severity: Severity
  readonly payload: PushPayload
}

/** Writes deliveries and the jobs that attempt them. Returns their ids. */
export async function addPushes(hub: Hub, tx: Tx, pushes: readonly NewPush[]): Promise<string[]> {
  if (pushes.length === 0) return []
  const rows = pushes.map(push => ({ ...push, id: randomUUID() }))
  const records = rows.map(({ deviceId, companyId, ...row }) => ({
    ...row,
    device_id: deviceId,
    company_id: companyId,
  }))
  await tx.db.execute(sql`
    insert into push_deliveries (id, device_id, company_id, topic, type, severity, payload)
    select x.id, x.device_id, x.company_id, x.topic, x.type, x.severity, x.payload
    from jsonb_to_recordset(${JSON.stringify(records)}::jsonb) as x (id uuid, device_id uuid, company_id uuid, topic text,
      type text, severity text, payload jsonb)`)
  hub.jobs.enqueue(
    tx,
    rows.map(row => ({ queue: 'notifications.push', payload: { push_id: row.id }, group: row.deviceId })),
  )
  return rows.map(row => row.id)
}

/** The keys by which push services know this hub: made once, and kept sealed. */
export async function pushKeys(hub: Hub): Promise<PushKeys> {
  const { db } = hub.database
  const read = () =>
    db.execute<{ public_key: string; sealed: string }>(
      sql`select public_key, private_key_sealed as sealed from push_keys`,
    )
  let [row] = await read()
  if (!row) {
    const made = newPushKeys()
    await db.execute(sql`
      insert into push_keys (public_key, private_key_sealed) values (${made.publicKey}, ${hub.sealer.seal(made.privateKey)})
      on conflict do nothing`)
    ;[row] = await read()
  }
  const privateKey = row ? hub.sealer.open(row.sealed) : null
  if (!row || privateKey === null)
    throw new PermanentJobFailure('the key of push services was sealed with a key that is gone')
  return { publicKey: row.public_key, privateKey }
}

/** A later message about the same thing replaces an earlier one. */
const topicOf = ({ topic }: WaitingPush): string =>
  createHash('sha256').update(topic).digest('base64url').slice(0, TOPIC_CHARS)

const toApp = async (hub: Hub, row: WaitingPush, platform: AppPlatform, token: string) =>
  postToApp(hub, platform, {
    companyId: row.company_id,
    token,
    message: JSON.parse(String(await messageOf(hub, row))),
    topic: topicOf(row),
    isUrgent: row.severity === 'critical',
    ttlSeconds: TTL_SECONDS,
  })

/** Posts a message to the push service of a device. Returns its status. */
async function post(hub: Hub, row: WaitingPush, kept: string): Promise<number | 'not_allowed'> {
  // What was sealed was held to this form.
  const subscription = JSON.parse(kept) as Subscription
  const destination = await destinationOf(hub, subscription.endpoint)
  const [address] = destination?.addresses ?? []
  if (!destination || address === undefined) return 'not_allowed'
  const keys = await pushKeys(hub)
  const response = await callAddress(destination.url, address, {
    method: 'POST',
    headers: {
      Authorization: proofFor(destination.url, keys, hub.state.value('push.subject') ?? USUAL_SUBJECT, hub.now()),
      'Content-Encoding': 'aes128gcm',
      'Content-Type': 'application/octet-stream',
      TTL: String(TTL_SECONDS),
      Urgency: row.severity === 'critical' ? 'high' : 'normal',
      Topic: topicOf(row),
    },
    body: new Uint8Array(encryptPush(subscription, await messageOf(hub, row))),
    timeoutMs: hub.config['webhooks.timeout'],
    via: await wayOutOf(hub, row.company_id, 'webhooks', destination.url.hostname, destination.addresses),
  })
  await response.body?.cancel()
  return response.status
}

async function end(
  db: Executor,
  pushId: string,
  state: 'delivered' | 'failed' | 'dropped',
  reason: string | null,
): Promise<void> {
  await db.execute(sql`
    update push_deliveries set state = ${state}, last_error = ${reason}, finished_at = now()
    where id = ${pushId} and state = 'waiting'`)
}

async function deliver(hub: Hub, payload: JobPayload): Promise<void> {
  const { db } = hub.database
  const row = await loadWaiting(db, String(payload.push_id))
  if (!row) return
  const reason = await reasonToDrop(hub, row)
  if (reason !== null) return end(db, row.id, 'dropped', reason)
  const opened = hub.sealer.open(row.token_sealed)
  if (opened === null) return end(db, row.id, 'failed', 'the subscription was sealed with a key that is gone')
  await db.execute(sql`update push_deliveries set tries = tries + 1 where id = ${row.id}`)
  const status = row.platform === 'webpush' ? await post(hub, row, opened) : await toApp(hub, row, row.platform, opened)
  if (status === 404 || status === 410) {
    await db.execute(sql`
      update mobile_devices set enabled = false, disabled_reason = 'gone' where id = ${row.device_id}`)
    return end(db, row.id, 'failed', `the push service answered ${status}`)
  }
  if (status === 'not_allowed') return end(db, row.id, 'failed', 'the address is not allowed')
  if (status >= 200 && status < 300) {
    hub.metrics.notifications.inc({ channel: 'push', result: 'delivered' })
    await db.execute(sql`update mobile_devices set last_push_at = now() where id = ${row.device_id}`)
    return end(db, row.id, 'delivered', null)
  }
  hub.metrics.notifications.inc({ channel: 'push', result: 'error' })
  // The same message would be refused again, unless the service is busy.
  if (status !== 429 && status < 500) return end(db, row.id, 'failed', `the push service answered ${status}`)
  throw new Error(`push: answered ${status}`)
}

export function registerPush(hub: Hub): void {
  hub.jobs.register('notifications.push', {
    handle: payload => deliver(hub, payload),
    onFailed: payload => end(hub.database.db, String(payload.push_id), 'failed', 'no answer'),
  })
}

// Devices of the mobile app: each person has their own, and a push token belongs to one person (RES-173).
import { createHash, randomUUID } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { desc, eq, sql } from 'drizzle-orm'
import { auditRequest } from '../audit/audit.ts'
import type { Hub } from '../hub-context.ts'
import { type AppPlatform, appPlatforms, isPlatformSet } from '../notifications/fcm-and-apns.ts'
import { addPushes } from '../notifications/push.ts'
import { type Subscription, subscriptionFault } from '../notifications/web-push.ts'
import { callFault } from '../notifications/webhook.ts'
import { mobileDevices } from '../platform/db/schema-identity.ts'
import { inTransaction, inTransactionUnlessTaken, type Tx } from '../platform/db/transaction.ts'
import { invalidField, notFound, tooManyRequests } from '../platform/http/api-error.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import { id, named, nullable, string, time, wordOf } from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'

const DEVICES_MAX = 20
const TESTS_PER_MINUTE = 5
export const platforms = ['webpush', ...appPlatforms] as const
/** Apple's tokens stand in a path. */
const APNS_TOKEN = /^[0-9a-f]{32,200}$/i

export const deviceResponse = named('MobileDevice', {
  id: id(),
  name: string(),
  platform: wordOf(platforms),
  app_version: nullable(string()),
  language: string(),
  time_zone: string(),
  enabled: Type.Boolean(),
  disabled_reason: nullable(string()),
  last_seen_at: time(),
  last_push_at: nullable(time()),
  created_at: time(),
})

type Device = typeof mobileDevices.$inferSelect

export const presentDevice = (row: Device) => ({
  id: row.id,
  name: row.name,
  platform: row.platform,
  app_version: row.appVersion,
  language: row.language,
  time_zone: row.timeZone,
  enabled: row.enabled,
  disabled_reason: row.disabledReason,
  last_seen_at: row.lastSeenAt,
  last_push_at: row.lastPushAt,
  created_at: row.createdAt,
})

export const listDevices = ({ hub, caller }: RouteContext): Promise<Device[]> =>
  hub.database.db
    .select()
    .from(mobileDevices)
    .where(eq(mobileDevices.userId, caller.user.id))
    .orderBy(desc(mobileDevices.createdAt), desc(mobileDevices.id))
    .limit(DEVICES_MAX)

/** The device of the path, of the caller. Throws 404. */
export async function deviceOfPath({ hub, caller, params }: RouteContext): Promise<Device> {
  const { device = '' } = params
  const [row] = isUuid(device)
    ? await hub.database.db.select().from(mobileDevices).where(eq(mobileDevices.id, device))
    : []
  if (!row || row.userId !== caller.user.id) throw notFound()
  return row
}

type DeviceInput = {
  readonly name?: string | undefined
  /** Of an app. */
  readonly token?: string | undefined
  readonly subscription?:
    | { readonly endpoint: string; readonly keys: { readonly p256dh: string; readonly auth: string } }
    | undefined
  readonly app_version?: string | null | undefined
  readonly language?: 'en' | 'vi' | undefined
  readonly time_zone?: string | undefined
  readonly enabled?: boolean | undefined
}

/** What of a subscription is kept. Throws 422 for one that cannot be pushed to. */
async function keptSubscription(hub: Hub, given: NonNullable<DeviceInput['subscription']>) {
  const { endpoint, keys } = given
  if (URL.parse(endpoint)?.protocol !== 'https:' && !hub.config['webhooks.allow_private'])
    throw invalidField('subscription.endpoint', 'private_url')
  const refused = await callFault(hub, endpoint)
  if (refused !== null) throw invalidField('subscription.endpoint', refused)
  const fault = subscriptionFault(keys)
  if (fault !== null) throw invalidField(`subscription.keys.${fault}`, 'pattern')
  const subscription: Subscription = { endpoint, p256dh: keys.p256dh, auth: keys.auth }
  return {
    tokenSealed: hub.sealer.seal(JSON.stringify(subscription)),
    tokenHash: createHash('sha256').update(endpoint).digest('hex'),
  }
}

/** What of an app's token is kept. Throws 422. */
function keptAppToken(hub: Hub, platform: AppPlatform, token: string) {
  if (platform === 'apns' && !APNS_TOKEN.test(token)) throw invalidField('token', 'pattern')
  return {
    tokenSealed: hub.sealer.seal(token),
    tokenHash: createHash('sha256').update(`${platform} ${token}`).digest('hex'),
  }
}

/** What a device is known by, as far as it is given. Throws 422. */
async function keptToken(hub: Hub, platform: Device['platform'], { subscription, token }: DeviceInput) {
  if (platform === 'webpush') return subscription ? keptSubscription(hub, subscription) : null
  return token === undefined ? null : keptAppToken(hub, platform, token)
}

const subjectOf = (deviceId: string, name: string) => ({ type: 'mobile_device', id: deviceId, name })

async function countedDevice(tx: Tx, userId: string): Promise<void> {
  await tx.db.execute(sql`select id from users where id = ${userId} for no key update`)
  const [kept] = await tx.db.execute<{ count: number }>(
    sql`select count(*)::int as count from mobile_devices where user_id = ${userId}`,
  )
  if ((kept?.count ?? 0) >= DEVICES_MAX) throw invalidField('limit', 'list_max', { max: DEVICES_MAX })
}

/** Registers a device, or finds the one with the same token again. True when it is new. */
export async function registerDevice(
  context: RouteContext,
  { platform, ...given }: DeviceInput & { readonly platform: (typeof platforms)[number]; readonly name: string },
): Promise<{ device: Device; isNew: boolean }> {
  const { hub, caller } = context
  if (platform !== 'webpush' && !isPlatformSet(hub, platform))
    throw invalidField('platform', 'push_platform', { platform })
  const token = await keptToken(hub, platform, given)
  if (token === null) throw invalidField(platform === 'webpush' ? 'subscription' : 'token', 'required')
  const values = {
    ...token,
    name: given.name,
    appVersion: given.app_version ?? null,
    language: given.language ?? context.language,
    timeZone: given.time_zone ?? 'UTC',
    lastSeenAt: new Date(hub.now()),
  }
  return inTransactionUnlessTaken(hub.database.db, async tx => {
    const [known] = await tx.db
      .select()
      .from(mobileDevices)
      .where(eq(mobileDevices.tokenHash, token.tokenHash))
      .for('update')
    if (known?.userId === caller.user.id) {
      const set = { ...values, enabled: true, disabledReason: null }
      const [device] = await tx.db.update(mobileDevices).set(set).where(eq(mobileDevices.id, known.id)).returning()
      if (!device) throw notFound()
      return { device, isNew: false }
    }
    await countedDevice(tx, caller.user.id)
    if (known) await tx.db.delete(mobileDevices).where(eq(mobileDevices.id, known.id))
    const [device] = await tx.db
      .insert(mobileDevices)
      .values({ id: randomUUID(), userId: caller.user.id, platform, ...values })
      .returning()
    if (!device) throw new Error('cannot store a device')
    await auditRequest(tx, context, 'mobile_device.create', subjectOf(device.id, device.name))
    return { device, isNew: true }
  })
}

export async function changeDevice(
  context: RouteContext,
  { id: deviceId, platform }: Device,
  given: DeviceInput,
): Promise<Device> {
  const { hub } = context
  const token = await keptToken(hub, platform, given)
  return inTransaction(hub.database.db, async tx => {
    const [device] = await tx.db
      .update(mobileDevices)
      .set({
        ...token,
        lastSeenAt: new Date(hub.now()),
        ...(given.name === undefined ? {} : { name: given.name }),
        ...(given.app_version === undefined ? {} : { appVersion: given.app_version }),
        ...(given.language === undefined ? {} : { language: given.language }),
        ...(given.time_zone === undefined ? {} : { timeZone: given.time_zone }),
        ...(given.enabled === undefined ? {} : { enabled: given.enabled, disabledReason: null }),
      })
      .where(eq(mobileDevices.id, deviceId))
      .returning()
    if (!device) throw notFound()
    await auditRequest(tx, context, 'mobile_device.update', subjectOf(deviceId, device.name))
    return device
  })
}

export const deleteDevice = (context: RouteContext, device: Device): Promise<void> =>
  inTransaction(context.hub.database.db, async tx => {
    await tx.db.delete(mobileDevices).where(eq(mobileDevices.id, device.id))
    await auditRequest(tx, context, 'mobile_device.delete', subjectOf(device.id, device.name))
  })

const testTexts = {
  en: { title: 'Test', body: 'Messages reach this device.' },
  vi: { title: 'Thử', body: 'Thiết bị này nhận được tin.' },
} as const

/** Sends a test to a device. Returns the id of the delivery. Throws 422 for one that nothing is sent to. */
export async function testDevice({ hub, caller, companyId }: RouteContext, device: Device): Promise<string | null> {
  if (!device.enabled) throw invalidField('state', 'state_refused', { state: 'disabled' })
  const taken = hub.requestWindows.take(`push test ${caller.user.id}`, TESTS_PER_MINUTE)
  if (!taken.allowed) throw tooManyRequests(taken.retryAfterSeconds)
  const [pushId] = await inTransaction(hub.database.db, tx =>
    addPushes(hub, tx, [
      {
        deviceId: device.id,
        companyId,
        topic: `test ${device.id}`,
        type: 'test',
        severity: 'info',
        payload: { ...testTexts[device.language], link: '/', id: device.id },
      },
    ]),
  )
  return pushId ?? null
}

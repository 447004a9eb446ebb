// Push to apps: Firebase Cloud Messaging by its HTTP v1 interface, with a token for the service account, and
// the Apple Push Notification service over HTTP/2, with a token signed by the team's key. Both pass the guard and the
// way out of the company, as webhooks do.
import { createPrivateKey } from 'node:crypto'
import { connect, type IncomingHttpHeaders } from 'node:http2'
import type { Socket } from 'node:net'
import type { Hub } from '../hub-context.ts'
import { PermanentJobFailure } from '../platform/jobs/jobs.ts'
import { NoConnection, openConnection, secure } from '../platform/open-connection.ts'
import { callAddress, readBeginning } from '../platform/outbound-guard.ts'
import { wayOutOf } from '../way-out/forward-proxy.ts'
import { signedToken } from './signed-token.ts'
import { destinationOf } from './webhook.ts'

export const appPlatforms = ['fcm', 'apns'] as const
export type AppPlatform = (typeof appPlatforms)[number]

type AppPush = {
  readonly companyId: string
  /** By which the service knows the device. */
  readonly token: string
  readonly message: {
    readonly title: string
    readonly body: string
    readonly badge: number
    readonly [member: string]: string | number
  }
  /** A later message of the same topic replaces one that was not shown yet. */
  readonly topic: string
  readonly isUrgent: boolean
  readonly ttlSeconds: number
}
/** What the service answered. */
type Posted = number | 'not_allowed'

const FCM_SCOPE = 'https://www.googleapis.com/auth/firebase.messaging'
const GOOGLE_TOKENS = 'https://oauth2.googleapis.com/token'
const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const GRANT_SECONDS = 3600
/** A token is asked for anew this long before it ends. */
const EARLY_MS = 300_000
/** Apple takes a token for an hour, and refuses who signs one more often than every 20 minutes. */
const APNS_TOKEN_MS = 2_400_000
const UNAUTHORIZED = 401

/** Tokens of a hub that services take for a while, by what they were made from. */
const tokensOf = new WeakMap<Hub, Map<string, { readonly token: string; readonly untilMs: number }>>()

async function keptToken(hub: Hub, madeFrom: string, make: () => Promise<{ token: string; untilMs: number }>) {
  const kept = tokensOf.get(hub) ?? new Map<string, { readonly token: string; readonly untilMs: number }>()
  tokensOf.set(hub, kept)
  const known = kept.get(madeFrom)
  if (known && known.untilMs > hub.now()) return known.token
  const made = await make()
  kept.clear()
  kept.set(madeFrom, made)
  return made.token
}

/** Whether the settings of a platform are there. */
export function isPlatformSet({ state }: Pick<Hub, 'state'>, platform: AppPlatform): boolean {
  return platform === 'fcm'
    ? state.value('push.fcm_credentials') !== null
    : (['push.apns_key', 'push.apns_key_id', 'push.apns_team_id', 'push.apns_topic'] as const).every(
        key => state.value(key) !== null,
      )
}

type Call = { readonly headers: Readonly<Record<string, string>>; readonly body: string }

async function post(hub: Hub, companyId: string, target: string, call: Call): Promise<Response | null> {
  const destination = await destinationOf(hub, target)
  const [address] = destination?.addresses ?? []
  if (!destination || address === undefined) return null
  const { url, addresses } = destination
  const via = await wayOutOf(hub, companyId, 'webhooks', url.hostname, addresses)
  return callAddress(url, address, { method: 'POST', ...call, timeoutMs: hub.config['webhooks.timeout'], via })
}

type ServiceAccount = { project_id: string; client_email: string; private_key: string; token_uri?: string }

/** The token by which FCM knows the service account (RFC 7523). */
async function fcmToken(hub: Hub, companyId: string, account: ServiceAccount): Promise<string> {
  const nowSeconds = Math.floor(hub.now() / 1000)
  const target = account.token_uri ?? GOOGLE_TOKENS
  const claims = {
    iss: account.client_email,
    scope: FCM_SCOPE,
    aud: target,
    iat: nowSeconds,
    exp: nowSeconds + GRANT_SECONDS,
  }
  const assertion = signedToken('RS256', { typ: 'JWT' }, claims, createPrivateKey(account.private_key))
  const response = await post(hub, companyId, target, {
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ grant_type: GRANT, assertion }).toString(),
  })
  const given = response?.ok ? JSON.parse((await readBeginning(response)).toString()) : null
  if (typeof given?.access_token !== 'string') throw new Error('push: Google gave no token for the service account')
  return given.access_token
}

async function postFcm(hub: Hub, push: AppPush): Promise<Posted> {
  const credentials = String(hub.state.value('push.fcm_credentials'))
  // Held to its form when it was set.
  const account = JSON.parse(credentials) as ServiceAccount
  const untilMs = hub.now() + GRANT_SECONDS * 1000 - EARLY_MS
  const token = await keptToken(hub, credentials, async () => ({
    token: await fcmToken(hub, push.companyId, account),
    untilMs,
  }))
  const { title, body } = push.message
  const data = Object.fromEntries(Object.entries(push.message).map(([name, value]) => [name, String(value)]))
  const android = {
    priority: push.isUrgent ? 'high' : 'normal',
    ttl: `${push.ttlSeconds}s`,
    collapse_key: push.topic,
  }
  const target = `${hub.config['push.fcm_url']}/v1/projects/${encodeURIComponent(account.project_id)}/messages:send`
  const response = await post(hub, push.companyId, target, {
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ message: { token: push.token, notification: { title, body }, data, android } }),
  })
  await response?.body?.cancel()
  if (response?.status === UNAUTHORIZED) {
    tokensOf.delete(hub)
    throw new Error('push: FCM does not take the token any more')
  }
  return response?.status ?? 'not_allowed'
}

/** One POST over HTTP/2. Rejects with NoConnection. */
function postOverHttp2(url: URL, socket: Socket, headers: Call['headers'], body: string, deadlineMs: number) {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const fail = (fault: 'closed' | 'timeout') => () => reject(new NoConnection(fault))
  const timer = setTimeout(fail('timeout'), Math.max(0, deadlineMs - performance.now()))
  const session = connect(url.origin, { createConnection: () => socket })
  session.on('error', fail('closed'))
  const stream = session.request({ ...headers, ':method': 'POST', ':path': url.pathname })
  stream.on('response', (given: IncomingHttpHeaders) => resolve(Number(given[':status'])))
  stream.on('error', fail('closed'))
  stream.on('close', fail('closed'))
  stream.end(body)
  return promise.finally(() => {
    clearTimeout(timer)
    session.destroy()
    socket.destroy()
  })
}

const apnsToken = async (hub: Hub): Promise<string> => {
  const [key, keyId, team] = (['push.apns_key', 'push.apns_key_id', 'push.apns_team_id'] as const).map(name =>
    String(hub.state.value(name)),
  ) as [string, string, string]
  const nowMs = hub.now()
  const make = async () => ({
    token: signedToken('ES256', { kid: keyId }, { iss: team, iat: Math.floor(nowMs / 1000) }, createPrivateKey(key)),
    untilMs: nowMs + APNS_TOKEN_MS,
  })
  return keptToken(hub, `${keyId} ${team} ${key}`, make)
}

async function postApns(hub: Hub, push: AppPush): Promise<Posted> {
  const destination = await destinationOf(hub, `${hub.config['push.apns_url']}/3/device/${push.token}`)
  const [address] = destination?.addresses ?? []
  if (!destination || address === undefined) return 'not_allowed'
  const { url, addresses } = destination
  const { title, body, badge, ...more } = push.message
  const headers = {
    authorization: `bearer ${await apnsToken(hub)}`,
    'apns-topic': String(hub.state.value('push.apns_topic')),
    'apns-push-type': 'alert',
    'apns-priority': push.isUrgent ? '10' : '5',
    'apns-expiration': String(Math.floor(hub.now() / 1000) + push.ttlSeconds),
    'apns-collapse-id': push.topic,
  }
  const via = await wayOutOf(hub, push.companyId, 'webhooks', url.hostname, addresses)
  const deadlineMs = performance.now() + hub.config['webhooks.timeout']
  const isTls = url.protocol === 'https:'
  const port = url.port === '' ? (isTls ? 443 : 80) : Number(url.port)
  const plain = await openConnection({ host: address, port }, via, deadlineMs)
  const socket = isTls ? await secure(plain, url.hostname, { deadlineMs, protocols: ['h2'] }) : plain
  const sent = JSON.stringify({ ...more, aps: { alert: { title, body }, badge, sound: 'default' } })
  return postOverHttp2(url, socket, headers, sent, deadlineMs)
}

/** Posts a message to the service of a platform. Throws where another try may succeed. */
export function postToApp(hub: Hub, platform: AppPlatform, push: AppPush): Promise<Posted> {
  if (!isPlatformSet(hub, platform)) throw new PermanentJobFailure(`the settings of ${platform} are gone`)
  return platform === 'fcm' ? postFcm(hub, push) : postApns(hub, push)
}

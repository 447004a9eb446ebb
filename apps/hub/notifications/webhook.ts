// One attempt of a webhook delivery (decision G-105): signed, without redirects, and connected to exactly the address
// that was checked to be public, so that a name whose address changes between check and call reaches no internal host.

import { createHmac } from 'node:crypto'
import { eq, sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import { webhooks } from '../platform/db/schema-identity.ts'
import { type JobPayload, PermanentJobFailure } from '../platform/jobs/jobs.ts'
import type { ForwardProxy } from '../platform/open-connection.ts'
import { callAddress, resolveTarget } from '../platform/outbound-guard.ts'
import { wayOutOf } from '../way-out/forward-proxy.ts'
import { loadWaitingDelivery, recordTry, refuseDelivery } from './delivery-outcome.ts'
import { giveUpDelivery } from './switch-off-webhook.ts'

/** Where a webhook may be sent: one of the addresses is connected to. */
type Destination = { readonly url: URL; readonly addresses: readonly string[] }

/** The destination of an address, if it is allowed: https and public, unless the configuration allows private ones. */
export async function destinationOf(hub: Hub, address: string): Promise<Destination | null> {
  const url = URL.parse(address)
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:') || url.username || url.password) return null
  if (url.protocol !== 'https:' && !hub.config['webhooks.allow_private']) return null
  const resolved = await resolveTarget(hub.config, url.hostname, hub.config['webhooks.timeout'])
  // A name that is not known now may be later: the delivery is tried again.
  if ('fault' in resolved && resolved.fault === 'dns') throw new Error('the name does not resolve')
  return 'fault' in resolved ? null : { url, addresses: resolved.addresses }
}

/**
 * Why a webhook may not be sent to an address; null: it may. A name that does not resolve is refused, where it must be
 * public.
 */
export async function callFault(
  hub: Hub,
  address: string,
): Promise<'http_url' | 'url_credentials' | 'private_url' | null> {
  const isPrivateAllowed = hub.config['webhooks.allow_private']
  const url = URL.parse(address)
  if (url?.username || url?.password) return 'url_credentials'
  if (isPrivateAllowed && url?.protocol !== 'https:' && url?.protocol !== 'http:') return 'http_url'
  try {
    return (await destinationOf(hub, address)) === null ? 'private_url' : null
  } catch {
    return isPrivateAllowed ? null : 'private_url'
  }
}

const SECRET_CLOSED = "the hub lacks the key that opens the webhook's secret"

/** The signature header of a webhook body at a time. */
const webhookSignature = (secret: string, timestampSeconds: number, body: string): string =>
  `sha256=${createHmac('sha256', secret).update(`${timestampSeconds}.${body}`).digest('hex')}`

type Post = {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly timeoutMs: number
  /** Certificates to trust instead of the system's. */
  readonly ca?: string
  readonly via?: ForwardProxy | null
}

/** Posts to a URL, connected to `address`. Returns the status; throws on network errors and late responses. */
export async function postTo(url: URL, address: string, post: Post): Promise<number> {
  const response = await callAddress(url, address, { method: 'POST', ...post })
  await response.body?.cancel()
  return response.status
}

async function deliver(hub: Hub, payload: JobPayload): Promise<void> {
  const delivery = await loadWaitingDelivery(hub, payload)
  if (!delivery) return
  const [hook] = delivery.webhookId
    ? await hub.database.db.select().from(webhooks).where(eq(webhooks.id, delivery.webhookId))
    : []
  if (!hook) return refuseDelivery(hub, delivery, 'the webhook is gone')
  // A disabled webhook can still be tested.
  if (!hook.enabled && delivery.type !== 'ping') return refuseDelivery(hub, delivery, 'the webhook is disabled')
  const secret = hub.sealer.open(hook.secretSealed)
  if (secret === null) {
    // Another hub may have the key, or this one once it is given it.
    if (!(await recordTry(hub, delivery, null, SECRET_CLOSED))) return
    throw new Error(`webhook: ${SECRET_CLOSED}`)
  }
  const body = JSON.stringify({
    id: delivery.id,
    type: delivery.type,
    created_at: delivery.createdAt,
    ...delivery.payload,
  })
  const timestamp = Math.floor(hub.now() / 1000)
  const headers = {
    'Content-Type': 'application/json',
    'User-Agent': 'svc-hub',
    'X-Hub-Event': delivery.type,
    'X-Hub-Delivery': delivery.id,
    'X-Hub-Timestamp': String(timestamp),
    'X-Hub-Signature': webhookSignature(secret, timestamp, body),
  }
  let code: number | null = null
  let error: string | null = null
  let isForbidden = false
  try {
    const destination = await destinationOf(hub, hook.url)
    isForbidden = destination === null
    if (destination) {
      const { url, addresses } = destination
      // Each attempt uses the next address of the name.
      const address = addresses[delivery.tries % addresses.length] ?? ''
      const via = await wayOutOf(hub, delivery.companyId, 'webhooks', url.hostname, addresses)
      code = await postTo(url, address, { headers, body, timeoutMs: hub.config['webhooks.timeout'], via })
      if (code < 200 || code > 299) error = `answered ${code}`
    } else error = 'the address is not allowed'
  } catch {
    error = 'no answer'
  }
  const isOwed = await recordTry(hub, delivery, code, error)
  if (error === null) await forgetFailures(hub, hook.id)
  if (!isOwed) return
  if (isForbidden) throw new PermanentJobFailure('the address of the webhook is not allowed')
  throw new Error(`webhook: ${error}`)
}

/** Resets the number of failures in a row after a successful delivery. */
async function forgetFailures(hub: Hub, webhookId: string): Promise<void> {
  await hub.database.db.execute(
    sql`update webhooks set failures_in_a_row = 0 where id = ${webhookId} and failures_in_a_row > 0`,
  )
}

export function registerWebhook(hub: Hub): void {
  hub.jobs.register('notifications.webhook', {
    handle: payload => deliver(hub, payload),
    onFailed: payload => giveUpDelivery(hub, payload),
  })
}

// One attempt of an e-mail delivery over SMTP.
import type { Hub } from '../hub-context.ts'
import type { JobPayload } from '../platform/jobs/jobs.ts'
import type { Delivery } from './deliveries.ts'
import { loadWaitingDelivery, recordTry, refuseDelivery } from './delivery-outcome.ts'
import { giveUpDelivery } from './switch-off-webhook.ts'
import { languageOf } from './templates.ts'
import { admitMail, type Footer, giveMailBack } from './unconfirmed-addresses.ts'

const TIMEOUT_MS = 15_000
const SENDER = 'hub@localhost'

/** The Message-ID: every attempt of a delivery has the same, so that a mailbox can recognise a duplicate. */
function messageId(deliveryId: string, sender: string): string {
  const domain = /@([A-Za-z0-9.-]+)>?$/.exec(sender)?.[1] ?? 'localhost'
  return `<${deliveryId}@${domain}>`
}

/** The mail server's code and message without addresses of this host, so that people may read them. */
function refusal(cause: unknown): string {
  const code = cause instanceof Error && 'responseCode' in cause ? cause.responseCode : undefined
  return typeof code === 'number' ? `the mail server answered ${code}` : 'the mail server did not answer'
}

/**
 * A body that only the recipient may read is stored sealed. Null when it was sealed with a key that the hub no longer
 * has.
 */
const textOf = (hub: Hub, payload: JobPayload): string | null =>
  typeof payload.sealed_body === 'string' ? hub.sealer.open(payload.sealed_body) : String(payload.body ?? '')

/**
 * The footer of a message to an address that nobody has confirmed; null for a confirmed one. Ends the delivery when the
 * message may not be sent.
 */
async function footerOf(hub: Hub, delivery: Delivery): Promise<Footer | null> {
  const { to_confirm: language } = delivery.payload
  if (typeof language !== 'string') return null
  const admitted = await admitMail(hub, delivery.companyId, delivery.target, languageOf(language))
  return 'refusal' in admitted ? refuseDelivery(hub, delivery, admitted.refusal) : admitted.footer
}

async function deliver(hub: Hub, payload: JobPayload): Promise<void> {
  const delivery = await loadWaitingDelivery(hub, payload)
  if (!delivery) return
  const url = hub.config['smtp.url']
  if (!url) return refuseDelivery(hub, delivery, 'no mail server is configured (smtp.url)')
  const text = textOf(hub, delivery.payload)
  if (text === null) return refuseDelivery(hub, delivery, 'its text was sealed with a key that is gone')
  const footer = await footerOf(hub, delivery)
  const from = hub.config['mail.from'] ?? SENDER
  // Loaded with the first mail: the library takes 11 MB, and many hubs never send one.
  const { createTransport } = await import('nodemailer')
  const transport = createTransport({
    url,
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
  })
  try {
    await transport.sendMail({
      from,
      to: delivery.target,
      subject: String(delivery.payload.title ?? delivery.type),
      text: footer ? `${text}\n\n-- \n${footer.text}\n` : text,
      messageId: messageId(delivery.id, from),
      headers: {
        'X-Hub-Event': delivery.type,
        'X-Hub-Delivery': delivery.id,
        'Auto-Submitted': 'auto-generated',
        ...(footer ? { 'List-Unsubscribe': `<${footer.link}>` } : {}),
      },
    })
  } catch (cause) {
    if (footer) await giveMailBack(hub, delivery.companyId, delivery.target)
    if (!(await recordTry(hub, delivery, null, refusal(cause)))) return
    throw new Error(`e-mail: ${refusal(cause)}`, { cause })
  } finally {
    transport.close()
  }
  await recordTry(hub, delivery, null, null)
}

export function registerEmail(hub: Hub): void {
  hub.jobs.register('notifications.email', {
    handle: payload => deliver(hub, payload),
    onFailed: payload => giveUpDelivery(hub, payload),
  })
}

// A test of the mail server: one message, sent as every other is.

import { countAskedMail } from '../notifications/asked-mail-rate.ts'
import { addDeliveries, toConfirm } from '../notifications/deliveries.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import type { RouteContext } from '../platform/http/route.ts'

const texts = {
  en: { title: 'Test of the mail server', body: 'The hub can send e-mail.' },
  vi: { title: 'Thử máy chủ thư', body: 'Hub gửi được e-mail.' },
} as const

/** Queues the message. Returns the id of its delivery. */
export async function testMail(context: RouteContext, to: string | undefined): Promise<string | null> {
  const { hub, caller, companyId, language } = context
  if (!hub.config['smtp.url']) throw invalidField('smtp', 'no_mail_server')
  countAskedMail(hub, caller, companyId)
  const target = to ?? caller.user.email
  const isOwn = target.toLowerCase() === caller.user.email.toLowerCase()
  const payload = { ...texts[language], ...(isOwn ? {} : toConfirm(language)) }
  const [id] = await inTransaction(hub.database.db, tx =>
    addDeliveries(hub, tx, [{ companyId, channel: 'email', target, webhookId: null, type: 'ping', payload }]),
  )
  return id ?? null
}

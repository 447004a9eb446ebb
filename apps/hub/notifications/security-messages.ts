// Security events to the people and systems that are told of them (decision G-162; document 3, Events): one message to
// each person, however many findings it is about, and webhooks with what it is about one by one. Never values of
// secrets, paths or previews: webhooks get the members that the caller has named, and texts are filled from names.
import { randomUUID } from 'node:crypto'
import { permissionToHear, type SecurityEventType, securitySeverities } from '../../../core/lifecycle/security-event.ts'
import type { Hub } from '../hub-context.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { ringLater } from './bell.ts'
import {
  type Attributes,
  addDeliveries,
  covers,
  loadChannelPreferences,
  type NewDelivery,
  toConfirm,
} from './deliveries.ts'
import { addBellRows, type BellRow } from './dispatch.ts'
import { reaches } from './recipients.ts'
import { linkTo, type NotificationLanguage, renderValues } from './templates.ts'

/** What a webhook receives of one event: `data` as it is sent. */
type WebhookItem = { readonly server: Attributes | null; readonly data: Readonly<Record<string, unknown>> }

export type SecurityMessage = {
  readonly type: SecurityEventType
  /** The values of placeholders, without the link. */
  readonly values: Readonly<Record<string, string>>
  /** Where it is looked at, below the address of the hub. */
  readonly path: string
  /** The servers that it is about, by which group addresses select. */
  readonly servers: readonly Attributes[]
  readonly items: readonly WebhookItem[]
}

/** Somebody who was chosen for everything, or for one of the servers. */
const concerns = (scope: Readonly<Record<string, unknown>>, servers: readonly (Attributes | null)[]): boolean =>
  scope.all === true || servers.some(server => server !== null && covers(scope, server))

type Channels = Awaited<ReturnType<typeof loadChannelPreferences>>

function deliveriesOfMessage(
  hub: Hub,
  companyId: string,
  voices: Channels,
  { type, servers, items }: SecurityMessage,
  textOf: (language: NotificationLanguage) => { title: string; body: string },
): NewDelivery[] {
  const severity = securitySeverities[type]
  const base = { companyId, type, webhookId: null }
  const deliveries: NewDelivery[] = voices.hooks
    .filter(hook => hook.events.length === 0 || hook.events.includes(type))
    .filter(hook => reaches(severity, hook.minSeverity))
    .flatMap(hook =>
      items
        .filter(item => concerns(hook.scope, [item.server]))
        .map(item => ({
          ...base,
          channel: 'webhook' as const,
          target: hook.url,
          webhookId: hook.id,
          payload: { company_id: companyId, data: item.data },
        })),
    )
  if (!hub.config['smtp.url']) return deliveries
  const mails = new Map<string, NewDelivery>()
  const mail = (target: string, language: NotificationLanguage, isUnconfirmed: boolean): NewDelivery => ({
    ...base,
    channel: 'email',
    target,
    payload: { ...textOf(language), ...(isUnconfirmed ? toConfirm(language) : {}) },
  })
  // A group address holds no permission: it is told of what everybody may see who sees security.
  if (permissionToHear(type) === 'security.view')
    for (const channel of voices.channels)
      if (channel.type === 'email' && reaches(severity, channel.minSeverity) && concerns(channel.scope, servers))
        mails.set(channel.address.toLowerCase(), mail(channel.address, 'en', true))
  for (const person of voices.recipients)
    if (reaches(severity, person.emailFrom))
      mails.set(person.email.toLowerCase(), mail(person.email, person.language, person.isUnconfirmed))
  return [...deliveries, ...mails.values()]
}

/** Writes the messages of a company to bells, and their deliveries, in the transaction that takes their notices. */
export async function tellSecurity(
  hub: Hub,
  tx: Tx,
  companyId: string,
  messages: readonly SecurityMessage[],
): Promise<void> {
  const rung: BellRow[] = []
  const deliveries: NewDelivery[] = []
  const channelsOf = new Map<string, Channels>()
  for (const message of messages) {
    const { type, values, path } = message
    const permission = permissionToHear(type)
    const voices = channelsOf.get(permission) ?? (await loadChannelPreferences(tx.db, companyId, permission))
    channelsOf.set(permission, voices)
    const filled = { ...values, link: linkTo(hub.config.public_url, path) }
    const textOf = (language: NotificationLanguage) => renderValues(voices.texts, type, language, filled)
    for (const person of voices.recipients)
      if (reaches(securitySeverities[type], person.bellFrom))
        rung.push({
          id: randomUUID(),
          user_id: person.id,
          company_id: companyId,
          type,
          ...textOf(person.language),
          link: path,
          created_at: new Date(hub.now()).toISOString(),
        })
    deliveries.push(...deliveriesOfMessage(hub, companyId, voices, message, textOf))
  }
  await addBellRows(tx, rung)
  await addDeliveries(hub, tx, deliveries)
  await ringLater(
    tx,
    rung.map(row => ({ id: row.id, userId: row.user_id })),
  )
}

// A message about what is no alert, to people, group addresses and webhooks: one message to each person, and webhooks
// with what it is about one by one.
import { randomUUID } from 'node:crypto'
import type { Hub } from '../hub-context.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { ringLater } from './bell.ts'
import { addBellRows, type BellRow } from './bell-rows.ts'
import { bellsOf, devicesOf, type ToTell } from './choose-channels.ts'
import {
  addDeliveries,
  type ChannelPreferences,
  deliveriesOf,
  type NewDelivery,
  type WebhookItem,
} from './deliveries.ts'
import { addPushes, type NewPush, pushTargets } from './push.ts'
import { linkTo, type NotificationLanguage, renderValues, type TemplateType } from './templates.ts'

export type Message = ToTell & {
  readonly type: TemplateType
  /** The values of placeholders in a language, without the link. */
  readonly values: (language: NotificationLanguage) => Readonly<Record<string, string>>
  /** Where it is looked at, below the address of the hub. */
  readonly path: string
  readonly items: readonly WebhookItem[]
  /** For one that devices are sent: what it is about, and the permission without which nobody is. */
  readonly push?: { readonly id: string; readonly permission: string }
}

type Told = { readonly message: Message; readonly voices: ChannelPreferences }
type Text = { readonly title: string; readonly body: string }

/** The text of a message in a language. */
function textOfMessage(hub: Hub, { voices, message }: Told): (language: NotificationLanguage) => Text {
  const { type, values, path } = message
  const link = linkTo(hub.config.public_url, path)
  return language => renderValues(voices.texts, type, language, { ...values(language), link })
}

async function pushesOf(hub: Hub, tx: Tx, companyId: string, told: readonly Told[]): Promise<NewPush[]> {
  const pushed = told.filter(({ message }) => message.push !== undefined)
  if (pushed.length === 0) return []
  const userIds = new Set(pushed.flatMap(({ message }) => message.people.map(person => person.id)))
  const targets = await pushTargets(tx.db, [...userIds])
  return pushed.flatMap(each => {
    const { type, severity, path, people, push } = each.message
    const textIn = textOfMessage(hub, each)
    const ids = new Set(people.map(person => person.id))
    const theirs = targets.filter(target => ids.has(target.userId))
    return devicesOf(severity, theirs).map(({ deviceId, language }) => ({
      deviceId,
      companyId,
      topic: push?.id ?? '',
      type,
      severity,
      payload: { ...textIn(language), link: path, id: push?.id ?? '', permission: push?.permission },
    }))
  })
}

/** Writes messages of a company to bells, and their deliveries, in the transaction of what they tell. */
export async function tellMessages(hub: Hub, tx: Tx, companyId: string, told: readonly Told[]): Promise<void> {
  const rung: BellRow[] = []
  const deliveries: NewDelivery[] = []
  for (const each of told) {
    const { message, voices } = each
    const textIn = textOfMessage(hub, each)
    for (const person of bellsOf(message))
      rung.push({
        id: randomUUID(),
        user_id: person.id,
        company_id: companyId,
        type: message.type,
        ...textIn(person.language),
        link: message.path,
        created_at: new Date(hub.now()).toISOString(),
      })
    deliveries.push(...deliveriesOf(hub, companyId, voices, { ...message, textIn }))
  }
  await addBellRows(tx, rung)
  await addDeliveries(hub, tx, deliveries)
  await addPushes(hub, tx, await pushesOf(hub, tx, companyId, told))
  await ringLater(
    tx,
    rung.map(row => ({ id: row.id, userId: row.user_id })),
  )
}

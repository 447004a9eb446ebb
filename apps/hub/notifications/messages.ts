// A message about what is no alert, to people, group addresses and webhooks: one message to each person, and webhooks
// with what it is about one by one.
import { randomUUID } from 'node:crypto'
import type { Severity } from '../../../core/alerting/rules/rule.ts'
import type { Hub } from '../hub-context.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { ringLater } from './bell.ts'
import {
  type Attributes,
  addDeliveries,
  type ChannelPreferences,
  covers,
  type NewDelivery,
  toConfirm,
} from './deliveries.ts'
import { addBellRows, type BellRow } from './dispatch.ts'
import { addPushes, type NewPush, pushTargets } from './push.ts'
import { type Recipient, reaches } from './recipients.ts'
import { linkTo, type NotificationLanguage, renderValues, type TemplateType } from './templates.ts'

/** What a webhook receives of one event: `data` as it is sent. */
export type WebhookItem = {
  readonly servers: readonly Attributes[]
  readonly data: Readonly<Record<string, unknown>>
}

export type Message = {
  readonly type: TemplateType
  readonly severity: Severity
  /** The values of placeholders in a language, without the link. */
  readonly values: (language: NotificationLanguage) => Readonly<Record<string, string>>
  /** Where it is looked at, below the address of the hub. */
  readonly path: string
  /** Whoever is told by bell and e-mail, as far as they want to hear of the severity. */
  readonly people: readonly Recipient[]
  /** Whether group addresses are told, which hold no permission. */
  readonly isForGroups: boolean
  /** The servers that it is about, by which group addresses select. */
  readonly servers: readonly Attributes[]
  readonly items: readonly WebhookItem[]
  /** For one that devices are sent: what it is about, and the permission without which nobody is. */
  readonly push?: { readonly id: string; readonly permission: string }
}

/** Somebody who was chosen for everything, or for one of the servers. */
const concerns = (scope: Readonly<Record<string, unknown>>, servers: readonly Attributes[]): boolean =>
  scope.all === true || servers.some(server => covers(scope, server))

type Told = { readonly message: Message; readonly voices: ChannelPreferences }
type Text = { readonly title: string; readonly body: string }

/** The text of a message in a language. */
function textOfMessage(hub: Hub, { voices, message }: Told): (language: NotificationLanguage) => Text {
  const { type, values, path } = message
  const link = linkTo(hub.config.public_url, path)
  return language => renderValues(voices.texts, type, language, { ...values(language), link })
}

function webhookDeliveries(
  companyId: string,
  voices: ChannelPreferences,
  { type, severity, items }: Message,
): NewDelivery[] {
  return voices.hooks
    .filter(hook => hook.events.length === 0 || hook.events.includes(type))
    .filter(hook => reaches(severity, hook.minSeverity))
    .flatMap(hook =>
      items
        .filter(item => concerns(hook.scope, item.servers))
        .map(item => ({
          companyId,
          type,
          channel: 'webhook' as const,
          target: hook.url,
          webhookId: hook.id,
          payload: { company_id: companyId, data: item.data },
        })),
    )
}

/** A mailbox gets one message, even when it is both a group address and a person's own. */
function mailDeliveries(
  companyId: string,
  voices: ChannelPreferences,
  { type, severity, servers, people, isForGroups }: Message,
  textOf: (language: NotificationLanguage) => Text,
): NewDelivery[] {
  const mails = new Map<string, NewDelivery>()
  const add = (target: string, language: NotificationLanguage, isUnconfirmed: boolean) =>
    mails.set(target.toLowerCase(), {
      companyId,
      type,
      webhookId: null,
      channel: 'email',
      target,
      payload: { ...textOf(language), ...(isUnconfirmed ? toConfirm(language) : {}) },
    })
  if (isForGroups)
    for (const channel of voices.channels)
      if (channel.type === 'email' && reaches(severity, channel.minSeverity) && concerns(channel.scope, servers))
        add(channel.address, 'en', true)
  for (const person of people)
    if (reaches(severity, person.emailFrom)) add(person.email, person.language, person.isUnconfirmed)
  return [...mails.values()]
}

async function pushesOf(hub: Hub, tx: Tx, companyId: string, told: readonly Told[]): Promise<NewPush[]> {
  const pushed = told.filter(({ message }) => message.push !== undefined)
  if (pushed.length === 0) return []
  const userIds = new Set(pushed.flatMap(({ message }) => message.people.map(person => person.id)))
  const targets = await pushTargets(tx.db, [...userIds])
  return pushed.flatMap(each => {
    const { type, severity, path, people, push } = each.message
    const textOf = textOfMessage(hub, each)
    const ids = new Set(people.map(person => person.id))
    return targets
      .filter(target => ids.has(target.userId) && reaches(severity, target.from))
      .map(({ deviceId, language }) => ({
        deviceId,
        companyId,
        topic: push?.id ?? '',
        type,
        severity,
        payload: { ...textOf(language), link: path, id: push?.id ?? '', permission: push?.permission },
      }))
  })
}

/** Writes messages of a company to bells, and their deliveries, in the transaction of what they tell. */
export async function tellMessages(hub: Hub, tx: Tx, companyId: string, told: readonly Told[]): Promise<void> {
  const rung: BellRow[] = []
  const deliveries: NewDelivery[] = []
  for (const each of told) {
    const { message, voices } = each
    const textOf = textOfMessage(hub, each)
    for (const person of message.people)
      if (reaches(message.severity, person.bellFrom))
        rung.push({
          id: randomUUID(),
          user_id: person.id,
          company_id: companyId,
          type: message.type,
          ...textOf(person.language),
          link: message.path,
          created_at: new Date(hub.now()).toISOString(),
        })
    deliveries.push(...webhookDeliveries(companyId, voices, message))
    if (hub.config['smtp.url']) deliveries.push(...mailDeliveries(companyId, voices, message, textOf))
  }
  await addBellRows(tx, rung)
  await addDeliveries(hub, tx, deliveries)
  await addPushes(hub, tx, await pushesOf(hub, tx, companyId, told))
  await ringLater(
    tx,
    rung.map(row => ({ id: row.id, userId: row.user_id })),
  )
}

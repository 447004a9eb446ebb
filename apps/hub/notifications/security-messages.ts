// Security events to the people and systems that are told of them (decision G-162; document 3, Events): one message to
// each person, however many findings it is about, and webhooks with what it is about one by one. Never values of
// secrets, paths or previews: webhooks get the members that the caller has named, and texts are filled from names.
import {
  permissionToHear,
  type SecurityEventType,
  securitySeverities,
} from '../../../core/lifecycle/security-event-severity.ts'
import type { Hub } from '../hub-context.ts'
import type { Tx } from '../platform/db/transaction.ts'
import type { Attributes } from './choose-channels.ts'
import { loadChannelPreferences, type WebhookItem } from './deliveries.ts'
import { tellMessages } from './messages.ts'

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

/** Writes the messages of a company to bells, and their deliveries, in the transaction that takes their notices. */
export async function tellSecurity(
  hub: Hub,
  tx: Tx,
  companyId: string,
  messages: readonly SecurityMessage[],
): Promise<void> {
  const voicesOf = new Map<string, Awaited<ReturnType<typeof loadChannelPreferences>>>()
  const told = []
  for (const message of messages) {
    const permission = permissionToHear(message.type)
    const voices = voicesOf.get(permission) ?? (await loadChannelPreferences(tx.db, companyId, permission))
    voicesOf.set(permission, voices)
    told.push({
      voices,
      message: {
        ...message,
        severity: securitySeverities[message.type],
        values: () => message.values,
        people: voices.recipients,
        // A group address holds no permission: it is told of what everybody may see who sees security.
        isForGroups: permission === 'security.view',
      },
    })
  }
  await tellMessages(hub, tx, companyId, told)
}

// Which mailboxes get a message, by e-mail: people's own and group addresses, and each mailbox once, however many share
// it, in the language of whom it belongs to (decision G-104).

import { concerns, reaches, type Scope, type ToTell } from './choose-channels.ts'
import type { NotificationLanguage } from './templates.ts'

type Mailbox = {
  readonly address: string
  readonly language: NotificationLanguage
  /** The address may have to be confirmed first. */
  readonly isUnconfirmed: boolean
}

type GroupAddress = {
  readonly type: string
  readonly address: string
  readonly minSeverity: string
  readonly scope: Scope
}

/**
 * The mailboxes that get a message. Each gets one, even when it is both a group address and a person's own; the
 * person's is kept, since it has the person's language.
 */
export function mailboxesOf(
  { severity, people, isForGroups, servers }: ToTell,
  groups: readonly GroupAddress[],
): Mailbox[] {
  const mailboxes = new Map<string, Mailbox>()
  const add = (mailbox: Mailbox) => mailboxes.set(mailbox.address.toLowerCase(), mailbox)
  if (isForGroups)
    for (const { type, address, minSeverity, scope } of groups)
      if (type === 'email' && reaches(severity, minSeverity) && concerns(scope, servers))
        add({ address, language: 'en', isUnconfirmed: true })
  for (const { email, emailFrom, language, isUnconfirmed } of people)
    if (reaches(severity, emailFrom)) add({ address: email, language, isUnconfirmed })
  return [...mailboxes.values()]
}

// Approvals to the people that they wait for or were asked by (resources.md R-050): one message a person, however many
// tickets of a run it is about, and webhooks with all of them.
import type { Hub } from '../hub-context.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { approvalSeverities } from './approval-severities.ts'
import type { ApprovalType } from './approval-texts.ts'
import { loadChannelPreferences } from './deliveries.ts'
import { type Message, tellMessages } from './messages.ts'
import { type Recipient, recipientsOf } from './recipients.ts'
import { linkTo, type NotificationLanguage } from './templates.ts'

type TicketItem = {
  readonly ticketId: string
  /** Kind and name of what is to be changed. */
  readonly label: string
  readonly userIds: readonly string[]
}

export type ApprovalMessage = {
  readonly type: ApprovalType
  readonly runId: string
  /** The values of placeholders that are the same for everybody, in a language. */
  readonly values: (language: NotificationLanguage) => Readonly<Record<string, string>>
  readonly tickets: readonly TicketItem[]
}

const NAMES_SHOWN = 3

function shortList(labels: readonly string[]): string {
  const more = labels.length - NAMES_SHOWN
  return `${labels.slice(0, NAMES_SHOWN).join(', ')}${more > 0 ? ` +${more}` : ''}`
}

/** Writes the messages of a run to bells, and their deliveries, in the transaction of what they tell. */
export async function tellApproval(hub: Hub, tx: Tx, companyId: string, message: ApprovalMessage): Promise<void> {
  const { type, runId, values, tickets } = message
  if (tickets.length === 0) return
  const userIds = [...new Set(tickets.flatMap(ticket => ticket.userIds))]
  const severity = approvalSeverities[type]
  const voices = await loadChannelPreferences(tx.db, companyId, null)
  const people = await recipientsOf(tx.db, companyId, { userIds })
  const path = `/iac/runs/${runId}`
  const base = { type, severity, path, isForGroups: false, servers: [] }
  const ofPerson = (person: Recipient): Message => {
    const own = tickets.filter(ticket => ticket.userIds.includes(person.id))
    const counted = { count: String(own.length), names: shortList(own.map(ticket => ticket.label)) }
    return { ...base, people: [person], values: language => ({ ...values(language), ...counted }), items: [] }
  }
  const data = {
    approval: {
      run_id: runId,
      link: linkTo(hub.config.public_url, path),
      tickets: tickets.map(({ ticketId, label }) => ({ id: ticketId, subject: label })),
    },
  }
  // A webhook for some servers is none for approvals.
  const ofWebhooks: Message = { ...base, people: [], values, items: [{ servers: [], data }] }
  const messages = [...people.map(ofPerson), ofWebhooks]
  await tellMessages(
    hub,
    tx,
    companyId,
    messages.map(each => ({ message: each, voices })),
  )
}

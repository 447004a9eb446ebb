// Approvals to the people that they wait for or were asked by (resources.md R-050): one message a person, however many
// tickets of a run it is about, and webhooks with all of them.
import { randomUUID } from 'node:crypto'
import type { Hub } from '../hub-context.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { type ApprovalType, approvalSeverities } from './approval-texts.ts'
import { ringLater } from './bell.ts'
import { addDeliveries, loadChannelPreferences, type NewDelivery, toConfirm } from './deliveries.ts'
import { addBellRows, type BellRow } from './dispatch.ts'
import { reaches, recipientsOf } from './recipients.ts'
import { linkTo, type NotificationLanguage, renderValues } from './templates.ts'

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
  const rung: BellRow[] = []
  const deliveries: NewDelivery[] = []
  const path = `/iac/runs/${runId}`
  const link = linkTo(hub.config.public_url, path)
  for (const person of people) {
    const own = tickets.filter(ticket => ticket.userIds.includes(person.id))
    const filled = {
      ...values(person.language),
      count: String(own.length),
      names: shortList(own.map(ticket => ticket.label)),
      link,
    }
    const text = renderValues(voices.texts, type, person.language, filled)
    if (reaches(severity, person.bellFrom))
      rung.push({
        id: randomUUID(),
        user_id: person.id,
        company_id: companyId,
        type,
        ...text,
        link: path,
        created_at: new Date(hub.now()).toISOString(),
      })
    if (hub.config['smtp.url'] && reaches(severity, person.emailFrom))
      deliveries.push({
        companyId,
        type,
        channel: 'email',
        target: person.email,
        webhookId: null,
        payload: { ...text, ...(person.isUnconfirmed ? toConfirm(person.language) : {}) },
      })
  }
  const data = {
    approval: {
      run_id: runId,
      link,
      tickets: tickets.map(({ ticketId, label }) => ({ id: ticketId, subject: label })),
    },
  }
  // A webhook for some servers is none for approvals.
  for (const hook of voices.hooks)
    if (
      (hook.events.length === 0 || hook.events.includes(type)) &&
      reaches(severity, hook.minSeverity) &&
      hook.scope.all
    )
      deliveries.push({
        companyId,
        type,
        channel: 'webhook',
        target: hook.url,
        webhookId: hook.id,
        payload: { company_id: companyId, data },
      })
  await addBellRows(tx, rung)
  await addDeliveries(hub, tx, deliveries)
  await ringLater(
    tx,
    rung.map(row => ({ id: row.id, userId: row.user_id })),
  )
}

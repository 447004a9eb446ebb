// Addresses that get mail of a company without having asked for it: group addresses, and users whose address another
// user entered. Alerts reach them at once, but an unconfirmed address gets a bounded number of messages; each of them
// has a link to confirm the address or to stop the messages (decision G-104). Users who read the deliveries do not see
// the link.
import { sql } from 'drizzle-orm'
import { auditByHub } from '../audit/audit.ts'
import type { Hub } from '../hub-context.ts'
import { newAddressToken, tokenHash } from '../identity/token-forms.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import type { NotificationLanguage } from './templates.ts'

export const addressStates = ['unconfirmed', 'confirmed', 'stopped'] as const
export type AddressState = (typeof addressStates)[number]

type AddressRow = { token_sealed: string; confirmed: boolean; stopped: boolean }

/** The state of an address; its row is created when the address is first used. */
async function noted(hub: Hub, companyId: string, address: string): Promise<AddressRow> {
  const { db } = hub.database
  const read = () =>
    db.execute<AddressRow>(sql`
      select token_sealed, confirmed_at is not null as confirmed, stopped_at is not null as stopped
      from mail_addresses where company_id = ${companyId} and address = ${address}`)
  const [known] = await read()
  if (known) return known
  const token = newAddressToken()
  await db.execute(sql`
    insert into mail_addresses (company_id, address, token_hash, token_sealed)
    values (${companyId}, ${address}, ${tokenHash(token)}, ${hub.sealer.seal(token)}) on conflict do nothing`)
  const [fresh] = await read()
  if (!fresh) throw new Error(`assertion failed: the address of company ${companyId} was just written down`)
  return fresh
}

const FOOTER = {
  en: 'Nobody has confirmed that this address wants these messages: {left} more will come.\nTo confirm it, or to stop them, open {link}',
  vi: 'Chưa ai xác nhận rằng địa chỉ này muốn nhận các tin này: còn {left} tin nữa.\nĐể xác nhận hoặc ngừng nhận, hãy mở {link}',
} as const

/** The footer of a message, and the link in it. */
export type Footer = { readonly text: string; readonly link: string }

/**
 * Whether a message may go to an address, as the reason why it may not, and what goes below it. Null: nothing, since
 * the address is confirmed. To one that is not, the message counts from here on: several may be under way.
 */
export async function admitMail(
  hub: Hub,
  companyId: string,
  target: string,
  language: NotificationLanguage,
): Promise<{ refusal: string } | { footer: Footer | null }> {
  const known = await noted(hub, companyId, target.toLowerCase())
  if (known.stopped) return { refusal: 'the address has asked for no more messages' }
  if (known.confirmed) return { footer: null }
  const token = hub.sealer.open(known.token_sealed)
  if (token === null) return { refusal: 'the link of the address was sealed with a key that is gone' }
  const max = hub.config['mail.unconfirmed_max']
  const [counted] = await hub.database.db.execute<{ sent_unconfirmed: number }>(sql`
    update mail_addresses set sent_unconfirmed = sent_unconfirmed + 1
    where company_id = ${companyId} and address = ${target.toLowerCase()} and sent_unconfirmed < ${max}
    returning sent_unconfirmed`)
  if (!counted)
    return {
      refusal: `nobody has confirmed the address in its first ${max} messages: open the link in one of them, then send this again`,
    }
  const link = `${hub.links.base}/address?token=${token}`
  const left = String(max - counted.sent_unconfirmed)
  return { footer: { link, text: FOOTER[language].replace('{left}', left).replace('{link}', link) } }
}

/** Takes back the count of a message that was admitted but not sent. */
export async function giveMailBack(hub: Hub, companyId: string, target: string): Promise<void> {
  await hub.database.db.execute(sql`
    update mail_addresses set sent_unconfirmed = greatest(0, sent_unconfirmed - 1)
    where company_id = ${companyId} and address = ${target.toLowerCase()}`)
}

export type AddressOfLink = { readonly companyId: string; readonly companyName: string; readonly address: string }

/** The address that a link belongs to; null when the link is invalid. */
export async function addressOfLink(hub: Hub, token: string): Promise<AddressOfLink | null> {
  const [row] = await hub.database.db.execute<{ company_id: string; name: string; address: string }>(sql`
    select a.company_id, c.name, a.address from mail_addresses a join companies c on c.id = a.company_id
    where a.token_hash = ${tokenHash(token)} and c.deleted_at is null`)
  return row ? { companyId: row.company_id, companyName: row.name, address: row.address } : null
}

/** Confirms an address or stops its messages, as its reader chose; each choice undoes the other. */
export async function decideAddress(
  hub: Hub,
  { companyId, address }: AddressOfLink,
  decision: 'confirm' | 'stop',
): Promise<void> {
  const isConfirmed = decision === 'confirm'
  await inTransaction(hub.database.db, async tx => {
    await tx.db.execute(sql`
      update mail_addresses set confirmed_at = case when ${isConfirmed} then now() end,
        stopped_at = case when ${isConfirmed} then null else now() end
      where company_id = ${companyId} and address = ${address}`)
    if (isConfirmed)
      await tx.db.execute(sql`
        update users set address_unconfirmed = false where company_id = ${companyId} and lower(email) = ${address}`)
    const subject = { type: 'address', id: null, name: address }
    await auditByHub(tx, companyId, isConfirmed ? 'address.confirm' : 'address.stop', subject)
  })
}

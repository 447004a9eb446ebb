// Invitations: an administrator says who may come and with which rights; whoever has the link sets name and password,
// and is a user. The link is in the e-mail and in the answer to the administrator, once; the hub keeps its hash.
import { randomUUID } from 'node:crypto'
import { and, eq, sql } from 'drizzle-orm'
import { DAY_MS } from '../../../core/limits.ts'
import { auditRequest, writeAudit } from '../audit/audit.ts'
import type { Hub } from '../hub-context.ts'
import { createUser, endUnconfirmedLogin, isLogin, isMember } from '../identity/accounts.ts'
import { refuseAbove } from '../identity/may-act-on-person.ts'
import { checkGiving } from '../identity/may-give-permissions.ts'
import { expandPermissions } from '../identity/permission-keys.ts'
import { newInvitationToken, tokenHash } from '../identity/token-forms.ts'
import { assignRoles, usableRoles } from '../identity/users-and-roles.ts'
import { countAskedMail } from '../notifications/asked-mail-rate.ts'
import { addDeliveries } from '../notifications/deliveries.ts'
import type { Executor } from '../platform/db/connect.ts'
import { companies, invitations, roles, users } from '../platform/db/schema-identity.ts'
import { inTransaction, inTransactionUnlessTaken, isAnyOf, type Tx } from '../platform/db/transaction.ts'
import { invalidField, tooManyRequests } from '../platform/http/api-error.ts'
import type { Caller } from '../platform/http/caller.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { findInvitation, type InvitationRow } from './invitation-list.ts'

const LIFE_DAYS = 7
/** Invitations of one address in ten minutes. */
const SAME_ADDRESS_MAX = 5

const MAIL = {
  en: {
    title: 'You are invited to {company}',
    body: '{inviter} invites you to the server monitoring of {company}.\n\nOpen this address to choose a password (until {until}):\n{link}\n',
  },
  vi: {
    title: 'Bạn được mời tham gia {company}',
    body: '{inviter} mời bạn tham gia hệ thống giám sát máy chủ của {company}.\n\nMở địa chỉ này để đặt mật khẩu (đến {until}):\n{link}\n',
  },
} as const

type InvitationInput = {
  readonly email: string
  readonly name?: string | null | undefined
  readonly permissions?: readonly string[] | null | undefined
  readonly role_ids?: readonly string[] | null | undefined
  readonly language?: 'en' | 'vi' | undefined
}

async function sendMail(
  hub: Hub,
  tx: Tx,
  invitation: typeof invitations.$inferSelect,
  inviter: string,
  link: string,
): Promise<void> {
  const [company] = await tx.db.select().from(companies).where(eq(companies.id, invitation.companyId))
  const words: Readonly<Record<string, string>> = {
    company: company?.name ?? '',
    inviter,
    link,
    until: invitation.expiresAt.toISOString().slice(0, 16).replace('T', ' '),
  }
  const fill = (text: string) => text.replace(/\{(\w+)\}/g, (_, name: string) => words[name] ?? '')
  const mail = MAIL[invitation.language]
  // Other users can read deliveries, and the link is only for the invited person.
  const payload = { title: fill(mail.title), sealed_body: hub.sealer.seal(fill(mail.body)) }
  const { companyId, email: target } = invitation
  await addDeliveries(hub, tx, [{ companyId, channel: 'email', target, webhookId: null, type: 'invitation', payload }])
}

/**
 * The link in the mail carries more than the one that the inviter is shown, to prove that its user reads the mailbox.
 * The extra part is sealed, so that the inviter cannot derive it from the other link.
 */
const mailedLink = (hub: Hub, link: string, token: string): string =>
  `${link}&mailed=${hub.sealer.seal(tokenHash(token))}`
const isFromMail = (hub: Hub, { token, mailed }: InvitationLink): boolean =>
  hub.sealer.open(mailed) === tokenHash(token)

/** Bounds the invitations of one address, and of one company. Throws 429. */
function countInvitation(hub: Hub, caller: Caller, companyId: string, email: string): void {
  countAskedMail(hub, caller, companyId)
  const taken = hub.failureWindows.take(`invitation ${companyId} ${email}`, SAME_ADDRESS_MAX)
  if (!taken.allowed) throw tooManyRequests(taken.retryAfterSeconds)
}

type Invitation = typeof invitations.$inferSelect

/** The roles of an invitation that still exist. */
const rolesOf = (db: Executor, { roleIds }: Invitation) => db.select().from(roles).where(isAnyOf(roles.id, roleIds))

/** The permissions that an invitation grants: its own and those of its roles. */
async function permissionsOf(db: Executor, invitation: Invitation): Promise<string[]> {
  const given = await rolesOf(db, invitation)
  return [...invitation.permissions, ...given.flatMap(role => role.permissions)]
}

/**
 * Whether the inviter may still grant all of the invitation: exists, is not disabled, may work in the company, and
 * holds every permission. Otherwise somebody who was removed could come back by an earlier invitation.
 */
async function isStillGiven(db: Executor, invitation: Invitation): Promise<boolean> {
  const [inviter] = await db.execute<{ super_admin: boolean; permissions: string[]; roles: string[] | null }>(sql`
    select u.super_admin, u.permissions, (
      select array_agg(p) from user_roles ur join roles r on r.id = ur.role_id, unnest(r.permissions) p
      where ur.user_id = u.id) as roles
    from users u join companies c on c.id = u.company_id
    where u.id = ${invitation.invitedBy} and u.disabled_at is null and c.deleted_at is null
      and (u.super_admin or u.company_id = ${invitation.companyId} or exists (
        select 1 from user_company_grants g where g.user_id = u.id and g.company_id = ${invitation.companyId}))`)
  if (!inviter) return false
  if (inviter.super_admin) return true
  const held = expandPermissions([...inviter.permissions, ...(inviter.roles ?? [])])
  return expandPermissions(await permissionsOf(db, invitation)).isSubsetOf(held)
}

/** Invites; an earlier invitation of the same address stops working. Returns the link, which is shown only once. */
export async function invite(
  context: RouteContext,
  input: InvitationInput,
): Promise<{ row: InvitationRow; link: string; isMailed: boolean }> {
  const { hub, companyId, caller } = context
  checkGiving(caller, input.permissions ?? [], 'permissions')
  const token = newInvitationToken()
  const link = `${hub.links.base}/invitation?token=${token}`
  const isMailed = hub.config['smtp.url'] !== null
  const email = input.email.trim().toLowerCase()
  countInvitation(hub, caller, companyId, email)
  const row = await inTransactionUnlessTaken(hub.database.db, async tx => {
    if (await isMember(tx.db, companyId, email)) throw invalidField('email', 'taken')
    const chosen = await usableRoles(tx, companyId, input.role_ids ?? [])
    checkGiving(
      caller,
      chosen.flatMap(role => role.permissions),
      'role_ids',
    )
    const former = await tx.db
      .delete(invitations)
      .where(and(eq(invitations.companyId, companyId), sql`lower(${invitations.email}) = ${email}`))
      .returning()
    for (const each of former) refuseAbove(caller, await permissionsOf(tx.db, each))
    const id = randomUUID()
    await tx.db.insert(invitations).values({
      id,
      companyId,
      email,
      name: input.name ?? null,
      permissions: [...(input.permissions ?? [])],
      roleIds: chosen.map(role => role.id),
      language: input.language ?? context.language,
      tokenHash: tokenHash(token),
      invitedBy: caller.user.id,
      expiresAt: new Date(hub.now() + LIFE_DAYS * DAY_MS),
    })
    const made = await findInvitation(tx.db, companyId, id)
    if (isMailed) await sendMail(hub, tx, made.invitation, caller.user.name, mailedLink(hub, link, token))
    await auditRequest(tx, context, 'invitation.create', { type: 'invitation', id, name: email })
    return made
  })
  return { row, link, isMailed }
}

export async function withdrawInvitation(context: RouteContext, { invitation }: InvitationRow): Promise<void> {
  await inTransaction(context.hub.database.db, async tx => {
    refuseAbove(context.caller, await permissionsOf(tx.db, invitation))
    await tx.db.delete(invitations).where(eq(invitations.id, invitation.id))
    const subject = { type: 'invitation', id: invitation.id, name: invitation.email }
    await auditRequest(tx, context, 'invitation.withdraw', subject)
  })
}

export type Invited = { readonly companyName: string; readonly email: string; readonly name: string | null }

/** What the link's page shows; null for a link that is used up, withdrawn or too old. */
export async function invitationOf(hub: Hub, token: string): Promise<Invited | null> {
  const [row] = await hub.database.db
    .select({ invitation: invitations, companyName: companies.name })
    .from(invitations)
    .innerJoin(companies, eq(companies.id, invitations.companyId))
    .where(
      and(
        eq(invitations.tokenHash, tokenHash(token)),
        sql`${invitations.expiresAt} > ${new Date(hub.now()).toISOString()}`,
        sql`${companies.deletedAt} is null`,
      ),
    )
  if (!row || !(await isStillGiven(hub.database.db, row.invitation))) return null
  const { email, name } = row.invitation
  return { companyName: row.companyName, email, name }
}

/** The contents of a link: the token, and in a mail the proof that it was mailed. */
export type InvitationLink = { readonly token: string; readonly mailed: string }

type Visitor = { readonly ip: string; readonly userAgent: string | null }
type Accepted = { readonly id: string; readonly name: string; readonly companyId: string }

/**
 * Creates the user and uses up the invitation in one transaction. Null when the invitation is no longer valid. Only the
 * link of the mail confirms the address: the inviter has the other link, and may have entered anybody's address. An
 * address that is a login already is refused, or the password would be chosen in vain; the next login tells it anyway.
 */
export async function acceptInvitation(
  hub: Hub,
  link: InvitationLink,
  person: { readonly name: string; readonly password: string },
  visitor: Visitor,
): Promise<Accepted | 'login_taken' | null> {
  return inTransactionUnlessTaken(hub.database.db, async tx => {
    const [invitation] = await tx.db
      .select()
      .from(invitations)
      .where(
        and(
          eq(invitations.tokenHash, tokenHash(link.token)),
          sql`${invitations.expiresAt} > ${new Date(hub.now()).toISOString()}`,
        ),
      )
      .for('update')
    if (!invitation || !(await isStillGiven(tx.db, invitation))) return null
    const { companyId, email, permissions } = invitation
    const { name, password } = person
    const addressUnconfirmed = !isFromMail(hub, link)
    if (!addressUnconfirmed) await endUnconfirmedLogin(tx, companyId, email)
    if (await isLogin(tx.db, email)) return 'login_taken'
    await tx.db.delete(invitations).where(eq(invitations.id, invitation.id))
    const { id } = await createUser(tx, { companyId, email, name, password, permissions, addressUnconfirmed })
    await tx.db.update(users).set({ language: invitation.language }).where(eq(users.id, id))
    // A role that was deleted meanwhile is not granted.
    const known = await rolesOf(tx.db, invitation)
    await assignRoles(
      tx,
      id,
      known.map(role => role.id),
    )
    await writeAudit(tx, {
      companyId,
      actor: { type: 'user', id, name: person.name },
      action: 'invitation.accept',
      subject: { type: 'user', id, name: person.name },
      ...visitor,
    })
    return { id, name: person.name, companyId }
  })
}

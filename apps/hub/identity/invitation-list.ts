// Invitations that nobody has accepted yet, as administrators see them.
import { desc, eq } from 'drizzle-orm'
import { invitations, users } from '../platform/db/schema-identity.ts'
import { collection, ofCompany } from '../platform/http/collection.ts'
import { invitationResponse } from './identity-response.ts'

export const invitationCollection = collection({
  table: invitations,
  scope: ofCompany(invitations.companyId),
  select: db =>
    db
      .select({ invitation: invitations, inviter: { id: users.id, name: users.name } })
      .from(invitations)
      .leftJoin(users, eq(users.id, invitations.invitedBy)),
  order: [desc(invitations.createdAt), desc(invitations.id)],
  response: invitationResponse,
  present: ({ invitation, inviter }, { hub }) => ({
    id: invitation.id,
    company_id: invitation.companyId,
    email: invitation.email,
    name: invitation.name,
    permissions: invitation.permissions,
    role_ids: invitation.roleIds,
    language: invitation.language,
    invited_by: inviter,
    expired: invitation.expiresAt.getTime() <= hub.now(),
    expires_at: invitation.expiresAt,
    created_at: invitation.createdAt,
  }),
})

export const findInvitation = invitationCollection.find
export type InvitationRow = Awaited<ReturnType<typeof findInvitation>>

// Invitations that nobody has accepted yet, as administrators see them.
import { Type } from '@sinclair/typebox'
import { desc, eq } from 'drizzle-orm'
import { invitations, users } from '../platform/db/schema-identity.ts'
import { languages } from '../platform/http/api-texts.ts'
import { collection, ofCompany } from '../platform/http/collection.ts'
import { id, listed, named, nullable, reference, string, time, wordOf } from '../platform/http/response-schema.ts'

const invitationResponse = named('Invitation', {
  id: id(),
  company_id: id(),
  email: string(),
  name: nullable(string()),
  permissions: listed(string()),
  role_ids: listed(id()),
  language: wordOf(languages),
  invited_by: nullable(reference),
  expired: Type.Boolean(),
  expires_at: time(),
  created_at: time(),
})

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

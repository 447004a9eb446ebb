// REST: /invitations (group "Identity and permissions").
import { Type } from '@sinclair/typebox'
import { languages } from '../platform/http/api-texts.ts'
import { list } from '../platform/http/list.ts'
import { email, listOf, oneOf, optional, text, uuid } from '../platform/http/request-schema.ts'
import { resourceRoutes } from '../platform/http/resource.ts'
import { string } from '../platform/http/response-schema.ts'
import type { Route } from '../platform/http/route.ts'
import { invitationCollection } from './invitation-list.ts'
import { invite, withdrawInvitation } from './invitations.ts'

const TAG = 'Identity and permissions'
const VIEW = ['identity.view']
const MANAGE = ['identity.manage']
const LIST_MAX = 200
/** Beside the invitation, once. */
const invitationLink = { link: string(), mailed: Type.Boolean() }
const invitation = resourceRoutes({ path: '/invitations', parameter: 'invitation', tag: TAG, of: invitationCollection })

export const invitationRoutes: readonly Route[] = [
  list({
    path: '/invitations',
    tag: TAG,
    summary: 'Invitations that nobody has accepted yet, newest first',
    permissions: VIEW,
    of: invitationCollection,
  }),
  invitation.createWith({
    summary: 'Invite by e-mail; the link is shown once, and mailed when the hub can send mail',
    permissions: MANAGE,
    body: Type.Object({
      email: email(),
      name: optional(text(255)),
      permissions: optional(listOf(text(64), LIST_MAX)),
      role_ids: optional(listOf(uuid(), LIST_MAX)),
      language: Type.Optional(oneOf(languages)),
    }),
    beside: invitationLink,
    async act(context, body) {
      const { row, link, isMailed } = await invite(context, body)
      return { row, beside: { link, mailed: isMailed } }
    },
  }),
  invitation.delete({ summary: 'Withdraw an invitation', permissions: MANAGE, act: withdrawInvitation }),
]

// REST: /users, /roles, /permissions (group "Identity and permissions").

import { Type } from '@sinclair/typebox'
import { paged, pageOf, pageQuery } from '../platform/http/paging.ts'
import { email, listOf, oneOf, optional, text, timeZone, uuid } from '../platform/http/request-schema.ts'
import { answer, answerList, answerPage, string } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { languages } from '../platform/http/texts.ts'
import { invitationResponse, invitationWithLink, roleResponse, userResponse } from './identity-response.ts'
import { findInvitation, invite, listInvitations, presentInvitation, withdrawInvitation } from './invitations.ts'
import {
  addUser,
  changeUser,
  deleteRole,
  deleteUser,
  findRole,
  findUser,
  listRoles,
  listUsers,
  permissionsOfUser,
  presentRole,
  presentUser,
  saveRole,
  setUserEnabled,
  setUserRoles,
} from './people.ts'
import { assignablePermissions } from './permissions.ts'

const TAG = 'Identity and permissions'
const VIEW = ['identity.view']
const MANAGE = ['identity.manage']
const LIST_MAX = 200
const userSubject = ({ hub, companyId, params }: RouteContext) =>
  findUser(hub.database.db, companyId, params.user ?? '')
const roleSubject = ({ hub, companyId, params }: RouteContext) =>
  findRole(hub.database.db, companyId, params.role ?? '')
const permissions = listOf(text(64), LIST_MAX)
const roleIds = listOf(uuid(), LIST_MAX)

const userRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/users',
    tag: TAG,
    summary: 'List users by name',
    permissions: VIEW,
    query: Type.Object({ search: Type.Optional(text(255)), ...pageQuery }),
    answer: answerPage(userResponse),
    async handle({ hub, companyId, query, url }) {
      const page = pageOf(query)
      const { rows, total } = await listUsers(hub.database.db, companyId, query.search, page)
      return paged(url, page, total, rows.map(presentUser))
    },
  }),
  route({
    method: 'POST',
    path: '/users',
    tag: TAG,
    summary: 'Create a user, without a password',
    permissions: MANAGE,
    status: 201,
    body: Type.Object({
      email: email(),
      name: text(255),
      permissions: optional(permissions),
      role_ids: optional(roleIds),
    }),
    answer: answer(userResponse),
    handle: async context => ({ data: presentUser(await addUser(context, context.body)) }),
  }),
  route({
    method: 'GET',
    path: '/users/:user',
    tag: TAG,
    summary: 'Show a user',
    permissions: VIEW,
    subject: userSubject,
    answer: answer(userResponse),
    handle: async ({ subject }) => ({ data: presentUser(subject) }),
  }),
  route({
    method: 'PATCH',
    path: '/users/:user',
    tag: TAG,
    summary: 'Change a user',
    permissions: MANAGE,
    subject: userSubject,
    body: Type.Object({
      email: Type.Optional(email()),
      name: Type.Optional(text(255)),
      permissions: Type.Optional(permissions),
      language: Type.Optional(oneOf(languages)),
      time_zone: Type.Optional(timeZone()),
    }),
    answer: answer(userResponse),
    handle: async context => ({
      data: presentUser(await changeUser(context, context.subject.user.id, context.body)),
    }),
  }),
  route({
    method: 'DELETE',
    path: '/users/:user',
    tag: TAG,
    summary: 'Delete a user',
    permissions: MANAGE,
    subject: userSubject,
    async handle(context) {
      await deleteUser(context, context.subject.user.id)
      return undefined
    },
  }),
  ...(['enable', 'disable'] as const).map(action =>
    route({
      method: 'POST',
      path: `/users/:user/${action}`,
      tag: TAG,
      summary: action === 'enable' ? 'Enable a user' : 'Disable a user: tokens and sessions stop working',
      permissions: MANAGE,
      subject: userSubject,
      answer: answer(userResponse),
      handle: async context => ({
        data: presentUser(await setUserEnabled(context, context.subject.user.id, action === 'enable')),
      }),
    }),
  ),
  route({
    method: 'PUT',
    path: '/users/:user/roles',
    tag: TAG,
    summary: 'Set the roles of a user',
    permissions: MANAGE,
    subject: userSubject,
    body: Type.Object({ role_ids: roleIds }),
    answer: answer(userResponse),
    handle: async context => ({
      data: presentUser(await setUserRoles(context, context.subject.user.id, context.body.role_ids)),
    }),
  }),
  route({
    method: 'GET',
    path: '/users/:user/permissions',
    tag: TAG,
    summary: 'Effective permissions of a user',
    permissions: VIEW,
    subject: userSubject,
    answer: answerList(string()),
    handle: async ({ hub, subject }) => ({ data: await permissionsOfUser(hub.database.db, subject) }),
  }),
]

const roleRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/roles',
    tag: TAG,
    summary: 'List roles, the built-in ones first',
    permissions: VIEW,
    query: Type.Object(pageQuery),
    answer: answerPage(roleResponse),
    async handle({ hub, companyId, query, url }) {
      const page = pageOf(query)
      const { rows, total } = await listRoles(hub.database.db, companyId, page)
      return paged(url, page, total, rows.map(presentRole))
    },
  }),
  route({
    method: 'POST',
    path: '/roles',
    tag: TAG,
    summary: 'Create a role',
    permissions: MANAGE,
    status: 201,
    body: Type.Object({ name: text(255), permissions }),
    answer: answer(roleResponse),
    handle: async context => ({ data: presentRole(await saveRole(context, null, context.body)) }),
  }),
  route({
    method: 'GET',
    path: '/roles/:role',
    tag: TAG,
    summary: 'Show a role',
    permissions: VIEW,
    subject: roleSubject,
    answer: answer(roleResponse),
    handle: async ({ subject }) => ({ data: presentRole(subject) }),
  }),
  route({
    method: 'PATCH',
    path: '/roles/:role',
    tag: TAG,
    summary: 'Change a role',
    permissions: MANAGE,
    subject: roleSubject,
    body: Type.Object({ name: Type.Optional(text(255)), permissions: Type.Optional(permissions) }),
    answer: answer(roleResponse),
    handle: async context => ({ data: presentRole(await saveRole(context, context.subject.id, context.body)) }),
  }),
  route({
    method: 'PUT',
    path: '/roles/:role/permissions',
    tag: TAG,
    summary: 'Set the permissions of a role',
    permissions: MANAGE,
    subject: roleSubject,
    body: Type.Object({ permissions }),
    answer: answer(roleResponse),
    handle: async context => ({ data: presentRole(await saveRole(context, context.subject.id, context.body)) }),
  }),
  route({
    method: 'DELETE',
    path: '/roles/:role',
    tag: TAG,
    summary: 'Delete a role that nobody holds',
    permissions: MANAGE,
    subject: roleSubject,
    async handle(context) {
      await deleteRole(context, context.subject.id)
      return undefined
    },
  }),
  route({
    method: 'GET',
    path: '/permissions',
    tag: TAG,
    summary: 'The permission keys that can be given',
    permissions: VIEW,
    answer: answerList(string()),
    handle: async () => ({ data: assignablePermissions }),
  }),
]

const invitationRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/invitations',
    tag: TAG,
    summary: 'Invitations that nobody has accepted yet, newest first',
    permissions: VIEW,
    query: Type.Object(pageQuery),
    answer: answerPage(invitationResponse),
    async handle({ hub, companyId, query, url }) {
      const page = pageOf(query)
      const { rows, total } = await listInvitations(hub.database.db, companyId, page)
      return paged(
        url,
        page,
        total,
        rows.map(row => presentInvitation(row, hub.now())),
      )
    },
  }),
  route({
    method: 'POST',
    path: '/invitations',
    tag: TAG,
    summary: 'Invite by e-mail; the link is shown once, and mailed when the hub can send mail',
    permissions: MANAGE,
    status: 201,
    body: Type.Object({
      email: email(),
      name: optional(text(255)),
      permissions: optional(permissions),
      role_ids: optional(roleIds),
      language: Type.Optional(oneOf(languages)),
    }),
    answer: invitationWithLink,
    async handle(context) {
      const { row, link, isMailed } = await invite(context, context.body)
      return { data: presentInvitation(row, context.hub.now()), link, mailed: isMailed }
    },
  }),
  route({
    method: 'DELETE',
    path: '/invitations/:invitation',
    tag: TAG,
    summary: 'Withdraw an invitation',
    permissions: MANAGE,
    subject: ({ hub, companyId, params }) => findInvitation(hub.database.db, companyId, params.invitation ?? ''),
    async handle(context) {
      await withdrawInvitation(context, context.subject)
      return undefined
    },
  }),
]

export const identityRoutes: readonly Route[] = [...userRoutes, ...roleRoutes, ...invitationRoutes]

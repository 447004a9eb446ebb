// REST: /me (group "My account"): the caller itself. Tokens and passwords are managed elsewhere, on purpose.
import { Type } from '@sinclair/typebox'
import { auditCollection } from '../audit/audit-list.ts'
import { usableCompanies } from '../identity/company-of-caller.ts'
import { languages } from '../platform/http/api-texts.ts'
import { list } from '../platform/http/list.ts'
import { oneOf, text, timeZone } from '../platform/http/request-schema.ts'
import { answer, answerList, reference, string } from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import { changeOwn, endOwnSession, profile, sessionCollection } from './account.ts'
import { profileResponse } from './account-response.ts'
import { AVATAR_BYTES_MAX, checkedImage } from './avatar.ts'

const TAG = 'My account'
const AVATAR_EXAMPLE = 'data:image/png;base64,iVBORw0KGgo='

export const accountRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/me',
    tag: TAG,
    summary: 'Profile, company, permissions',
    answer: answer(profileResponse),
    handle: async context => ({ data: await profile(context) }),
  }),
  route({
    method: 'PATCH',
    path: '/me',
    accountPermission: 'identity.manage',
    tag: TAG,
    summary: 'Change name, language, time zone',
    body: Type.Object({
      name: Type.Optional(text(255)),
      language: Type.Optional(oneOf(languages)),
      time_zone: Type.Optional(timeZone()),
    }),
    answer: answer(profileResponse),
    async handle(context) {
      await changeOwn(context, context.body)
      return { data: await profile(context) }
    },
  }),
  route({
    method: 'PUT',
    path: '/me/avatar',
    accountPermission: 'identity.manage',
    tag: TAG,
    summary: 'Set the snapshot',
    body: Type.Object({ image: Type.String({ maxLength: 4 * AVATAR_BYTES_MAX, examples: [AVATAR_EXAMPLE] }) }),
    answer: answer(profileResponse),
    async handle(context) {
      await changeOwn(context, { avatar: checkedImage(context.body.image) })
      return { data: await profile(context) }
    },
  }),
  route({
    method: 'DELETE',
    path: '/me/avatar',
    accountPermission: 'identity.manage',
    tag: TAG,
    summary: 'Remove the snapshot',
    async handle(context) {
      await changeOwn(context, { avatar: null })
      return undefined
    },
  }),
  route({
    method: 'GET',
    path: '/me/permissions',
    tag: TAG,
    summary: 'Effective permissions of this token',
    answer: answerList(string()),
    handle: async ({ caller }) => ({ data: [...caller.permissions].sort() }),
  }),
  route({
    method: 'GET',
    path: '/me/companies',
    tag: TAG,
    summary: 'Companies usable in X-Company-Id',
    answer: answerList(reference),
    handle: async ({ hub, caller }) => ({ data: await usableCompanies(hub.database.db, caller) }),
  }),
  list({
    path: '/me/sessions',
    accountPermission: 'identity.view',
    tag: TAG,
    summary: 'Sessions of the caller',
    of: sessionCollection,
  }),
  route({
    method: 'DELETE',
    path: '/me/sessions/:session',
    accountPermission: 'identity.manage',
    tag: TAG,
    summary: 'End a session',
    async handle(context) {
      await endOwnSession(context, context.params.session ?? '')
      return undefined
    },
  }),
  list({
    path: '/me/activity',
    accountPermission: 'audit.view',
    tag: TAG,
    summary: 'Audit entries of the caller',
    of: auditCollection,
    within: ({ caller }) => ({ actor: caller.user.id }),
  }),
]

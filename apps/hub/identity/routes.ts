// REST: /users, /roles, /permissions (group "Identity and permissions").
import { Type } from '@sinclair/typebox'
import { languages } from '../platform/http/api-texts.ts'
import { list } from '../platform/http/list.ts'
import { email, listOf, oneOf, optional, text, timeZone, uuid } from '../platform/http/request-schema.ts'
import { resourceRoutes } from '../platform/http/resource.ts'
import { answerList, string } from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import { assignablePermissions } from './permission-keys.ts'
import { roleCollection } from './role-list.ts'
import { userCollection } from './user-list.ts'
import {
  addUser,
  type BeforeRoleGoes,
  changeUser,
  deleteRole,
  deleteUser,
  permissionsOfUser,
  saveRole,
  setUserEnabled,
  setUserRoles,
} from './users-and-roles.ts'

const TAG = 'Identity and permissions'
const VIEW = ['identity.view']
const MANAGE = ['identity.manage']
const LIST_MAX = 200
const permissions = listOf(text(64), LIST_MAX)
const roleIds = listOf(uuid(), LIST_MAX)
const user = resourceRoutes({ path: '/users', parameter: 'user', tag: TAG, of: userCollection })
const role = resourceRoutes({ path: '/roles', parameter: 'role', tag: TAG, of: roleCollection })

const userRoutes: readonly Route[] = [
  list({ path: '/users', tag: TAG, summary: 'List users by name', permissions: VIEW, of: userCollection }),
  user.create({
    summary: 'Create a user, without a password',
    permissions: MANAGE,
    body: Type.Object({
      email: email(),
      name: text(255),
      permissions: optional(permissions),
      role_ids: optional(roleIds),
    }),
    act: addUser,
  }),
  user.show({ summary: 'Show a user', permissions: VIEW }),
  user.change({
    summary: 'Change a user',
    permissions: MANAGE,
    body: Type.Object({
      email: Type.Optional(email()),
      name: Type.Optional(text(255)),
      permissions: Type.Optional(permissions),
      language: Type.Optional(oneOf(languages)),
      time_zone: Type.Optional(timeZone()),
    }),
    act: (context, row, body) => changeUser(context, row.user.id, body),
  }),
  user.delete({
    summary: 'Delete a user',
    permissions: MANAGE,
    act: (context, row) => deleteUser(context, row.user.id),
  }),
  user.act('enable', {
    summary: 'Enable a user',
    permissions: MANAGE,
    act: (context, row) => setUserEnabled(context, row.user.id, true),
  }),
  user.act('disable', {
    summary: 'Disable a user: tokens and sessions stop working',
    permissions: MANAGE,
    act: (context, row) => setUserEnabled(context, row.user.id, false),
  }),
  user.act('roles', {
    method: 'PUT',
    summary: 'Set the roles of a user',
    permissions: MANAGE,
    body: Type.Object({ role_ids: roleIds }),
    act: (context, row, body) => setUserRoles(context, row.user.id, body.role_ids),
  }),
  route({
    method: 'GET',
    path: '/users/:user/permissions',
    tag: TAG,
    summary: 'Effective permissions of a user',
    permissions: VIEW,
    resource: user.resource,
    answer: answerList(string()),
    handle: async ({ hub, resource }) => ({ data: await permissionsOfUser(hub.database.db, resource) }),
  }),
]

const roleRoutes = (beforeRoleGoes: BeforeRoleGoes): readonly Route[] => [
  list({
    path: '/roles',
    tag: TAG,
    summary: 'List roles, the built-in ones first',
    permissions: VIEW,
    of: roleCollection,
  }),
  role.create({
    summary: 'Create a role',
    permissions: MANAGE,
    body: Type.Object({ name: text(255), permissions }),
    act: (context, body) => saveRole(context, null, body),
  }),
  role.show({ summary: 'Show a role', permissions: VIEW }),
  role.change({
    summary: 'Change a role',
    permissions: MANAGE,
    body: Type.Object({ name: Type.Optional(text(255)), permissions: Type.Optional(permissions) }),
    act: (context, row, body) => saveRole(context, row.id, body),
  }),
  role.act('permissions', {
    method: 'PUT',
    summary: 'Set the permissions of a role',
    permissions: MANAGE,
    body: Type.Object({ permissions }),
    act: (context, row, body) => saveRole(context, row.id, body),
  }),
  role.delete({
    summary: 'Delete a role that nobody holds and no step of an approval needs',
    permissions: MANAGE,
    refusals: [409],
    act: (context, row) => deleteRole(context, row.id, beforeRoleGoes),
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

export const identityRoutes = (beforeRoleGoes: BeforeRoleGoes): readonly Route[] => [
  ...userRoutes,
  ...roleRoutes(beforeRoleGoes),
]

// REST: /teams (group "Identity and permissions").
import { Type } from '@sinclair/typebox'
import { list } from '../platform/http/list.ts'
import { text, uuid } from '../platform/http/request-schema.ts'
import { resourceRoutes } from '../platform/http/resource.ts'
import { type Route, route } from '../platform/http/route.ts'
import { addMember, createTeam, deleteTeam, removeMember, renameTeam, teamCollection } from './teams.ts'

const TAG = 'Identity and permissions'
const VIEW = ['identity.view']
const MANAGE = ['identity.manage']
const body = Type.Object({ name: text(255) })
const team = resourceRoutes({ path: '/teams', parameter: 'team', tag: TAG, of: teamCollection })

export const teamRoutes: readonly Route[] = [
  list({ path: '/teams', tag: TAG, summary: 'List teams', permissions: VIEW, of: teamCollection }),
  team.create({ summary: 'Create a team', permissions: MANAGE, body, act: createTeam }),
  team.show({ summary: 'Show a team', permissions: VIEW }),
  team.change({ summary: 'Rename a team', permissions: MANAGE, body, act: renameTeam }),
  team.delete({
    summary: 'Delete a team that no step of an approval needs',
    permissions: MANAGE,
    refusals: [409],
    act: deleteTeam,
  }),
  team.act('members', {
    summary: 'Add a member',
    permissions: MANAGE,
    status: 201,
    body: Type.Object({ user_id: uuid() }),
    act: (context, row, given) => addMember(context, row, given.user_id),
  }),
  route({
    method: 'DELETE',
    path: '/teams/:team/members/:user',
    tag: TAG,
    summary: 'Remove a member',
    permissions: MANAGE,
    resource: team.resource,
    async handle(context) {
      await removeMember(context, context.resource, context.params.user ?? '')
      return undefined
    },
  }),
]

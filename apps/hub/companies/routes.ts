// REST: /companies (group "Identity and permissions"): the caller's company and what is below it.
import { Type } from '@sinclair/typebox'
import { companyResponse, companyWithPlan, grantHolder, grantResponse } from '../identity/identity-response.ts'
import { list } from '../platform/http/list.ts'
import { optional, text, uuid } from '../platform/http/request-schema.ts'
import { resourceRoutes } from '../platform/http/resource.ts'
import { answer, answerList } from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import { changeChild, createChild, deleteChild, shownPlan } from './child-companies.ts'
import { childCompanies, companyTree, findCompany, presentCompany } from './company-list.ts'
import { grant, holdersOf, withdrawGrant } from './grants.ts'

const TAG = 'Identity and permissions'
const VIEW = ['identity.view']
const MANAGE = ['identity.manage']
const company = resourceRoutes({
  path: '/companies',
  parameter: 'company',
  tag: TAG,
  of: { response: companyResponse, present: presentCompany },
  find: findCompany,
})
const { resource } = company

export const companyRoutes: readonly Route[] = [
  list({
    path: '/companies',
    tag: TAG,
    summary: 'The company and those below it',
    permissions: VIEW,
    of: companyTree,
  }),
  company.create({
    summary: 'Create a child company',
    permissions: MANAGE,
    body: Type.Object({ name: text(255), parent_id: optional(uuid()) }),
    act: createChild,
  }),
  route({
    method: 'GET',
    path: '/companies/:company',
    tag: TAG,
    summary: 'Show a company with its effective plan',
    permissions: VIEW,
    resource,
    answer: answer(companyWithPlan),
    handle: async context => ({
      data: {
        ...presentCompany(context.resource),
        effective_plan: await shownPlan(context, context.resource.id),
      },
    }),
  }),
  company.change({
    summary: 'Rename a company, or move it below another one',
    permissions: MANAGE,
    body: Type.Object({ name: Type.Optional(text(255)), parent_id: Type.Optional(uuid()) }),
    act: changeChild,
  }),
  company.delete({
    summary: 'Delete a child company; its data stay for 30 days',
    permissions: MANAGE,
    act: deleteChild,
  }),
  list({
    path: '/companies/:company/children',
    tag: TAG,
    summary: 'Direct children',
    permissions: VIEW,
    resource,
    of: childCompanies,
    within: ({ resource }) => ({ parent_id: resource.id }),
  }),
  route({
    method: 'GET',
    path: '/companies/:company/grants',
    tag: TAG,
    summary: 'Who may work in it through X-Company-Id',
    permissions: VIEW,
    resource,
    answer: answerList(grantHolder),
    handle: async ({ hub, resource }) => ({ data: await holdersOf(hub.database.db, resource.id) }),
  }),
  route({
    method: 'POST',
    path: '/companies/:company/grants',
    tag: TAG,
    summary: "Let a user of the caller's company work in it",
    permissions: MANAGE,
    resource,
    status: 201,
    body: Type.Object({ user_id: uuid() }),
    answer: answer(grantResponse),
    handle: async context => ({ data: await grant(context, context.resource, context.body.user_id) }),
  }),
  route({
    method: 'DELETE',
    path: '/companies/:company/grants/:user',
    tag: TAG,
    summary: 'Withdraw a grant',
    permissions: MANAGE,
    resource,
    async handle(context) {
      await withdrawGrant(context, context.resource, context.params.user ?? '')
      return undefined
    },
  }),
]

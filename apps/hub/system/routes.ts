// REST: /system: settings, plans, maintenance, and what the hub is (decisions ).
import { Type } from '@sinclair/typebox'
import { queuedResponse } from '../notifications/deliveries.ts'
import { email, oneOf } from '../platform/http/request-schema.ts'
import { answer, answerList } from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import { settingKeys } from '../system-state/setting-definitions.ts'
import {
  assignPlan,
  changePlanValues,
  companyOfPath,
  companyPlanBody,
  companyPlanResponse,
  createPlan,
  listPlans,
  newPlanBody,
  planBody,
  planCode,
  planOfPath,
  planResponse,
} from './change-plans.ts'
import { infoResponse, systemInfo } from './info.ts'
import { testMail } from './mail-test.ts'
import { maintenanceBody, maintenanceOf, maintenanceResponse, setMaintenance } from './set-maintenance.ts'
import {
  listSettings,
  resetSetting,
  setSetting,
  settingLevels,
  settingOfPath,
  settingResponse,
  showSetting,
} from './settings.ts'

const TAG = 'System'
const VIEW = ['system.settings.view']
const MANAGE = ['system.settings.manage']
const KEY = { key: oneOf(settingKeys) }
const level = { level: Type.Optional(oneOf(settingLevels)) }

const settingRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/system/settings',
    tag: TAG,
    summary: 'Settings with the values that hold in the company',
    permissions: VIEW,
    query: Type.Object(level),
    answer: answerList(settingResponse),
    handle: async context => ({ data: await listSettings(context, context.query.level) }),
  }),
  route({
    method: 'GET',
    path: '/system/settings/:key',
    tag: TAG,
    summary: 'Show a setting',
    permissions: VIEW,
    resource: settingOfPath,
    pathParameters: KEY,
    answer: answer(settingResponse),
    handle: async context => ({ data: await showSetting(context, context.resource) }),
  }),
  route({
    method: 'PUT',
    path: '/system/settings/:key',
    tag: TAG,
    summary: 'Set a value, for the company or for all',
    permissions: MANAGE,
    resource: settingOfPath,
    pathParameters: KEY,
    query: Type.Object(level),
    body: Type.Object({ value: Type.Unsafe<unknown>(Type.Any({ examples: [true] })) }),
    answer: answer(settingResponse),
    async handle(context) {
      const { resource, body, query } = context
      await setSetting(context, resource, { value: body.value, level: query.level })
      return { data: await showSetting(context, resource) }
    },
  }),
  route({
    method: 'DELETE',
    path: '/system/settings/:key',
    tag: TAG,
    summary: 'Take a value back',
    permissions: MANAGE,
    resource: settingOfPath,
    pathParameters: KEY,
    query: Type.Object(level),
    async handle(context) {
      await resetSetting(context, context.resource, context.query.level)
      return undefined
    },
  }),
  route({
    method: 'POST',
    path: '/system/settings/mail/test',
    tag: TAG,
    summary: 'Send a test mail',
    permissions: MANAGE,
    status: 202,
    body: Type.Object({ to: Type.Optional(email()) }),
    answer: answer(queuedResponse),
    handle: async context => ({ data: { delivery_id: await testMail(context, context.body.to) } }),
  }),
]

const planRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/system/plans',
    tag: TAG,
    summary: 'Plans',
    permissions: VIEW,
    answer: answerList(planResponse),
    handle: async ({ hub }) => ({ data: await listPlans(hub.database.db) }),
  }),
  route({
    method: 'POST',
    path: '/system/plans',
    tag: TAG,
    summary: 'Create a plan',
    permissions: MANAGE,
    superAdmin: true,
    status: 201,
    body: newPlanBody,
    answer: answer(planResponse),
    handle: async context => ({ data: await createPlan(context, context.body) }),
  }),
  route({
    method: 'PATCH',
    path: '/system/plans/:plan',
    tag: TAG,
    summary: 'Change a plan, and with it what the companies on it have',
    permissions: MANAGE,
    superAdmin: true,
    resource: planOfPath,
    pathParameters: planCode,
    body: planBody,
    answer: answer(planResponse),
    handle: async context => ({ data: await changePlanValues(context, context.resource, context.body) }),
  }),
  route({
    method: 'PUT',
    path: '/system/companies/:company/plan',
    tag: TAG,
    summary: 'Give a company a plan, until a day',
    permissions: MANAGE,
    superAdmin: true,
    resource: companyOfPath,
    body: companyPlanBody,
    answer: answer(companyPlanResponse),
    handle: async context => ({ data: await assignPlan(context, context.resource, context.body) }),
  }),
]

const stateRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/system/maintenance',
    tag: TAG,
    summary: 'Whether the hub is in maintenance',
    permissions: VIEW,
    answer: answer(maintenanceResponse),
    handle: async context => ({ data: await maintenanceOf(context) }),
  }),
  route({
    method: 'PUT',
    path: '/system/maintenance',
    tag: TAG,
    summary: 'Begin or end a maintenance',
    permissions: MANAGE,
    superAdmin: true,
    body: maintenanceBody,
    answer: answer(maintenanceResponse),
    async handle(context) {
      await setMaintenance(context, context.body)
      return { data: await maintenanceOf(context) }
    },
  }),
  route({
    method: 'GET',
    path: '/system/info',
    tag: TAG,
    summary: 'Versions; for super administrators also how the hub is',
    permissions: VIEW,
    answer: answer(infoResponse),
    handle: async context => ({ data: await systemInfo(context) }),
  }),
]

export const systemRoutes: readonly Route[] = [...settingRoutes, ...planRoutes, ...stateRoutes]

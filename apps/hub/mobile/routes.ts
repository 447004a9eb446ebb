// REST: /mobile (decisions ): devices of the caller, what they want, and the start screen.
import { Type } from '@sinclair/typebox'
import { languages } from '../platform/http/api-texts.ts'
import { list } from '../platform/http/list.ts'
import { Reply } from '../platform/http/reply.ts'
import { boolean, oneOf, optional, text, timeZone } from '../platform/http/request-schema.ts'
import { answer, answerList, id, time } from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import {
  changeDevice,
  deleteDevice,
  deviceOfPath,
  deviceResponse,
  listDevices,
  platforms,
  presentDevice,
  registerDevice,
  testDevice,
} from './devices.ts'
import { mobileSummary, shortAlerts, summaryResponse } from './mobile-screen.ts'
import { mobileSettings, mobileSettingsBody, mobileSettingsResponse, setMobileSettings } from './mobile-settings.ts'

const TAG = 'Mobile app'
const VIEW = ['monitoring.view']
const OWN = 'monitoring.view'
const KEY_MAX = 256
const ENDPOINT_MAX = 2048

const fields = {
  token: Type.Optional(text(4096)),
  subscription: Type.Optional(
    Type.Object({
      endpoint: text(ENDPOINT_MAX),
      keys: Type.Object({ p256dh: text(KEY_MAX), auth: text(KEY_MAX) }),
    }),
  ),
  app_version: optional(text(64)),
  language: Type.Optional(oneOf(languages)),
  time_zone: Type.Optional(timeZone()),
}

const deviceRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/mobile/devices',
    accountPermission: OWN,
    tag: TAG,
    summary: 'Devices of the caller',
    answer: answerList(deviceResponse),
    handle: async context => ({ data: (await listDevices(context)).map(presentDevice) }),
  }),
  route({
    method: 'POST',
    path: '/mobile/devices',
    accountPermission: OWN,
    tag: TAG,
    summary: 'Register a device; a token that is known is found again',
    status: 201,
    otherResponses: { 200: answer(deviceResponse) },
    body: Type.Object({ platform: oneOf(platforms), name: text(100), ...fields }),
    answer: answer(deviceResponse),
    async handle(context) {
      const { device, isNew } = await registerDevice(context, context.body)
      return new Reply({ data: presentDevice(device) }, { status: isNew ? 201 : 200 })
    },
  }),
  route({
    method: 'PATCH',
    path: '/mobile/devices/:device',
    accountPermission: OWN,
    tag: TAG,
    summary: 'Change a device',
    resource: deviceOfPath,
    body: Type.Object({ name: Type.Optional(text(100)), ...fields, enabled: Type.Optional(boolean()) }),
    answer: answer(deviceResponse),
    handle: async context => ({ data: presentDevice(await changeDevice(context, context.resource, context.body)) }),
  }),
  route({
    method: 'DELETE',
    path: '/mobile/devices/:device',
    accountPermission: OWN,
    tag: TAG,
    summary: 'Unregister a device',
    resource: deviceOfPath,
    async handle(context) {
      await deleteDevice(context, context.resource)
      return undefined
    },
  }),
  route({
    method: 'POST',
    path: '/mobile/devices/:device/test',
    accountPermission: OWN,
    tag: TAG,
    summary: 'Send a test',
    resource: deviceOfPath,
    status: 202,
    answer: answer(Type.Object({ delivery_id: Type.Union([id(), Type.Null()]) })),
    handle: async context => ({ data: { delivery_id: await testDevice(context, context.resource) } }),
  }),
]

export const mobileRoutes: readonly Route[] = [
  ...deviceRoutes,
  route({
    method: 'GET',
    path: '/mobile/summary',
    tag: TAG,
    summary: 'The start screen',
    permissions: VIEW,
    answer: answer(summaryResponse),
    handle: async context => ({ data: await mobileSummary(context) }),
  }),
  list({
    path: '/mobile/alerts',
    tag: TAG,
    summary: 'Active alerts in a short form, newest first',
    permissions: VIEW,
    of: shortAlerts,
    // From when on the next request asks for what was updated since.
    meta: { answer: { server_time: time() }, read: ({ hub }) => ({ server_time: new Date(hub.now()) }) },
  }),
  route({
    method: 'GET',
    path: '/mobile/settings',
    accountPermission: OWN,
    tag: TAG,
    summary: 'What the caller wants to be pushed',
    answer: answer(mobileSettingsResponse),
    handle: async context => ({ data: await mobileSettings(context) }),
  }),
  route({
    method: 'PUT',
    path: '/mobile/settings',
    accountPermission: OWN,
    tag: TAG,
    summary: 'Set what the caller wants to be pushed',
    body: mobileSettingsBody,
    answer: answer(mobileSettingsResponse),
    async handle(context) {
      await setMobileSettings(context, context.body)
      return { data: await mobileSettings(context) }
    },
  }),
]

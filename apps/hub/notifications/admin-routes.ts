// REST: /notifications/channels, templates and deliveries: the settings of a company that apply to all its users
// (decision G-104).
import { Type } from '@sinclair/typebox'
import { severities } from '../../../core/alerting/rules/rule.ts'
import { notFound } from '../platform/http/api-error.ts'
import { languages } from '../platform/http/api-texts.ts'
import { list } from '../platform/http/list.ts'
import { boolean, email, oneOf, scope, text } from '../platform/http/request-schema.ts'
import { resourceRoutes } from '../platform/http/resource.ts'
import { answer, answerList, named, string, wordOf } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { approvalSample } from './approval-texts.ts'
import { changeChannel, channelCollection, createChannel, deleteChannel, testChannel } from './channels.ts'
import { deliveryCollection, queuedResponse } from './deliveries.ts'
import { redeliver } from './delivery-outcome.ts'
import { resourceSample } from './resource-texts.ts'
import { securitySample } from './security-texts.ts'
import {
  fillTemplate,
  fillText,
  listTemplates,
  resetTemplate,
  setTemplate,
  type TemplateType,
  templateTypes,
} from './templates.ts'

const TAG = 'Notifications'
const VIEW = ['notifications.view']
const MANAGE = ['notifications.manage']

const channelFields = {
  min_severity: Type.Optional(oneOf(severities)),
  scope: Type.Optional(scope()),
  enabled: Type.Optional(boolean()),
}
const channel = resourceRoutes({
  path: '/notifications/channels',
  parameter: 'channel',
  tag: TAG,
  of: channelCollection,
})

const channelRoutes: readonly Route[] = [
  list({
    path: '/notifications/channels',
    tag: TAG,
    summary: 'Group addresses of the company',
    permissions: VIEW,
    of: channelCollection,
  }),
  channel.create({
    summary: 'Create a group address',
    permissions: MANAGE,
    body: Type.Object({ name: text(255), type: Type.Optional(oneOf(['email'])), address: email(), ...channelFields }),
    act: createChannel,
  }),
  channel.show({ summary: 'Show a group address', permissions: VIEW }),
  channel.change({
    summary: 'Change a group address',
    permissions: MANAGE,
    body: Type.Object({ name: Type.Optional(text(255)), address: Type.Optional(email()), ...channelFields }),
    act: changeChannel,
  }),
  channel.delete({ summary: 'Delete a group address', permissions: MANAGE, act: deleteChannel }),
  route({
    method: 'POST',
    path: '/notifications/channels/:channel/test',
    tag: TAG,
    summary: 'Send a test',
    permissions: MANAGE,
    resource: channel.resource,
    status: 202,
    answer: answer(queuedResponse),
    handle: async context => ({ data: { delivery_id: await testChannel(context, context.resource) } }),
  }),
]

const textResponse = { title: string(), body: string() }
const templateResponse = named('NotificationTemplate', {
  template: wordOf(templateTypes),
  language: wordOf(languages),
  ...textResponse,
  is_default: Type.Boolean(),
})
const templatePreview = named('FilledTemplate', textResponse)

const isTemplate = (name: string | undefined): name is TemplateType => templateTypes.some(type => type === name)

async function templateOf({ params }: RouteContext): Promise<TemplateType> {
  if (!isTemplate(params.template)) throw notFound()
  return params.template
}

const sample = (nowMs: number) => ({
  id: '00000000-0000-4000-8000-000000000000',
  server: { name: 'web-1' },
  rule: { name: 'High CPU' },
  series_key: 'cpu_usage_percent',
  severity: 'warning',
  state: 'open',
  last_value: 93.5,
  threshold: 90,
  opened_at: new Date(nowMs - 600_000),
  resolved_at: null,
  suppressed: false,
})

/** What the texts of what is no alert are filled with, by the beginning of their names. */
const samples: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  security: securitySample,
  approval: approvalSample,
  resource: resourceSample,
  certificate: resourceSample,
}

const templateBody = Type.Object({ language: oneOf(languages), title: text(255), body: text(4000) })
/** What the routes of one template have in common. */
const ofTemplate = {
  pathParameters: { template: oneOf(templateTypes) },
  tag: TAG,
  permissions: MANAGE,
  resource: templateOf,
}

const templateRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/notifications/templates',
    tag: TAG,
    summary: 'Texts by event type and language',
    permissions: VIEW,
    answer: answerList(templateResponse),
    handle: async ({ hub, companyId }) => ({ data: await listTemplates(hub.database.db, companyId) }),
  }),
  route({
    ...ofTemplate,
    method: 'PUT',
    path: '/notifications/templates/:template',
    summary: 'Change a text',
    body: templateBody,
    answer: answer(templateResponse),
    async handle(context) {
      const { body, resource: template } = context
      await setTemplate(context, template, body)
      return { data: { template, ...body, is_default: false } }
    },
  }),
  route({
    ...ofTemplate,
    method: 'DELETE',
    path: '/notifications/templates/:template',
    summary: 'Back to the default texts',
    async handle(context) {
      await resetTemplate(context, context.resource)
      return undefined
    },
  }),
  route({
    ...ofTemplate,
    method: 'POST',
    path: '/notifications/templates/:template/preview',
    summary: 'Fill a text with a sample alert',
    body: templateBody,
    answer: answer(templatePreview),
    async handle({ hub, body, resource }) {
      const values = samples[resource.split('.')[0] ?? '']
      const fill = (source: string) =>
        values ? fillText(source, values) : fillTemplate(source, sample(hub.now()), hub.config.public_url, hub.now())
      return { data: { title: fill(body.title), body: fill(body.body) } }
    },
  }),
]

const deliveryRoutes: readonly Route[] = [
  list({
    path: '/notifications/deliveries',
    tag: TAG,
    summary: 'Deliveries, newest first',
    permissions: VIEW,
    of: deliveryCollection,
  }),
  route({
    method: 'POST',
    path: '/notifications/deliveries/:delivery/retry',
    tag: TAG,
    summary: 'Send a delivery again',
    permissions: MANAGE,
    status: 202,
    answer: answer(queuedResponse),
    handle: async context => ({
      data: { delivery_id: await redeliver(context, context.params.delivery ?? '', { refusesDelivered: true }) },
    }),
  }),
]

export const notificationAdminRoutes: readonly Route[] = [...channelRoutes, ...templateRoutes, ...deliveryRoutes]

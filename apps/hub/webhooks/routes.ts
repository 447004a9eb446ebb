// REST: /webhooks (decision G-105).

import { Type } from '@sinclair/typebox'
import { severities } from '../../../core/alerting/rules/rule.ts'
import { queuedResponse, webhookDeliveries } from '../notifications/deliveries.ts'
import { redeliver } from '../notifications/delivery-outcome.ts'
import { templateTypes } from '../notifications/templates.ts'
import { list } from '../platform/http/list.ts'
import { boolean, listOf, oneOf, optional, scope, text } from '../platform/http/request-schema.ts'
import { resourceRoutes } from '../platform/http/resource.ts'
import { answer, answerList, string } from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import { refuseManaged } from '../resources/manifest-lock.ts'
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  pingWebhook,
  rotateWebhookSecret,
  setWebhookEnabled,
  webhookCollection,
} from './webhooks.ts'

const TAG = 'Webhooks'
const VIEW = ['webhooks.view']
const MANAGE = ['webhooks.manage']
const URL_MAX = 2048

const webhookEvents = [...templateTypes, 'ping'] as const

const settings = {
  events: optional(listOf(oneOf(templateTypes), templateTypes.length)),
  min_severity: Type.Optional(oneOf(severities)),
  scope: Type.Optional(scope()),
  enabled: Type.Optional(boolean()),
}
/** The secret stands beside the webhook, once. */
const beside = { secret: string() }
const webhook = resourceRoutes({ path: '/webhooks', parameter: 'webhook', tag: TAG, of: webhookCollection })
const { resource } = webhook

export const webhookRoutes: readonly Route[] = [
  list({ path: '/webhooks', tag: TAG, summary: 'List webhooks', permissions: VIEW, of: webhookCollection }),
  webhook.createWith({
    summary: 'Create a webhook; its secret is shown once',
    permissions: MANAGE,
    body: Type.Object({ name: text(255), url: text(URL_MAX), ...settings }),
    beside,
    act: createWebhook,
  }),
  route({
    method: 'GET',
    path: '/webhooks/events',
    tag: TAG,
    summary: 'Event types',
    permissions: VIEW,
    answer: answerList(string()),
    handle: async () => ({ data: webhookEvents }),
  }),
  webhook.show({ summary: 'Show a webhook', permissions: VIEW }),
  webhook.change({
    summary: 'Change a webhook',
    permissions: MANAGE,
    body: Type.Object({ name: Type.Optional(text(255)), url: Type.Optional(text(URL_MAX)), ...settings }),
    act: async (context, row, body) => {
      await refuseManaged(context, 'webhook', row.id)
      return changeWebhook(context, row, body)
    },
  }),
  webhook.delete({
    summary: 'Delete a webhook',
    permissions: MANAGE,
    act: async (context, row) => {
      await refuseManaged(context, 'webhook', row.id)
      await deleteWebhook(context, row)
    },
  }),
  webhook.act('enable', {
    summary: 'Enable a webhook',
    permissions: MANAGE,
    act: async (context, row) => {
      await refuseManaged(context, 'webhook', row.id)
      return setWebhookEnabled(context, row, true)
    },
  }),
  webhook.act('disable', {
    summary: 'Disable a webhook',
    permissions: MANAGE,
    act: async (context, row) => {
      await refuseManaged(context, 'webhook', row.id)
      return setWebhookEnabled(context, row, false)
    },
  }),
  route({
    method: 'POST',
    path: '/webhooks/:webhook/test',
    tag: TAG,
    summary: 'Send a ping',
    permissions: MANAGE,
    resource,
    status: 202,
    answer: answer(queuedResponse),
    handle: async context => ({ data: { delivery_id: await pingWebhook(context, context.resource) } }),
  }),
  webhook.actWith('rotate-secret', {
    summary: 'A new secret, shown once',
    permissions: MANAGE,
    beside,
    act: rotateWebhookSecret,
  }),
  list({
    path: '/webhooks/:webhook/deliveries',
    tag: TAG,
    summary: 'Deliveries, newest first',
    permissions: VIEW,
    resource,
    of: webhookDeliveries,
    within: ({ resource }) => ({ webhook_id: resource.id }),
  }),
  route({
    method: 'POST',
    path: '/webhooks/:webhook/deliveries/:delivery/redeliver',
    tag: TAG,
    summary: 'Send a delivery again',
    permissions: MANAGE,
    resource,
    status: 202,
    answer: answer(queuedResponse),
    handle: async context => ({
      data: {
        delivery_id: await redeliver(context, context.params.delivery ?? '', { webhookId: context.resource.id }),
      },
    }),
  }),
]

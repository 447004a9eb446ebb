// REST: /monitoring/alerts (document 1 "Alerts"; decision G-94).
import { Type } from '@sinclair/typebox'
import { list } from '../platform/http/list.ts'
import { optional, text } from '../platform/http/request-schema.ts'
import { resourceRoutes } from '../platform/http/resource.ts'
import { answer } from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import { alertCollection, alertEventCollection, presentAlert } from './alert-list.ts'
import { alertCommentResponse, alertStatsResponse, alertWithComments } from './alert-response.ts'
import { acknowledgeAlert, alertStats, closeAlert, commentAlert, commentsOf } from './alerts.ts'

const TAG = 'Alerts'
const PATH = '/monitoring/alerts'
const VIEW = ['monitoring.view']
const MANAGE = ['monitoring.manage']
const COMMENT_MAX = 1000
const comment = { comment: optional(text(COMMENT_MAX)) }
const body = Type.Object(comment)
const alert = resourceRoutes({ path: PATH, parameter: 'alert', tag: TAG, of: alertCollection })
const { resource } = alert

export const alertRoutes: readonly Route[] = [
  list({ path: PATH, tag: TAG, summary: 'List alerts, newest first', permissions: VIEW, of: alertCollection }),
  route({
    method: 'GET',
    path: `${PATH}/stats`,
    tag: TAG,
    summary: 'Counts by state and severity',
    permissions: VIEW,
    answer: answer(alertStatsResponse),
    handle: async ({ hub, companyId }) => ({ data: await alertStats(hub.database.db, companyId) }),
  }),
  route({
    method: 'GET',
    path: `${PATH}/:alert`,
    tag: TAG,
    summary: 'Show an alert with its comments',
    permissions: VIEW,
    resource,
    answer: answer(alertWithComments),
    handle: async ({ hub, resource }) => ({
      data: { ...presentAlert(resource), comments: await commentsOf(hub.database.db, resource.alert.id) },
    }),
  }),
  list({
    path: `${PATH}/:alert/events`,
    tag: TAG,
    summary: 'The events of an alert, newest first',
    permissions: VIEW,
    resource,
    of: alertEventCollection,
    within: ({ resource }) => ({ alert_id: resource.alert.id }),
  }),
  list({
    path: `${PATH}/:alert/children`,
    tag: TAG,
    summary: 'Grouped children of a wide-area incident',
    permissions: VIEW,
    resource,
    of: alertCollection,
    within: ({ resource }) => ({ group_id: resource.alert.id }),
  }),
  alert.act('acknowledge', {
    summary: 'Acknowledge an alert',
    permissions: MANAGE,
    body,
    act: (context, row, given) => acknowledgeAlert(context, row.alert.id, given.comment ?? null),
  }),
  alert.act('close', {
    summary: 'Close an alert by hand',
    permissions: MANAGE,
    body,
    act: (context, row, given) => closeAlert(context, row.alert.id, given.comment ?? null),
  }),
  route({
    method: 'POST',
    path: `${PATH}/:alert/comments`,
    tag: TAG,
    summary: 'Comment an alert',
    permissions: MANAGE,
    resource,
    status: 201,
    body: Type.Object({ comment: text(COMMENT_MAX) }),
    answer: answer(alertCommentResponse),
    handle: async context => ({ data: await commentAlert(context, context.resource.alert.id, context.body.comment) }),
  }),
  alert.bulk('acknowledge', {
    summary: 'Acknowledge many alerts',
    permissions: MANAGE,
    ids: 'alert_ids',
    body: comment,
    act: (context, id, given) => acknowledgeAlert(context, id, given.comment ?? null),
  }),
  alert.bulk('close', {
    summary: 'Close many alerts by hand',
    permissions: MANAGE,
    ids: 'alert_ids',
    body: comment,
    act: (context, id, given) => closeAlert(context, id, given.comment ?? null),
  }),
]

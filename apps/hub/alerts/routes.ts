// REST: /monitoring/alerts (document 1 "Alerts"; decision G-94).

import { Type } from '@sinclair/typebox'
import { severities } from '../../../core/alerting/rules/rule.ts'
import { alertStates } from '../../../core/lifecycle/alert.ts'
import { bulkAnswer, forEachId } from '../platform/http/bulk.ts'
import { paged, pageOf, pageQuery } from '../platform/http/paging.ts'
import { instant, listOf, oneOf, optional, text, uuid } from '../platform/http/request-schema.ts'
import { answer, answerPage } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import {
  alertAnswer,
  alertCommentAnswer,
  alertEventAnswer,
  alertStatsAnswer,
  alertWithComments,
} from './alert-response.ts'
import {
  acknowledgeAlert,
  alertStats,
  closeAlert,
  commentAlert,
  commentsOf,
  findAlert,
  listAlertEvents,
  listAlerts,
  presentAlert,
  presentAlerts,
} from './alerts.ts'

const TAG = 'Alerts'
const VIEW = ['monitoring.view']
const MANAGE = ['monitoring.manage']
const COMMENT_MAX = 1000
const BULK_MAX = 200
const subject = ({ hub, companyId, params }: RouteContext) => findAlert(hub.database.db, companyId, params.alert ?? '')
const comment = Type.Object({ comment: optional(text(COMMENT_MAX)) })
const bulk = Type.Object({ alert_ids: listOf(uuid(), BULK_MAX, 1), comment: optional(text(COMMENT_MAX)) })

async function forEachAlert(
  { hub, companyId, language }: RouteContext,
  ids: readonly string[],
  act: (id: string) => ReturnType<typeof closeAlert>,
) {
  const { done, refused } = await forEachId(ids, language, id => findAlert(hub.database.db, companyId, id), act)
  return { data: presentAlerts(done), refused }
}

export const alertRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/monitoring/alerts',
    tag: TAG,
    summary: 'List alerts, newest first',
    permissions: VIEW,
    query: Type.Object({
      state: Type.Optional(oneOf([...alertStates, 'active'])),
      severity: Type.Optional(oneOf(severities)),
      server_id: Type.Optional(uuid()),
      agent_id: Type.Optional(uuid()),
      opened_from: Type.Optional(instant()),
      opened_to: Type.Optional(instant()),
      ...pageQuery,
    }),
    answer: answerPage(alertAnswer),
    async handle({ hub, companyId, query, url }) {
      const page = pageOf(query)
      const filter = {
        state: query.state,
        severity: query.severity,
        serverId: query.server_id,
        agentId: query.agent_id,
        openedFrom: query.opened_from ? new Date(query.opened_from) : undefined,
        openedTo: query.opened_to ? new Date(query.opened_to) : undefined,
      }
      const { rows, total } = await listAlerts(hub.database.db, companyId, filter, page)
      return paged(url, page, total, presentAlerts(rows))
    },
  }),
  route({
    method: 'GET',
    path: '/monitoring/alerts/stats',
    tag: TAG,
    summary: 'Counts by state and severity',
    permissions: VIEW,
    answer: answer(alertStatsAnswer),
    handle: async ({ hub, companyId }) => ({ data: await alertStats(hub.database.db, companyId) }),
  }),
  route({
    method: 'GET',
    path: '/monitoring/alerts/:alert',
    tag: TAG,
    summary: 'Show an alert with its comments',
    permissions: VIEW,
    subject,
    answer: answer(alertWithComments),
    handle: async ({ hub, subject }) => ({
      data: { ...presentAlert(subject), comments: await commentsOf(hub.database.db, subject.alert.id) },
    }),
  }),
  route({
    method: 'GET',
    path: '/monitoring/alerts/:alert/events',
    tag: TAG,
    summary: 'The events of an alert, newest first',
    permissions: VIEW,
    subject,
    query: Type.Object(pageQuery),
    answer: answerPage(alertEventAnswer),
    async handle({ hub, companyId, query, url, subject }) {
      const page = pageOf(query)
      const { data, total } = await listAlertEvents(hub.database.db, companyId, subject.alert.id, page)
      return paged(url, page, total, data)
    },
  }),
  route({
    method: 'GET',
    path: '/monitoring/alerts/:alert/children',
    tag: TAG,
    summary: 'Grouped children of a wide-area incident',
    permissions: VIEW,
    subject,
    query: Type.Object(pageQuery),
    answer: answerPage(alertAnswer),
    async handle({ hub, companyId, query, url, subject }) {
      const page = pageOf(query)
      const { rows, total } = await listAlerts(hub.database.db, companyId, { groupId: subject.alert.id }, page)
      return paged(url, page, total, presentAlerts(rows))
    },
  }),
  route({
    method: 'POST',
    path: '/monitoring/alerts/:alert/acknowledge',
    tag: TAG,
    summary: 'Acknowledge an alert',
    permissions: MANAGE,
    subject,
    body: comment,
    answer: answer(alertAnswer),
    handle: async context => ({
      data: presentAlert(await acknowledgeAlert(context, context.subject.alert.id, context.body.comment ?? null)),
    }),
  }),
  route({
    method: 'POST',
    path: '/monitoring/alerts/:alert/close',
    tag: TAG,
    summary: 'Close an alert by hand',
    permissions: MANAGE,
    subject,
    body: comment,
    answer: answer(alertAnswer),
    handle: async context => ({
      data: presentAlert(await closeAlert(context, context.subject.alert.id, context.body.comment ?? null)),
    }),
  }),
  route({
    method: 'POST',
    path: '/monitoring/alerts/:alert/comments',
    tag: TAG,
    summary: 'Comment an alert',
    permissions: MANAGE,
    subject,
    status: 201,
    body: Type.Object({ comment: text(COMMENT_MAX) }),
    answer: answer(alertCommentAnswer),
    handle: async context => ({ data: await commentAlert(context, context.subject.alert.id, context.body.comment) }),
  }),
  route({
    method: 'POST',
    path: '/monitoring/alerts/bulk/acknowledge',
    tag: TAG,
    summary: 'Acknowledge many alerts',
    permissions: MANAGE,
    body: bulk,
    answer: bulkAnswer(alertAnswer),
    mayMiss: true,
    handle: context =>
      forEachAlert(context, context.body.alert_ids, id => acknowledgeAlert(context, id, context.body.comment ?? null)),
  }),
  route({
    method: 'POST',
    path: '/monitoring/alerts/bulk/close',
    tag: TAG,
    summary: 'Close many alerts by hand',
    permissions: MANAGE,
    body: bulk,
    answer: bulkAnswer(alertAnswer),
    mayMiss: true,
    handle: context =>
      forEachAlert(context, context.body.alert_ids, id => closeAlert(context, id, context.body.comment ?? null)),
  }),
]

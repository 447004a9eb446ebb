// REST: /monitoring/silences (decision G-121).

import { Type } from '@sinclair/typebox'
import { paged, pageOf, pageQuery } from '../platform/http/paging.ts'
import { instant, oneOf, optional, scope, text } from '../platform/http/request-schema.ts'
import { answer, answerPage } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { silenceAnswer, silencePreview } from './silence-response.ts'
import {
  createSilence,
  deleteSilence,
  endSilence,
  findSilence,
  listSilences,
  presentSilence,
  previewSilence,
  silenceStatuses,
  updateSilence,
} from './silences.ts'

const TAG = 'Silences'
const MANAGE = ['monitoring.manage']
const REASON_MAX = 500
const subject = ({ hub, companyId, params }: RouteContext) =>
  findSilence(hub.database.db, companyId, params.silence ?? '')

export const silenceRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/monitoring/silences',
    tag: TAG,
    summary: 'List silences, newest first',
    permissions: MANAGE,
    query: Type.Object({ status: Type.Optional(oneOf(silenceStatuses)), ...pageQuery }),
    answer: answerPage(silenceAnswer),
    async handle({ hub, companyId, query, url }) {
      const page = pageOf(query)
      const { rows, total } = await listSilences(hub.database.db, companyId, query.status, page)
      return paged(
        url,
        page,
        total,
        rows.map(row => presentSilence(row, hub.now())),
      )
    },
  }),
  route({
    method: 'POST',
    path: '/monitoring/silences',
    tag: TAG,
    summary: 'Create a silence',
    permissions: MANAGE,
    status: 201,
    body: Type.Object({
      scope: scope(),
      starts_at: optional(instant()),
      ends_at: instant(),
      reason: text(REASON_MAX),
    }),
    answer: answer(silenceAnswer),
    handle: async context => ({
      data: presentSilence(await createSilence(context, context.body), context.hub.now()),
    }),
  }),
  route({
    method: 'POST',
    path: '/monitoring/silences/preview',
    tag: TAG,
    summary: 'The machines and open alerts that a scope covers',
    permissions: MANAGE,
    body: Type.Object({ scope: scope() }),
    answer: answer(silencePreview),
    handle: async ({ hub, companyId, body }) => ({
      data: await previewSilence(hub.database.db, companyId, body.scope),
    }),
  }),
  route({
    method: 'GET',
    path: '/monitoring/silences/:silence',
    tag: TAG,
    summary: 'Show a silence',
    permissions: MANAGE,
    subject,
    answer: answer(silenceAnswer),
    handle: async ({ hub, subject }) => ({ data: presentSilence(subject, hub.now()) }),
  }),
  route({
    method: 'PATCH',
    path: '/monitoring/silences/:silence',
    tag: TAG,
    summary: 'Change a silence that is not over',
    permissions: MANAGE,
    subject,
    body: Type.Object({
      scope: Type.Optional(scope()),
      starts_at: optional(instant()),
      ends_at: Type.Optional(instant()),
      reason: Type.Optional(text(REASON_MAX)),
    }),
    answer: answer(silenceAnswer),
    handle: async context => ({
      data: presentSilence(await updateSilence(context, context.subject.silence.id, context.body), context.hub.now()),
    }),
  }),
  route({
    method: 'POST',
    path: '/monitoring/silences/:silence/end',
    tag: TAG,
    summary: 'End a silence now',
    permissions: MANAGE,
    subject,
    answer: answer(silenceAnswer),
    handle: async context => ({
      data: presentSilence(await endSilence(context, context.subject.silence.id), context.hub.now()),
    }),
  }),
  route({
    method: 'DELETE',
    path: '/monitoring/silences/:silence',
    tag: TAG,
    summary: 'Delete a silence',
    permissions: MANAGE,
    subject,
    async handle(context) {
      await deleteSilence(context, context.subject.silence.id)
      return undefined
    },
  }),
]

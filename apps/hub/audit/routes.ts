// REST: /audit-log.

import { Type } from '@sinclair/typebox'
import { paged, pageOf, pageQuery } from '../platform/http/paging.ts'
import { instant, text, uuid } from '../platform/http/request-schema.ts'
import { answer, answerPage } from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import { auditEntryAnswer, findAuditEntry, listAudit, presentAuditEntry } from './audit-list.ts'

const TAG = 'Audit log'
const VIEW = ['audit.view']

export const auditRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/audit-log',
    tag: TAG,
    summary: 'List entries, newest first',
    permissions: VIEW,
    query: Type.Object({
      action: Type.Optional(text(64)),
      actor: Type.Optional(uuid()),
      subject: Type.Optional(text(64)),
      from: Type.Optional(instant()),
      to: Type.Optional(instant()),
      ...pageQuery,
    }),
    answer: answerPage(auditEntryAnswer),
    async handle({ hub, companyId, query, url }) {
      const page = pageOf(query)
      const filter = {
        action: query.action,
        actorId: query.actor,
        subject: query.subject,
        from: query.from ? new Date(query.from) : undefined,
        to: query.to ? new Date(query.to) : undefined,
      }
      const { rows, total } = await listAudit(hub.database.db, companyId, filter, page)
      return paged(url, page, total, rows.map(presentAuditEntry))
    },
  }),
  route({
    method: 'GET',
    path: '/audit-log/:entry',
    tag: TAG,
    summary: 'Show an entry',
    permissions: VIEW,
    subject: ({ hub, companyId, params }) => findAuditEntry(hub.database.db, companyId, params.entry ?? ''),
    answer: answer(auditEntryAnswer),
    handle: async ({ subject }) => ({ data: presentAuditEntry(subject) }),
  }),
  route({
    method: 'GET',
    path: '/audit-log/subjects/:type/:id',
    pathParameters: { type: text(64), id: text(64) },
    tag: TAG,
    summary: 'History of one subject',
    permissions: VIEW,
    query: Type.Object(pageQuery),
    answer: answerPage(auditEntryAnswer),
    async handle({ hub, companyId, params, query, url }) {
      const page = pageOf(query)
      const filter = { subjectType: params.type, subjectId: params.id }
      const { rows, total } = await listAudit(hub.database.db, companyId, filter, page)
      return paged(url, page, total, rows.map(presentAuditEntry))
    },
  }),
]

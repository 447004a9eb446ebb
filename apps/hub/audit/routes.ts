// REST: /audit-log.
import { list } from '../platform/http/list.ts'
import { text } from '../platform/http/request-schema.ts'
import { answer } from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import { auditCollection, auditEntryResponse, findAuditEntry, presentAuditEntry } from './audit-list.ts'

const TAG = 'Audit log'
const VIEW = ['audit.view']

export const auditRoutes: readonly Route[] = [
  list({ path: '/audit-log', tag: TAG, summary: 'List entries, newest first', permissions: VIEW, of: auditCollection }),
  route({
    method: 'GET',
    path: '/audit-log/:entry',
    tag: TAG,
    summary: 'Show an entry',
    permissions: VIEW,
    resource: ({ hub, companyId, params }) => findAuditEntry(hub.database.db, companyId, params.entry ?? ''),
    answer: answer(auditEntryResponse),
    handle: async ({ resource }) => ({ data: presentAuditEntry(resource) }),
  }),
  list({
    path: '/audit-log/subjects/:type/:id',
    pathParameters: { type: text(64), id: text(64) },
    tag: TAG,
    summary: 'History of one subject',
    permissions: VIEW,
    of: auditCollection,
    within: ({ params }) => ({ subject_type: params.type, subject_id: params.id }),
  }),
]

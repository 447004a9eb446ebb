// REST: /security/scan-hosts (document 3; decisions G-171, G-175).
import { Type } from '@sinclair/typebox'
import { list } from '../../platform/http/list.ts'
import { uuid } from '../../platform/http/request-schema.ts'
import { resourceRoutes } from '../../platform/http/resource.ts'
import { answer, named, string, time } from '../../platform/http/response-schema.ts'
import { type Route, route } from '../../platform/http/route.ts'
import { codeBody, createCode } from './enrollment-codes.ts'
import { scanHostCollection } from './scan-host-list.ts'
import { attachHost, revokeHost } from './scan-hosts.ts'

const TAG = 'Security'
const PATH = '/security/scan-hosts'
const MANAGE = ['security.manage']
const host = resourceRoutes({ path: PATH, parameter: 'host', tag: TAG, of: scanHostCollection })

export const scanHostRoutes: readonly Route[] = [
  list({
    path: PATH,
    tag: TAG,
    summary: 'List scan hosts, newest enrollment first',
    permissions: ['security.view'],
    of: scanHostCollection,
  }),
  route({
    method: 'POST',
    path: `${PATH}/enrolment-codes`,
    tag: TAG,
    summary: 'Make a code by which scan hosts enroll; it is shown once',
    permissions: MANAGE,
    status: 201,
    body: codeBody,
    answer: answer(named('ScanEnrollmentCode', { code: string(), expires_at: time() })),
    handle: async context => ({ data: await createCode(context, context.body) }),
  }),
  host.act('attach', {
    summary: 'Attach a scan host to a server; null detaches it',
    permissions: MANAGE,
    body: Type.Object({ server_id: Type.Union([uuid(), Type.Null()]) }),
    act: (context, row, body) => attachHost(context, row.host.id, body.server_id),
  }),
  host.act('revoke', {
    summary: 'Revoke a scan host for good, and resolve its findings',
    permissions: MANAGE,
    act: (context, row) => revokeHost(context, row.host.id),
  }),
]

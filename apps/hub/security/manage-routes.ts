// REST: what people decide of security: exceptions and settings (decisions G-154, G-160, G-174, G-176).
import { Type } from '@sinclair/typebox'
import { list } from '../platform/http/list.ts'
import {
  boolean,
  instant,
  integer,
  listOf,
  oneOf,
  optional,
  text,
  timeZone,
  uuid,
} from '../platform/http/request-schema.ts'
import { resourceRoutes } from '../platform/http/resource.ts'
import { answer } from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import { exceptionCollection, exceptionTypes } from './exceptions/exception-list.ts'
import { approveException, rejectException, requestException, withdrawException } from './exceptions/exceptions.ts'
import { exportFormats } from './exports/export-lines.ts'
import { downloadExport, exportResponse, findExport, presentExport, requestExport } from './exports/exports.ts'
import { findingFilterBody, findingFilterOf } from './findings/finding-list.ts'
import {
  changeContentScan,
  changeSecuritySettings,
  contentKinds,
  contentScanResponse,
  contentScanSettings,
  expectedPorts,
  expectedPortsResponse,
  readSecuritySettings,
  replaceExpectedPorts,
  securitySettingsResponse,
} from './settings/security-settings.ts'

const TAG = 'Security'
const VIEW = ['security.view']
const MANAGE = ['security.manage']
const EXPORT = ['security.export']
const CONTENT = ['security.content.manage']
const REASON_MAX = 2000
const IDS_MAX = 10_000
const PORTS_MAX = 2000
const PATHS_MAX = 100

const exception = resourceRoutes({
  path: '/security/exceptions',
  parameter: 'exception',
  tag: TAG,
  of: exceptionCollection,
})

const exceptionRoutes: readonly Route[] = [
  list({
    path: '/security/exceptions',
    tag: TAG,
    summary: 'List exceptions, newest first',
    permissions: VIEW,
    of: exceptionCollection,
  }),
  exception.create({
    summary: 'Ask for findings to be accepted, or to be called false',
    permissions: VIEW,
    body: Type.Object({
      type: oneOf(exceptionTypes),
      reason: text(REASON_MAX),
      expires_at: optional(instant()),
      finding_ids: optional(listOf(uuid(), IDS_MAX, 1)),
      filter: optional(findingFilterBody),
    }),
    act: (context, { filter, ...given }) =>
      requestException(context, { ...given, filter: filter && findingFilterOf(filter) }),
  }),
  exception.act('approve', {
    summary: 'Approve what somebody else asked for',
    permissions: MANAGE,
    act: approveException,
  }),
  exception.act('reject', { summary: 'Reject a request', permissions: MANAGE, act: rejectException }),
  exception.delete({
    summary: 'Withdraw an exception; its findings return to open',
    permissions: MANAGE,
    act: withdrawException,
  }),
]

const settingsRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/security/settings',
    tag: TAG,
    summary: 'Show the settings of scans',
    permissions: MANAGE,
    answer: answer(securitySettingsResponse),
    handle: async ({ hub, companyId }) => ({ data: await readSecuritySettings(hub.database.db, companyId) }),
  }),
  route({
    method: 'PUT',
    path: '/security/settings',
    tag: TAG,
    summary: 'Change the settings of scans that are given',
    permissions: MANAGE,
    body: Type.Object({
      enabled: Type.Optional(boolean()),
      scan_interval_hours: Type.Optional(integer(1, 720)),
      time_zone: Type.Optional(timeZone()),
    }),
    answer: answer(securitySettingsResponse),
    handle: async context => ({ data: await changeSecuritySettings(context, context.body) }),
  }),
  route({
    method: 'GET',
    path: '/security/expected-ports',
    tag: TAG,
    summary: 'List the ports that are expected to be open',
    permissions: MANAGE,
    answer: answer(expectedPortsResponse),
    handle: async ({ hub, companyId }) => ({ data: await expectedPorts(hub.database.db, companyId) }),
  }),
  route({
    method: 'PUT',
    path: '/security/expected-ports',
    tag: TAG,
    summary: 'Replace the ports that are expected to be open',
    permissions: MANAGE,
    body: Type.Object({
      ports: listOf(Type.Object({ port: integer(1, 65_535), proto: oneOf(['tcp', 'udp']) }), PORTS_MAX),
    }),
    answer: answer(expectedPortsResponse),
    handle: async context => ({ data: await replaceExpectedPorts(context, context.body.ports) }),
  }),
  route({
    method: 'GET',
    path: '/security/content-scan-settings',
    tag: TAG,
    summary: 'Show what contents are scanned',
    permissions: CONTENT,
    answer: answer(contentScanResponse),
    handle: async ({ hub, companyId }) => ({ data: await contentScanSettings(hub.database.db, companyId) }),
  }),
  route({
    method: 'PUT',
    path: '/security/content-scan-settings',
    tag: TAG,
    summary: 'Change what contents are scanned',
    permissions: CONTENT,
    body: Type.Object({
      enabled: Type.Optional(boolean()),
      kinds: Type.Optional(listOf(oneOf(contentKinds), contentKinds.length)),
      paths: Type.Optional(listOf(text(1024), PATHS_MAX)),
      max_file_mb: Type.Optional(integer(1, 1024)),
    }),
    answer: answer(contentScanResponse),
    handle: async context => ({ data: await changeContentScan(context, context.body) }),
  }),
]

const exportRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/security/exports',
    tag: TAG,
    summary: 'Start an export of findings; it is kept for 24 hours',
    permissions: EXPORT,
    status: 202,
    body: Type.Object({ format: oneOf(exportFormats), filters: optional(findingFilterBody) }),
    answer: answer(exportResponse),
    handle: async context => {
      const { format, filters } = context.body
      const row = await requestExport(context, { format, filters: filters && findingFilterOf(filters) })
      return { data: presentExport(row) }
    },
  }),
  route({
    method: 'GET',
    path: '/security/exports/:export/download',
    tag: TAG,
    summary: 'Download an export that is ready',
    permissions: EXPORT,
    resource: findExport,
    refusals: [422],
    answer: Type.Unsafe<Response>({ type: 'string' }),
    answerType: 'text/csv',
    otherTypes: ['application/jsonl'],
    handle: async ({ hub, resource }) => downloadExport(hub, resource),
  }),
]

export const securityManageRoutes: readonly Route[] = [...exceptionRoutes, ...settingsRoutes, ...exportRoutes]

// REST: /exports and their schedules (decisions ).
import { Type } from '@sinclair/typebox'
import { list } from '../platform/http/list.ts'
import { boolean, oneOf, optional, text } from '../platform/http/request-schema.ts'
import { resourceRoutes } from '../platform/http/resource.ts'
import { answer, answerList } from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import { refuseManaged } from '../resources/manifest-lock.ts'
import { columnList } from './export-columns.ts'
import { delimiters, exportFormats } from './export-format.ts'
import { callerOfLink } from './export-links.ts'
import {
  deleteExport,
  downloadExport,
  exportCollection,
  exportResourceResponse,
  findExport,
  listExportResources,
  presentExport,
  requestExport,
} from './exports.ts'
import {
  changeSchedule,
  createSchedule,
  deleteSchedule,
  findSchedule,
  newScheduleBody,
  scheduleBody,
  scheduleCollection,
} from './schedules.ts'

const TAG = 'Exports'
const RUN = ['export.run']
const languages = ['en', 'vi'] as const

const one = resourceRoutes({
  path: '/exports',
  parameter: 'export',
  tag: TAG,
  of: { response: exportCollection.response, present: presentExport },
  find: findExport,
})
const schedule = resourceRoutes({
  path: '/exports/schedules',
  parameter: 'schedule',
  tag: TAG,
  of: scheduleCollection,
  find: findSchedule,
})

export const exportRoutes: readonly Route[] = [
  list({ path: '/exports', tag: TAG, summary: 'List exports, newest first', permissions: RUN, of: exportCollection }),
  route({
    method: 'POST',
    path: '/exports',
    tag: TAG,
    summary: 'Start an export; it also needs the permission of the resource',
    permissions: RUN,
    status: 202,
    body: Type.Object({
      resource: text(64),
      format: Type.Optional(oneOf(exportFormats)),
      filters: optional(Type.Record(Type.String(), Type.Unknown())),
      columns: optional(columnList()),
      language: Type.Optional(oneOf(languages)),
      delimiter: Type.Optional(oneOf(delimiters)),
      bom: Type.Optional(boolean()),
      raw: Type.Optional(boolean()),
    }),
    answer: answer(exportCollection.response),
    handle: async context => ({ data: presentExport(await requestExport(context, context.body), context) }),
  }),
  route({
    method: 'GET',
    path: '/exports/resources',
    tag: TAG,
    summary: 'What the caller may export',
    permissions: RUN,
    answer: answerList(exportResourceResponse),
    handle: async context => ({ data: await listExportResources(context) }),
  }),
  list({
    path: '/exports/schedules',
    tag: TAG,
    summary: 'List schedules, newest first',
    permissions: RUN,
    of: scheduleCollection,
  }),
  schedule.create({ summary: 'Export again and again', permissions: RUN, body: newScheduleBody, act: createSchedule }),
  schedule.change({
    summary: 'Change a schedule',
    permissions: RUN,
    body: scheduleBody,
    act: async (context, row, body) => {
      await refuseManaged(context, 'export_schedule', row.schedule.id)
      return changeSchedule(context, row, body)
    },
  }),
  schedule.delete({
    summary: 'Delete a schedule',
    permissions: RUN,
    act: async (context, row) => {
      await refuseManaged(context, 'export_schedule', row.schedule.id)
      await deleteSchedule(context, row)
    },
  }),
  one.show({ summary: 'Show an export', permissions: RUN }),
  route({
    method: 'GET',
    path: '/exports/:export/download',
    tag: TAG,
    summary: 'Download an export that is ready, or a range of it',
    permissions: RUN,
    refusals: [409],
    resource: one.resource,
    byLink: callerOfLink,
    answer: Type.Unsafe<Response>({ type: 'string' }),
    otherResponses: { 206: null, 304: null, 416: null },
    answerType: 'text/csv',
    otherTypes: ['application/json', 'application/jsonl'],
    handle: async context => downloadExport(context, context.resource),
  }),
  one.delete({ summary: 'Cancel or remove an export', permissions: RUN, act: deleteExport }),
]

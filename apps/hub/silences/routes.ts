// REST: /monitoring/silences (decision G-121).
import { Type } from '@sinclair/typebox'
import { list } from '../platform/http/list.ts'
import { instant, optional, scope, text } from '../platform/http/request-schema.ts'
import { resourceRoutes } from '../platform/http/resource.ts'
import { answer } from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import { silenceCollection } from './silence-list.ts'
import { silencePreview } from './silence-response.ts'
import { createSilence, deleteSilence, endSilence, previewSilence, updateSilence } from './silences.ts'

const TAG = 'Silences'
const PATH = '/monitoring/silences'
const MANAGE = ['monitoring.manage']
const REASON_MAX = 500
const silence = resourceRoutes({ path: PATH, parameter: 'silence', tag: TAG, of: silenceCollection })

export const silenceRoutes: readonly Route[] = [
  list({ path: PATH, tag: TAG, summary: 'List silences, newest first', permissions: MANAGE, of: silenceCollection }),
  silence.create({
    summary: 'Create a silence',
    permissions: MANAGE,
    body: Type.Object({
      scope: scope(),
      starts_at: optional(instant()),
      ends_at: instant(),
      reason: text(REASON_MAX),
    }),
    act: createSilence,
  }),
  route({
    method: 'POST',
    path: `${PATH}/preview`,
    tag: TAG,
    summary: 'The servers and open alerts that a scope covers',
    permissions: MANAGE,
    body: Type.Object({ scope: scope() }),
    answer: answer(silencePreview),
    handle: async ({ hub, companyId, body }) => ({
      data: await previewSilence(hub.database.db, companyId, body.scope),
    }),
  }),
  silence.show({ summary: 'Show a silence', permissions: MANAGE }),
  silence.change({
    summary: 'Change a silence that is not over',
    permissions: MANAGE,
    body: Type.Object({
      scope: Type.Optional(scope()),
      starts_at: optional(instant()),
      ends_at: Type.Optional(instant()),
      reason: Type.Optional(text(REASON_MAX)),
    }),
    act: (context, row, body) => updateSilence(context, row.silence.id, body),
  }),
  silence.act('end', {
    summary: 'End a silence now',
    permissions: MANAGE,
    act: (context, row) => endSilence(context, row.silence.id),
  }),
  silence.delete({
    summary: 'Delete a silence',
    permissions: MANAGE,
    act: (context, row) => deleteSilence(context, row.silence.id),
  }),
]

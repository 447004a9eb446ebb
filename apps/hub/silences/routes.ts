// REST: /monitoring/silences (decisions G-121, G-178, G-179).

import { Type } from '@sinclair/typebox'
import { frequencies } from '../../../core/lifecycle/silence-windows.ts'
import { limits } from '../../../core/limits.ts'
import { list } from '../platform/http/list.ts'
import {
  instant,
  integer,
  listOf,
  oneOf,
  optional,
  scope,
  text,
  timeZone,
  uuid,
} from '../platform/http/request-schema.ts'
import { resourceRoutes } from '../platform/http/resource.ts'
import { answer } from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import { refuseManaged } from '../resources/manifest-lock.ts'
import { silenceCollection } from './silence-list.ts'
import { silencePreview } from './silence-response.ts'
import { createSilence, deleteSilence, endSilence, previewSilence, updateSilence } from './silences.ts'

const TAG = 'Silences'
const PATH = '/monitoring/silences'
const MANAGE = ['monitoring.manage']
const REASON_MAX = 500
/** What a silence may have beside its first window. Null is what is absent: all rules, a single window. */
const ruleIds = optional(listOf(uuid(), limits.silenceRuleIdsMax))
const recurrence = optional(
  Type.Object({
    frequency: oneOf(frequencies),
    weekdays: optional(listOf(integer(1, 7), 7)),
    until: optional(instant()),
    time_zone: optional(timeZone()),
  }),
)
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
      rule_ids: ruleIds,
      recurrence,
    }),
    act: createSilence,
  }),
  route({
    method: 'POST',
    path: `${PATH}/preview`,
    tag: TAG,
    summary: 'The servers and open alerts that a silence would cover',
    permissions: MANAGE,
    body: Type.Object({ scope: scope(), rule_ids: ruleIds }),
    answer: answer(silencePreview),
    handle: async ({ hub, companyId, body }) => ({
      data: await previewSilence(hub.database.db, companyId, body),
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
      rule_ids: ruleIds,
      recurrence,
    }),
    act: async (context, row, body) => {
      await refuseManaged(context, 'silence', row.silence.id)
      return updateSilence(context, row.silence.id, body)
    },
  }),
  silence.act('end', {
    summary: 'End a silence now',
    permissions: MANAGE,
    act: async (context, row) => {
      await refuseManaged(context, 'silence', row.silence.id)
      return endSilence(context, row.silence.id)
    },
  }),
  silence.delete({
    summary: 'Delete a silence',
    permissions: MANAGE,
    act: async (context, row) => {
      await refuseManaged(context, 'silence', row.silence.id)
      await deleteSilence(context, row.silence.id)
    },
  }),
]

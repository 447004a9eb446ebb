// Answers of kinds: the short form of lists, and the form of one resource with its conditions, drift and runs.
import { type TProperties, type TSchema, Type } from '@sinclair/typebox'
import {
  anyObject,
  id,
  listed,
  named,
  nullable,
  reference,
  string,
  time,
  wordOf,
} from '../platform/http/response-schema.ts'
import { namedFields, type Values } from './field.ts'
import { healths, type Kind, origins } from './kind.ts'
import { healthShown } from './resource-health.ts'
import type { Found } from './resource-rows.ts'

export const runResponse = named('ResourceRun', {
  id: id(),
  kind: string(),
  resource_id: id(),
  action: string(),
  state: wordOf(['queued', 'running', 'done', 'failed']),
  requested_by: nullable(reference),
  queued_at: time(),
  started_at: nullable(time()),
  finished_at: nullable(time()),
  result: nullable(anyObject()),
  error: nullable(string()),
})

const condition = named('ResourceCondition', {
  code: string(),
  severity: wordOf(['info', 'warning', 'critical']),
  message: string(),
  since: time(),
})

const common = () => ({
  id: id(),
  company_id: id(),
  version: Type.Integer({ minimum: 1 }),
  origin: wordOf(origins),
  health: wordOf(healths),
  drifted: Type.Boolean(),
  created_by: nullable(reference),
  updated_by: nullable(reference),
  created_at: time(),
  updated_at: time(),
  deleted_at: nullable(time()),
})

const ofFields = ({ fields }: Pick<Kind, 'fields'>, isShow: boolean): TProperties =>
  Object.assign(
    {},
    ...Object.entries(fields).map(([name, { response, showOnly }]) => (showOnly && !isShow ? {} : response(name))),
  )

/** The schema of a row of the list. */
export const listResponse = (kind: Pick<Kind, 'fields' | 'derived' | 'schemaName'>): TSchema =>
  named(`${kind.schemaName}Row`, { ...common(), ...ofFields(kind, false), ...kind.derived.list })

/** The schema of one resource. */
export const showResponse = (kind: Pick<Kind, 'fields' | 'derived' | 'schemaName'>): TSchema =>
  named(kind.schemaName, {
    ...common(),
    ...ofFields(kind, true),
    ...kind.derived.list,
    ...kind.derived.show,
    conditions: listed(condition),
    drift: listed(anyObject()),
    last_run: nullable(runResponse),
    last_runs: listed(runResponse),
  })

const person = (personId: string | null, name: string | null) =>
  personId === null ? null : { id: personId, name: name ?? '' }

/** The members that a row has by itself. */
export function presentRow({ fields }: Pick<Kind, 'fields'>, row: Found, isShow: boolean): Values {
  const shown = {
    id: row.id,
    company_id: row.company_id,
    version: row.version,
    origin: row.origin,
    health: healthShown(row),
    drifted: row.drifted,
    created_by: person(row.created_by, row.created_by_name),
    updated_by: person(row.updated_by, row.updated_by_name),
    created_at: row.created_at,
    updated_at: row.updated_at,
    deleted_at: row.deleted_at,
  }
  for (const [name, { show, showOnly }] of namedFields(fields))
    if (isShow || !showOnly) Object.assign(shown, show(row, name))
  return shown
}

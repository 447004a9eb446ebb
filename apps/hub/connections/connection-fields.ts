// What is kept of a connection.
import { Type } from '@sinclair/typebox'
import { integer as integerColumn, text as textColumn, timestamp, uuid as uuidColumn } from 'drizzle-orm/pg-core'
import { isObject } from '../../../core/json-object.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { integer, oneOf, uuid } from '../platform/http/request-schema.ts'
import { id } from '../platform/http/response-schema.ts'
import {
  choiceField,
  columnField,
  compositeField,
  integerField,
  internalField,
  textField,
  timeField,
} from '../resources/field.ts'
import type { RowOf } from '../resources/kind.ts'
import { sourceField, targetField } from './node.ts'

/** The longest name. */
export const NAME_MAX = 255
const KEPT = { readOnly: true, manifest: false } as const
const protocols = ['tcp', 'udp', 'http', 'https'] as const
const probers = ['none', 'hub', 'agent'] as const
const connectionStates = ['up', 'down', 'unknown'] as const
const USUAL_PROBE = { by: 'none', interval_seconds: 300, timeout_seconds: 5, expect_status: 200 } as const

type ProbeColumns = {
  readonly probe_by: (typeof probers)[number]
  readonly probe_interval_seconds: number
  readonly probe_timeout_seconds: number
  readonly probe_expect_status: number
}

const probeSchema = Type.Object({
  by: Type.Optional(oneOf(probers)),
  interval_seconds: Type.Optional(integer(60, 86_400)),
  timeout_seconds: Type.Optional(integer(1, 10)),
  expect_status: Type.Optional(integer(100, 599)),
})

const probeField = compositeField<ProbeColumns>({
  value: probeSchema,
  fallback: USUAL_PROBE,
  columns: {
    probe_by: textColumn('probe_by').notNull(),
    probe_interval_seconds: integerColumn('probe_interval_seconds').notNull(),
    probe_timeout_seconds: integerColumn('probe_timeout_seconds').notNull(),
    probe_expect_status: integerColumn('probe_expect_status').notNull(),
  },
  response: Type.Required(probeSchema),
  // A change names some members; the others stay.
  store: value =>
    Object.fromEntries(Object.entries(isObject(value) ? value : {}).map(([name, given]) => [`probe_${name}`, given])),
  show: row => ({
    by: row.probe_by,
    interval_seconds: row.probe_interval_seconds,
    timeout_seconds: row.probe_timeout_seconds,
    expect_status: row.probe_expect_status,
  }),
})

const pathFault = (path: string): Words | null => (path.startsWith('/') ? null : words('url_path'))
const at = (name: string) => timestamp(name, { withTimezone: true, precision: 3, mode: 'date' })

export const connectionFields = {
  name: textField(NAME_MAX, { fallback: '', search: 'text', sort: true }),
  source: sourceField,
  target: targetField,
  type: textField(128, { fallback: 'custom', filter: true, options: 'connection_types' }),
  protocol: choiceField(protocols, { fallback: 'tcp', filter: true }),
  port: integerField(1, 65_535, {}),
  path: textField(1024, { check: pathFault }),
  criticality: choiceField(['hard', 'soft'], { fallback: 'hard', filter: true }),
  probe: probeField,
  state: choiceField(connectionStates, { fallback: 'unknown', filter: true, ...KEPT }),
  state_since: timeField({ sort: true, ...KEPT }),
  check_id: columnField<string | null>(name => uuidColumn(name), uuid(), id(), KEPT),
  tested_at: internalField<Date | null>(at, null),
  failed_tests: internalField<number>(name => integerColumn(name).notNull(), 0),
  up_until: internalField<Date | null>(at, null),
} as const

export type Connection = RowOf<typeof connectionFields>

/** Whether it is looked at with a request, and not only connected to. */
export const isHttp = ({ protocol }: Pick<Connection, 'protocol'>): boolean =>
  protocol === 'http' || protocol === 'https'

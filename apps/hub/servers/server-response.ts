// Servers and their health as the API answers them (decisions G-108, G-109).
import { Type } from '@sinclair/typebox'
import { alertResponse } from '../alerts/alert-response.ts'
import { oneOf } from '../platform/http/request-schema.ts'
import {
  amount,
  collectorNote,
  id,
  listed,
  named,
  nullable,
  string,
  texts,
  time,
  wordOf,
} from '../platform/http/response-schema.ts'

export const settableStatuses = ['active', 'maintenance', 'decommissioned'] as const
export const serverStatuses = [...settableStatuses, 'draft'] as const
export const serverOrigins = ['manual', 'iac', 'agent'] as const
const connectivities = ['online', 'down', 'unknown'] as const

const healthBlock = named('ServerHealthBlock', {
  connectivity: oneOf(connectivities),
  last_seen_at: nullable(time()),
  open_alerts: amount(),
})

const anyValue = () => Type.Unsafe<unknown>({})
const fieldDrift = named('FieldDrift', { field: string(), intended: anyValue(), actual: anyValue() })

export const serverResponse = named('Server', {
  id: id(),
  company_id: id(),
  name: string(),
  hostname: nullable(string()),
  ip_address: nullable(string()),
  environment: nullable(string()),
  role: nullable(string()),
  datacenter: nullable(string()),
  subnet_id: nullable(string()),
  tags: listed(string()),
  operating_system: nullable(string()),
  cpu_cores: nullable(Type.Integer()),
  memory_mb: nullable(Type.Integer()),
  disk_gb: nullable(Type.Integer()),
  status: oneOf(serverStatuses),
  origin: oneOf(serverOrigins),
  /** Whether it is no longer what its manifest says, and where. */
  drifted: Type.Boolean(),
  drift: listed(fieldDrift),
  notes: nullable(string()),
  agent_id: nullable(id()),
  created_at: time(),
  updated_at: time(),
  deleted_at: nullable(time()),
  // In the list with include=health.
  health: Type.Optional(healthBlock),
})

export const importResponse = named('ImportedServers', {
  created: amount(),
  updated: amount(),
  unchanged: amount(),
  dry_run: Type.Boolean(),
})

const number = () => nullable(Type.Number())
const sample = named('Sample', { labels: texts(), value: Type.Number(), ts: time() })

export const healthResponse = Type.Object({
  data: named('ServerHealth', {
    status: nullable(oneOf(connectivities)),
    last_seen: nullable(time()),
    summary: named('ServerSummary', {
      connectivity: nullable(oneOf(connectivities)),
      cpu_percent: number(),
      memory_percent: number(),
      disk_percent: number(),
      load1: number(),
      sampled_at: nullable(time()),
    }),
    metrics: Type.Unsafe<Readonly<Record<string, readonly unknown[]>>>({
      type: 'object',
      additionalProperties: { type: 'array', items: sample },
    }),
    open_alerts: listed(alertResponse),
  }),
  collector: collectorNote,
})

export const seriesResponse = Type.Object({
  data: Type.Unsafe<Readonly<Record<string, unknown>>>(
    named('ServerSeries', {
      server_id: id(),
      company_id: Type.Optional(id()),
      metric: nullable(string()),
      agg: Type.Optional(wordOf(['avg', 'min', 'max', 'last'])),
      from: Type.Optional(time()),
      to: Type.Optional(time()),
      step_seconds: Type.Optional(Type.Integer()),
      series: listed(
        Type.Object({
          labels: texts(),
          // Pairs of a time in milliseconds and a value.
          points: listed(
            Type.Array(Type.Number(), { minItems: 2, maxItems: 2, examples: [[1_769_860_800_000, 42.5]] }),
          ),
        }),
      ),
    }),
  ),
  collector: collectorNote,
})

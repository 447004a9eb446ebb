// An example for a schema: the author's own, else a value that fits, chosen by the member's name where the name says
// more.
import type { TSchema } from '@sinclair/typebox'
import { isObject, type Unchecked } from '../../../../core/json-object.ts'

const ID = '3f2a7c1e-9b4d-4e8a-a1c5-6d7e8f901234'
const AT = '2026-01-31T12:00:00.000Z'

/** Values that a reader understands, by the name of the member. */
const BY_NAME: Readonly<Record<string, unknown>> = {
  actor: ID,
  address: 'operations@example.net',
  admin_url: 'https://10.0.0.5:8444',
  agent_version: '1.4.0',
  base_url: 'https://collector.example.net:8443',
  collector_url: 'https://collector.example.net:8443',
  datacenter: 'fra-1',
  email: 'ada@example.net',
  ends_at: '2031-01-31T14:00:00.000Z',
  environment: 'production',
  environments: [],
  datacenters: [],
  expires_at: '2031-01-31T12:00:00.000Z',
  filters: [],
  hostname: 'web-1.example.net',
  ip_address: '192.0.2.10',
  labels: { mount: '/' },
  license: 'lic_0000000000000000000000000000000000000000000',
  matchers: {},
  metric: 'cpu_usage_percent',
  name: 'web-1',
  operating_system: 'Debian 13',
  permissions: ['monitoring.view'],
  reason: 'planned maintenance',
  recover_threshold: null,
  role: 'web',
  role_ids: [],
  roles: [],
  rule_id: ID,
  search: 'web',
  series_key: 'cpu_usage_percent',
  server_ids: [],
  settings: {},
  starts_at: null,
  step: '5m',
  tags: ['web'],
  target: { name: 'nginx' },
  threshold: 90,
  time_zone: 'Europe/Berlin',
  timezone: 'Europe/Berlin',
  token_hash: 'b1946ac92492d2347c6235b4d2611184b1946ac92492d2347c6235b4d2611184',
  url: 'https://example.net/hook',
  value: 93.5,
}

function ofText(schema: TSchema): string {
  if (schema.format === 'uuid') return ID
  if (schema.format === 'date-time') return AT
  if (schema.format === 'date') return AT.slice(0, 10)
  if (schema.format === 'email') return 'ada@example.net'
  if (schema.format === 'uri') return 'https://example.net/'
  return 'text'
}

const ofNumber = (schema: TSchema): number => Math.max(schema.type === 'integer' ? 1 : 0.5, Number(schema.minimum ?? 0))

/** Whether a value given by name has the type that the schema wants. */
function fits(schema: TSchema, value: unknown): boolean {
  if (value === null) return schema.type === 'null'
  if (Array.isArray(schema.enum)) return schema.enum.includes(value)
  if (Array.isArray(value)) return schema.type === 'array' && (value.length > 0 || !schema.minItems)
  if (schema.type === 'integer') return Number.isInteger(value)
  if (schema.type === 'string' && schema.format === 'uuid') return value === ID
  if (schema.type === 'object' && isObject(value) && Array.isArray(schema.required))
    return schema.required.every((member: string) => Object.hasOwn(value, member))
  return schema.type === typeof value
}

/** A value that the schema accepts. `name` is the name of the member or parameter that it is for. */
export function exampleOf(schema: TSchema, name = ''): unknown {
  if (Array.isArray(schema.examples)) return schema.examples[0]
  const known = BY_NAME[name]
  const choices: readonly TSchema[] = Array.isArray(schema.anyOf) ? schema.anyOf : [schema]
  if (known !== undefined && choices.some(choice => fits(choice, known))) return known
  const [first = schema] = choices
  if (first !== schema) return exampleOf(first, name)
  if (Array.isArray(schema.enum)) return schema.enum[0]
  switch (schema.type) {
    case 'object':
      return exampleOfMembers(schema)
    case 'array':
      return [exampleOf(schema.items, name.replace(/s$/, ''))]
    case 'string':
      return ofText(schema)
    case 'boolean':
      return true
    case 'integer':
    case 'number':
      return ofNumber(schema)
    default:
      return null
  }
}

function exampleOfMembers(schema: TSchema): Unchecked {
  const properties: unknown = schema.properties
  if (!isObject(properties)) return {}
  return Object.fromEntries(
    Object.entries(properties).map(([member, value]) => [member, exampleOf(value as TSchema, member)]),
  )
}

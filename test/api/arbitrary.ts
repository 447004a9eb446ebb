// Values for a JSON Schema of the OpenAPI document: ones that it accepts, and ones that it should not.
import fc from 'fast-check'
import { isObject, type Unchecked } from '../../core/json-object.ts'
import { resolved } from './answers.ts'

/** Ids that exist, so that a generated reference is sometimes a real one. */
export type Ids = {
  pick(name: string): fc.Arbitrary<string>
  /** Texts that mean something, by the member they are for; null when none does. */
  text(name: string): fc.Arbitrary<string> | null
}

const ODD_TEXTS = [
  '',
  ' ',
  'x',
  '\u0000',
  'a\u0000b',
  '\ud800',
  '😀'.repeat(40),
  "'; drop table servers; --",
  '%',
  '\\',
  '../../etc/passwd',
  '<script>alert(1)</script>',
  'null',
  '-1',
  '1e400',
  '9007199254740993',
  '2026-13-45T99:99:99Z',
  '0000-01-01T00:00:00Z',
  '275760-09-13T00:00:00Z',
  '9999-12-31T23:59:59-23:00',
  '00000000-0000-0000-0000-000000000000',
  '{1,2}',
  '(a+)+$',
]

export const oddText: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...ODD_TEXTS),
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.constant('x'.repeat(3000)),
)

/** Anything that JSON can hold. */
export const oddValue: fc.Arbitrary<unknown> = fc.oneof(
  oddText,
  fc.constantFrom(null, true, false, 0, -1, 1.5, 1e308, -1e308, 2_147_483_648, 9_007_199_254_740_992),
  fc.constantFrom([], {}, [null], [[]], [{}], { a: 1 }, { all: true }, { regex: '(' }, { __proto__x: 1 }),
  fc.jsonValue({ maxDepth: 2 }),
)

const number = (value: unknown, otherwise: number): number => (typeof value === 'number' ? value : otherwise)

function textOf(schema: Unchecked): fc.Arbitrary<string> {
  switch (schema.format) {
    case 'uuid':
      return fc.uuid({ version: 4 })
    case 'date-time':
      return fc
        .date({ min: new Date('2000-01-01'), max: new Date('2060-01-01'), noInvalidDate: true })
        .map(date => date.toISOString())
    case 'email':
      return fc.uuid().map(id => `${id}@example.test`)
    case 'uri':
      return fc.constantFrom('http://127.0.0.1:1/', 'https://example.test/hook', 'http://[::1]:1')
    case 'time-zone':
      return fc.constantFrom('UTC', 'Asia/Ho_Chi_Minh', 'Europe/Berlin')
    default:
      return fc
        .string({
          unit: 'grapheme',
          minLength: number(schema.minLength, 0),
          maxLength: Math.min(number(schema.maxLength, 20), 20),
        })
        .map(text => (text.trim() === '' || text.includes('\u0000') ? 'text' : text))
  }
}

function numberOf(schema: Unchecked): fc.Arbitrary<number> {
  const min = number(schema.minimum, schema.exclusiveMinimum === undefined ? -1000 : 0.001)
  const max = Math.min(number(schema.maximum, 1_000_000), 1_000_000)
  if (schema.type === 'integer') return fc.integer({ min, max })
  return fc.double({ min, max, noNaN: true, noDefaultInfinity: true })
}

/** A value that the schema accepts. `name` says of which member, for the ids that exist. */
export function acceptedBy(given: unknown, ids: Ids, name = ''): fc.Arbitrary<unknown> {
  const schema = resolved(given)
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum)
  if (Array.isArray(schema.anyOf)) return fc.oneof(...schema.anyOf.map(choice => acceptedBy(choice, ids, name)))
  switch (schema.type) {
    case 'object':
      return isObject(schema.properties) ? membersOf(schema, ids, name) : mapOf(name)
    case 'array':
      return fc.array(acceptedBy(schema.items, ids, name.replace(/s$/, '')), {
        minLength: number(schema.minItems, 0),
        maxLength: Math.min(number(schema.maxItems, 3), 3),
      })
    case 'string':
      if (schema.format === 'uuid')
        return fc.oneof({ weight: 3, arbitrary: ids.pick(name) }, { weight: 1, arbitrary: textOf(schema) })
      return ids.text(name) ?? textOf(schema)
    case 'integer':
    case 'number':
      return numberOf(schema)
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    default:
      return oddValue
  }
}

/** Objects whose members the document leaves open: those that mean something there, and others. */
function mapOf(name: string): fc.Arbitrary<unknown> {
  if (name === 'target')
    return fc.constantFrom(
      { name: 'nginx' },
      { port: 22, proto: 'tcp' },
      { target: 'example.test:443' },
      { url: 'https://example.test/', expect_status: 200 },
    )
  if (name === 'matchers')
    return fc.constantFrom({}, { mount: '/' }, { mount: ['/', '/home'] }, { mount: { regex: '/.*' } })
  return fc.dictionary(fc.string({ maxLength: 8 }), oddValue, { maxKeys: 3 })
}

function membersOf(schema: Unchecked, ids: Ids, path: string): fc.Arbitrary<unknown> {
  const properties = isObject(schema.properties) ? schema.properties : {}
  const required: readonly unknown[] = Array.isArray(schema.required) ? schema.required : []
  const model = Object.fromEntries(
    Object.entries(properties).map(([name, property]) => [
      name,
      meantOf(name, path) ?? acceptedBy(property, ids, name),
    ]),
  )
  const names = Object.keys(model)
  return fc.record(model, { requiredKeys: names.filter(name => required.includes(name)) })
}

/** Members that a value by their type alone would almost never get right. */
function meantOf(name: string, path: string): fc.Arbitrary<unknown> | null {
  if (name === 'metric') return fc.constantFrom('cpu_usage_percent', 'disk_used_percent', 'mem_used_percent')
  if (name === 'permissions') return fc.subarray(['monitoring.view', 'servers.view', 'identity.view'])
  if (name === 'all' && path === 'scope') return fc.constant(true)
  if (name === 'expires_at' || name === 'ends_at')
    return fc.integer({ min: 1, max: 300 }).map(days => new Date(Date.now() + days * 86_400_000).toISOString())
  if (name === 'url') return fc.constantFrom('http://127.0.0.1:1/', 'https://example.test/hook')
  if (name === 'kind') return fc.constantFrom('threshold', 'check')
  if (name === 'recover_threshold') return fc.constantFrom(null, null, 1)
  if (name === 'starts_at') return fc.constantFrom(null, new Date().toISOString())
  return null
}

/** A value of which something is wrong, or may be: a member odd, missing or added, or no object at all. */
export function refusedBy(given: unknown, ids: Ids): fc.Arbitrary<unknown> {
  const schema = resolved(given)
  const names = isObject(schema.properties) ? Object.keys(schema.properties) : []
  if (names.length === 0) return oddValue
  const spoilt = fc
    .tuple(
      acceptedBy(schema, ids),
      fc.subarray(names, { minLength: 1 }),
      fc.array(oddValue, { minLength: 1, maxLength: 4 }),
    )
    .map(([value, spoiltNames, odd]) => {
      const copy: Record<string, unknown> = { ...(isObject(value) ? value : {}) }
      spoiltNames.forEach((name, index) => {
        const value = odd[index % odd.length]
        if (index % 3 === 2) delete copy[name]
        else if (isObject(copy[name]) && index % 2 === 0) copy[name] = { ...copy[name], all: value, server_ids: value }
        else copy[name] = value
      })
      return copy
    })
  return fc.oneof({ weight: 5, arbitrary: spoilt }, { weight: 1, arbitrary: oddValue })
}

// The TypeBox schemas of request data: they validate requests, and the OpenAPI document shows them.
import { FormatRegistry, Kind, type Static, type TObject, type TSchema, Type, TypeRegistry } from '@sinclair/typebox'
import { type ValueError, ValueErrorType } from '@sinclair/typebox/errors'
import { Value } from '@sinclair/typebox/value'
import { isObject, type Unchecked } from '../../../../core/json-object.ts'
import { limits } from '../../../../core/limits.ts'
import { isUuidOfAnyCase } from '../../../../core/series/uuid.ts'
import { ApiError } from './api-error.ts'
import { type TextKey, type Words, words } from './api-texts.ts'

const INSTANT = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?([Zz]|[+-]([01]\d|2[0-3]):?[0-5]\d)$/
/** Days that every month has. */
const USUAL_DAY = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])/
const FIRST_MS = Date.parse('0001-01-01T00:00:00Z')
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z')
const NOT_BLANK = '\\S'
/** Of a text of the format `uri`. */
export const HTTP = '^[Hh][Tt][Tt][Pp][Ss]?://'
const CLOCK = '^([01][0-9]|2[0-3]):[0-5][0-9]$'
/** What a text that does not fit is told, by its pattern and by its format. */
const PATTERN_WORDS: Readonly<Record<string, TextKey>> = {
  [NOT_BLANK]: 'required',
  [CLOCK]: 'clock',
  [HTTP]: 'http_url',
}
const FORMAT_WORDS: Readonly<Record<string, TextKey>> = {
  'date-time': 'instant',
  'time-zone': 'time_zone',
  uri: 'url',
}
const EMAIL = /^[^\s@]{1,64}@[^\s@]{1,189}$/
const EMAIL_CHARS_MAX = 254

export const isUuid = isUuidOfAnyCase
/** True for an RFC 3339 instant on a day that exists in its month: Date.parse would accept 30 February as 1 March. */
export const isInstant = (value: string): boolean => {
  const atMs = INSTANT.test(value) ? Date.parse(value) : Number.NaN
  // Years 1 to 9999 in UTC: an instant outside has no text that the database can read.
  if (!(atMs >= FIRST_MS && atMs <= LAST_MS)) return false
  if (USUAL_DAY.test(value)) return true
  const day = new Date(`${value.slice(0, 10)}T00:00:00Z`)
  return day.getUTCDate() === Number(value.slice(8, 10))
}

export const isEmail = (value: string): boolean => EMAIL.test(value)

FormatRegistry.Set('date-time', isInstant)
FormatRegistry.Set('date', value => /^\d{4}-\d{2}-\d{2}$/.test(value) && isInstant(`${value}T00:00:00Z`))
FormatRegistry.Set('time-zone', value => {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: value }) !== null
  } catch {
    return false
  }
})
FormatRegistry.Set('uri', value => URL.canParse(value))

/**
 * Formats that are checked by a kind of their own. The library of the OpenAPI document registers formats of these names
 * for the whole process, which mean something else and take thirty times as long.
 */
const OWN_FORMATS = { uuid: isUuid, email: isEmail } as const
type OwnFormat = keyof typeof OWN_FORMATS
const ownFormatOf = ({ [Kind]: kind, format }: TSchema): OwnFormat | null =>
  kind === 'Formatted' && typeof format === 'string' && Object.hasOwn(OWN_FORMATS, format)
    ? (format as OwnFormat)
    : null
TypeRegistry.Set<{ format: OwnFormat }>(
  'Formatted',
  ({ format }, value) => typeof value === 'string' && OWN_FORMATS[format](value),
)
const formatted = (format: OwnFormat, more: { readonly maxLength?: number } = {}) =>
  Type.Unsafe<string>({ [Kind]: 'Formatted', type: 'string', format, ...more })

TypeRegistry.Set<{ enum: readonly unknown[] }>('OneOf', (schema, value) => schema.enum.includes(value))

type TextBounds = { readonly minLength: number; readonly maxLength: number; readonly pattern?: string }

/**
 * The fault of a text; null when it has none. Lengths are in characters, as in JSON Schema: some characters are two
 * UTF-16 code units of a JavaScript string.
 */
function textFault({ minLength, maxLength, pattern }: TextBounds, value: unknown): Words | null {
  if (typeof value !== 'string') return words('string')
  const length = value.length > 2 * maxLength ? value.length : [...value].length
  if (length > maxLength) return words('length_max', { max: maxLength })
  if (length === 0 && minLength > 0) return words('required')
  if (length < minLength) return words('length_min', { min: minLength })
  return pattern === NOT_BLANK && value.trim() === '' ? words('required') : null
}

/** True for a schema made by `text`. */
const isText = (schema: TSchema): schema is TSchema & TextBounds =>
  schema[Kind] === 'Text' && typeof schema.minLength === 'number' && typeof schema.maxLength === 'number'

TypeRegistry.Set<TextBounds>('Text', (schema, value) => textFault(schema, value) === null)

/** Text of at most this many characters, not only spaces unless it may be empty. */
export const text = (max: number, min = 1) =>
  Type.Unsafe<string>({
    [Kind]: 'Text',
    type: 'string',
    minLength: min,
    maxLength: max,
    ...(min > 0 ? { pattern: NOT_BLANK } : {}),
  })
export const uuid = () => formatted('uuid')
export const instant = () => Type.String({ format: 'date-time' })
/** A day as YYYY-MM-DD. */
export const date = () => Type.String({ format: 'date', examples: ['2026-02-28'] })
/** A time of day as HH:MM. */
export const clock = (example: string) => Type.String({ pattern: CLOCK, examples: [example] })
/** A name of the IANA time zone database. */
export const timeZone = () => Type.String({ format: 'time-zone', maxLength: 64 })
export const email = () => formatted('email', { maxLength: EMAIL_CHARS_MAX })
export const integer = (minimum: number, maximum: number) => Type.Integer({ minimum, maximum })
export const boolean = () => Type.Boolean()
export const oneOf = <const T extends readonly string[]>(values: T) =>
  Type.Unsafe<T[number]>({ [Kind]: 'OneOf', type: 'string', enum: [...values] })
/** A boolean filter. */
export const flag = () => Type.Optional(oneOf(['0', '1', 'true', 'false']))
export const flagOf = (value: '0' | '1' | 'true' | 'false' | undefined): boolean | undefined =>
  value === undefined ? undefined : value === '1' || value === 'true'
export const listOf = <T extends TSchema>(item: T, maxItems: number, minItems = 0) =>
  Type.Array(item, { minItems, maxItems })
/** May be absent, null or (for texts) empty; all three mean that the value is not given, or is removed. */
export const optional = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]))
const scopeNames = () => Type.Array(text(limits.scopeNameCharsMax), { maxItems: limits.scopeNamesMax })
/** The scope of rules, silences and checks. */
export const scope = () =>
  Type.Object({
    all: optional(Type.Boolean()),
    server_ids: optional(Type.Array(uuid(), { maxItems: limits.scopeServerIdsMax })),
    tags: optional(scopeNames()),
    environments: optional(scopeNames()),
    roles: optional(scopeNames()),
    datacenters: optional(scopeNames()),
  })

const number = (value: unknown): number => (typeof value === 'number' ? value : 0)

function formatFault(schema: TSchema, value: unknown): Words {
  if (typeof value !== 'string') return words('string')
  const max = number(schema.maxLength)
  return max > 0 && value.length > max ? words('length_max', { max }) : words(ownFormatOf(schema) ?? 'pattern')
}

function wordsOf(error: ValueError): Words {
  const schema = error.schema
  switch (error.type) {
    case ValueErrorType.ObjectRequiredProperty:
      return words('required')
    case ValueErrorType.StringMinLength:
      return number(schema.minLength) === 1 ? words('required') : words('length_min', { min: number(schema.minLength) })
    case ValueErrorType.StringMaxLength:
      return words('length_max', { max: number(schema.maxLength) })
    case ValueErrorType.IntegerMinimum:
    case ValueErrorType.NumberMinimum:
      return words('minimum', { min: number(schema.minimum) })
    case ValueErrorType.IntegerMaximum:
    case ValueErrorType.NumberMaximum:
      return words('maximum', { max: number(schema.maximum) })
    case ValueErrorType.NumberExclusiveMinimum:
      return words('above', { min: number(schema.exclusiveMinimum) })
    case ValueErrorType.ArrayMinItems:
      return words('list_min', { min: number(schema.minItems) })
    case ValueErrorType.ArrayMaxItems:
      return words('list_max', { max: number(schema.maxItems) })
    case ValueErrorType.StringFormat:
      return words(FORMAT_WORDS[schema.format ?? ''] ?? 'pattern')
    case ValueErrorType.StringPattern:
      return words(PATTERN_WORDS[schema.pattern ?? ''] ?? 'pattern')
    case ValueErrorType.Array:
      return words('list')
    case ValueErrorType.Object:
      return words('object')
    case ValueErrorType.Boolean:
      return words('boolean')
    case ValueErrorType.Integer:
      return words('integer')
    case ValueErrorType.Number:
      return words('number')
    case ValueErrorType.String:
      return words('string')
    case ValueErrorType.Kind:
      if (ownFormatOf(schema)) return formatFault(schema, error.value)
      if (isText(schema)) return textFault(schema, error.value) ?? words('pattern')
      return Array.isArray(schema.enum) ? words('one_of', { values: schema.enum.join(', ') }) : words('pattern')
    default:
      return words('pattern')
  }
}

/**
 * At most this many faulty fields are reported. Each item of a list can be faulty: without a bound a body of 2 MiB
 * would be answered with a million faults, and all other requests would wait meanwhile.
 */
const FAULTS_MAX = 1_000

function addFaults(errors: Iterable<ValueError>, faults: Map<string, Words>): void {
  // TypeBox finds errors lazily, one by one: errors that are not read cost nothing.
  for (const error of errors) {
    if (faults.size >= FAULTS_MAX) return
    addFault(error, faults)
  }
}

function addFault(error: ValueError, faults: Map<string, Words>): void {
  // The first member of every union is the value's schema, the second null: the fault of the value is the message.
  if (error.type === ValueErrorType.Union) {
    addFaults(error.errors[0] ?? [], faults)
    return
  }
  const field = error.path.slice(1).replaceAll('/', '.') || 'body'
  if (!faults.has(field)) faults.set(field, wordsOf(error))
}

/** The faults of a value, by field with dots, up to the bound; empty when it has none. */
export function schemaFaults(schema: TSchema, value: unknown): Map<string, Words> {
  const faults = new Map<string, Words>()
  if (!Value.Check(schema, value)) addFaults(Value.Errors(schema, value), faults)
  return faults
}

const allowsNull = (schema: TSchema): boolean =>
  Array.isArray(schema.anyOf) && schema.anyOf.some((item: TSchema) => item.type === 'null')

/** The schema of a field that is an object or a nullable object; null for any other field. */
function objectOf(schema: TSchema): TObject | null {
  const form: TSchema = allowsNull(schema) ? schema.anyOf[0] : schema
  return form.type === 'object' && form.properties ? (form as TObject) : null
}

const withoutEmptyMembers = (schema: TObject, value: unknown): unknown =>
  isObject(value) ? withoutEmptyTexts(schema, value) : value

/**
 * Turns empty text of an optional field into null (decision G-13), in objects at every depth; a field that may not be
 * null may not be empty either.
 */
export function withoutEmptyTexts(schema: TObject, value: Unchecked): Unchecked {
  const cleaned: Record<string, unknown> = { ...value }
  for (const [name, property] of Object.entries(schema.properties)) {
    const inner = objectOf(property)
    if (inner && Object.hasOwn(cleaned, name)) cleaned[name] = withoutEmptyMembers(inner, cleaned[name])
    else if (cleaned[name] === '' && allowsNull(property)) cleaned[name] = null
  }
  return cleaned
}

/**
 * Faults of a body that its schema cannot express, by field. They are checked even when the schema has faults, so that
 * one response lists everything.
 */
type FurtherFaults = (cleaned: unknown) => Promise<ReadonlyMap<string, Words>>

/** True when a fault of this field, of a parent or of a part of the field is already reported. */
const isTold = (faults: ReadonlyMap<string, Words>, field: string): boolean =>
  [...faults.keys()].some(told => told === field || told.startsWith(`${field}.`) || field.startsWith(`${told}.`))

/** The body as the schema defines it. Throws 422 with every faulty field. */
export async function parseBody<T extends TObject>(
  schema: T,
  value: unknown,
  code = 'invalid_request',
  further?: FurtherFaults,
): Promise<Static<T>> {
  const cleaned = withoutEmptyMembers(schema, value)
  const faults = schemaFaults(schema, cleaned)
  if (faults.size === 0) return cleaned as Static<T>
  const beyond = further ? [...(await further(cleaned))].slice(0, FAULTS_MAX) : []
  const more = beyond.filter(([field]) => !isTold(faults, field))
  throw faultsError(new Map([...faults, ...more]), code)
}

/** The query parameters that the schema names. Others are ignored; an empty one counts as absent. */
export function parseQuery<T extends TObject>(schema: T, search: URLSearchParams): Static<T> {
  const values: Record<string, unknown> = {}
  for (const [name, property] of Object.entries(schema.properties)) {
    if (property.type === 'array') {
      const all = search.getAll(name).filter(each => each.trim() !== '')
      if (all.some(each => each.includes('\0'))) throw faultsError(new Map([[name, words('no_nul')]]))
      if (all.length > 0) values[name] = all
      continue
    }
    const raw = search.get(name)
    if (raw === null || raw.trim() === '') continue
    if (raw.includes('\0')) throw faultsError(new Map([[name, words('no_nul')]]))
    const isNumber = property.type === 'integer' && /^-?\d+$/.test(raw)
    values[name] = isNumber ? Number(raw) : raw
  }
  const faults = schemaFaults(schema, values)
  if (faults.size > 0) throw faultsError(faults, 'invalid_request')
  return values as Static<T>
}

export function faultsError(faults: ReadonlyMap<string, Words>, code = 'invalid_request'): ApiError {
  const errors = Object.fromEntries([...faults].map(([field, text]) => [field, [text]]))
  return new ApiError(422, code, words('invalid'), { errors })
}

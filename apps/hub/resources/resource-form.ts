// What a request gives for a resource, checked field by field, and the columns that it becomes.
import type { TObject, TSchema } from '@sinclair/typebox'
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import { ApiError } from '../platform/http/api-error.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { faultsError, parseBody } from '../platform/http/request-schema.ts'
import { namedFields, type Values } from './field.ts'
import { bodyOf, type Form, type Kind, writableFields } from './kind.ts'

type FormMode = 'create' | 'change'

/** A required field cannot be removed: its null is no fault of the type (RES: `required`). */
function removedFaults(kind: Pick<Kind, 'fields'>, given: Unchecked): Map<string, Words> {
  const faults = new Map<string, Words>()
  for (const [name, { required }] of writableFields(kind))
    if (required && given[name] === null) faults.set(name, words('required'))
  return faults
}

/** Whether a value is of the type that a schema says; of a list, whether all its members are. */
function isOfType({ type, items }: Unchecked, value: unknown): boolean {
  if (type === 'array') return Array.isArray(value) && (!isObject(items) || value.every(each => isOfType(items, each)))
  if (type === 'object') return isObject(value)
  return type === undefined || (type === 'integer' ? 'number' : type) === typeof value
}

/** The faults that schemas cannot express, by field. */
function ownFaults(kind: Pick<Kind, 'fields'>, given: Unchecked): Map<string, Words> {
  const faults = new Map<string, Words>()
  for (const [name, { check, value }] of writableFields(kind)) {
    const member = given[name]
    if (!check || member === undefined || member === null || member === '') continue
    // A check is only asked about values of its field's type; the schema names the others.
    const fault = isOfType(value, member) ? check(member as never) : null
    if (fault instanceof Map) for (const [part, text] of fault) faults.set(`${name}.${part}`, text)
    else if (fault) faults.set(name, fault as Words)
  }
  return faults
}

/** What an object's schema does not name is no part of it, as what a kind has no field for is no part of a body. */
const knownMembers = ({ properties }: TSchema, value: unknown): unknown =>
  isObject(value) && isObject(properties)
    ? Object.fromEntries(Object.entries(value).filter(([name]) => Object.hasOwn(properties, name)))
    : value

const bodies = new WeakMap<Form, Map<boolean, TObject>>()

/** The schema of a form; a kind's is made once. */
function schemaOf(form: Form, isCreate: boolean): TObject {
  const known = bodies.get(form) ?? new Map<boolean, TObject>()
  bodies.set(form, known)
  const schema = known.get(isCreate) ?? bodyOf(form, isCreate)
  known.set(isCreate, schema)
  return schema
}

/** The values of a request, each as its field keeps it. Throws 422 with every faulty field. */
export async function parseForm(kind: Form, mode: FormMode, body: unknown): Promise<Unchecked> {
  const given = isObject(body) ? { ...body } : {}
  const removed = removedFaults(kind, given)
  for (const name of removed.keys()) delete given[name]
  const beyond = () => new Map([...removed, ...ownFaults(kind, given)])
  const parsed: Unchecked = await parseBody(
    schemaOf(kind, mode === 'create' && removed.size === 0),
    isObject(body) ? given : body,
    undefined,
    async () => beyond(),
  )
  const faults = beyond()
  if (faults.size > 0) throw faultsError(faults)
  const values: Record<string, unknown> = {}
  for (const [name, { value: schema, normal, fallback }] of writableFields(kind)) {
    if (!Object.hasOwn(parsed, name)) continue
    const value = knownMembers(schema, parsed[name] ?? null)
    values[name] = value === null ? fallback : normal ? normal(value as never) : value
  }
  for (const name of Object.keys(kind.inputs ?? {})) if (name in parsed) values[name] = parsed[name]
  if (mode === 'change') for (const name of ['version', 'deleted_at']) if (name in parsed) values[name] = parsed[name]
  return values
}

/** The faults of one member of a list, under its place in it; `named` says what a field is called there. */
export async function under<T>(
  faults: Map<string, Words>,
  place: string,
  work: () => Promise<T>,
  named: (field: string) => string = field => field,
): Promise<T | null> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof ApiError) || !error.more.errors) throw error
    for (const [field, [text]] of Object.entries(error.more.errors))
      if (text) faults.set(`${place}.${named(field)}`, text)
    return null
  }
}

/** The columns of given values. */
export function storedOf(kind: Pick<Kind, 'fields'>, values: Unchecked, seal: (secret: string) => string): Values {
  const columns: Record<string, unknown> = {}
  for (const [name, { store }] of namedFields(kind.fields))
    if (Object.hasOwn(values, name)) Object.assign(columns, store(values[name], name, seal))
  return columns
}

/** The columns of a resource for which nothing was given. */
export function emptyOf(kind: Pick<Kind, 'fields'>, seal: (secret: string) => string): Values {
  const columns: Record<string, unknown> = {}
  for (const [name, { store, fallback }] of namedFields(kind.fields))
    Object.assign(columns, store(fallback, name, seal))
  return columns
}

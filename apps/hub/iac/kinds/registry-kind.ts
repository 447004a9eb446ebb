// Kinds of the registry (decision R-001) in manifests: everything follows from the definition of the kind. A manifest
// names what the API identifies: `owner_team`, `servers`.
import { type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { and, asc, count, eq, isNull, type SQL, sql } from 'drizzle-orm'
import { isObject, type Unchecked } from '../../../../core/json-object.ts'
import { isAnyOf } from '../../platform/db/transaction.ts'
import { ApiError } from '../../platform/http/api-error.ts'
import { type Words, words } from '../../platform/http/api-texts.ts'
import { listOf, optional, text } from '../../platform/http/request-schema.ts'
import { editorOf } from '../../resources/editor.ts'
import type { Field, Values } from '../../resources/field.ts'
import { columnNamed, type Kind } from '../../resources/kind.ts'
import { inManifestNames, specFields, specPlace } from '../../resources/manifest-fields.ts'
import { parseForm } from '../../resources/resource-form.ts'
import { deleteResource, insertResource, updateResource } from '../../resources/write-resource.ts'
import type { Existing, ExportFilter, ManifestKind, NameFinder, Reading, Reference } from './manifest-kind.ts'
import { isAsked, isNamed, namesInOrder } from './named-rows.ts'
import { namesById } from './names-by-id.ts'
import { nameOfSpec, sortedTags } from './spec-fields.ts'

type SpecField = readonly [key: string, name: string, field: Field]
type Row = Values & { readonly id: string; readonly name: string; readonly version: number }

const NAMES_MAX = 1_000
const ANY_ID = '00000000-0000-4000-8000-000000000000'
const isList = (field: Field): boolean => field.value.type === 'array'

/** The value of a field in a manifest: a reference is a name. */
function specValue({ to, toOneOf, value }: Field): TSchema {
  if (toOneOf !== undefined) return Type.Omit(value as TObject, ['id'])
  return to === undefined ? value : value.type === 'array' ? listOf(text(255), NAMES_MAX) : text(255)
}

function specSchema(fields: readonly SpecField[]): TObject {
  const members = fields.map(([key, name, field]) => {
    const value = specValue(field)
    return [key, field.required && name !== 'name' ? value : optional(value)] as const
  })
  const properties: TProperties = Object.fromEntries(members)
  return Type.Object(properties)
}

const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.map(String) : typeof value === 'string' ? [value] : []

/** Names a resource, where a field may name other things too. */
type NamedOne = { readonly kind: string; readonly name: string; readonly id: string | null }
const namedOne = ({ toOneOf }: Field, value: unknown): NamedOne | null =>
  toOneOf !== undefined && isObject(value) && toOneOf.includes(String(value.kind))
    ? { kind: String(value.kind), name: String(value.name ?? ''), id: typeof value.id === 'string' ? value.id : null }
    : null
/** What a manifest says where no resource is named: the members that have a value, in one order. */
const withoutEmpty = (value: unknown): unknown =>
  isObject(value)
    ? Object.fromEntries(
        Object.entries(value)
          .filter(([, each]) => each !== null)
          .sort(([a], [b]) => (a < b ? -1 : 1)),
      )
    : value

/** A time becomes the text that manifests have. */
const plain = (value: unknown): unknown => (value instanceof Date ? value.toISOString() : value)

/** A value in the form in which answers show it; parts of an object stay as they were given. */
function shownForm([, name, field]: SpecField, value: unknown): unknown {
  if (value === null) return field.fallback
  if (field.inManifest) return field.inManifest.normal(value)
  const normal = field.normal ? field.normal(value as never) : value
  if (isObject(normal)) return normal
  return plain(
    field.show(
      field.store(normal, name, secret => secret),
      name,
    )[name],
  )
}

class RegistryKind {
  readonly fields: readonly SpecField[]

  constructor(readonly kind: Kind) {
    this.fields = specFields(kind)
  }

  owned(companyId: string): SQL | undefined {
    const { table } = this.kind
    return and(eq(table.company_id, companyId), isNull(table.deleted_at))
  }

  filtered({ companyId }: Reading, { tag, origin, ...named }: ExportFilter): SQL | undefined {
    const { table } = this.kind
    return and(
      this.owned(companyId),
      isNamed(table.id, columnNamed(table, 'name'), named),
      tag === undefined ? undefined : sql`${tag} = any(${columnNamed(table, 'tags')})`,
      origin === undefined ? undefined : sql`${table.origin} = ${origin}`,
    )
  }

  /** Rows as specs, with the names of what they refer to. */
  async read(reading: Reading, rows: readonly Values[]): Promise<Existing[]> {
    const names = new Map<string, ReadonlyMap<string, string>>()
    for (const [, name, { to }] of this.fields)
      if (to !== undefined)
        names.set(name, await namesById(reading, to, [...new Set(rows.flatMap(row => textsOf(row[name])))]))
    const shownOnes = rows.flatMap(row =>
      this.fields.flatMap(([, name, field]) => namedOne(field, field.show(row, name)[name]) ?? []),
    )
    const namesOf = new Map<string, ReadonlyMap<string, string>>()
    for (const [kind, some] of Map.groupBy(shownOnes, one => one.kind))
      namesOf.set(kind, await namesById(reading, kind, [...new Set(some.flatMap(one => one.id ?? []))]))
    return rows.map(given => {
      // The columns that every kind has.
      const row = given as Row
      const spec = this.fields.map(([key, name, field]) => {
        if (field.inManifest) return [key, field.inManifest.show(row)]
        const value = plain(field.show(row, name)[name])
        const one = namedOne(field, value)
        if (one) return [key, { kind: one.kind, name: namesOf.get(one.kind)?.get(one.id ?? '') ?? one.id ?? '' }]
        if (field.toOneOf !== undefined) return [key, withoutEmpty(value)]
        if (field.to === undefined) return [key, value]
        const shown = textsOf(row[name]).map(id => names.get(name)?.get(id) ?? id)
        return [key, isList(field) ? shown.sort() : (shown[0] ?? null)]
      })
      return { id: row.id, name: row.name, version: Number(row.version), spec: Object.fromEntries(spec) }
    })
  }

  rows({ db }: Reading, where: SQL | undefined) {
    const { table } = this.kind
    return db
      .select()
      .from(table)
      .where(where)
      .orderBy(asc(sql`lower(${columnNamed(table, 'name')})`), asc(table.id))
  }

  references(spec: Unchecked): Reference[] {
    return this.fields.flatMap(([key, , field]) => {
      const { to } = field
      const one = namedOne(field, spec[key])
      if (one) return [{ kind: one.kind, name: one.name, at: [key, 'name'] }]
      if (to === undefined) return []
      return textsOf(spec[key]).map((name, index) => ({ kind: to, name, at: isList(field) ? [key, index] : [key] }))
    })
  }

  normal(spec: Unchecked, find: NameFinder): Unchecked {
    const members = this.fields.flatMap(field => {
      const [key, , { to }] = field
      const value = spec[key]
      if (value === undefined) return []
      const one = namedOne(field[2], value)
      if (one) return [[key, { kind: one.kind, name: find(one.kind, one.name)?.name ?? one.name }] as const]
      if (field[2].toOneOf !== undefined) return [[key, withoutEmpty(shownForm(field, value))] as const]
      if (to === undefined) return [[key, shownForm(field, value)] as const]
      const named = textsOf(value).map(name => find(to, name)?.name ?? name)
      return [[key, isList(field[2]) ? named.sort() : (named[0] ?? null)] as const]
    })
    const normal = sortedTags(Object.fromEntries(members))
    return this.kind.iac?.normal?.(normal) ?? normal
  }

  /** A spec in the names of the API. */
  input(spec: Unchecked, find: NameFinder): Unchecked {
    const members = this.fields.flatMap(([key, name, field]) => {
      const value = spec[key]
      const { to } = field
      if (value === undefined) return []
      const one = namedOne(field, value)
      if (one) return [[name, { kind: one.kind, id: find(one.kind, one.name)?.id ?? null }] as const]
      if (to === undefined) return [[name, value] as const]
      const ids = textsOf(value).flatMap(each => find(to, each)?.id ?? [])
      return [[name, isList(field) ? ids : (ids[0] ?? null)] as const]
    })
    return Object.fromEntries(members)
  }

  /** What the form of the API would refuse. */
  async faults(spec: Unchecked, existing: Existing | null): Promise<Map<string, Words>> {
    // What is named was looked up by the plan: here any id will do.
    const body = this.input(spec, (_, name) => ({ id: ANY_ID, name }))
    const faults = new Map<string, Words>()
    try {
      await parseForm(this.kind, existing === null ? 'create' : 'change', withoutNulls(body))
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      for (const [field, [fault]] of Object.entries(error.more.errors ?? {})) if (fault) faults.set(field, fault)
    }
    const missing = this.kind.hooks.missing?.(spec)
    if (missing) faults.set(...missing)
    for (const [key, , field] of this.fields)
      if (field.immutable && existing !== null && JSON.stringify(existing.spec[key]) !== JSON.stringify(spec[key]))
        faults.set(key, words('immutable'))
    return faults
  }

  /** The resource with the same natural key, when the spec has the whole of it. */
  keyOf(spec: Unchecked): SQL | undefined {
    const { iac, table } = this.kind
    const values = (iac?.key ?? []).map(key => {
      const field = this.fields.find(([, name]) => name === key)
      const given = spec[key] ?? field?.[2].fallback ?? null
      // What cannot be a value is in no column: the plan says what is wrong with it.
      const isValue = given !== null && field !== undefined && !field[2].check?.(given as never)
      return [key, isValue ? shownForm(field, given) : null] as const
    })
    if (values.length === 0 || values.some(([, value]) => typeof value !== 'string' && typeof value !== 'number'))
      return undefined
    return and(...values.map(([key, value]) => eq(columnNamed(table, key), value)))
  }
}

const withoutNulls = (body: Unchecked): Unchecked =>
  Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null))

const capital = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1)

/** A kind of the registry as a kind of manifests; null for one that manifests do not have. */
export function manifestKindOf(kind: Kind): ManifestKind | null {
  const { iac, info, table } = kind
  if (iac === null) return null
  const own = new RegistryKind(kind)
  const read = (reading: Reading, where: SQL | undefined) =>
    own.rows(reading, where).then(rows => own.read(reading, rows))
  return {
    kind: iac.kind,
    title: capital(info.title.many.en),
    order: iac.order,
    resourceKind: info.kind,
    permissions: info.permissions,
    dependsOn: [...new Set(own.fields.flatMap(([, , { to, toOneOf = [] }]) => (to === undefined ? toOneOf : [to])))],
    spec: specSchema(own.fields),
    inManifestNames: spec => inManifestNames(own.fields, spec),
    defaults: Object.fromEntries(own.fields.map(([key, , { fallback }]) => [key, fallback])),
    secrets: Object.entries(kind.fields).flatMap(([name, { isSecret }]) => (isSecret ? [name] : [])),
    isNameUnique: true,
    referencesOf: spec => own.references(spec),
    normal: (spec, find) => own.normal(spec, find),
    specField: field => specPlace(own.fields, field),
    faults: (_reading, spec, existing) => own.faults(spec, existing),
    names: async ({ db, companyId }, asked) => {
      const name = columnNamed(table, 'name')
      const rows = await db
        .select({ id: table.id, name: sql<string>`${name}` })
        .from(table)
        .where(and(own.owned(companyId), isAsked(table.id, name, asked)))
      return rows
    },
    namesAfter: (reading, after, limit) =>
      namesInOrder(reading, { table, name: columnNamed(table, 'name') }, own.owned(reading.companyId), after, limit),
    byIds: (reading, ids) => read(reading, and(own.owned(reading.companyId), isAnyOf(table.id, ids))),
    candidates: async (reading, spec, slug) => {
      const key = own.keyOf(spec)
      const byKey = key === undefined ? [] : await read(reading, and(own.owned(reading.companyId), key))
      return byKey.length > 0 ? byKey : read(reading, own.filtered(reading, { name: nameOfSpec(spec, slug) }))
    },
    list: async (reading, filter, { limit, offset }) =>
      own.read(reading, await own.rows(reading, own.filtered(reading, filter)).limit(limit).offset(offset)),
    count: async (reading, filter) => {
      const [row] = await reading.db.select({ total: count() }).from(table).where(own.filtered(reading, filter))
      return row?.total ?? 0
    },
    create: async ({ tx, context }, spec, find) => {
      const values = await parseForm(kind, 'create', withoutNulls(own.input(spec, find)))
      const { id } = await insertResource(tx, kind, editorOf(context), values, { origin: 'iac' })
      return id
    },
    update: async ({ tx, context }, { id, version }, changed, spec, find) => {
      const given = Object.fromEntries(Object.entries(spec).filter(([key]) => changed.has(key)))
      const values = await parseForm(kind, 'change', own.input(given, find))
      await updateResource(tx, kind, editorOf(context), id, values, { origin: 'iac', expected: { version } })
    },
    remove: ({ tx, context }, { id, version }) => deleteResource(tx, kind, editorOf(context), id, { version }),
  }
}

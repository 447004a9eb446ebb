// The definition of a kind of resource (decision R-001). From it come its table for queries, the five usual routes, the
// OpenAPI document, filters and sort of its list, CSV import, the schema of its manifests, the columns of exports, its
// text for search, and its entries in the audit log. Behaviour of its own stands in hooks.
import { type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { type AnyColumn, asc, desc, getTableColumns, type SQL, sql } from 'drizzle-orm'
import {
  bigint,
  boolean,
  jsonb,
  type PgColumnBuilderBase,
  pgTable,
  text as textColumn,
  timestamp,
  uuid as uuidColumn,
} from 'drizzle-orm/pg-core'
import { assert } from '../../../core/assert.ts'
import type { Unchecked } from '../../../core/json-object.ts'
import type { Executor } from '../platform/db/connect.ts'
import type { AuditChanges } from '../platform/db/schema-identity.ts'
import type { Tx } from '../platform/db/transaction.ts'
import type { Words } from '../platform/http/api-texts.ts'
import type { filter } from '../platform/http/collection.ts'
import { optional } from '../platform/http/request-schema.ts'
import type { Editor } from './editor.ts'
import {
  choiceField,
  type Field,
  type Fields,
  type RowOfFields,
  referenceField,
  textField,
  textsField,
  type Values,
} from './field.ts'
import type { BothLanguages, ConditionText, KindInfo, Reference } from './kind-info.ts'

const statuses = ['planned', 'active', 'maintenance', 'retired'] as const
export const origins = ['manual', 'iac', 'import', 'discovered'] as const
export const healths = ['ok', 'warning', 'critical', 'unknown'] as const
type Origin = (typeof origins)[number]
type Health = (typeof healths)[number]

/** The fields that every kind has, unless it has one of the same name. */
const commonFields = {
  name: textField(255, { required: true, search: 'text', sort: true }),
  description: textField(2000, { search: 'text' }),
  tags: { ...textsField(128, 50, { search: 'text', options: 'resource_tags' }), store: storeTags },
  owner_team_id: ownerField(),
  status: choiceField(statuses, { fallback: 'active', filter: true }),
} as const satisfies Fields

/** Kept sorted and each once (RES-023). */
function storeTags(value: unknown): Values {
  return { tags: Array.isArray(value) ? [...new Set(value.map(String))].sort() : [] }
}

function ownerField(): Field<{ readonly column: string | null }> {
  const team = Type.Object({ id: Type.String({ format: 'uuid' }), name: Type.String() }, { $id: 'OwnerTeam' })
  return {
    ...referenceField('team', { filter: true }),
    response: () => ({ owner_team: Type.Union([team, Type.Null()]) }),
    show: row => ({ owner_team: row.owner_id === null ? null : { id: row.owner_id, name: row.owner_name } }),
  }
}

const at = (name: string) => timestamp(name, { withTimezone: true, precision: 3, mode: 'date' })
/** Columns that requests never set. */
const ownColumns = () => ({
  id: uuidColumn('id').primaryKey(),
  company_id: uuidColumn('company_id').notNull(),
  version: bigint('version', { mode: 'number' }).notNull().default(1),
  origin: textColumn('origin').$type<Origin>().notNull().default('manual'),
  health: textColumn('health').$type<Health>().notNull().default('unknown'),
  /** Until when the newest probe speaks for the resource; null for one that is not probed by design. */
  probe_until: at('probe_until'),
  drifted: boolean('drifted').notNull().default(false),
  drift: jsonb('drift').$type<readonly Unchecked[]>().notNull().default([]),
  created_by: uuidColumn('created_by'),
  updated_by: uuidColumn('updated_by'),
  created_at: at('created_at').notNull().defaultNow(),
  updated_at: at('updated_at').notNull().defaultNow(),
  deleted_at: at('deleted_at'),
  search_text: textColumn('search_text').notNull().default(''),
})

/** The columns of every kind, as queries give them. */
export type CommonRow = {
  readonly id: string
  readonly company_id: string
  readonly name: string
  readonly description: string | null
  readonly tags: readonly string[]
  readonly owner_team_id: string | null
  readonly status: string
  readonly version: number
  readonly origin: Origin
  readonly health: Health
  readonly probe_until: Date | null
  readonly drifted: boolean
  readonly drift: readonly Unchecked[]
  readonly created_by: string | null
  readonly updated_by: string | null
  readonly created_at: Date
  readonly updated_at: Date
  readonly deleted_at: Date | null
}
export type RowOf<F extends Fields> = CommonRow & RowOfFields<F>

/** Members of an audit entry that hooks add. */
export type Notes = { -readonly [K in keyof AuditChanges]: AuditChanges[K] }

/** A write on its way: what hooks see, and may complete, before it is stored. */
export type Write<Row> = {
  readonly tx: Tx
  readonly editor: Editor
  /** Null for one that is created. */
  readonly before: Row | null
  /** The row as it will be; hooks may assign other columns. */
  readonly next: { -readonly [K in keyof Row]: Row[K] }
  /** The fields that the request gave. */
  readonly given: ReadonlySet<string>
  /** What it gave beside the fields (`inputs`). */
  readonly input: Unchecked
  /** What the audit entry says beside the fields that differ; hooks may add to it. */
  readonly notes: Notes
}
/** The write of a new resource among others. */
export type NewWrite<Row> = Write<Row> & {
  /** What is wrong with it, by field: hooks add to it instead of throwing, and it is not stored. */
  readonly faults: Map<string, Words>
}
export type Written<Row> = {
  readonly tx: Tx
  readonly editor: Editor
  readonly before: Row | null
  /** Null after a deletion. */
  readonly after: Row | null
}

type Hooks<Row> = {
  /** Takes what is locked before a row of the company is: all take locks in one order. */
  lock?(tx: Tx, companyId: string): Promise<void>
  /** Completes the row, and refuses what the fields alone cannot (throws 422 with field names). */
  beforeWrite?(write: Write<Row>): Promise<void>
  /** A field that what the others say asks for, and its text: of a write before `beforeWrite`, and of a plan. */
  missing?(values: Unchecked): readonly [field: string, text: Words] | null
  /** Changes what depends on the resource; also after a deletion and a restoration. */
  afterWrite?(written: Written<Row>): Promise<void>
  /**
   * What the two do at a creation, for many new resources at once. Of a kind that has `beforeWrite` without these each
   * is created by itself, for what it looks at may be the one before it.
   */
  beforeInserts?(writes: readonly NewWrite<Row>[]): Promise<void>
  afterInserts?(written: readonly Written<Row>[]): Promise<void>
  /** Refuses a deletion, beyond those that others name. */
  beforeDelete?(write: {
    readonly tx: Tx
    readonly editor: Editor
    readonly row: Row
    readonly input: Unchecked
    readonly notes: Notes
  }): Promise<void>
  /**
   * The members of `derived`, by the id of the row. `isShow` asks for those that only the answer for one has too;
   * `made` has the ids of rows that were made just now.
   */
  derive?(
    db: Executor,
    asker: { readonly hub: Editor['hub']; readonly companyId: string },
    rows: readonly Row[],
    isShow: boolean,
    made: ReadonlySet<string>,
  ): Promise<ReadonlyMap<string, Values>>
}

type AnyFilter = ReturnType<typeof filter>

/** What leaves the hub for a resource when an act is called: runs as a job. */
type Act<Row> = {
  work(given: { readonly editor: Editor; readonly row: Row; readonly input: Unchecked }): Promise<Unchecked>
}

/** The columns that every kind has are known by name; those of fields are in `getTableColumns`. */
export type Table = ReturnType<typeof tableOf>

type Definition<F extends Fields> = {
  readonly kind: string
  readonly title: { readonly one: BothLanguages; readonly many: BothLanguages }
  /** The group of the catalogue, as the OpenAPI document names it. */
  readonly group: string
  /** What the group is, unless another kind of it says so. */
  readonly groupText?: string
  readonly path: string
  /** The name of the id in paths. */
  readonly parameter: string
  readonly table: string
  /** The name of its schema in the OpenAPI document. */
  readonly schemaName: string
  readonly fields: F
  /** Members of a body that are kept nowhere: what a write is to do beside setting fields. */
  readonly inputs?: TProperties
  /** What it is a part of: the column with the parent's id. Parts go and come back with their parent. */
  readonly parent?: { readonly of: Kind; readonly column: string }
  /** The field at which a unique index refuses, by the name of the index. `<table>_name` is known. */
  readonly uniqueness?: Readonly<Record<string, string>>
  /** References that no field says by itself, such as those of another kind each. */
  readonly references?: readonly Reference[]
  /** The columns with the host or URL under which it is reached, the first that has one counts. */
  readonly addressColumns?: readonly string[]
  /** How many a company (a parent) may have. */
  readonly limit: number
  readonly permissions: { readonly view: string; readonly manage: string }
  /** Further filters of the list; those of fields are known. */
  readonly filters?: (table: Table) => Readonly<Record<string, AnyFilter>>
  /** Further orders of the list, by name; the first one is the usual order, else `name`. */
  readonly sorts?: (table: Table) => Readonly<Record<string, AnyColumn | SQL>>
  /** Members of answers that hooks derive. */
  readonly derived?: { readonly list?: TProperties; readonly show?: TProperties }
  readonly conditions?: Readonly<Record<string, ConditionText>>
  /** How manifests name the kind, in which order they are applied, and the fields by which one is known. */
  readonly iac: {
    readonly kind: string
    readonly order: number
    readonly key: readonly string[]
    /** The form of a spec that is kept, where that of a field depends on others. */
    readonly normal?: (spec: Unchecked) => Unchecked
  } | null
  /** The fields by which a row of a CSV file is known; null for a kind that takes none. */
  readonly csv: {
    readonly key: readonly string[]
    /** The spelling of the key that is kept, where it depends on what the row is a part of. */
    readonly normal?: (values: Unchecked, parent: never) => Unchecked
  } | null
  readonly hooks?: Hooks<RowOf<F>>
  readonly acts?: Readonly<Record<string, Act<RowOf<F>>>>
  /** What a page has a button for: POST of that name below the resource, without a body, with this key of the kind. */
  readonly buttons?: Buttons
  /** The usual routes that the catalogue does not have for the kind. */
  readonly without?: readonly UsualRoute[]
}
type Buttons = Readonly<Record<string, 'view' | 'manage'>>
export type UsualRoute = 'list' | 'create' | 'show' | 'change' | 'delete'

export type Kind<Row extends CommonRow = CommonRow> = {
  readonly info: KindInfo
  readonly group: string
  readonly groupText: string | undefined
  readonly parameter: string
  readonly schemaName: string
  readonly fields: Fields
  readonly inputs: TProperties
  readonly table: Table
  readonly parent: { readonly of: Kind; readonly column: string } | null
  readonly uniqueness: Readonly<Record<string, string>>
  readonly limit: number
  readonly filters: Readonly<Record<string, AnyFilter>>
  readonly sorts: Readonly<Record<string, readonly SQL[]>>
  readonly usualSort: string
  readonly derived: { readonly list: TProperties; readonly show: TProperties }
  readonly iac: Definition<Fields>['iac']
  readonly csv: Definition<Fields>['csv']
  readonly without: readonly UsualRoute[]
  readonly buttons: Buttons
  readonly hooks: Hooks<Row>
  act(name: string): Act<Row> | undefined
}

/** The columns of a table, by name. */
function tableOf(name: string, fields: Fields) {
  const ofFields: Record<string, PgColumnBuilderBase> = Object.fromEntries(
    Object.entries(fields).flatMap(([field, { columns }]) => Object.entries(columns(field))),
  )
  return pgTable(name, { ...ofFields, ...ownColumns() })
}

export function columnNamed(table: Table, name: string): AnyColumn {
  const columns: Readonly<Record<string, AnyColumn>> = getTableColumns(table)
  const column = columns[name]
  assert(column !== undefined, `a table has the column ${name}`)
  return column
}

const ordersOf = (name: string, by: AnyColumn | SQL, table: Table): [string, readonly SQL[]][] => [
  [name, [asc(by), asc(table.id)]],
  [`-${name}`, [desc(by), desc(table.id)]],
]

function sortsOf<F extends Fields>(definition: Definition<F>, table: Table, fields: Fields) {
  const own = definition.sorts?.(table) ?? {}
  const columnOf = (name: string): AnyColumn => columnNamed(table, name)
  const sorted = Object.entries(fields).flatMap(([name, field]) => (field.sort && name !== 'name' ? [name] : []))
  const all: Readonly<Record<string, AnyColumn | SQL>> = {
    ...own,
    name: own.name ?? sql`lower(${columnOf('name')})`,
    created_at: columnOf('created_at'),
    updated_at: columnOf('updated_at'),
    ...Object.fromEntries(sorted.map(name => [name, columnOf(name)])),
  }
  return {
    sorts: Object.fromEntries(Object.entries(all).flatMap(([name, by]) => ordersOf(name, by, table))),
    usualSort: Object.keys(own)[0] ?? 'name',
  }
}

/** The references that fields say. */
const referencesOf = (fields: Fields): Reference[] =>
  Object.entries(fields).flatMap(([field, { to, value }]) =>
    to === undefined
      ? []
      : [{ field, to, column: field, ...(value.type === 'array' ? { isList: true as const } : {}) }],
  )

/** What every kind can have that manifests make. */
const DRIFT: ConditionText = {
  severity: 'warning',
  text: { en: 'Differs from its manifest {manifest}', vi: 'Khác với manifest {manifest}' },
}

export function defineKind<F extends Fields>(definition: Definition<F>): Kind<RowOf<F>> {
  const fields: Fields = { ...commonFields, ...definition.fields }
  const table = tableOf(definition.table, fields)
  const { parent = null } = definition
  const info: KindInfo = {
    kind: definition.kind,
    title: definition.title,
    path: definition.path,
    table: definition.table,
    nameColumn: 'name',
    permissions: definition.permissions,
    references: [...referencesOf(fields), ...(definition.references ?? [])],
    addressColumns: definition.addressColumns ?? [],
    conditions: { drift: DRIFT, ...definition.conditions },
    parent: parent && { kind: parent.of.info.kind, column: parent.column },
    isResource: true,
  }
  return {
    info,
    group: definition.group,
    groupText: definition.groupText,
    parameter: definition.parameter,
    schemaName: definition.schemaName,
    fields,
    inputs: definition.inputs ?? {},
    table,
    parent,
    uniqueness: { [`${definition.table}_name`]: 'name', ...definition.uniqueness },
    limit: definition.limit,
    filters: definition.filters?.(table) ?? {},
    ...sortsOf(definition, table, fields),
    derived: { list: definition.derived?.list ?? {}, show: definition.derived?.show ?? {} },
    iac: definition.iac,
    csv: definition.csv,
    without: definition.without ?? [],
    buttons: definition.buttons ?? {},
    hooks: definition.hooks ?? {},
    act: name => definition.acts?.[name],
  }
}

/** A kind whose acts write resources of kinds that are defined after it. */
export const withActs = <Row extends CommonRow>(
  kind: Kind<Row>,
  acts: Readonly<Record<string, Act<Row>>>,
): Kind<Row> => ({
  ...kind,
  act: name => acts[name] ?? kind.act(name),
})

type WritableFields = readonly (readonly [string, Field])[]
const writableOf = new WeakMap<object, WritableFields>()

/** The fields that a request may give. */
export function writableFields({ fields }: Pick<Kind, 'fields'>): WritableFields {
  const known = writableOf.get(fields) ?? Object.entries(fields).filter(([, { readOnly }]) => !readOnly)
  writableOf.set(fields, known)
  return known
}

/** What a form is made of. */
export type Form = Pick<Kind, 'fields'> & Partial<Pick<Kind, 'inputs'>>

/** The schema of a request's body. A removed value is null; one that was never given is absent. */
export function bodyOf(kind: Form, isCreate: boolean): TObject {
  const members = writableFields(kind).map(([name, { value, required }]): [string, TSchema] => [
    name,
    required ? (isCreate ? value : Type.Optional(value)) : optional(value),
  ])
  const further: TProperties = isCreate
    ? {}
    : {
        version: optional(Type.Integer({ minimum: 1, description: 'Refuses with 409 when the version is another.' })),
        deleted_at: Type.Optional(Type.Union([Type.String(), Type.Null()], { description: 'Null restores.' })),
      }
  const inputs = Object.entries(kind.inputs ?? {}).map(([name, value]) => [name, optional(value)] as const)
  return Type.Object({ ...Object.fromEntries([...members, ...inputs]), ...further })
}

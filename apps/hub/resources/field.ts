// The fields of a kind of resource: for each what a request may give, the columns that keep it, and what answers show.
// Everything else that is known of a field (filters, search, IaC, CSV) follows from its traits (decision R-001).
import type { TProperties, TSchema } from '@sinclair/typebox'
import { Type } from '@sinclair/typebox'
import {
  boolean as booleanColumn,
  integer as integerColumn,
  jsonb,
  type PgColumnBuilderBase,
  text as textColumn,
  timestamp,
  uuid as uuidColumn,
} from 'drizzle-orm/pg-core'
import type { Words } from '../platform/http/api-texts.ts'
import { boolean, instant, integer, listOf, oneOf, text, uuid } from '../platform/http/request-schema.ts'
import { id, nullable, time } from '../platform/http/response-schema.ts'

/** Seals a secret with the hub's key. */
type Seal = (secret: string) => string
type Columns = Readonly<Record<string, PgColumnBuilderBase>>
/** Values by the names of columns, or members of an answer by their names. */
export type Values = Readonly<Record<string, unknown>>

/** The fields beside a secret that say who is sent it: an address, and whether its certificate is checked. */
type SentTo = { readonly address: string; readonly verifies?: string }

/** What is true of a field beside its type. */
type Traits = {
  /** A request that creates a resource must give it. */
  readonly required?: true
  /** Given at creation and never changed. */
  readonly immutable?: true
  /** Requests never set it: hooks do. */
  readonly readOnly?: true
  /** Only the answer for one resource has it. */
  readonly showOnly?: true
  /** Lists can be filtered by its exact value. */
  readonly filter?: true
  /** Lists can be sorted by it. */
  readonly sort?: true
  /** Search finds the resource by its exact value, or by words in it: the triggers of its table must name it. */
  readonly search?: 'exact' | 'text'
  /** The value belongs to this list of options; while that is strict, other values are refused. */
  readonly options?: string
  /** The faults of a value that its schema cannot express: of the whole, or by member of an object. */
  readonly check?: (value: never) => Words | ReadonlyMap<string, Words> | null
  /** What a request gave, in the form that is kept: an address in its usual spelling. */
  readonly normal?: (value: never) => unknown
  /** Not part of a manifest, for example because it repeats another field. */
  readonly manifest?: false
  /** The value in a manifest, where answers do not show it: of a row, and the form in which two are compared. */
  readonly inManifest?: { readonly show: (row: Values) => unknown; readonly normal: (value: unknown) => unknown }
}

export type Field<T = unknown> = Traits & {
  /** A value in a request. Lists and null are allowed by what stands below. */
  readonly value: TSchema
  /** Whether it can have no value. */
  readonly nullable: boolean
  /** The value of a resource for which none was given. */
  readonly fallback: unknown
  /** The kind that the value names by its id. */
  readonly to?: string
  /** Names a resource of one of these kinds as {kind, id}; manifests say {kind, name}. */
  readonly toOneOf?: readonly string[]
  /** Written and never read: answers have `<name>_set`. */
  readonly isSecret?: true
  /** Where a secret is sent. */
  readonly sentTo?: SentTo
  readonly columns: (name: string) => Columns
  /** Members of answers. */
  readonly response: (name: string) => TProperties
  /** What is written for a value that a request gave. */
  readonly store: (value: unknown, name: string, seal: Seal) => Values
  readonly show: (row: Values, name: string) => Values
  /** The type of the columns; no field has this member. */
  readonly row?: T
}

export type Fields = Readonly<Record<string, Field>>

const entriesOf = new WeakMap<Fields, readonly (readonly [name: string, field: Field])[]>()
/** The fields with their names. Rows are written and shown by the dozen, and to list the fields anew costs as much. */
export function namedFields(fields: Fields): readonly (readonly [name: string, field: Field])[] {
  const known = entriesOf.get(fields) ?? Object.entries(fields)
  entriesOf.set(fields, known)
  return known
}

/** A column that is never null unless the field may be. */
type Constrained = PgColumnBuilderBase & { notNull(): PgColumnBuilderBase }
type OneColumn = Traits & { readonly fallback?: unknown; readonly to?: string }

/** A field that one column of its own name keeps. */
export function columnField<T>(
  column: (name: string) => Constrained,
  value: TSchema,
  response: TSchema,
  traits: OneColumn,
): Field<{ readonly column: T }> {
  const isNullable = traits.required === undefined && (traits.fallback === undefined || traits.fallback === null)
  return {
    ...traits,
    value,
    nullable: isNullable,
    fallback: traits.fallback ?? null,
    columns: name => ({ [name]: isNullable ? column(name) : column(name).notNull() }),
    response: name => ({ [name]: isNullable ? nullable(response) : response }),
    store: (given, name) => ({ [name]: given }),
    show: (row, name) => ({ [name]: row[name] }),
  }
}

/** Null unless the field is required or has a fallback. */
type Kept<T, X> = X extends { readonly required: true } | { readonly fallback: unknown } ? T : T | null
type Simple<T, X> = Field<{ readonly column: Kept<T, X> }>

export const textField = <const X extends OneColumn>(max: number, traits: X): Simple<string, X> =>
  columnField(name => textColumn(name), text(max), Type.String(), traits)

export const integerField = <const X extends OneColumn>(min: number, max: number, traits: X): Simple<number, X> =>
  columnField(name => integerColumn(name), integer(min, max), Type.Integer(), traits)

export const booleanField = <const X extends OneColumn>(traits: X): Simple<boolean, X> =>
  columnField(name => booleanColumn(name), boolean(), Type.Boolean(), traits)

export const choiceField = <const V extends readonly string[], const X extends OneColumn>(
  values: V,
  traits: X,
): Simple<V[number], X> => columnField(name => textColumn(name), oneOf(values), oneOf(values), traits)

export const timeField = <const X extends OneColumn>(traits: X): Simple<Date, X> => ({
  ...columnField(
    name => timestamp(name, { withTimezone: true, precision: 3, mode: 'date' }),
    instant(),
    time(),
    traits,
  ),
  store: (given, name) => ({ [name]: typeof given === 'string' ? new Date(given) : given }),
})

/** A list of texts; none is an empty list. */
export const textsField = (max: number, itemMax: number, traits: Traits): Field<{ readonly column: string[] }> =>
  columnField(name => textColumn(name).array(), listOf(text(max), itemMax), Type.Array(Type.String()), {
    ...traits,
    fallback: [],
  })

/** A list of objects, kept as JSON; none is an empty list. */
export const objectsField = <T>(item: TSchema, itemMax: number, traits: Traits): Field<{ readonly column: T[] }> =>
  columnField(name => jsonb(name), listOf(item, itemMax), Type.Array(item), { ...traits, fallback: [] })

/** The id of a resource of another kind, which must be one of the company. */
export const referenceField = <const X extends Omit<OneColumn, 'to'>>(to: string, traits: X): Simple<string, X> =>
  columnField(name => uuidColumn(name), uuid(), id(), { ...traits, to })

/** Ids of resources of another kind; none is an empty list. */
export const referencesField = (to: string, itemMax: number, traits: Traits): Field<{ readonly column: string[] }> =>
  columnField(name => uuidColumn(name).array(), listOf(uuid(), itemMax), Type.Array(id()), {
    ...traits,
    to,
    fallback: [],
  })

const neededAgain = ({ address, verifies }: SentTo): string =>
  `Needed again, or null, with another scheme, host or port in ${address}${verifies ? `, or without ${verifies}` : ''}.`

/**
 * Written and never read (R-014): the column `<name>_sealed` keeps it, answers have `<name>_set`. It stays with the
 * address that it was given for (`sentSecretFaults`); null for one that is sent nowhere.
 */
export const secretField = (max: number, sentTo: SentTo | null): Field<Readonly<Record<never, never>>> => ({
  isSecret: true,
  ...(sentTo && { sentTo }),
  value: { ...text(max), description: `Written and never read.${sentTo ? ` ${neededAgain(sentTo)}` : ''}` },
  nullable: true,
  fallback: null,
  columns: name => ({ [`${name}_sealed`]: textColumn(`${name}_sealed`) }),
  response: name => ({ [`${name}_set`]: Type.Boolean() }),
  store: (given, name, seal) => ({ [`${name}_sealed`]: typeof given === 'string' ? seal(given) : null }),
  show: (row, name) => ({ [`${name}_set`]: row[`${name}_sealed`] !== null }),
})

/** A column that the hub keeps for itself: no request gives it, no answer has it. */
export const internalField = <T>(
  column: (name: string) => PgColumnBuilderBase,
  fallback: T,
): Field<{ readonly column: T }> => ({
  readOnly: true,
  manifest: false,
  value: Type.Unknown(),
  nullable: true,
  fallback,
  columns: name => ({ [name]: column(name) }),
  response: () => ({}),
  store: (given, name) => ({ [name]: given }),
  show: () => ({}),
})

/** A field of several columns, for example an object whose members are queried. `T` is the type of the columns. */
export const compositeField = <T extends object>(
  definition: Traits & {
    readonly value: TSchema
    readonly nullable?: boolean
    readonly fallback?: unknown
    readonly toOneOf?: readonly string[]
    readonly columns: Columns
    readonly response: TSchema
    readonly store: (value: unknown) => Values
    readonly show: (row: T) => unknown
  },
): Field<T> => ({
  ...definition,
  nullable: definition.nullable ?? false,
  fallback: definition.fallback ?? null,
  columns: () => definition.columns,
  response: name => ({ [name]: definition.response }),
  // The columns of the field are those of `T`.
  show: (row, name) => ({ [name]: definition.show(row as T) }),
})

type ColumnsOf<F extends Fields> = {
  readonly [K in keyof F]: F[K] extends Field<infer C>
    ? C extends { readonly column: infer V }
      ? { readonly [N in K]: V }
      : C
    : never
}[keyof F]
type Merged<U> = (U extends unknown ? (each: U) => void : never) extends (all: infer I) => void ? I : never

/** The columns of fields, by name, as drizzle reads them. */
export type RowOfFields<F extends Fields> = Merged<ColumnsOf<F>>

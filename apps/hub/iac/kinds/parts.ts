// Parts of a resource in its manifest: pools of a load balancer, sites of a proxy. Each is an object of a list, known
// by its name, with the fields that its kind has in the registry.
import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import { and, isNull, sql } from 'drizzle-orm'
import { canonicalText } from '../../../../core/iac/spec-diff.ts'
import { isObject, type Unchecked } from '../../../../core/json-object.ts'
import { isAnyOf } from '../../platform/db/transaction.ts'
import type { Words } from '../../platform/http/api-texts.ts'
import { faultsError, listOf, optional, text } from '../../platform/http/request-schema.ts'
import { editorOf } from '../../resources/editor.ts'
import type { Values } from '../../resources/field.ts'
import { columnNamed, type Form, type Kind } from '../../resources/kind.ts'
import { inManifestNames, specFields, specPlace } from '../../resources/manifest-fields.ts'
import { parseForm, under } from '../../resources/resource-form.ts'
import { insertResource, updateResource } from '../../resources/write-resource.ts'
import { countPart, type Reading, type Writing } from './manifest-kind.ts'

const NAMES_MAX = 20
const IAC = { origin: 'iac' } as const
/** Stands for what is not there yet: where only the form is judged, any id will do. */
export const ANY_ID = '00000000-0000-4000-8000-000000000000'

/** The fields of a part that a manifest may have; the owner is that of the whole. */
export const partFields = (kind: Form) => specFields(kind).filter(([key]) => key !== 'owner_team')
export type PartFields = ReturnType<typeof partFields>

/** A list of parts in the names of manifests; `inside` does the same for what lies in a part. */
export const partsInManifestNames = (
  own: Parameters<typeof inManifestNames>[0],
  parts: unknown,
  inside: (part: Unchecked) => Unchecked = part => part,
): unknown =>
  Array.isArray(parts) ? parts.map(part => (isObject(part) ? inside(inManifestNames(own, part)) : part)) : parts

/** An object with another value of a member, where it has that member. */
export const withMember = (given: Unchecked, name: string, change: (value: unknown) => unknown): Unchecked =>
  Object.hasOwn(given, name) ? { ...given, [name]: change(given[name]) } : given

/** The schema of a part; `more` are members that are said otherwise than by the field of that name. */
export function partSpec(own: PartFields, more: Readonly<Record<string, TSchema>>): TObject {
  const members = own.map(([key, , field]): [string, TSchema] => {
    const named = field.value.type === 'array' ? listOf(text(255), NAMES_MAX) : text(255)
    const value = field.to === undefined ? field.value : named
    return [key, field.required ? value : optional(value)]
  })
  return Type.Object({ ...Object.fromEntries(members), ...more })
}

export const itemsOf = (value: unknown): Unchecked[] => (Array.isArray(value) ? value.filter(isObject) : [])
export const filled = (given: Unchecked): Unchecked =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null && value !== undefined))

export type PartRow = Values & { readonly id: string; readonly name: string }

/** The parts of several resources, by name. */
export async function partRows(
  { db }: Pick<Reading, 'db'>,
  { table }: Pick<Kind, 'table'>,
  column: string,
  ids: readonly string[],
): Promise<PartRow[]> {
  const rows = await db
    .select()
    .from(table)
    .where(and(isAnyOf(columnNamed(table, column), ids), isNull(table.deleted_at)))
    .orderBy(sql`${columnNamed(table, 'name')} collate "C"`)
  // The columns that every kind has.
  return rows as readonly Values[] as PartRow[]
}

/** A part as its manifest says it, with the names of what it refers to. */
export function shownPart(own: PartFields, row: PartRow, names: ReadonlyMap<string, string>): Unchecked {
  const members = own.map(([key, name, field]) => {
    if (field.to === undefined) return [key, field.show(row, name)[name]]
    const ids = row[name]
    return [
      key,
      Array.isArray(ids) ? ids.map(id => names.get(String(id)) ?? id).sort() : (names.get(String(ids)) ?? null),
    ]
  })
  return Object.fromEntries(members)
}

/** A part in the names of the API; `idOf` finds what it refers to. */
export function partInput(own: PartFields, item: Unchecked, idOf: (kind: string, name: unknown) => string): Unchecked {
  const members = own.flatMap(([key, name, { to }]): [string, unknown][] => {
    const value = item[key]
    if (value === undefined || value === null || to === undefined) return value === undefined ? [] : [[name, value]]
    return [[name, Array.isArray(value) ? value.map(each => idOf(to, each)) : idOf(to, value)]]
  })
  return Object.fromEntries(members)
}

/** The faults of a part under its place, with the names that fields have in a spec. */
const underPlace = <T>(faults: Map<string, Words>, kind: Form, place: string, work: () => Promise<T>) =>
  under(faults, place, work, field => specPlace(partFields(kind), field))

/** Collects what the form of the API would refuse of a part, under its place. */
export const judgePart = (faults: Map<string, Words>, kind: Form, body: Unchecked, place: string): Promise<unknown> =>
  underPlace(faults, kind, place, () => parseForm(kind, 'create', body))

/** Finds the part of a list that is as it shall be already, which needs no write. */
export function keptParts(existing: Unchecked | null, list: string): (wanted: Unchecked) => boolean {
  const known = new Map(itemsOf(existing?.[list]).map(part => [String(part.name), canonicalText(part)]))
  return wanted => known.get(String(wanted.name)) === canonicalText(wanted)
}

type WantedPart = {
  readonly parentId: string
  /** In the names of the API. */
  readonly body: Unchecked
  /** Its place in the spec, such as `pools.0`. */
  readonly place: string
}

/** Creates a part, or makes the one that has its name what the manifest says. Throws 422 on fields of the spec. */
export async function writePart(
  writing: Writing,
  kind: Kind,
  known: readonly PartRow[],
  { parentId, body, place }: WantedPart,
): Promise<PartRow> {
  countPart(writing)
  const { tx, context } = writing
  const existing = known.find(({ name }) => name === body.name)
  const editor = editorOf(context)
  const faults = new Map<string, Words>()
  const row = await underPlace(faults, kind, place, async () => {
    const values = await parseForm(kind, existing ? 'change' : 'create', body)
    return existing
      ? updateResource(tx, kind, editor, existing.id, values, IAC)
      : insertResource(tx, kind, editor, values, { ...IAC, parentId })
  })
  if (row === null) throw faultsError(faults)
  return row as Values as PartRow
}

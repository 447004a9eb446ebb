// Creating, changing, deleting and restoring a resource of any kind, each within a transaction with its entry in the
// audit log (RES-017). Requests, manifests, CSV files and agents' reports all write through here.
import { randomUUID } from 'node:crypto'
import { and, count, eq, isNull, sql } from 'drizzle-orm'
import { canonicalText } from '../../../core/iac/spec-diff.ts'
import type { Unchecked } from '../../../core/json-object.ts'
import { changesBetween } from '../audit/audit.ts'
import { sqlState, violatedUniqueIndex } from '../platform/db/connect.ts'
import type { AuditChanges } from '../platform/db/schema-identity.ts'
import { type Tx, uuidList } from '../platform/db/transaction.ts'
import { ApiError, invalidField, notFound } from '../platform/http/api-error.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { faultsError } from '../platform/http/request-schema.ts'
import { refreshHealth } from './conditions.ts'
import type { Editor } from './editor.ts'
import type { Values } from './field.ts'
import { type CommonRow, columnNamed, type Kind, type Notes } from './kind.ts'
import { partsOf, referenceFaults, refuseInUse } from './references.ts'
import { emptyOf, storedOf } from './resource-form.ts'
import { type Found, findRow, lockRow } from './resource-rows.ts'
import { optionFaults, optionFieldsOf } from './strict-options.ts'

type Origin = CommonRow['origin']
/** The version that the caller changed: of the header (412 when it is another one) or of the body (409). */
export type Expected = { readonly ifMatch?: string | null; readonly version?: number | null }

const NONE: ReadonlySet<string> = new Set()
/** What a request gave beside the fields of a kind. */
const inputOf = ({ inputs }: Kind, values: Unchecked): Unchecked =>
  Object.fromEntries(Object.keys(inputs).flatMap(name => (name in values ? [[name, values[name]]] : [])))
/** Columns whose change is no change of the resource. */
const UNCOUNTED = new Set(['version', 'updated_at', 'updated_by', 'health', 'drifted', 'drift', 'probe_until'])

/** True when If-Match names the version: `*` any, a list any of its members, a weak tag never. */
const matches = (ifMatch: string, version: number): boolean =>
  ifMatch.split(',').some(tag => tag.trim() === '*' || tag.trim() === `"${version}"`)

/** Throws 412 or 409 when the resource is another version than the caller knows. */
function checkVersion({ version }: CommonRow, { ifMatch, version: given }: Expected): void {
  const conflict = (status: number) =>
    new ApiError(status, 'version_conflict', words('version_conflict', { version }), {
      reason: 'version_conflict',
      members: { current_version: version },
    })
  if (ifMatch !== null && ifMatch !== undefined && !matches(ifMatch, version)) throw conflict(412)
  if (given !== null && given !== undefined && given !== version) throw conflict(409)
}

/** What a row shows of its fields, for the audit log: never a secret. */
const recordOf = (kind: Kind, row: Values): Unchecked =>
  Object.assign(
    {},
    ...Object.entries(kind.fields).map(([name, { show, readOnly }]) => (readOnly ? {} : show(row, name))),
  )

const subjectOf = ({ info }: Kind, { id, name }: CommonRow) => ({ type: info.kind, id, name })

/** Runs a statement; a unique index that refuses becomes the fault of its field. */
async function storing<T>({ uniqueness }: Kind, act: PromiseLike<T>): Promise<T> {
  try {
    return await act
  } catch (error) {
    const field = uniqueness[violatedUniqueIndex(error) ?? '']
    if (field !== undefined) throw invalidField(field, 'taken')
    if (sqlState(error) === '23503') throw notFound()
    throw error
  }
}

/** Throws 422 when the company, or the parent, has more than the limit. Call it after the insert. */
async function checkLimit(kind: Kind, tx: Tx, row: CommonRow): Promise<void> {
  const { table, parent, limit } = kind
  const within = parent ? eq(columnNamed(table, parent.column), (row as Values & CommonRow)[parent.column]) : undefined
  const [found] = await tx.db
    .select({ total: count() })
    .from(table)
    .where(and(eq(table.company_id, row.company_id), within, isNull(table.deleted_at)))
  if ((found?.total ?? 0) <= limit) return
  throw new ApiError(422, 'limit_exceeded', words('invalid'), {
    errors: { limit: [words('list_max', { max: limit })] },
    reason: 'company_quota',
  })
}

/** The database keeps members of an object in an order of its own. */
export function isSame(a: unknown, b: unknown): boolean {
  const [one, other] = [JSON.stringify(a ?? null), JSON.stringify(b ?? null)]
  return one === other || canonicalText(JSON.parse(one)) === canonicalText(JSON.parse(other))
}

/** The columns in which the row will differ. */
const changedColumns = (before: Values, next: Values): string[] =>
  Object.keys(next).filter(column => !isSame(before[column], next[column]))

function immutableFaults(kind: Kind, given: ReadonlySet<string>, before: Values, next: Values): Map<string, Words> {
  const faults = new Map<string, Words>()
  for (const [name, { immutable, show }] of Object.entries(kind.fields))
    if (immutable && given.has(name) && !isSame(show(before, name), show(next, name)))
      faults.set(name, words('immutable'))
  return faults
}

/** The names of a row that are not columns of its table. */
const columnsOf = (row: Values): Values => {
  const { owner_id, owner_name, created_by_name, updated_by_name, is_probe_old, ...columns } = row
  return columns
}

/** What is wrong with values that changed: they name what is not there, or a strict list does not have them. */
async function stateFaults(editor: Editor, tx: Tx, kind: Kind, before: Unchecked | null, next: Unchecked) {
  const references = await referenceFaults(editor, tx, kind.info, before, next)
  const options = await optionFaults(tx, editor.companyId, optionFieldsOf(kind.fields), before, next)
  return new Map([...references, ...options])
}

type CreateOptions = {
  readonly origin?: Origin
  readonly parentId?: string
  readonly id?: string
  /** The verb of the audit entry. */
  readonly action?: string
}

/** Creates a resource of values that were parsed (`parseForm`). Throws 422. */
export async function insertResource<Row extends CommonRow>(
  tx: Tx,
  typed: Kind<Row>,
  editor: Editor,
  values: Unchecked,
  { origin = 'manual', parentId, id = randomUUID(), action = 'create' }: CreateOptions = {},
): Promise<Found<Row>> {
  const kind = typed as Kind
  const { hub, companyId, userId } = editor
  const seal = (secret: string) => hub.sealer.seal(secret)
  const now = new Date(hub.now())
  const next: Record<string, unknown> = {
    ...emptyOf(kind, seal),
    ...storedOf(kind, values, seal),
    ...(kind.parent ? { [kind.parent.column]: parentId } : {}),
    id,
    company_id: companyId,
    version: 1,
    origin,
    health: 'ok',
    probe_until: null,
    drifted: false,
    drift: [],
    created_by: userId,
    updated_by: userId,
    created_at: now,
    updated_at: now,
    deleted_at: null,
  }
  const notes: Notes = {}
  const write = {
    tx,
    editor,
    before: null,
    next,
    given: new Set(Object.keys(values)),
    input: inputOf(kind, values),
    notes,
  }
  await kind.hooks.beforeWrite?.(write as never)
  const faults = await stateFaults(editor, tx, kind, null, next)
  if (faults.size > 0) throw faultsError(faults)
  if (next.status === 'planned' || next.status === 'retired') next.health = 'unknown'
  await storing(kind, tx.db.insert(kind.table).values(next as typeof kind.table.$inferInsert))
  await checkLimit(kind, tx, next as CommonRow)
  const made = await findRow(kind, tx.db, companyId, id)
  await kind.hooks.afterWrite?.({ tx, editor, before: null, after: made })
  const changes = { ...changesBetween({}, recordOf(kind, made)), ...notes }
  await editor.record(tx, `${kind.info.kind}.${action}`, subjectOf(kind, made), changes)
  return findRow(typed, tx.db, companyId, id)
}

type ChangeOptions = {
  readonly expected?: Expected
  readonly origin?: Origin
  /** The verb of the audit entry. */
  readonly action?: string
  /** Columns that no request gives, set by an act. */
  readonly columns?: Values
  /** Why, for the audit log. */
  readonly note?: string | null
}

/**
 * Changes what `values` (parsed) give. A change that changes nothing raises no version and leaves no entry (RES-008).
 * Throws 404, 409, 412, 422.
 */
export async function updateResource<Row extends CommonRow>(
  tx: Tx,
  typed: Kind<Row>,
  editor: Editor,
  id: string,
  values: Unchecked,
  { expected = {}, origin, action = 'update', columns = {}, note = null }: ChangeOptions = {},
): Promise<Found<Row>> {
  const kind = typed as Kind
  const { hub, companyId, userId } = editor
  const before = await lockRow(kind, tx, companyId, id)
  checkVersion(before, expected)
  const given = new Set(Object.keys(values))
  const stored = columnsOf(before)
  const next: Record<string, unknown> = {
    ...stored,
    ...storedOf(kind, values, secret => hub.sealer.seal(secret)),
    ...columns,
    ...(origin ? { origin } : {}),
  }
  const immutable = immutableFaults(kind, given, stored, next)
  if (immutable.size > 0) throw faultsError(immutable)
  const notes: Notes = {}
  await kind.hooks.beforeWrite?.({ tx, editor, before, next, given, input: inputOf(kind, values), notes } as never)
  const faults = await stateFaults(editor, tx, kind, stored, next)
  if (faults.size > 0) throw faultsError(faults)
  const changed = changedColumns(stored, next)
  if (changed.length === 0) return findRow(typed, tx.db, companyId, id)
  const counts = changed.some(column => !UNCOUNTED.has(column))
  const set = {
    ...Object.fromEntries(changed.map(column => [column, next[column]])),
    ...(counts ? { version: before.version + 1, updated_at: new Date(hub.now()), updated_by: userId } : {}),
  }
  await storing(kind, tx.db.update(kind.table).set(set).where(eq(kind.table.id, id)))
  if (changed.includes('status')) await refreshHealth(tx, kind.info, companyId, [id])
  const after = await findRow(kind, tx.db, companyId, id)
  await kind.hooks.afterWrite?.({ tx, editor, before, after })
  if (counts)
    await editor.record(tx, `${kind.info.kind}.${action}`, subjectOf(kind, after), {
      ...changesBetween(recordOf(kind, before), recordOf(kind, after)),
      ...notes,
      ...(note === null ? {} : { note: { old: null, new: note } }),
    })
  return findRow(typed, tx.db, companyId, id)
}

/** Deletes softly, with the parts. `input` is what hooks ask for. Throws 404, 409 in_use, 412. */
export async function deleteResource<Row extends CommonRow>(
  tx: Tx,
  typed: Kind<Row>,
  editor: Editor,
  id: string,
  expected: Expected = {},
  input: Unchecked = {},
): Promise<void> {
  const kind = typed as Kind
  const row = await lockRow(kind, tx, editor.companyId, id)
  checkVersion(row, expected)
  const notes: Notes = {}
  await kind.hooks.beforeDelete?.({ tx, editor, row, input, notes })
  await refuseInUse(editor, tx, kind.info.kind, [id])
  const deletedAt = new Date(editor.hub.now())
  await tx.db.update(kind.table).set({ deleted_at: deletedAt }).where(eq(kind.table.id, id))
  await moveParts(tx, editor, kind.info.kind, [id], { from: null, to: deletedAt })
  await kind.hooks.afterWrite?.({ tx, editor, before: row, after: null })
  await editor.record(tx, `${kind.info.kind}.delete`, subjectOf(kind, row), notes)
}

/** Moves the parts of resources, and theirs, into the trash or out of it. */
async function moveParts(
  tx: Tx,
  editor: Editor,
  kind: string,
  ids: readonly string[],
  { from, to }: { readonly from: Date | null; readonly to: Date | null },
): Promise<void> {
  for (const part of partsOf(editor.hub.kinds, kind)) {
    const moved = await tx.db.execute<{ id: string }>(sql`
      update ${sql.identifier(part.table)} set deleted_at = ${to?.toISOString() ?? null}
      where company_id = ${editor.companyId} and ${sql.identifier(part.parent?.column ?? '')} = any(${uuidList(ids)}::uuid[])
        and deleted_at is not distinct from ${from?.toISOString() ?? null}::timestamptz returning id`)
    const movedIds = moved.map(row => row.id)
    if (movedIds.length > 0) await moveParts(tx, editor, part.kind, movedIds, { from, to })
  }
}

/** Throws 404 when the parent of a part is deleted. */
async function refuseOrphan(kind: Kind, tx: Tx, companyId: string, row: CommonRow): Promise<void> {
  if (!kind.parent) return
  const parentId = (row as CommonRow & Values)[kind.parent.column]
  await findRow(kind.parent.of, tx.db, companyId, String(parentId))
}

/**
 * Brings a deleted resource back, with the parts that were deleted with it, and changes what else was given, such as a
 * name that is free. Throws 404, 422.
 */
export async function restoreResource<Row extends CommonRow>(
  tx: Tx,
  typed: Kind<Row>,
  editor: Editor,
  id: string,
  values: Unchecked,
  expected: Expected = {},
): Promise<Found<Row>> {
  const kind = typed as Kind
  const { hub, companyId, userId } = editor
  const before = await lockRow(kind, tx, companyId, id, 'deleted')
  checkVersion(before, expected)
  await refuseOrphan(kind, tx, companyId, before)
  const stored = columnsOf(before)
  const given = storedOf(kind, values, secret => hub.sealer.seal(secret))
  const next: Record<string, unknown> = { ...stored, ...given, deleted_at: null }
  const immutable = immutableFaults(kind, new Set(Object.keys(values)), stored, next)
  if (immutable.size > 0) throw faultsError(immutable)
  const notes: Notes = {}
  await kind.hooks.beforeWrite?.({ tx, editor, before: null, next, given: NONE, input: {}, notes } as never)
  const faults = await stateFaults(editor, tx, kind, null, next)
  if (faults.size > 0) throw faultsError(faults)
  const set = Object.fromEntries(changedColumns(stored, next).map(column => [column, next[column]]))
  const stamp = { version: before.version + 1, updated_at: new Date(hub.now()), updated_by: userId }
  await storing(
    kind,
    tx.db
      .update(kind.table)
      .set({ ...set, ...stamp })
      .where(eq(kind.table.id, id)),
  )
  await checkLimit(kind, tx, before)
  await moveParts(tx, editor, kind.info.kind, [id], { from: before.deleted_at, to: null })
  const after = await findRow(kind, tx.db, companyId, id)
  await kind.hooks.afterWrite?.({ tx, editor, before: null, after })
  await refreshHealth(tx, kind.info, companyId, [id])
  const changes: AuditChanges = changesBetween(
    { ...recordOf(kind, before), deleted_at: before.deleted_at },
    { ...recordOf(kind, after), deleted_at: null },
  )
  await editor.record(tx, `${kind.info.kind}.restore`, subjectOf(kind, after), { ...changes, ...notes })
  return findRow(typed, tx.db, companyId, id)
}

// Creating, changing, deleting and restoring a resource of any kind, each within a transaction with its entry in the
// audit log (RES-017). Requests, manifests, CSV files and agents' reports all write through here.
import { randomUUID } from 'node:crypto'
import { eq, getTableColumns, sql } from 'drizzle-orm'
import { canonicalText } from '../../../core/iac/spec-diff.ts'
import type { Unchecked } from '../../../core/json-object.ts'
import { writeAudits } from '../audit/audit.ts'
import { changesBetween } from '../audit/masked-changes.ts'
import { sqlState, violatedUniqueIndex } from '../platform/db/connect.ts'
import type { AuditChanges } from '../platform/db/schema-identity.ts'
import { type Tx, together, uuidList } from '../platform/db/transaction.ts'
import { ApiError, invalid, invalidField, notFound } from '../platform/http/api-error.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { faultsError } from '../platform/http/request-schema.ts'
import { beyond, beyondLimit } from './count-limit.ts'
import type { Editor } from './editor.ts'
import type { Values } from './field.ts'
import { type CommonRow, type Kind, type NewWrite, type Notes, writableFields } from './kind.ts'
import { type Change, partsOf, referenceFaultsOf, refuseInUse } from './references.ts'
import { emptyOf, storedOf } from './resource-form.ts'
import { refreshHealth } from './resource-health.ts'
import { type Found, findRow, lockRow, rowsOfIds, storedRows } from './resource-rows.ts'
import { checkVersion, type Expected } from './row-version.ts'
import { sentSecretFaults } from './sent-secret.ts'
import { optionFaultsOf, optionFieldsOf } from './strict-options.ts'

type Origin = CommonRow['origin']
const NONE: ReadonlySet<string> = new Set()
/** What a request gave beside the fields of a kind. */
const inputOf = ({ inputs }: Kind, values: Unchecked): Unchecked =>
  Object.fromEntries(Object.keys(inputs).flatMap(name => (name in values ? [[name, values[name]]] : [])))
/** Columns whose change is no change of the resource. */
const UNCOUNTED = new Set(['version', 'updated_at', 'updated_by', 'health', 'drifted', 'drift', 'probe_until'])

/** What a row shows of its fields, for the audit log: never a secret. */
function recordOf(kind: Kind, row: Values): Unchecked {
  const record: Record<string, unknown> = {}
  for (const [name, { show }] of writableFields(kind)) Object.assign(record, show(row, name))
  return record
}

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

/** The database keeps members of an object in an order of its own. */
export function isSame(a: unknown, b: unknown): boolean {
  const [one, other] = [JSON.stringify(a ?? null), JSON.stringify(b ?? null)]
  return one === other || canonicalText(JSON.parse(one)) === canonicalText(JSON.parse(other))
}

/** The columns in which the row will differ. */
const changedColumns = (before: Values, next: Values): string[] =>
  Object.keys(next).filter(column => !isSame(before[column], next[column]))

/** Throws 422 on fields that may not become what they would, beside what the row has. */
function refuseChange({ fields }: Kind, given: Unchecked, before: Values, next: Values): void {
  const faults = sentSecretFaults(fields, before, next)
  for (const [name, { immutable, show }] of Object.entries(fields))
    if (immutable && name in given && !isSame(show(before, name), show(next, name)))
      faults.set(name, words('immutable'))
  if (faults.size > 0) throw faultsError(faults)
}

/** The names of a row that are not columns of its table. */
const columnsOf = (row: Values): Values => {
  const { owner_id, owner_name, created_by_name, updated_by_name, is_probe_old, ...columns } = row
  return columns
}

/** What is wrong with values that changed: they name what is not there, or a strict list does not have them. */
async function stateFaults(
  editor: Editor,
  tx: Tx,
  kind: Kind,
  changes: readonly Change[],
): Promise<Map<string, Words>[]> {
  const references = await referenceFaultsOf(editor, tx, kind.info, changes)
  const options = await optionFaultsOf(tx, editor.companyId, optionFieldsOf(kind.fields), changes)
  return changes.map((_, at) => new Map([...(references[at] ?? []), ...(options[at] ?? [])]))
}

/** Throws 422 for those of one row. */
async function refuseFaults(editor: Editor, tx: Tx, kind: Kind, before: Unchecked | null, next: Unchecked) {
  const [faults] = await stateFaults(editor, tx, kind, [{ before, next }])
  if (faults && faults.size > 0) throw faultsError(faults)
}

type CreateOptions = {
  readonly origin?: Origin
  readonly parentId?: string
  readonly id?: string
  /** The verb of the audit entry. */
  readonly action?: string
  /** Columns that no request gives, which are known already. */
  readonly columns?: Values
}
/** A resource to create of values that were parsed (`parseForm`). */
export type NewResource = CreateOptions & { readonly editor: Editor; readonly values: Unchecked }

/** One on its way, as hooks see it (`NewWrite`). */
type Pending = Omit<NewWrite<CommonRow>, 'next'> & {
  readonly next: Record<string, unknown>
  readonly id: string
  readonly action: string
}

function pendingOf(tx: Tx, kind: Kind, resource: NewResource): Pending {
  const { editor, values, origin = 'manual', parentId, id = randomUUID(), action = 'create', columns } = resource
  const { hub, companyId, userId } = editor
  const seal = (secret: string) => hub.sealer.seal(secret)
  const now = new Date(hub.now())
  const next = {
    ...emptyOf(kind, seal),
    ...storedOf(kind, values, seal),
    ...columns,
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
  const [given, input] = [new Set(Object.keys(values)), inputOf(kind, values)]
  return { tx, editor, before: null, next, given, input, notes: {}, faults: new Map(), id, action }
}

/** Throws 422 on a field that what the others say asks for. */
function refuseMissing({ hooks }: Kind, { next }: { readonly next: Unchecked }): void {
  const missing = hooks.missing?.(next)
  if (missing) throw invalid({ [missing[0]]: missing[1] })
}

async function beforeWrite(kind: Kind, write: { readonly next: Unchecked }): Promise<void> {
  refuseMissing(kind, write)
  await kind.hooks.beforeWrite?.(write as never)
}

async function beforeInserts(kind: Kind, writes: readonly Pending[]): Promise<void> {
  if (!kind.hooks.beforeInserts) {
    for (const write of writes) await beforeWrite(kind, write)
    return
  }
  for (const write of writes) refuseMissing(kind, write)
  await kind.hooks.beforeInserts(writes as never)
}

async function afterInserts(
  { hooks }: Kind,
  tx: Tx,
  made: readonly { readonly editor: Editor; readonly row: Found }[],
): Promise<void> {
  const written = made.map(({ editor, row }) => ({ tx, editor, before: null, after: row }))
  if (hooks.afterInserts && written.length > 0) await hooks.afterInserts(written)
  else for (const each of written) await hooks.afterWrite?.(each)
}

/** Stores rows, but those that a unique index refuses, with one statement. What it stored, by id. */
async function storeNew(kind: Kind, tx: Tx, rows: readonly Unchecked[]): Promise<Map<string, Found>> {
  const { table } = kind
  const given = rows[0] ?? {}
  const names = sql.join(
    Object.entries(getTableColumns(table)).flatMap(([key, { name }]) => (key in given ? [sql.identifier(name)] : [])),
    sql`, `,
  )
  const stored = await storedRows(
    kind,
    tx,
    sql`insert into ${table} (${names}) select ${names}
      from jsonb_populate_recordset(null::${table}, ${JSON.stringify(rows)}::jsonb) on conflict do nothing returning *`,
  )
  return new Map(stored.map(row => [row.id, row]))
}

/** Stores one that a unique index refused, in a savepoint, to learn which one it was. */
async function refusalOf(kind: Kind, tx: Tx, { next }: Pending): Promise<ApiError | null> {
  try {
    await tx.db.transaction(inner =>
      storing(kind, inner.insert(kind.table).values(next as typeof kind.table.$inferInsert)),
    )
    return null
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}

type Stored = { readonly refused: ReadonlyMap<Pending, ApiError>; readonly rows: Map<string, Found> }

/** Stores what has no fault, within the limit: its rows, by id, and what refuses each of the others. */
async function storeWhole(kind: Kind, tx: Tx, companyId: string, writes: readonly Pending[]): Promise<Stored> {
  const refused = new Map<Pending, ApiError>()
  for (const write of writes) if (write.faults.size > 0) refused.set(write, faultsError(write.faults))
  const whole = writes.filter(write => !refused.has(write))
  if (whole.length === 0) return { refused, rows: new Map() }
  const given = whole.map(({ next }) => next)
  const rows = await storing(kind, storeNew(kind, tx, given))
  const late: string[] = []
  for (const write of whole.filter(({ id }) => !rows.has(id))) {
    const refusal = await refusalOf(kind, tx, write)
    if (refusal) refused.set(write, refusal)
    else late.push(write.id)
  }
  for (const row of await rowsOfIds(kind, tx.db, companyId, late)) rows.set(row.id, row)
  const made = whole.filter(write => !refused.has(write))
  for (const some of Map.groupBy(made, ({ next }) => (kind.parent ? next[kind.parent.column] : null)).values()) {
    const over = await beyond(kind, tx, some)
    for (const write of over > 0 ? some.slice(-over) : []) refused.set(write, beyondLimit(kind))
  }
  return { refused, rows }
}

/** Writes the entries of the audit log. */
const recordNew = (kind: Kind, tx: Tx, made: readonly { readonly write: Pending; readonly row: Found }[]) =>
  writeAudits(
    tx,
    made.map(({ write: { editor, notes, action }, row }) => {
      const changes = { ...changesBetween({}, recordOf(kind, row)), ...notes }
      return editor.entry(`${kind.info.kind}.${action}`, subjectOf(kind, row), changes)
    }),
  )

/**
 * Creates resources of one company, with statements for all of them together where the kind can. An error stands in the
 * place of one that is refused: then the transaction must not be committed, for others were written. `beside` is done
 * with what was made while its entries are written, for a kind whose hooks change nothing after that.
 */
export async function insertResources<Row extends CommonRow>(
  tx: Tx,
  typed: Kind<Row>,
  resources: readonly NewResource[],
  beside: (made: readonly Found<Row>[]) => Promise<unknown> = async () => {},
): Promise<(Found<Row> | ApiError)[]> {
  const kind = typed as Kind
  const { hooks } = kind
  const [first] = resources
  if (!first) return []
  const { editor } = first
  if (resources.length > 1 && !hooks.beforeInserts && (hooks.beforeWrite || hooks.afterWrite))
    return oneByOne(resources, each => insertResource(tx, typed, each.editor, each.values, each))
  const writes = resources.map(resource => pendingOf(tx, kind, resource))
  await beforeInserts(kind, writes)
  const whole = writes.filter(({ faults }) => faults.size === 0)
  const changes = whole.map(({ next }) => ({ before: null, next }))
  for (const [at, found] of (await stateFaults(editor, tx, kind, changes)).entries())
    for (const [field, text] of found) whole[at]?.faults.set(field, text)
  for (const { next } of writes) if (next.status === 'planned' || next.status === 'retired') next.health = 'unknown'
  const { refused, rows } = await storeWhole(kind, tx, editor.companyId, writes)
  const ids = writes.flatMap(write => (refused.has(write) ? [] : [write.id]))
  const made = writes.flatMap(write => {
    const row = refused.has(write) ? undefined : rows.get(write.id)
    return row ? [{ write, editor: write.editor, row }] : []
  })
  await afterInserts(kind, tx, made)
  // They are rows of the kind, whose type `Row` has.
  await together([beside(made.map(({ row }) => row as Found<Row>)), recordNew(kind, tx, made)])
  const isChanged = hooks.afterWrite !== undefined || hooks.afterInserts !== undefined
  const after = isChanged ? await rowsOfIds(kind, tx.db, editor.companyId, ids) : []
  for (const row of after) rows.set(row.id, row)
  return writes.map(write => refused.get(write) ?? (rows.get(write.id) as Found<Row> | undefined) ?? notFound())
}

/** What refuses one stands in its place. */
async function oneByOne<T, R>(all: readonly T[], act: (each: T) => Promise<R>): Promise<(R | ApiError)[]> {
  const results: (R | ApiError)[] = []
  for (const each of all)
    results.push(
      await act(each).catch((error: unknown) => {
        if (error instanceof ApiError) return error
        throw error
      }),
    )
  return results
}

/** Creates a resource of values that were parsed (`parseForm`). Throws 422. */
export async function insertResource<Row extends CommonRow>(
  tx: Tx,
  kind: Kind<Row>,
  editor: Editor,
  values: Unchecked,
  options: CreateOptions = {},
): Promise<Found<Row>> {
  const [made = notFound()] = await insertResources(tx, kind, [{ ...options, editor, values }])
  if (made instanceof ApiError) throw made
  return made
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
  refuseChange(kind, values, stored, next)
  const notes: Notes = {}
  const write = { tx, editor, before, next, given, input: inputOf(kind, values), notes }
  await beforeWrite(kind, write)
  await refuseFaults(editor, tx, kind, stored, next)
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
  const row = await lockRow(kind, tx, editor.companyId, id, 'kept', 'deletion')
  checkVersion(row, expected)
  await lockParts(tx, editor, kind.info.kind, [id])
  const notes: Notes = {}
  await kind.hooks.beforeDelete?.({ tx, editor, row, input, notes })
  await refuseInUse(editor, tx, kind.info.kind, [id])
  const deletedAt = new Date(editor.hub.now())
  await tx.db.update(kind.table).set({ deleted_at: deletedAt }).where(eq(kind.table.id, id))
  await moveParts(tx, editor, kind.info.kind, [id], { from: null, to: deletedAt })
  await kind.hooks.afterWrite?.({ tx, editor, before: row, after: null })
  await editor.record(tx, `${kind.info.kind}.delete`, subjectOf(kind, row), notes)
}

/** Locks the parts of resources, and theirs, for a deletion, so that nobody names one before it is known who does. */
async function lockParts(tx: Tx, editor: Editor, kind: string, ids: readonly string[]): Promise<void> {
  for (const part of partsOf(editor.hub.kinds, kind)) {
    const rows = await tx.db.execute<{ id: string }>(sql`
      select id from ${sql.identifier(part.table)} where company_id = ${editor.companyId}
        and ${sql.identifier(part.parent?.column ?? '')} = any(${uuidList(ids)}::uuid[]) and deleted_at is null
      order by id for update`)
    const partIds = rows.map(row => row.id)
    if (partIds.length > 0) await lockParts(tx, editor, part.kind, partIds)
  }
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
  refuseChange(kind, values, stored, next)
  const notes: Notes = {}
  const write = { tx, editor, before: null, next, given: NONE, input: {}, notes }
  await beforeWrite(kind, write)
  await refuseFaults(editor, tx, kind, null, next)
  const set = Object.fromEntries(changedColumns(stored, next).map(column => [column, next[column]]))
  const stamp = { version: before.version + 1, updated_at: new Date(hub.now()), updated_by: userId }
  await storing(
    kind,
    tx.db
      .update(kind.table)
      .set({ ...set, ...stamp })
      .where(eq(kind.table.id, id)),
  )
  if ((await beyond(kind, tx, [{ editor, next: before }])) > 0) throw beyondLimit(kind)
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

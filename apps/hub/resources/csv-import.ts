// Many resources of a kind from a CSV file (R-016): what is known by its key is changed in the columns of the file, the
// others are made; all or nothing.
import { Type } from '@sinclair/typebox'
import { type SQL, sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import { inTrial, type Tx } from '../platform/db/transaction.ts'
import { ApiError, invalidField } from '../platform/http/api-error.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { Reply } from '../platform/http/reply.ts'
import { faultsError, flag, flagOf } from '../platform/http/request-schema.ts'
import { amount, answer, named } from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { type CsvRow, rowsOfCsv } from './csv-rows.ts'
import { type Editor, editorOf } from './editor.ts'
import type { Values } from './field.ts'
import { type CommonRow, columnNamed, type Kind } from './kind.ts'
import { refuseManaged } from './manifest-lock.ts'
import { emptyOf, parseForm, storedOf, under } from './resource-form.ts'
import { type Found, rowsOfIds } from './resource-rows.ts'
import { insertResource, insertResources, isSame, type NewResource, updateResource } from './write-resource.ts'

const imported = named('CsvImport', {
  created: amount(),
  updated: amount(),
  unchanged: amount(),
  dry_run: Type.Boolean(),
})

const CSV = 'text/csv'
/** What the POST of a collection has that takes a file too. */
export const csvOptions = ({ csv }: Pick<Kind, 'csv'>) => ({
  query: Type.Object({ dry_run: flag() }),
  textBody: { type: CSV, member: 'csv', example: `${[...(csv?.key ?? []), 'description'].join(',')}\n` },
  otherResponses: { 200: answer(imported) },
})

type Parent = { readonly id: string } | null
type Given = {
  readonly line: number
  /** As they are parsed, of the file and with its apostrophes. */
  readonly values: Unchecked
  readonly literal: Unchecked | null
  readonly row: CsvRow
}

/** The values of the rows. Throws 422 with every fault, by line. */
async function parseRows(kind: Kind, rows: readonly CsvRow[], parent: Parent): Promise<Given[]> {
  const faults = new Map<string, Words>()
  const given: Given[] = []
  const parse = async (input: Unchecked) => {
    const values = await parseForm(kind, 'change', input)
    return kind.csv?.normal?.(values, parent as never) ?? values
  }
  for (const row of rows) {
    const values = await under(faults, `rows.${row.line}`, () => parse(row.input))
    const literal = row.literal && (await parse(row.literal).catch(() => null))
    if (values) given.push({ line: row.line, values, literal, row })
  }
  if (faults.size > 0) throw faultsError(faults)
  return given
}

const sealNothing = (): string => ''

/** The columns by which a row is known, with their values: what the file does not give is what none is given for. */
function keyOf(kind: Kind, values: Unchecked): Values {
  const fields = Object.fromEntries(
    (kind.csv?.key ?? []).flatMap(name => (kind.fields[name] ? [[name, kind.fields[name]]] : [])),
  )
  return { ...emptyOf({ fields }, sealNothing), ...storedOf({ fields }, values, sealNothing) }
}

/** Names are alike without regard to case. */
const keyText = (key: Values): string =>
  JSON.stringify(
    Object.entries(key).map(([column, value]) => (column === 'name' ? String(value).toLowerCase() : value)),
  )

/** The resources of the company, or of the parent, that have these keys, by the text of the key. */
async function knownRows(kind: Kind, tx: Tx, companyId: string, parent: Parent, keys: readonly Values[]) {
  const [first = {}] = keys
  const types = Object.keys(first).map(column => [column, columnNamed(kind.table, column).getSQLType()] as const)
  const alike = types.map(([column, type]): SQL => {
    const [mine, theirs] = [sql`t.${sql.identifier(column)}`, sql`x.${sql.identifier(column)}`]
    if (column === 'name' && type === 'text') return sql`lower(${mine}) = lower(${theirs})`
    // Only what is equal is found by an index.
    const isGiven = keys.every(key => key[column] !== null && key[column] !== undefined)
    return isGiven ? sql`${mine} = ${theirs}` : sql`${mine} is not distinct from ${theirs}`
  })
  const record = types.map(([column, type]) => sql`${sql.identifier(column)} ${sql.raw(type)}`)
  const within = kind.parent && parent ? sql`and t.${sql.identifier(kind.parent.column)} = ${parent.id}` : sql``
  const found = await tx.db.execute<{ place: number; id: string }>(sql`
    select distinct on (x.place) x.place, t.id from jsonb_to_recordset(${JSON.stringify(
      keys.map((key, place) => ({ ...key, place })),
    )}::jsonb) as x (place int, ${sql.join(record, sql`, `)})
    join ${sql.identifier(kind.info.table)} t on t.company_id = ${companyId} ${within} and t.deleted_at is null
      and ${sql.join(alike, sql` and `)} order by x.place, t.created_at, t.id`)
  const rows = new Map(
    (await rowsOfIds(kind, tx.db, companyId, [...new Set(found.map(each => each.id))])).map(row => [row.id, row]),
  )
  return new Map(
    found.flatMap(({ place, id }) => {
      const row = rows.get(id)
      return row ? [[keyText(keys[place] ?? {}), row] as const] : []
    }),
  )
}

/** The fields that a row changes: an apostrophe that stands in the resource already is one of it. */
function changesOf(kind: Kind, before: Found, { values, literal }: Given): Unchecked {
  const columns = before as Values & CommonRow
  const isStored = (name: string, of: Unchecked): boolean =>
    Object.entries(
      storedOf({ fields: { [name]: kind.fields[name] as Kind['fields'][string] } }, of, sealNothing),
    ).every(([column, value]) => isSame(columns[column], value))
  return Object.fromEntries(
    Object.entries(values).filter(
      ([name]) => kind.fields[name] && !isStored(name, values) && !(literal && isStored(name, literal)),
    ),
  )
}

/** Changes a resource to what its row says; true when that was something else. */
async function changeRow(kind: Kind, tx: Tx, context: RouteContext, given: Given, before: Found): Promise<boolean> {
  const changes = changesOf(kind, before, given)
  if (Object.keys(changes).length === 0) return false
  const after = await updateResource(tx, kind, editorOf(context), before.id, changes)
  if (after.version === before.version) return false
  await refuseManaged(context, kind.info.kind, before.id)
  return true
}

/** Creates what the rows say, together. */
async function createRows(
  kind: Kind,
  tx: Tx,
  editor: Editor,
  rows: readonly Given[],
  parent: Parent,
  faults: Map<string, Words>,
): Promise<number> {
  const fresh: (NewResource & { readonly place: string })[] = []
  for (const { line, row } of rows) {
    const place = `rows.${line}`
    const values = await under(faults, place, () => parseForm(kind, 'create', row.input))
    if (values) fresh.push({ place, editor, values, origin: 'import', ...(parent ? { parentId: parent.id } : {}) })
  }
  const [first] = fresh
  // What refuses one alone is thrown; of many it stands in the place of each.
  if (first && fresh.length === 1) {
    await under(faults, first.place, () => insertResource(tx, kind, editor, first.values, first))
    return 1
  }
  const made = await insertResources(tx, kind, fresh)
  for (const [at, outcome] of made.entries())
    if (outcome instanceof ApiError)
      await under(faults, fresh[at]?.place ?? '', async () => {
        throw outcome
      })
  return made.length
}

/** True while the transaction can go on: a statement that the database refused ends it. */
const goesOn = (tx: Tx): Promise<boolean> =>
  tx.db.execute(sql`select 1`).then(
    () => true,
    () => false,
  )

async function writeRows(kind: Kind, tx: Tx, context: RouteContext, given: readonly Given[], parent: Parent) {
  const keys = given
    .flatMap(({ values, literal }) => [values, ...(literal ? [literal] : [])])
    .map(each => keyOf(kind, each))
  const known = await knownRows(kind, tx, context.companyId, parent, keys)
  const lines = new Map<string, number>()
  const faults = new Map<string, Words>()
  const counts = { created: 0, updated: 0, unchanged: 0 }
  const fresh: Given[] = []
  for (const each of given) {
    const at = `rows.${each.line}`
    const texts = [each.literal, each.values].flatMap(values => (values ? [keyText(keyOf(kind, values))] : []))
    const text = texts.find(one => known.has(one)) ?? texts.at(-1) ?? ''
    const other = lines.get(text)
    if (other !== undefined) faults.set(`${at}.${kind.csv?.key[0]}`, words('csv_twice', { line: other }))
    lines.set(text, each.line)
    const before = known.get(text)
    if (!before) {
      fresh.push(each)
      continue
    }
    const isChanged = await under(faults, at, () => changeRow(kind, tx, context, each, before))
    if (isChanged === null && !(await goesOn(tx))) throw faultsError(faults)
    counts[isChanged ? 'updated' : 'unchanged']++
  }
  counts.created = await createRows(kind, tx, editorOf(context), fresh, parent, faults)
  if (faults.size > 0) throw faultsError(faults)
  return counts
}

/**
 * The answer to a POST whose body is a CSV file; null for any other. Throws 422 with faults by line and column, as
 * `rows.7.cidr`.
 */
export async function csvReply(
  context: RouteContext & {
    readonly query: { readonly dry_run?: Parameters<typeof flagOf>[0] }
    readonly body: Unchecked
  },
  kind: Kind,
  parent: Parent,
): Promise<Reply | null> {
  const isTrial = flagOf(context.query.dry_run) ?? false
  const isCsv = (context.header('content-type') ?? '').toLowerCase().startsWith(CSV)
  if (!isCsv && isTrial) throw invalidField('dry_run', 'csv_only')
  if (!isCsv) return null
  if (!kind.csv) throw new ApiError(415, 'unsupported_media_type', words('unsupported_type'))
  const given = await parseRows(kind, rowsOfCsv(kind, String(context.body.csv ?? '')), parent)
  const counts = await inTrial(context.hub.database.db, isTrial, tx => writeRows(kind, tx, context, given, parent))
  return new Reply({ data: { ...counts, dry_run: isTrial } }, { status: 200 })
}

// POST /servers/import: servers from comma-separated values. A new name creates a server; for a known name the columns
// of the file are changed, so that a file can be corrected and sent again, or with existing=keep nothing. The import is
// applied as a whole or not at all.
import { randomUUID } from 'node:crypto'
import { isIP } from 'node:net'
import { type TObject, Type } from '@sinclair/typebox'
import { and, eq, sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import { auditMany, auditRequest } from '../audit/audit.ts'
import { changesBetween } from '../audit/masked-changes.ts'
import type { Hub } from '../hub-context.ts'
import { checkCompanyLimit } from '../plans/company-limits.ts'
import { violatedUniqueIndex } from '../platform/db/connect.ts'
import { servers } from '../platform/db/schema.ts'
import { inTrial, lockCompany, type Tx } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { parseCsv } from '../platform/http/csv.ts'
import { faultsError, schemaFaults } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { refreshScopes } from '../scopes/scope.ts'
import { raiseAgentsOf } from './change-many-servers.ts'
import { presentServer, type Server } from './server-list.ts'
import { columnsOf, type ServerInput, unlistedOf } from './servers.ts'

const ROWS_MAX = 1000
const INSERTED_AT_ONCE = 250
const NUMBERS = new Set(['cpu_cores', 'memory_mb', 'disk_gb'])

type Row = { readonly line: number; readonly input: ServerInput & { readonly name: string } }
type Faults = Map<string, Words>

/** The member that a cell becomes; an empty one removes the value. */
function memberOf(column: string, cell: string): unknown {
  if (column === 'tags') return cell === '' ? [] : cell.split(/[;|,]/).flatMap(tag => tag.trim() || [])
  if (cell === '') return column === 'name' ? '' : null
  return NUMBERS.has(column) && /^\d{1,15}$/.test(cell) ? Number(cell) : cell
}

function readRow(schema: TObject, columns: readonly string[], cells: readonly string[], at: string, faults: Faults) {
  const found = cells.length
  if (found !== columns.length) {
    faults.set(at, words('csv_width', { found, expected: columns.length }))
    return null
  }
  const value = Object.fromEntries(columns.map((column, index) => [column, memberOf(column, cells[index] ?? '')]))
  // An empty status leaves the status unchanged.
  if (value.status === null) delete value.status
  for (const [field, text] of schemaFaults(schema, value)) faults.set(`${at}.${field}`, text)
  const { ip_address: address } = value
  if (typeof address === 'string' && isIP(address) === 0) faults.set(`${at}.ip_address`, words('ip_address'))
  return value
}

/** The rows of a file. Throws 422 with every fault, by line as the file counts them (`rows.7.ip_address`). */
export function serversOfCsv(csv: string, schema: TObject): readonly Row[] {
  const parsed = parseCsv(csv, ROWS_MAX + 1)
  if ('wrongQuoteLine' in parsed) throw faultsError(new Map([[`rows.${parsed.wrongQuoteLine}`, words('csv_quote')]]))
  const [header, ...lines] = parsed.rows
  const allowed = Object.keys(schema.properties)
  const columns = (header?.cells ?? []).map(cell => cell.toLowerCase().replaceAll(' ', '_'))
  const unknown = columns.find((column, index) => !allowed.includes(column) || columns.indexOf(column) !== index)
  if (unknown !== undefined || !columns.includes('name'))
    throw invalidField('header', 'csv_columns', { values: allowed.join(', ') })
  if (lines.length === 0) throw invalidField('rows', 'list_min', { min: 1 })
  if (lines.length > ROWS_MAX) throw invalidField('rows', 'list_max', { max: ROWS_MAX })
  const faults: Faults = new Map()
  const lineOfName = new Map<string, number>()
  const rows: Row[] = []
  for (const { line, cells } of lines) {
    const input = readRow(schema, columns, cells, `rows.${line}`, faults)
    if (!input) continue
    const name = String(input.name)
    const other = lineOfName.get(name.toLowerCase())
    if (other !== undefined) faults.set(`rows.${line}.name`, words('csv_twice', { line: other }))
    lineOfName.set(name.toLowerCase(), line)
    rows.push({ line, input: { ...input, name } })
  }
  if (faults.size > 0) throw faultsError(faults)
  return rows
}

/** The company's servers of these names, by name in lower case. */
async function knownServers(tx: Tx, companyId: string, names: readonly string[]): Promise<Map<string, Server>> {
  const found = await tx.db
    .select()
    .from(servers)
    .where(
      and(
        eq(servers.companyId, companyId),
        sql`${servers.deletedAt} is null`,
        sql`lower(${servers.name}) in (select lower(asked) from jsonb_array_elements_text(${JSON.stringify(names)}::jsonb) asked)`,
      ),
    )
  return new Map(found.map(server => [server.name.toLowerCase(), server]))
}

type Change = { readonly before: Server; readonly input: Row['input']; readonly fields: readonly string[] }

const shown = (server: Server): Unchecked => presentServer({ server, agentId: null, drift: null })

/** The rows that differ from the stored servers, with the fields in which they do. */
function changesOf(rows: readonly Row[], known: ReadonlyMap<string, Server>): Change[] {
  return rows.flatMap(({ line, input }): Change[] => {
    const before = known.get(input.name.toLowerCase())
    if (!before) return []
    if (input.status !== undefined && before.status === 'draft')
      throw invalidField(`rows.${line}.status`, 'state_refused', { state: 'draft' })
    const is = shown(before)
    const wanted: Unchecked = { ...input, ...(input.tags ? { tags: [...new Set(input.tags)].sort() } : {}) }
    const fields = Object.keys(wanted).filter(
      field => field !== 'name' && JSON.stringify(wanted[field]) !== JSON.stringify(is[field]),
    )
    return fields.length > 0 ? [{ before, input, fields }] : []
  })
}

/** Throws 422 for values that strict option lists do not have, each by its line. */
async function refuseUnlisted(
  tx: Tx,
  companyId: string,
  rows: readonly Row[],
  known: ReadonlyMap<string, Server>,
): Promise<void> {
  const changes = rows.map(({ input }) => ({ before: known.get(input.name.toLowerCase()) ?? null, input }))
  const unlisted = await unlistedOf(tx, companyId, changes)
  const faults: Faults = new Map(
    rows.flatMap(({ line }, at) => [...(unlisted[at] ?? [])].map(([field, fault]) => [`rows.${line}.${field}`, fault])),
  )
  if (faults.size > 0) throw faultsError(faults)
}

async function insertRows(tx: Tx, companyId: string, rows: readonly Row[]): Promise<string[]> {
  const values = rows.map(({ input }) => ({
    ...columnsOf(input),
    name: input.name,
    id: randomUUID(),
    companyId,
    origin: 'manual' as const,
  }))
  try {
    for (let at = 0; at < values.length; at += INSERTED_AT_ONCE)
      await tx.db.insert(servers).values(values.slice(at, at + INSERTED_AT_ONCE))
  } catch (error) {
    // Two names that are one to the database alone, as some with capitals of their own script are.
    if (violatedUniqueIndex(error) === 'servers_name') throw invalidField('rows', 'taken')
    throw error
  }
  return values.map(value => value.id)
}

/** Updates all rows in one statement: the columns of the file have the names of the table's. */
async function updateRows(hub: Hub, tx: Tx, companyId: string, changes: readonly Change[]): Promise<void> {
  const columns = Object.keys(changes[0]?.input ?? {}).filter(column => column !== 'name' && column !== 'status')
  const records = changes.map(({ before, input }) => ({
    ...input,
    ...(input.tags ? { tags: [...new Set(input.tags)].sort() } : {}),
    id: before.id,
  }))
  const sets = columns.map(column => sql`${sql.identifier(column)} = x.${sql.identifier(column)}`)
  await tx.db.execute(sql`
    update servers s set ${sql.join([...sets, sql`status = coalesce(x.status, s.status)`], sql`, `)},
      updated_at = ${new Date(hub.now()).toISOString()}
    from jsonb_populate_recordset(null::servers, ${JSON.stringify(records)}::jsonb) x
    where s.company_id = ${companyId} and s.id = x.id`)
}

const SCOPED = new Set(['environment', 'role', 'datacenter', 'tags'])
const RECORDED = new Set(['status', 'subnet_id', 'datacenter'])

/** Writes new and changed servers with few statements, and updates scopes and the records of agents accordingly. */
async function store(hub: Hub, tx: Tx, companyId: string, fresh: readonly Row[], changes: readonly Change[]) {
  const created = fresh.length > 0 ? await insertRows(tx, companyId, fresh) : []
  if (created.length > 0) await checkCompanyLimit(hub, tx, companyId, 'servers')
  if (changes.length > 0) await updateRows(hub, tx, companyId, changes)
  const idsWith = (fields: ReadonlySet<string>) =>
    changes.filter(change => change.fields.some(field => fields.has(field))).map(({ before }) => before.id)
  tx.touch('servers', [...created, ...changes.map(({ before }) => before.id)])
  await refreshScopes(hub, tx, companyId, [...created, ...idsWith(SCOPED)])
  await raiseAgentsOf(hub, tx, idsWith(RECORDED))
}

const toAudit = ({ before, input, fields }: Change) => ({
  subject: { type: 'server', id: before.id, name: before.name },
  changes: changesBetween(pick(shown(before), fields), pick(input, fields)),
})
const pick = (record: Unchecked, fields: readonly string[]): Unchecked =>
  Object.fromEntries(fields.map(field => [field, record[field]]))

type Imported = {
  readonly created: number
  readonly updated: number
  readonly unchanged: number
  readonly dry_run: boolean
}

/** What becomes of a server that is known by its name: changed in the columns of the file, or kept as it is. */
export const existingChoices = ['update', 'keep'] as const
type ImportOptions = { readonly isDryRun: boolean; readonly existing: (typeof existingChoices)[number] }

/** Writes the rows. */
export function importServers(
  context: RouteContext,
  rows: readonly Row[],
  { isDryRun, existing }: ImportOptions,
): Promise<Imported> {
  const { hub, companyId } = context
  return inTrial(hub.database.db, isDryRun, async tx => {
    await lockCompany(tx, companyId)
    const known = await knownServers(
      tx,
      companyId,
      rows.map(row => row.input.name),
    )
    const fresh = rows.filter(({ input }) => !known.has(input.name.toLowerCase()))
    const changes = existing === 'keep' ? [] : changesOf(rows, known)
    await refuseUnlisted(tx, companyId, existing === 'keep' ? fresh : rows, known)
    await store(hub, tx, companyId, fresh, changes)
    const [created, updated] = [fresh.length, changes.length]
    const counts = { created: { old: null, new: created }, updated: { old: null, new: updated } }
    await auditRequest(tx, context, 'server.import', { type: 'server', id: null, name: null }, counts)
    await auditMany(tx, context, 'server.update', changes.map(toAudit))
    return { created, updated, unchanged: rows.length - created - updated, dry_run: isDryRun }
  })
}

export const importBody = Type.Object({
  csv: Type.String({
    minLength: 1,
    maxLength: 2_000_000,
    examples: ['name,hostname,ip_address,tags\nweb-1,web-1.example.net,192.0.2.10,web;edge\n'],
  }),
})

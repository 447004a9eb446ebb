// POST /servers/import: servers from comma-separated values. A name that is new makes a server; a known one is changed in the
// columns that the file has, so that a file can be mended and sent again. All of it or nothing.
import { isIP } from 'node:net'
import { type TObject, Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import { auditRequest } from '../audit/audit.ts'
import { inTransaction, lockCompany, type Tx } from '../db/transaction.ts'
import { invalidField } from '../http/api-error.ts'
import type { RouteContext } from '../http/route.ts'
import { faultsError, schemaFaults } from '../http/schema.ts'
import { type Words, words } from '../http/texts.ts'
import { parseCsv } from './csv.ts'
import { changeServer, findServer, insertServer, type ServerInput } from './servers.ts'

export const ROWS_MAX = 1000
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
  // An empty status says nothing about it.
  if (value.status === null) delete value.status
  for (const [field, text] of schemaFaults(schema, value)) faults.set(`${at}.${field}`, text)
  const { ip_address: address } = value
  if (typeof address === 'string' && isIP(address) === 0) faults.set(`${at}.ip_address`, words('pattern'))
  return value
}

/** The rows of a file. Throws 422 with every fault, by line as the file counts them (`rows.7.ip_address`). */
export function serversOfCsv(csv: string, schema: TObject): readonly Row[] {
  const parsed = parseCsv(csv)
  if ('openQuoteLine' in parsed) throw faultsError(new Map([[`rows.${parsed.openQuoteLine}`, words('csv_quote')]]))
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

async function knownServers(tx: Tx, companyId: string, names: readonly string[]): Promise<Map<string, string>> {
  const found = await tx.db.execute<{ id: string; key: string }>(sql`
    select id, lower(name) as key from servers where company_id = ${companyId} and deleted_at is null
      and lower(name) in (select jsonb_array_elements_text(${JSON.stringify(names)}::jsonb))`)
  return new Map(found.map(row => [row.key, row.id]))
}

export type Imported = { readonly created: number; readonly updated: number; readonly dry_run: boolean }

/** Thrown to undo what a dry run did. */
class DryRunEnd extends Error {
  constructor(readonly result: Imported) {
    super()
  }
}

/** Writes the rows; a dry run does the same and undoes it, so that it finds what the real one would find. */
export async function importServers(context: RouteContext, rows: readonly Row[], isDryRun: boolean): Promise<Imported> {
  const { hub, companyId } = context
  try {
    return await inTransaction(hub.database.db, async tx => {
      await lockCompany(tx, companyId)
      const known = await knownServers(
        tx,
        companyId,
        rows.map(row => row.input.name.toLowerCase()),
      )
      for (const { line, input } of rows) {
        const id = known.get(input.name.toLowerCase())
        if (id === undefined) await insertServer(hub, tx, companyId, input, 'manual')
        else {
          const { server } = await findServer(tx.db, companyId, id)
          if (input.status !== undefined && server.status === 'draft')
            throw invalidField(`rows.${line}.status`, 'state_refused', { state: 'draft' })
          await changeServer(hub, tx, server, input)
        }
      }
      const result = { created: rows.length - known.size, updated: known.size, dry_run: isDryRun }
      if (isDryRun) throw new DryRunEnd(result)
      const changes = { created: { old: null, new: result.created }, updated: { old: null, new: result.updated } }
      await auditRequest(tx, context, 'server.import', { type: 'server', id: null, name: null }, changes)
      return result
    })
  } catch (error) {
    if (error instanceof DryRunEnd) return error.result
    throw error
  }
}

export const importBody = Type.Object({
  csv: Type.String({
    minLength: 1,
    maxLength: 2_000_000,
    examples: ['name,hostname,ip_address,tags\nweb-1,web-1.example.net,192.0.2.10,web;edge\n'],
  }),
})

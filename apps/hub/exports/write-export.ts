// The job that writes an export (decision R-070): by key in steps, so that memory stays flat. Permission and company
// are looked at before each step. A try has a number of its own, so that of two only one ends the export; a short file
// is never ready (RES-274).
import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { errorInfo } from '../../../core/error-info.ts'
import { deleteObject, ObjectWriter } from '../files/stored-objects.ts'
import type { Hub } from '../hub-context.ts'
import { callerOfUser } from '../identity/authenticate.ts'
import type { Executor } from '../platform/db/connect.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { ApiError } from '../platform/http/api-error.ts'
import type { Asker } from '../platform/http/collection.ts'
import type { JobPayload } from '../platform/jobs/jobs.ts'
import { livingProcesses } from '../queues/living-processes.ts'
import { columnsFor, isOf } from './export-columns.ts'
import { type ExportFormat, type ExportOptions, ExportText } from './export-format.ts'
import { type ExportFilters, type ExportResource, exportResourceOf } from './export-resources.ts'
import { expiryOf, forgetOldExports } from './export-retention.ts'
import { noteOutcome } from './schedule-outcome.ts'

const ROWS_AT_ONCE = 5_000
/** After so many rows what they left is collected: the heap would grow by the rows of many steps before it is. */
const ROWS_KEPT = 25_000
const TRIES_MAX = 3

/** The export ends as failed with this word, and no further try. */
class ExportFailed extends Error {}
/** Another try has taken the export over, or somebody has removed it. */
class ExportTaken extends Error {}

type Begun = {
  company_id: string
  resource: string
  format: ExportFormat
  filters: ExportFilters
  columns: string[] | null
  options: ExportOptions
  requested_by: string | null
  permissions: string[]
  before: string | null
}

/**
 * Takes the export over for a try; null when there is nothing to do. What an earlier try has left goes. The object is
 * noted as it is made, so that whoever takes over or removes the export finds what there is of it.
 */
async function begin(
  hub: Hub,
  exportId: string,
  attempt: string,
): Promise<{ readonly begun: Begun; readonly writer: ObjectWriter } | null> {
  return inTransaction(hub.database.db, async tx => {
    const [row] = await tx.db.execute<Begun>(sql`
      select company_id, resource, format, filters, columns, options, requested_by, permissions, object_id as before
      from exports where id = ${exportId} and state in ('queued', 'running') for update`)
    if (!row) return null
    const writer = await ObjectWriter.begin(hub, hub.database.db, row.company_id, true, tx.db)
    await tx.db.execute(sql`
      update exports set state = 'running', attempt = ${attempt}, hub_id = ${hub.processId}, object_id = ${writer.id},
        tries = tries + 1, row_count = 0 where id = ${exportId}`)
    if (row.before) await deleteObject(tx.db, row.before)
    return { begun: row, writer }
  })
}

/** The person as they are now, in the company; throws when they may not read the resource any more. */
async function askerOf(hub: Hub, begun: Begun, permission: string): Promise<Asker> {
  const { db } = hub.database
  const caller = begun.requested_by ? await callerOfUser(db, begun.requested_by, begun.permissions) : null
  if (!caller?.permissions.has(permission) || !caller.permissions.has('export.run'))
    throw new ExportFailed('permission_lost')
  try {
    return { hub, caller, companyId: await hub.identity.companyOf(db, caller, begun.company_id) }
  } catch (error) {
    if (error instanceof ApiError) throw new ExportFailed('permission_lost')
    throw error
  }
}

/** Notes how far a try is. Throws when it is no longer the one that counts. */
async function note(db: Executor, exportId: string, attempt: string, rows: number): Promise<void> {
  const held = await db.execute(sql`
    update exports set row_count = ${rows} where id = ${exportId} and attempt = ${attempt} and state = 'running' returning id`)
  if (held.length === 0) throw new ExportTaken()
}

/** What is written for this person, and the filters that bring it. JSON without chosen columns is as the list is. */
function shapeOf({ format, columns, filters }: Begun, resource: ExportResource, { caller }: Asker) {
  const chosen = columns && columnsFor(resource, caller, columns)
  const written = chosen ?? columnsFor(resource, caller)
  const { asked } = resource
  const isWanted = (format === 'csv' || chosen !== null) && written.some(column => asked && isOf(asked.member, column))
  return { chosen, written, filters: isWanted ? { ...filters, ...asked?.filters } : filters }
}

async function writeRows(
  hub: Hub,
  begun: Begun,
  exportId: string,
  attempt: string,
  writer: ObjectWriter,
): Promise<number> {
  const resource = exportResourceOf(begun.resource)
  if (!resource) throw new ExportFailed('unknown_resource')
  let asker = await askerOf(hub, begun, resource.permission)
  const { chosen, written, filters } = shapeOf(begun, resource, asker)
  const text = new ExportText(begun.format, written, chosen, begun.options, resource.listsWithUsual)
  const rowsMax = hub.state.valueOf('exports.max_rows')
  await writer.add(Buffer.from(text.head()))
  let count = 0
  for (let key: string | null = null; ; ) {
    const step = await resource.readAfter(asker, filters, key, ROWS_AT_ONCE)
    count += step.rows.length
    if (count > rowsMax) throw new ExportFailed('too_many_rows')
    await writer.add(Buffer.from(text.rows(step.rows)))
    await note(hub.database.db, exportId, attempt, count)
    if (count % ROWS_KEPT === 0) Bun.gc(true)
    key = step.key
    if (key === null) break
    asker = await askerOf(hub, begun, resource.permission)
  }
  await writer.add(Buffer.from(text.end()))
  return count
}

async function writeExport(hub: Hub, payload: JobPayload): Promise<void> {
  const { db } = hub.database
  const exportId = String(payload.export_id)
  const attempt = randomUUID()
  const taken = await begin(hub, exportId, attempt)
  if (!taken) return
  const { begun, writer } = taken
  try {
    const count = await writeRows(hub, begun, exportId, attempt, writer)
    const { bytes, sha256 } = await writer.finish()
    const expiresAt = (await expiryOf(hub, begun.company_id)).toISOString()
    await inTransaction(db, async tx => {
      const ready = await tx.db.execute(sql`
        update exports set state = 'ready', row_count = ${count}, bytes = ${bytes}, sha256 = ${sha256},
          finished_at = now(), expires_at = ${expiresAt}
        where id = ${exportId} and attempt = ${attempt} and state = 'running' returning id`)
      if (ready.length === 0) throw new ExportTaken()
      await noteOutcome(hub, tx, exportId)
    })
  } catch (error) {
    if (error instanceof ExportTaken) await forget(db, exportId, writer.id)
    else if (error instanceof ExportFailed) await fail(hub, exportId, error.message)
    else throw error
  }
}

/** Deletes what a try has written, unless the export is of it. */
async function forget(db: Executor, exportId: string, objectId: string): Promise<void> {
  await db.execute(sql`
    delete from stored_objects where id = ${objectId}
      and not exists (select 1 from exports where id = ${exportId} and object_id = ${objectId})`)
}

/** Ends an export as failed; `reason` is a word that people's programs may read. */
async function fail(hub: Hub, exportId: string, reason: string): Promise<void> {
  await inTransaction(hub.database.db, async tx => {
    const [row] = await tx.db.execute<{ object_id: string | null }>(sql`
      select object_id from exports where id = ${exportId} and state in ('queued', 'running') for update`)
    if (!row) return
    await tx.db.execute(sql`
      update exports set state = 'failed', error = ${reason}, object_id = null, attempt = null, finished_at = now()
      where id = ${exportId}`)
    if (row.object_id) await deleteObject(tx.db, row.object_id)
    await noteOutcome(hub, tx, exportId)
  })
}

/** Exports whose hub is gone are begun anew, a few times; those that are over go (export-retention.ts). */
export async function keepExports(hub: Hub): Promise<void> {
  const { db } = hub.database
  const lost = await db.execute<{ id: string; company_id: string; tries: number }>(sql`
    select id, company_id, tries from exports where state = 'running' and hub_id not in (${livingProcesses})`)
  for (const { id, company_id: companyId, tries } of lost) {
    if (tries >= TRIES_MAX) await fail(hub, id, 'gave_up')
    else
      await inTransaction(db, async tx => {
        const again = await tx.db.execute(sql`
          update exports set state = 'queued', attempt = null, hub_id = null
          where id = ${id} and state = 'running' and hub_id not in (${livingProcesses}) returning id`)
        if (again.length > 0) hub.jobs.enqueue(tx, [{ queue: 'exports', payload: { export_id: id }, group: companyId }])
      })
  }
  await forgetOldExports(hub)
}

export function registerExportJobs(hub: Hub): void {
  hub.jobs.register('exports', {
    async handle(payload) {
      try {
        await writeExport(hub, payload)
      } catch (error) {
        hub.log.error({ err: errorInfo(error), export_id: payload.export_id }, 'an export failed')
        throw error
      }
    },
    onFailed: payload => fail(hub, String(payload.export_id), 'unexpected_error'),
  })
}

// Work that leaves the hub for a resource never happens inside a request: an act makes a run, a job of the
// queue `resources.probe` does it. One run for each resource and action at a time.
import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import { type Tx, uuidList } from '../platform/db/transaction.ts'
import { type JobPayload, PermanentJobFailure } from '../platform/jobs/jobs.ts'
import { type Editor, hubEditor } from './editor.ts'
import type { CommonRow, Kind } from './kind.ts'
import { findRow } from './resource-rows.ts'

const QUEUE = 'resources.probe'
const ERROR_MAX = 500

type RunRow = {
  id: string
  kind: string
  resource_id: string
  action: string
  state: string
  requested_by: string | null
  requested_by_name: string | null
  queued_at: Date | string
  started_at: Date | string | null
  finished_at: Date | string | null
  result: Unchecked | null
  error: string | null
}

const COLUMNS = sql.raw(`r.id, r.kind, r.resource_id, r.action, r.state, r.requested_by, r.queued_at, r.started_at,
  r.finished_at, r.result, r.error, (select u.name from users u where u.id = r.requested_by) as requested_by_name`)

const timeOf = (value: Date | string | null): Date | null => (value === null ? null : new Date(value))

export const presentRun = (row: RunRow) => ({
  id: row.id,
  kind: row.kind,
  resource_id: row.resource_id,
  action: row.action,
  state: row.state,
  requested_by: row.requested_by === null ? null : { id: row.requested_by, name: row.requested_by_name ?? '' },
  queued_at: new Date(row.queued_at),
  started_at: timeOf(row.started_at),
  finished_at: timeOf(row.finished_at),
  result: row.result,
  error: row.error,
})

/** An act whose work fails in a way that the operator should read: the text becomes the run's error. */
export class RunFailed extends Error {}

/**
 * Makes a run of an act on a resource, or answers the one under way. Its job starts after the commit. The call that
 * starts one is in the audit log.
 */
export async function startRun(
  tx: Tx,
  editor: Editor,
  kind: Kind,
  row: CommonRow,
  action: string,
  input: Unchecked = {},
): Promise<RunRow> {
  const { hub, companyId, userId } = editor
  const id = randomUUID()
  const made = await tx.db.execute<{ id: string }>(sql`
    insert into resource_runs (id, company_id, kind, resource_id, action, state, requested_by, input)
    values (${id}, ${companyId}, ${kind.info.kind}, ${row.id}, ${action}, 'queued', ${userId}, ${JSON.stringify(input)}::jsonb)
    on conflict (kind, resource_id, action) where state in ('queued', 'running') do nothing returning id`)
  if (made.length > 0) {
    hub.jobs.enqueue(tx, [{ queue: QUEUE, payload: { run_id: id }, group: companyId }])
    if (userId !== null)
      await editor.record(tx, `${kind.info.kind}.${action}`, { type: kind.info.kind, id: row.id, name: row.name })
  }
  const [run] = await tx.db.execute<RunRow>(sql`
    select ${COLUMNS} from resource_runs r where r.company_id = ${companyId} and r.kind = ${kind.info.kind}
      and r.resource_id = ${row.id} and r.action = ${action} and r.state in ('queued', 'running')`)
  // The one under way has just ended: the caller is told of a new one.
  return run ?? startRun(tx, editor, kind, row, action, input)
}

/** The newest run of each action of resources, by their ids, the newest first. */
export async function lastRuns(
  db: Executor,
  companyId: string,
  kind: string,
  resourceIds: readonly string[],
): Promise<ReadonlyMap<string, readonly RunRow[]>> {
  if (resourceIds.length === 0) return new Map()
  const rows = await db.execute<RunRow>(sql`
    select ${COLUMNS} from (
      select distinct on (resource_id, action) id from resource_runs
      where company_id = ${companyId} and kind = ${kind} and resource_id = any(${uuidList(resourceIds)}::uuid[])
      order by resource_id, action, queued_at desc, id) newest
    join resource_runs r on r.id = newest.id order by r.queued_at desc, r.id`)
  return Map.groupBy(rows, row => row.resource_id)
}

async function endRun(hub: Hub, id: string, state: 'done' | 'failed', result: Unchecked | null, error: string | null) {
  await hub.database.db.execute(sql`
    update resource_runs set state = ${state}, finished_at = now(), result = ${result && JSON.stringify(result)}::jsonb,
      error = ${error} where id = ${id} and state in ('queued', 'running')`)
}

type Taken = { company_id: string; kind: string; resource_id: string; action: string; input: Unchecked }

/** The job of a run that failed is tried again only when somebody asks for it, and takes the run up again then. */
async function work(hub: Hub, kinds: ReadonlyMap<string, Kind>, payload: JobPayload): Promise<void> {
  const id = String(payload.run_id)
  const [taken] = await hub.database.db.execute<Taken>(sql`
    update resource_runs r set state = 'running', started_at = coalesce(started_at, now()), finished_at = null,
      error = null
    where id = ${id} and (state in ('queued', 'running') or (state = 'failed' and not exists (
      select 1 from resource_runs o where o.kind = r.kind and o.resource_id = r.resource_id and o.action = r.action
        and o.state in ('queued', 'running'))))
    returning company_id, kind, resource_id, action, input`)
  if (!taken) return
  const kind = kinds.get(taken.kind)
  const act = kind?.act(taken.action)
  const editor = hubEditor(hub, taken.company_id)
  try {
    if (!kind || !act) throw new RunFailed('unknown action')
    const row = await findRow(kind, hub.database.db, taken.company_id, taken.resource_id).catch(() => null)
    if (!row) throw new RunFailed('deleted')
    await endRun(hub, id, 'done', await act.work({ editor, row, input: taken.input }), null)
  } catch (error) {
    if (!(error instanceof RunFailed)) throw error
    await endRun(hub, id, 'failed', null, error.message.slice(0, ERROR_MAX))
    throw new PermanentJobFailure(error.message)
  }
}

export function registerRuns(hub: Hub, kinds: readonly Kind[]): void {
  const byName = new Map(kinds.map(kind => [kind.info.kind, kind]))
  hub.jobs.register(QUEUE, {
    handle: payload => work(hub, byName, payload),
    onFailed: payload => endRun(hub, String(payload.run_id), 'failed', null, 'the work failed'),
  })
}

// Commands that go through the database step by step, each step a transaction.
import { sql } from 'drizzle-orm'
import { SEALED_COLUMNS, useOneKey } from '../../identity/sealing-keys.ts'
import { inTransaction, lockCompany } from '../../platform/db/transaction.ts'
import { refreshScopes } from '../../scopes/scope.ts'
import type { CommandTask } from './command-task.ts'

const SERVERS_AT_ONCE = 500
const SECRETS_AT_ONCE = 200
const JOBS_AT_ONCE = 200

/** Works out anew which servers rules, silences and checks cover. */
export async function resolveScopes(task: CommandTask): Promise<void> {
  const { hub, companyId } = task
  const { db } = hub.database
  const [counted] = await db.execute<{ count: number }>(
    sql`select count(*)::int as count from servers where company_id = ${companyId}`,
  )
  const total = counted?.count ?? 0
  let last = '00000000-0000-0000-0000-000000000000'
  let done = 0
  for (;;) {
    await task.reached(done, total)
    const rows = await db.execute<{ id: string }>(sql`
      select id from servers where company_id = ${companyId} and id > ${last}::uuid order by id limit ${SERVERS_AT_ONCE}`)
    if (rows.length === 0) break
    const ids = rows.map(row => row.id)
    await inTransaction(db, async tx => {
      await lockCompany(tx, companyId)
      await refreshScopes(hub, tx, companyId, ids)
    })
    done += ids.length
    last = ids.at(-1) ?? last
  }
  task.say(`${done} servers`)
}

/** Seals the texts of a column anew that another key has sealed. Returns how many, and how many no key opens. */
async function resealColumn(
  task: CommandTask,
  table: string,
  column: string,
): Promise<{ sealed: number; lost: number }> {
  const { hub } = task
  const { db } = hub.database
  const [from, what] = [sql.identifier(table), sql.identifier(column)]
  const counts = { sealed: 0, lost: 0 }
  for (let last = ''; ; ) {
    const rows = await db.execute<{ text: string }>(sql`
      select ${what} as text from ${from} where ${what} > ${last} and split_part(${what}, '.', 2) <> ${hub.sealer.keyId}
      order by ${what} limit ${SECRETS_AT_ONCE}`)
    if (rows.length === 0) return counts
    for (const { text } of rows) {
      const secret = hub.sealer.open(text)
      if (secret === null) counts.lost++
      else {
        // What is sealed is unlike any other: it names its row.
        await db.execute(sql`update ${from} set ${what} = ${hub.sealer.seal(secret)} where ${what} = ${text}`)
        counts.sealed++
      }
    }
    last = rows.at(-1)?.text ?? last
    await task.reached(counts.sealed, null)
  }
}

/** Seals the blocks of files and exports anew that another key has sealed. Returns how many. */
async function resealBlocks(task: CommandTask): Promise<{ sealed: number; lost: number }> {
  const { hub } = task
  const { db } = hub.database
  const counts = { sealed: 0, lost: 0 }
  let at = { object_id: '00000000-0000-0000-0000-000000000000', block: -1 }
  for (;;) {
    const [row] = await db.execute<{ object_id: string; block: number; content: Uint8Array }>(sql`
      select object_id, block, content from stored_blocks
      where (object_id, block) > (${at.object_id}::uuid, ${at.block}) and substr(content, 2, 4) <> decode(${hub.sealer.keyId}, 'hex')
      order by object_id, block limit 1`)
    if (!row) return counts
    at = row
    const place = `${row.object_id} ${row.block}`
    const content = hub.sealer.openBytes(row.content, place)
    if (content === null) counts.lost++
    else {
      const sealed = Buffer.from(hub.sealer.sealBytes(content, place))
      await db.execute(sql`
        update stored_blocks set content = ${sealed} where object_id = ${row.object_id} and block = ${row.block}`)
      counts.sealed++
    }
    await task.reached(counts.sealed, null)
  }
}

export async function resealSecrets(task: CommandTask): Promise<void> {
  const { db } = task.hub.database
  for (const { table, column } of await db.execute<{ table: string; column: string }>(SEALED_COLUMNS)) {
    const { sealed, lost } = await resealColumn(task, table, column)
    task.say(`${table}.${column}: ${sealed} sealed anew, ${lost} of a key that is gone`)
  }
  const { sealed, lost } = await resealBlocks(task)
  task.say(`stored_blocks: ${sealed} sealed anew, ${lost} of a key that is gone`)
  await useOneKey(db, task.hub.sealer)
}

export async function retryFailedJobs(task: CommandTask): Promise<void> {
  const { hub, parameters } = task
  const { db } = hub.database
  const queue = typeof parameters.queue === 'string' ? parameters.queue : null
  const failed = await db.execute<{ id: string; queue: string }>(sql`
    select id, name as queue from pgboss.job where state = 'failed' and (${queue}::text is null or name = ${queue})
    order by completed_on, id`)
  for (let at = 0; at < failed.length; at += JOBS_AT_ONCE) {
    await task.reached(at, failed.length)
    for (const [name, jobs] of Map.groupBy(failed.slice(at, at + JOBS_AT_ONCE), job => job.queue))
      await hub.jobs.retry(
        name,
        jobs.map(job => job.id),
      )
  }
  task.say(`${failed.length} jobs`)
}

export async function analyzeDatabase(task: CommandTask): Promise<void> {
  const { db } = task.hub.database
  const tables = await db.execute<{ name: string }>(sql`
    select c.relname as name from pg_class c
    where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' and pg_get_userbyid(c.relowner) = current_user
    order by c.relname`)
  for (const [index, { name }] of tables.entries()) {
    await task.reached(index, tables.length)
    await db.execute(sql`analyze ${sql.identifier(name)}`)
  }
  task.say(`${tables.length} tables`)
}

/** How many rows the larger tables have, as the database guesses. */
export const tableSizes = sql`
  select relname as "table", greatest(reltuples, 0)::float8 as "rows", pg_total_relation_size(oid)::float8 as bytes from pg_class
  where relnamespace = current_schema()::regnamespace and relkind = 'r' order by 3 desc limit 50`

// Commands over the resources of a company (decision R-065), step by step.
import { sql } from 'drizzle-orm'
import { dnsZoneKind } from '../../dns/dns-zone.ts'
import { refreshUsage } from '../../network/subnet-fullness.ts'
import { inTransaction } from '../../platform/db/transaction.ts'
import { hubEditor } from '../../resources/editor.ts'
import type { KindInfo } from '../../resources/kind-info.ts'
import { purgeTrash } from '../../resources/purge-resources.ts'
import { findRow } from '../../resources/resource-rows.ts'
import { startRun } from '../../resources/runs.ts'
import type { CommandTask } from './command-task.ts'

const ROWS_AT_ONCE = 500
const ZONES_AT_ONCE = 50
const FIRST_ID = '00000000-0000-0000-0000-000000000000'

/** Writes documents and tags of a kind anew: a row that is written writes its own. Returns how many rows. */
async function rebuildKind(task: CommandTask, info: KindInfo, companyId: string, before: number): Promise<number> {
  const { db } = task.hub.database
  const [table, name] = [sql.identifier(info.table), sql.identifier(info.nameColumn)]
  await db.execute(sql`
    delete from search_documents d where d.company_id = ${companyId} and d.kind = ${info.kind}
      and not exists (select 1 from ${table} t where t.id = d.resource_id and t.company_id = d.company_id)`)
  await db.execute(sql`
    delete from search_tags s where s.company_id = ${companyId} and s.kind = ${info.kind}
      and not exists (select 1 from ${table} t where t.id = s.resource_id and t.company_id = s.company_id
        and jsonb_exists(to_jsonb(t) -> 'tags', s.tag))`)
  let done = 0
  for (let last = FIRST_ID; ; ) {
    await task.reached(before + done, null)
    const rows = await db.execute<{ id: string }>(sql`
      update ${table} t set ${name} = t.${name} where t.id in (
        select id from ${table} where company_id = ${companyId} and id > ${last}::uuid order by id limit ${ROWS_AT_ONCE})
      returning t.id`)
    if (rows.length === 0) return done
    done += rows.length
    last =
      rows
        .map(row => row.id)
        .sort()
        .at(-1) ?? last
  }
}

async function rebuildCompany(task: CommandTask, companyId: string, before = 0): Promise<number> {
  let done = before
  for (const info of task.hub.kinds.values())
    if (!info.withoutDocuments) done += await rebuildKind(task, info, companyId, done)
  return done
}

export async function rebuildSearch(task: CommandTask): Promise<void> {
  task.say(`${await rebuildCompany(task, task.companyId)} documents`)
}

export async function rebuildSearchOfAll(task: CommandTask): Promise<void> {
  const companies = await task.hub.database.db.execute<{ id: string }>(sql`select id from companies order by id`)
  let done = 0
  for (const { id } of companies) done = await rebuildCompany(task, id, done)
  task.say(`${done} documents of ${companies.length} companies`)
}

/** Starts a verification of every zone that has a name server; one under way is left alone. */
export async function verifyZones(task: CommandTask): Promise<void> {
  const { hub, companyId } = task
  const { db } = hub.database
  const zones = await db.execute<{ id: string }>(sql`
    select id from dns_zones where company_id = ${companyId} and deleted_at is null
      and status not in ('planned', 'retired') and cardinality(server_ids) > 0 order by id`)
  for (const [index, { id }] of zones.entries()) {
    if (index % ZONES_AT_ONCE === 0) await task.reached(index, zones.length)
    await inTransaction(db, async tx => {
      const zone = await findRow(dnsZoneKind, tx.db, companyId, id)
      await startRun(tx, hubEditor(hub, companyId), dnsZoneKind, zone, 'sync')
    })
  }
  task.say(`${zones.length} zones`)
}

/** Counts the addresses of every subnet anew, and what is used of it. */
export async function recountSubnets(task: CommandTask): Promise<void> {
  const { hub, companyId } = task
  const { db } = hub.database
  await task.reached(0, null)
  const corrected = await db.execute(sql`
    with counted as (
      select s.id, s.direct_used, (select count(*) from ip_addresses a
        where a.subnet_id = s.id and a.deleted_at is null and a.status <> 'released') as used
      from subnets s where s.company_id = ${companyId} and s.deleted_at is null)
    update subnets s set direct_used = c.used from counted c where s.id = c.id and c.used <> c.direct_used returning s.id`)
  const subnets = await db.execute(sql`
    update subnets set usage_stale = true, free_from = null where company_id = ${companyId} and deleted_at is null returning id`)
  for (;;) {
    const [left] = await db.execute<{ count: number }>(sql`
      select count(*)::int as count from subnets where company_id = ${companyId} and usage_stale and deleted_at is null`)
    await task.reached(subnets.length - (left?.count ?? 0), subnets.length)
    if (!left?.count) break
    await refreshUsage(hub)
  }
  task.say(`${subnets.length} subnets, ${corrected.length} corrected`)
}

/** Empties the trash of the company of what lies in it for so many days. */
export async function emptyTrash(task: CommandTask): Promise<void> {
  const { hub, companyId, parameters } = task
  const days =
    typeof parameters.older_than_days === 'number' ? parameters.older_than_days : hub.state.valueOf('trash.days')
  let done = 0
  for (const info of hub.kinds.values()) {
    if (!info.isResource) continue
    await task.reached(done, null)
    const count = await purgeTrash(hub, info, days, companyId)
    if (count > 0) task.say(`${info.kind}: ${count}`)
    done += count
  }
  task.say(`${done} resources`)
}

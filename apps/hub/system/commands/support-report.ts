// What support asks for first: versions, counts, settings. No secret, no name of a customer, no address.
import { sql } from 'drizzle-orm'
import { insertReport } from '../../files/files.ts'
import { inTransaction } from '../../platform/db/transaction.ts'
import { definitionOf, settingKeys } from '../../system-state/setting-definitions.ts'
import { productVersion } from '../../version.ts'
import type { CommandTask } from './command-task.ts'
import { tableSizes } from './database-commands.ts'

/** Settings whose value says nothing of people and hosts. */
const isTellable = (value: unknown): boolean => typeof value === 'boolean' || typeof value === 'number'

export async function supportReport(task: CommandTask): Promise<void> {
  const { hub, companyId } = task
  const { db } = hub.database
  const [counts] = await db.execute(sql`
    select (select count(*)::int from companies where deleted_at is null) as companies,
      (select count(*)::int from servers where deleted_at is null) as servers,
      (select count(*)::int from monitoring_agents where state <> 'revoked') as agents,
      (select count(*)::int from monitoring_alerts where state in ('open', 'acknowledged')) as open_alerts,
      (select count(*)::int from users where kind = 'person' and disabled_at is null) as people,
      (select count(*)::int from hub_processes) as hubs`)
  const queues = await db.execute(sql`
    select name as queue, state::text, count(*)::int as jobs from pgboss.job group by 1, 2 order by 1, 2`)
  const settings = settingKeys.map(key => {
    const { isSecret, levels } = definitionOf(key)
    const value = isSecret || levels === 'none' ? null : hub.state.value(key)
    return { key, is_set: hub.state.isSet(key), value: isTellable(value) ? value : null }
  })
  const report = {
    made_at: new Date(hub.now()).toISOString(),
    version: productVersion,
    runtime: `bun ${Bun.version}`,
    uptime_seconds: Math.round((hub.now() - hub.startedAtMs) / 1000),
    memory_bytes: process.memoryUsage.rss(),
    counts,
    queues: [...queues],
    tables: [...(await db.execute(tableSizes))],
    settings,
  }
  const day = report.made_at.slice(0, 10)
  const content = Buffer.from(JSON.stringify(report, null, 2))
  const id = await inTransaction(db, tx =>
    insertReport(hub, tx, companyId, { name: `support-report-${day}.json`, content }),
  )
  task.say(`file ${id}`)
}

// Connections by the clock: those that are due are tested, and what no result speaks for any more becomes unknown.
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { eachAlone } from '../platform/each-alone.ts'
import { ApiError } from '../platform/http/api-error.ts'
import { hubEditor } from '../resources/editor.ts'
import { findRow } from '../resources/resource-rows.ts'
import { RunFailed, startRun } from '../resources/runs.ts'
import { connectionKind } from './connection.ts'
import { judgeConnections } from './connection-state.ts'
import { readAgentResult } from './connection-test.ts'
import { removeLeftChecks } from './gone-nodes.ts'

const TESTS_AT_ONCE = 200
const JUDGED_AT_ONCE = 1_000
const READ_AT_ONCE = 8

type Due = { id: string; company_id: string }

/** What an agent saw is no test: it is read, and leaves no run. A collector that is away is asked again next time. */
async function readAgent(hub: Hub, { id, company_id }: Due): Promise<void> {
  const editor = hubEditor(hub, company_id)
  try {
    await readAgentResult(editor, await findRow(connectionKind, hub.database.db, company_id, id))
  } catch (error) {
    if (!(error instanceof RunFailed) && !(error instanceof ApiError)) throw error
  }
}

/** Starts a test of every connection that is due, a minute after a first failure; one under way is left alone. */
async function testDue(hub: Hub): Promise<void> {
  const { db } = hub.database
  const due = await db.execute<Due & { by: string }>(sql`
    select id, company_id, probe_by as by from connections where deleted_at is null and probe_by <> 'none'
      and status not in ('planned', 'retired')
      and (tested_at is null or tested_at <= now() - make_interval(secs => probe_interval_seconds)
        or (failed_tests = 1 and tested_at <= now() - interval '60 seconds'))
    order by tested_at nulls first limit ${TESTS_AT_ONCE}`)
  const ofAgents = due.filter(({ by }) => by === 'agent')
  for (let at = 0; at < ofAgents.length; at += READ_AT_ONCE)
    await Promise.all(ofAgents.slice(at, at + READ_AT_ONCE).map(each => readAgent(hub, each)))
  const ofHub = due.filter(({ by }) => by === 'hub')
  await eachAlone(hub, 'cannot start the test of a connection', ofHub, ({ id, company_id }) =>
    inTransaction(db, async tx => {
      const connection = await findRow(connectionKind, tx.db, company_id, id)
      await startRun(tx, hubEditor(hub, company_id), connectionKind, connection, 'test')
    }),
  )
}

/** Judges what may have changed by itself: a success that is too old, an alert of a check that began or ended. */
async function judgeChanged(hub: Hub): Promise<void> {
  const { db } = hub.database
  const changed = await db.execute<Due>(sql`
    (select id, company_id from connections where deleted_at is null and state = 'up' and up_until <= now()
      limit ${JUDGED_AT_ONCE})
    union (
      select c.id, c.company_id from connections c where c.deleted_at is null and c.check_id is not null
        and c.failed_tests < 2 and (c.state = 'down') is distinct from exists (
          select 1 from monitoring_rules r join monitoring_alerts a on a.rule_id = r.id
            and a.state in ('open', 'acknowledged') where r.check_id = c.check_id)
      limit ${JUDGED_AT_ONCE})`)
  for (const [companyId, rows] of Map.groupBy(changed, row => row.company_id))
    await inTransaction(db, tx =>
      judgeConnections(
        tx,
        connectionKind.info,
        companyId,
        rows.map(row => row.id),
      ),
    )
}

export async function watchConnections(hub: Hub): Promise<void> {
  await removeLeftChecks(hub)
  await judgeChanged(hub)
  await testDue(hub)
}

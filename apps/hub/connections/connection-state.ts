// The state of connections (R-018): down while an alert of its check is open or acknowledged, or while its last two
// tests by the hub failed; up while the newest result that succeeded is no older than three intervals; else unknown.
import { sql } from 'drizzle-orm'
import { type Tx, uuidList } from '../platform/db/transaction.ts'
import { setConditions } from '../resources/conditions.ts'
import type { KindInfo } from '../resources/kind-info.ts'
import type { Connection } from './connection-fields.ts'

/** A success counts for this many intervals. */
const INTERVALS = 3
const FAILURES_TO_BE_DOWN = 2
const CODE = 'connection_down'

type Judged = { id: string; name: string; state: Connection['state']; criticality: Connection['criticality'] }

/** Judges the connections of a company with these ids anew, and says which are down. */
export async function judgeConnections(
  tx: Tx,
  info: KindInfo,
  companyId: string,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return
  const rows = await tx.db.execute<Judged>(sql`
    with judged as (
      select c.id, case
        when c.failed_tests >= ${FAILURES_TO_BE_DOWN} or (c.check_id is not null and exists (
          select 1 from monitoring_rules r join monitoring_alerts a on a.rule_id = r.id
            and a.state in ('open', 'acknowledged')
          where r.check_id = c.check_id)) then 'down'
        when c.up_until > now() then 'up' else 'unknown' end as state
      from connections c where c.company_id = ${companyId} and c.id = any(${uuidList(ids)}::uuid[])
        and c.deleted_at is null for no key update),
    changed as (
      update connections c set state = j.state, state_since = now() from judged j
      where c.id = j.id and c.state <> j.state returning c.id, j.state),
    noted as (insert into connection_states (connection_id, state) select id, state from changed)
    select c.id, c.name, j.state, c.criticality from judged j join connections c on c.id = j.id`)
  const found = new Map(
    rows.flatMap(({ id, name, state, criticality }) =>
      state === 'down'
        ? [
            [
              id,
              [{ code: CODE, detail: { name }, severity: criticality === 'hard' ? 'critical' : 'warning' } as const],
            ] as const,
          ]
        : [],
    ),
  )
  await setConditions(
    tx,
    info,
    companyId,
    rows.map(row => row.id),
    [CODE],
    found,
  )
}

/** A result: what was seen when, and whether by a test of the hub. */
type Result = { readonly isUp: boolean; readonly at: Date; readonly isOfHub: boolean }

/** Notes the newest result of a connection; null when there is none. */
export async function noteResult(
  tx: Tx,
  info: KindInfo,
  { id, company_id, probe_interval_seconds, probe_by }: Connection,
  result: Result | null,
): Promise<void> {
  const until = result && new Date(result.at.getTime() + INTERVALS * probe_interval_seconds * 1000).toISOString()
  const seen = result
    ? sql`, up_until = ${result.isUp ? until : null}::timestamptz,
        failed_tests = ${result.isUp ? sql`0` : result.isOfHub ? sql`failed_tests + 1` : sql`failed_tests`},
        probe_until = ${probe_by === 'none' ? null : until}::timestamptz`
    : sql``
  await tx.db.execute(sql`update connections set tested_at = now()${seen} where id = ${id} and deleted_at is null`)
  await judgeConnections(tx, info, company_id, [id])
}

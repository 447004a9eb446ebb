// Codes that the collector hands to enrolled agents with their configuration, so that a fleet needs no second secret
// (decisions G-192, G-194): one of its own for each agent whose company is scanned, until it has had a scan host.
import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import type { Hub } from '../../hub-context.ts'
import { newScanCode, tokenHash } from '../../identity/token-forms.ts'
import { inTransaction, type Tx } from '../../platform/db/transaction.ts'
import { CODE_VALID_MS } from './enrollment-codes.ts'

const AT_ONCE = 500
const ROUNDS_MAX = 20
/** A code is replaced this long before it expires: collectors and agents need time to hear of the next one. */
const RENEW_MS = 6 * 3_600_000

/** An agent `a` that is to have a code: active, of a company that is scanned, without a scan host since it enrolled. */
const IS_INVITED = sql`a.state = 'active' and s.deleted_at is null and c.deleted_at is null and c.suspended_at is null
  and coalesce(x.enabled, true) and not exists (
    select 1 from scan_hosts h where h.server_id = a.server_id and h.enrolled_at >= a.enrolled_at)`
const AGENTS = sql`monitoring_agents a join servers s on s.id = a.server_id join companies c on c.id = a.company_id
  left join security_settings x on x.company_id = a.company_id`

/** Takes back codes of agents that are not to be scanned, and tells the collectors. */
async function withdrawCodes(tx: Tx, isOn: boolean): Promise<number> {
  const invited = sql`exists (select 1 from ${AGENTS} where a.id = k.agent_id and ${IS_INVITED})`
  const rows = await tx.db.execute<{ agent_id: string }>(sql`
    delete from scan_enrolment_codes where id in (
      select k.id from scan_enrolment_codes k where k.agent_id is not null and k.uses = 0 and not (${isOn} and ${invited})
      limit ${AT_ONCE} for update skip locked)
    returning agent_id`)
  tx.touch(
    'agents',
    rows.map(row => row.agent_id),
  )
  return rows.length
}

type Invited = { id: string; company_id: string; server_id: string }

/** Makes codes for agents that have none, or one that is about to expire or names another server. */
async function makeCodes(hub: Hub, tx: Tx): Promise<number> {
  const nowMs = hub.now()
  const rows = await tx.db.execute<Invited>(sql`
    select a.id, a.company_id, a.server_id from ${AGENTS} left join scan_enrolment_codes k on k.agent_id = a.id
    where ${IS_INVITED} and (k.id is null or k.uses = 0 and (k.server_id is distinct from a.server_id
      or k.expires_at < ${new Date(nowMs + RENEW_MS).toISOString()}::timestamptz))
    order by a.id limit ${AT_ONCE}`)
  if (rows.length === 0) return 0
  const records = rows.map(agent => {
    const code = newScanCode()
    return {
      id: randomUUID(),
      company_id: agent.company_id,
      agent_id: agent.id,
      server_id: agent.server_id,
      code_hash: tokenHash(code),
      code_sealed: hub.sealer.seal(code),
    }
  })
  await tx.db.execute(sql`
    insert into scan_enrolment_codes as k (id, company_id, agent_id, server_id, code_hash, code_sealed, created_at, expires_at)
    select x.id, x.company_id, x.agent_id, x.server_id, x.code_hash, x.code_sealed, ${new Date(nowMs).toISOString()}::timestamptz,
      ${new Date(nowMs + CODE_VALID_MS).toISOString()}::timestamptz
    from jsonb_to_recordset(${JSON.stringify(records)}::jsonb)
      as x (id uuid, company_id uuid, agent_id uuid, server_id uuid, code_hash text, code_sealed text)
    on conflict (agent_id) where agent_id is not null do update set server_id = excluded.server_id, code_hash = excluded.code_hash,
      code_sealed = excluded.code_sealed, created_at = excluded.created_at, expires_at = excluded.expires_at
      where k.uses = 0`)
  tx.touch(
    'agents',
    rows.map(row => row.id),
  )
  return rows.length
}

/** Brings the codes of agents up to date; without an address that agents report to, none has one. */
export async function inviteAgents(hub: Hub): Promise<void> {
  const isOn = hub.config['matcher.scan_url'] !== null
  const act = (work: (tx: Tx) => Promise<number>) => inTransaction(hub.database.db, work)
  for (let round = 0; round < ROUNDS_MAX && (await act(tx => withdrawCodes(tx, isOn))) === AT_ONCE; round++) {
    // A little at a time, so that the agents feed is not held up.
  }
  for (let round = 0; isOn && round < ROUNDS_MAX && (await act(tx => makeCodes(hub, tx))) === AT_ONCE; round++) {
    // The same.
  }
}

// POST /inventory: facts of servers, one row a server, the newest report wins (document 1 "Inventory ingest"; G-114).

import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import { limits } from '../../../core/limits.ts'
import { sha256Hex } from '../../../core/series/hash.ts'
import type { Hub } from '../hub-context.ts'
import { storeObservations } from '../network/observed-addresses.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import { isInstant, isUuid } from '../platform/http/request-schema.ts'

type Reason = 'agent_mismatch' | 'agent_revoked' | 'unknown_server' | 'invalid_facts'

const CODE = 'invalid_batch'

/** JSON with keys sorted at every depth and without spaces: equal facts have equal text. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (!isObject(value)) return JSON.stringify(value) ?? 'null'
  const members = Object.keys(value)
    .filter(key => value[key] !== undefined)
    .sort()
    .map(key => `${JSON.stringify(key)}:${canonicalJson(value[key])}`)
  return `{${members.join(',')}}`
}

const isText = (value: unknown): boolean => value === undefined || value === null || typeof value === 'string'
const isCount = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  (typeof value === 'number' && value >= 0) ||
  (typeof value === 'string' && /^\d{1,20}$/.test(value))
const isListOf = (value: unknown, isItem: (item: unknown) => boolean): boolean =>
  value === undefined || value === null || (Array.isArray(value) && value.every(isItem))
const isPart = (value: unknown, isFine: (part: Unchecked) => boolean): boolean =>
  value === undefined || value === null || (isObject(value) && isFine(value))

/** The shape of the facts. Absent members are unknown; members that are not listed here are stored as received. */
function isHeartbeat(facts: unknown): facts is Unchecked {
  if (!isObject(facts)) return false
  return (
    isPart(facts.os, os => ['family', 'name', 'version', 'kernel', 'arch'].every(key => isText(os[key]))) &&
    isPart(facts.cpu, cpu => isText(cpu.model) && isCount(cpu.cores) && isCount(cpu.threads)) &&
    isCount(facts.memory_total_bytes) &&
    isListOf(facts.disks, disk =>
      isPart(disk, part => isText(part.mount) && isText(part.fstype) && isCount(part.total_bytes)),
    ) &&
    isListOf(facts.nics, nic =>
      isPart(nic, part => isText(part.name) && isListOf(part.ips, ip => typeof ip === 'string')),
    ) &&
    isText(facts.timezone)
  )
}

type Item = { agentId: string; companyId: string; serverId: string; reportedAt: string; facts: Unchecked }

/** The items of a batch. Throws 422 for a body that is no batch. */
function itemsOf(body: unknown): Unchecked[] {
  const items = isObject(body) ? body.items : undefined
  if (!Array.isArray(items)) throw invalidField('items', 'list').withCode(CODE)
  if (items.length === 0) throw invalidField('items', 'list_min', { min: 1 }).withCode(CODE)
  if (items.length > limits.inventoryPerRequest)
    throw invalidField('items', 'list_max', { max: limits.inventoryPerRequest }).withCode(CODE)
  return items.map((item, index) => {
    if (!isObject(item)) throw invalidField(`items.${index}`, 'object').withCode(CODE)
    return item
  })
}

function itemOf(raw: Unchecked): Item | Reason {
  if (!isUuid(raw.agent_id) || !isUuid(raw.company_id) || !isUuid(raw.server_id)) return 'agent_mismatch'
  if (typeof raw.reported_at !== 'string' || !isInstant(raw.reported_at) || !isHeartbeat(raw.facts))
    return 'invalid_facts'
  return {
    agentId: raw.agent_id.toLowerCase(),
    companyId: raw.company_id.toLowerCase(),
    serverId: raw.server_id.toLowerCase(),
    reportedAt: raw.reported_at,
    facts: raw.facts,
  }
}

type AgentRow = { id: string; company_id: string; server_id: string | null; state: string; has_server: boolean }

function refusalOf(item: Item, agent: AgentRow | undefined): Reason | null {
  if (!agent || agent.company_id !== item.companyId) return 'agent_mismatch'
  if (agent.state === 'revoked') return 'agent_revoked'
  if (agent.server_id !== item.serverId) return 'agent_mismatch'
  return agent.has_server ? null : 'unknown_server'
}

type InventoryResponse = { accepted: number; rejected: { agent_id: unknown; reason: Reason }[] }

/** Takes what it can of a batch; what is rejected is named in the order in which it came. */
export async function takeInventory(hub: Hub, body: unknown): Promise<InventoryResponse> {
  const given = itemsOf(body).map(raw => ({ agentId: raw.agent_id ?? null, item: itemOf(raw) }))
  return inTransaction(hub.database.db, async tx => {
    const ids = JSON.stringify(given.flatMap(({ item }) => (typeof item === 'string' ? [] : item.agentId)))
    const rows = await tx.db.execute<AgentRow>(sql`
      select a.id, a.company_id, a.server_id, a.state, (s.id is not null and s.deleted_at is null) as has_server
      from monitoring_agents a left join servers s on s.id = a.server_id and s.company_id = a.company_id
      where a.id in (select x::uuid from jsonb_array_elements_text(${ids}::jsonb) x)`)
    const agents = new Map(rows.map(row => [row.id, row]))
    const taken: Item[] = []
    const rejected: InventoryResponse['rejected'] = []
    for (const { agentId, item } of given) {
      if (typeof item === 'string') {
        rejected.push({ agent_id: agentId, reason: item })
        continue
      }
      const reason = refusalOf(item, agents.get(item.agentId))
      if (reason !== null) {
        rejected.push({ agent_id: item.agentId, reason })
        continue
      }
      taken.push(item)
      const canonical = canonicalJson(item.facts)
      await tx.db.execute(sql`
        insert into monitoring_inventory_facts (id, server_id, company_id, agent_id, facts, facts_hash, reported_at)
        values (${randomUUID()}, ${item.serverId}, ${item.companyId}, ${item.agentId}, ${canonical}::jsonb,
          ${sha256Hex(canonical)}, ${item.reportedAt}::timestamptz)
        on conflict (server_id) do update set company_id = excluded.company_id, agent_id = excluded.agent_id,
          facts = excluded.facts, facts_hash = excluded.facts_hash, reported_at = excluded.reported_at
        where monitoring_inventory_facts.reported_at <= excluded.reported_at`)
    }
    await storeObservations(hub, tx, taken)
    return { accepted: taken.length, rejected }
  })
}

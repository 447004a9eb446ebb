// What nodes are called and how they are: servers as their agents say, other resources by their health, services and
// external hosts by the worst of the connections to them (decision R-018).
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import { uuidList } from '../platform/db/transaction.ts'
import { healthBlocks } from '../servers/health.ts'
import type { Node } from './node.ts'

type NodeInfo = {
  readonly name: string
  /** online, down or unknown of a server; up, down or unknown of others; deleted of what is in the trash. */
  readonly state: string
  readonly openAlerts: number
}

type Asker = { readonly hub: Hub; readonly companyId: string }
type Named = { id: string; name: string; is_deleted: boolean; health: string | null }

const STATE_OF_HEALTH: Readonly<Record<string, string>> = { ok: 'up', warning: 'up', critical: 'down' }

async function ofKind({ hub, companyId }: Asker, kind: string, ids: readonly string[]) {
  const info = hub.kinds.get(kind)
  const found = new Map<string, NodeInfo>()
  if (!info) return found
  const health = info.isResource ? sql`case when probe_until < now() then 'unknown' else health end` : sql`null::text`
  const rows = await hub.database.db.execute<Named>(sql`
    select id, ${sql.identifier(info.nameColumn)}::text as name, deleted_at is not null as is_deleted, ${health} as health
    from ${sql.identifier(info.table)} where company_id = ${companyId} and id = any(${uuidList(ids)}::uuid[])`)
  const blockOf = kind === 'server' ? await healthBlocks(hub, companyId, ids) : null
  for (const row of rows) {
    const block = blockOf?.(row.id)
    const state = row.is_deleted ? 'deleted' : (block?.connectivity ?? STATE_OF_HEALTH[row.health ?? ''] ?? 'unknown')
    found.set(row.id, { name: row.name, state, openAlerts: block?.open_alerts ?? 0 })
  }
  return found
}

/** The worst state of the connections to services and external hosts, by key. */
async function namedStates({ hub, companyId }: Asker, keys: readonly string[]): Promise<ReadonlyMap<string, string>> {
  if (keys.length === 0) return new Map()
  const rows = await hub.database.db.execute<{ key: string; state: string }>(sql`
    select target_key as key,
      case when bool_or(state = 'down') then 'down' when bool_or(state = 'up') then 'up' else 'unknown' end as state
    from connections where company_id = ${companyId} and deleted_at is null
      and target_key in (select jsonb_array_elements_text(${JSON.stringify(keys)}::jsonb)) group by target_key`)
  return new Map(rows.map(row => [row.key, row.state]))
}

/** Name, state and open alerts of nodes, by key. */
export async function nodeInfos(asker: Asker, nodes: readonly Node[]): Promise<ReadonlyMap<string, NodeInfo>> {
  const unique = [...new Map(nodes.map(node => [node.key, node])).values()]
  const records = unique.filter(node => node.id !== null)
  const named = unique.filter(node => node.id === null)
  const infos = new Map<string, NodeInfo>()
  const [states] = await Promise.all([
    namedStates(
      asker,
      named.map(node => node.key),
    ),
    ...[...Map.groupBy(records, node => node.kind)].map(async ([kind, some]) => {
      const found = await ofKind(
        asker,
        kind,
        some.map(node => node.id ?? ''),
      )
      for (const { id, key } of some)
        infos.set(key, found.get(id ?? '') ?? { name: id ?? '', state: 'deleted', openAlerts: 0 })
    }),
  ])
  for (const { key, name } of named)
    infos.set(key, { name: name ?? '', state: states.get(key) ?? 'unknown', openAlerts: 0 })
  return infos
}

// What texts call the servers of a wide-area incident: those of a subnet that the company keeps by its name and block,
// instead of `subnet:<id>`. The events themselves carry the key unchanged.
import { sql } from 'drizzle-orm'
import type { Executor } from '../platform/db/connect.ts'
import { uuidList } from '../platform/db/transaction.ts'
import { isUuid } from '../platform/http/request-schema.ts'

const PREFIX = 'subnet:'

/** The names of subnets, by the keys of groups that are theirs; other keys have none. */
export async function groupNames(
  db: Executor,
  companyId: string,
  keys: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const linked = keys.filter(key => key.startsWith(PREFIX) && isUuid(key.slice(PREFIX.length)))
  if (linked.length === 0) return new Map()
  const rows = await db.execute<{ id: string; name: string; cidr: string }>(sql`
    select id, name, cidr::text as cidr from subnets where company_id = ${companyId} and deleted_at is null
      and id = any(${uuidList(linked.map(key => key.slice(PREFIX.length)))}::uuid[])`)
  const nameOf = new Map(rows.map(({ id, name, cidr }) => [id, name === cidr ? cidr : `${name} (${cidr})`]))
  return new Map(
    linked.flatMap(key => {
      const name = nameOf.get(key.slice(PREFIX.length).toLowerCase())
      return name === undefined ? [] : [[key, name] as const]
    }),
  )
}

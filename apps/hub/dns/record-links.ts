// The records that other resources show: an address those with its value, a connection and a site those of
// their host names.
import { type SQL, sql } from 'drizzle-orm'
import type { Executor } from '../platform/db/connect.ts'
import { id, listed, named, string } from '../platform/http/response-schema.ts'

/** A name may have as many addresses; further records are not shown. */
const SHOWN_MAX = 20

type RecordLink = {
  readonly id: string
  readonly zone_id: string
  readonly fqdn: string
  readonly type: string
  readonly value: string
}

const recordLink = named('DnsRecordLink', { id: id(), zone_id: id(), fqdn: string(), type: string(), value: string() })
export const recordLinks = () => listed(recordLink)

async function linksBy(
  db: Executor,
  companyId: string,
  column: 'value' | 'fqdn',
  texts: readonly string[],
  among: SQL,
): Promise<Map<string, RecordLink[]>> {
  if (texts.length === 0) return new Map()
  const rows = await db.execute<RecordLink>(sql`
    select r.id, r.zone_id, r.fqdn, r.type, r.value
    from jsonb_array_elements_text(${JSON.stringify([...new Set(texts)])}::jsonb) as x (text)
    cross join lateral (
      select id, zone_id, fqdn, type, value from dns_records
      where company_id = ${companyId} and deleted_at is null and ${sql.identifier(column)} = x.text and ${among}
      order by fqdn, type, value, id limit ${SHOWN_MAX}) r`)
  return Map.groupBy(rows, row => row[column])
}

/** The A and AAAA records with these values, by value. */
export const recordsOfAddresses = (db: Executor, companyId: string, addresses: readonly string[]) =>
  linksBy(db, companyId, 'value', addresses, sql`type in ('A', 'AAAA')`)

/** The records by which clients find hosts, by name. */
export const recordsOfHosts = (db: Executor, companyId: string, hosts: readonly string[]) =>
  linksBy(db, companyId, 'fqdn', hosts, sql`type in ('A', 'AAAA', 'CNAME')`)

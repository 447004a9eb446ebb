// PUT /security/matcher/vulnerabilities: reference data of vulnerabilities, and what they make of the findings that
// have them, in every company (decisions G-159, G-173, G-188).
import { type Static, Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import type { Hub } from '../../hub-context.ts'
import { inTransaction, type Tx } from '../../platform/db/transaction.ts'
import { boolean, date, instant, listOf, optional, text } from '../../platform/http/request-schema.ts'
import { rateAgain } from '../findings/rate-again.ts'

const item = Type.Object({
  vuln_id: text(256),
  title: optional(text(4096, 0)),
  description: optional(text(65_536, 0)),
  cvss_score: optional(Type.Number({ minimum: 0, maximum: 10 })),
  cvss_vector: optional(text(1024, 0)),
  severity: optional(text(64, 0)),
  published_at: optional(instant()),
  modified_at: optional(instant()),
  references: optional(listOf(text(4096, 0), 1000)),
  aliases: optional(listOf(text(256), 1000)),
  kev: optional(boolean()),
  kev_due_date: optional(date()),
  epss: optional(Type.Number({ minimum: 0, maximum: 1 })),
})
export const vulnerabilitiesBody = Type.Object({ items: listOf(item, 500, 1) })
type Item = Static<typeof item>

const iso = (value: string | null | undefined): string | null => (value ? new Date(value).toISOString() : null)

const recordOf = (given: Item) => ({
  vuln_id: given.vuln_id,
  title: given.title ?? null,
  description: given.description ?? null,
  cvss_score: given.cvss_score ?? null,
  cvss_vector: given.cvss_vector ?? null,
  severity: given.severity ?? null,
  published_at: iso(given.published_at),
  modified_at: iso(given.modified_at),
  reference_urls: given.references ?? null,
  aliases: given.aliases ?? null,
  kev: given.kev ?? null,
  kev_due_date: given.kev_due_date ?? null,
  epss: given.epss ?? null,
  /** Which members were given: what is left out stays as it is. */
  given: Object.keys(given),
})

const COLUMNS: readonly (readonly [column: string, type: string, member: string])[] = [
  ['title', 'text', 'title'],
  ['description', 'text', 'description'],
  ['cvss_score', 'float8', 'cvss_score'],
  ['cvss_vector', 'text', 'cvss_vector'],
  ['severity', 'text', 'severity'],
  ['published_at', 'timestamptz', 'published_at'],
  ['modified_at', 'timestamptz', 'modified_at'],
  ['aliases', 'jsonb', 'aliases'],
  ['kev', 'boolean', 'kev'],
  ['kev_due_date', 'date', 'kev_due_date'],
  ['epss', 'float8', 'epss'],
]
const NAMES = sql.raw(COLUMNS.map(([name]) => name).join(', '))
const VALUES = sql.raw(
  COLUMNS.map(
    ([name, , member]) => `case when jsonb_exists(x.given, '${member}') then x.${name} else v.${name} end`,
  ).join(', '),
)
const TYPES = sql.raw(COLUMNS.map(([name, type]) => `${name} ${type}`).join(', '))
const SET = sql.raw(COLUMNS.map(([name]) => `${name} = excluded.${name}`).join(', '))
/** As one text, all that findings take over. */
const REFERENCE = sql.raw('jsonb_build_array(coalesce(kev, false), kev_due_date, epss, aliases)::text')
type ReferenceRow = { vuln_id: string; reference: string }

/** Returns the ids of those whose findings may differ from them now. */
async function storeVulnerabilities(tx: Tx, items: readonly Item[]): Promise<readonly string[]> {
  const records = JSON.stringify(items.map(recordOf))
  const before = await tx.db.execute<ReferenceRow>(sql`
    select vuln_id, ${REFERENCE} as reference from security_vulnerabilities
    where vuln_id in (select x.vuln_id collate "C" from jsonb_to_recordset(${records}::jsonb) as x (vuln_id text))
    order by vuln_id for no key update`)
  const known = new Map(before.map(row => [row.vuln_id, row.reference]))
  const after = await tx.db.execute<ReferenceRow>(sql`
    insert into security_vulnerabilities (vuln_id, ${NAMES}, reference_urls)
    select x.vuln_id, ${VALUES}, coalesce(nullif(x.reference_urls, 'null'), v.reference_urls, '[]')
    from jsonb_to_recordset(${records}::jsonb) as x (vuln_id text, ${TYPES}, reference_urls jsonb, given jsonb)
      left join security_vulnerabilities v on v.vuln_id = x.vuln_id collate "C"
    order by x.vuln_id collate "C"
    on conflict (vuln_id) do update set ${SET}, reference_urls = excluded.reference_urls, updated_at = now()
    returning vuln_id, ${REFERENCE} as reference`)
  return after.filter(row => known.get(row.vuln_id) !== row.reference).map(row => row.vuln_id)
}

/** The most findings that one transaction rates. */
const RATED_AT_ONCE = 2000

/** Rates findings of these vulnerabilities again; what is left is done by a job. */
async function rateSome(hub: Hub, tx: Tx, vulnIds: readonly string[]): Promise<void> {
  if (vulnIds.length === 0) return
  const count = await rateAgain(tx, vulnIds, RATED_AT_ONCE)
  if (count === RATED_AT_ONCE) hub.jobs.enqueue(tx, [{ queue: 'security.rate', payload: { vuln_ids: vulnIds } }])
}

export function registerRating(hub: Hub): void {
  hub.jobs.register('security.rate', {
    handle: ({ vuln_ids: ids }) =>
      inTransaction(hub.database.db, tx => rateSome(hub, tx, Array.isArray(ids) ? ids.map(String) : [])),
  })
}

/** Stores reference data, and rates the findings that they change. */
export async function putVulnerabilities(
  hub: Hub,
  body: Static<typeof vulnerabilitiesBody>,
): Promise<{ upserted: number }> {
  // Of two items of one vulnerability the later counts.
  const items = new Map(body.items.map(given => [given.vuln_id, given]))
  await inTransaction(hub.database.db, async tx =>
    rateSome(hub, tx, await storeVulnerabilities(tx, [...items.values()])),
  )
  return { upserted: items.size }
}

// Findings take over what the reference data say of their vulnerability, and are rated again (decisions G-173, G-188).
import { sql } from 'drizzle-orm'
import { rate } from '../../../../core/lifecycle/finding-rating.ts'
import type { Tx } from '../../platform/db/transaction.ts'

type Row = {
  id: string
  cvss_score: number | null
  severity_label: string
  minor: boolean
  fix_status: string
  first_seen_ms: number
  reopened_ms: number | null
  sla_due_ms: number | null
  sla_told: string | null
  kev: boolean
  kev_due_date: string | null
  epss: number | null
  aliases: readonly string[]
}

function ratedOf(row: Row) {
  const { risk, priority, slaDueAtMs } = rate({
    cvssScore: row.cvss_score,
    severityLabel: row.severity_label,
    minor: row.minor,
    fixStatus: row.fix_status,
    kev: row.kev,
    firstSeenAtMs: row.first_seen_ms,
    reopenedAtMs: row.reopened_ms,
  })
  return {
    id: row.id,
    kev: row.kev,
    kev_due_date: row.kev_due_date,
    epss: row.epss,
    aliases: row.aliases,
    risk,
    priority,
    sla_due_at: slaDueAtMs === null ? null : new Date(slaDueAtMs).toISOString(),
    sla_told: slaDueAtMs === row.sla_due_ms ? row.sla_told : null,
  }
}

/**
 * Rates at most `limit` findings that are not resolved and differ from the reference data of these vulnerabilities.
 * Returns how many there were.
 */
export async function rateAgain(tx: Tx, vulnIds: readonly string[], limit: number): Promise<number> {
  const rows = await tx.db.execute<Row>(sql`
    select f.id, f.cvss_score, f.severity_label, f.minor, f.fix_status,
      round(extract(epoch from f.first_seen_at) * 1000)::float8 as first_seen_ms,
      round(extract(epoch from f.reopened_at) * 1000)::float8 as reopened_ms,
      round(extract(epoch from f.sla_due_at) * 1000)::float8 as sla_due_ms, f.sla_told,
      coalesce(v.kev, false) as kev, v.kev_due_date::text as kev_due_date, v.epss, coalesce(v.aliases, f.aliases) as aliases
    from security_vulnerabilities v join security_findings f on f.vuln_id = v.vuln_id
    where v.vuln_id in (select x collate "C" from jsonb_array_elements_text(${JSON.stringify(vulnIds)}::jsonb) x)
      and f.status <> 'resolved' and ((f.kev, f.kev_due_date, f.epss) is distinct from (coalesce(v.kev, false), v.kev_due_date, v.epss)
        or f.aliases <> coalesce(v.aliases, f.aliases))
    order by f.id limit ${limit} for no key update of f`)
  if (rows.length === 0) return 0
  const rated = rows.map(ratedOf)
  await tx.db.execute(sql`
    update security_findings f set kev = x.kev, kev_due_date = x.kev_due_date, epss = x.epss, aliases = x.aliases, risk = x.risk,
      priority = x.priority, sla_due_at = x.sla_due_at, sla_told = x.sla_told
    from jsonb_to_recordset(${JSON.stringify(rated)}::jsonb) as x (id uuid, kev boolean, kev_due_date date, epss float8, aliases jsonb,
      risk smallint, priority text, sla_due_at timestamptz, sla_told text) where f.id = x.id`)
  return rows.length
}

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { getTableConfig } from 'drizzle-orm/pg-core'
import { bringUpToDate } from '../../apps/hub/hub.ts'
import { type Database, openDatabase } from '../../apps/hub/platform/db/connect.ts'
import {
  scanEnrollmentCodes,
  scanHosts,
  securityContentScanSettings,
  securityExceptionFindings,
  securityExceptions,
  securityExpectedPorts,
  securityExportParts,
  securityExports,
  securityFindingEvents,
  securityFindings,
  securityMatchers,
  securityServerScans,
  securitySettings,
  securityVulnerabilities,
} from '../../apps/hub/platform/db/schema-security.ts'
import { newDatabase, stopPostgres } from '../support/postgres.ts'

const tables = [
  scanEnrollmentCodes,
  scanHosts,
  securityContentScanSettings,
  securityExceptionFindings,
  securityExceptions,
  securityExpectedPorts,
  securityExportParts,
  securityExports,
  securityFindingEvents,
  securityFindings,
  securityMatchers,
  securityServerScans,
  securitySettings,
  securityVulnerabilities,
]

let database: Database

beforeAll(async () => {
  database = openDatabase(await newDatabase(), 2)
  await bringUpToDate(database)
})
afterAll(async () => {
  await database.close()
  await stopPostgres()
})

const columnsOf = async (table: string): Promise<Map<string, boolean>> => {
  const rows = await database.client<{ column_name: string; is_nullable: string }[]>`
    select column_name, is_nullable from information_schema.columns where table_name = ${table}`
  return new Map(rows.map(row => [row.column_name, row.is_nullable === 'YES']))
}

test('the tables of the security family are the ones that queries are written for, column by column', async () => {
  for (const table of tables) {
    const { name, columns } = getTableConfig(table)
    const mirrored = new Map(columns.map(column => [column.name, !column.notNull]))
    expect([name, [...mirrored].sort()]).toEqual([name, [...(await columnsOf(name))].sort()])
  }
})

test('[SEC-048] [SEC-081] a finding has every column of the record, and those of the payload that the record leaves out', async () => {
  const names = `id company_id server_id finding_key kind vuln_id aliases advisory_ids ecosystem package_key packages
    installed_version fixed_version fix_status fix_channel minor kernel severity_label cvss_score cvss_vector score_source
    epss kev status first_seen_at last_seen_at resolved_at resolved_reason reboot_required last_event_seq db_version
    sla_due_at host_id no_distro_fix eol_date upgrade_to`
  const columns = await columnsOf('security_findings')
  expect(names.split(/\s+/).filter(name => !columns.has(name))).toEqual([])
})

const uniqueKeys = async (table: string): Promise<string[]> => {
  const rows = await database.client<{ columns: string }[]>`
    select (select string_agg(a.attname, ',' order by k.ord) from unnest(i.indkey) with ordinality k (attnum, ord)
      join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum) as columns
    from pg_index i where i.indrelid = ${table}::regclass and i.indisunique and i.indpred is null`
  return rows.map(row => row.columns)
}

test('[SEC-047] [SEC-050] [SEC-051] findings, events and scans are unique by company and key, event id and scan host', async () => {
  expect(await uniqueKeys('security_findings')).toContain('company_id,finding_key')
  expect(await uniqueKeys('security_finding_events')).toEqual(['event_id'])
  expect(await uniqueKeys('security_server_scans')).toEqual(['host_id'])
})

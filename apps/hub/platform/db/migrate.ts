// Applies the numbered migrations of sql/hub in order, once, whoever starts first; records each with its checksum.
import pTimeout from 'p-timeout'
import type postgres from 'postgres'
import { sha256Hex } from '../../../../core/series/hash.ts'
import foundation from '../../../../sql/hub/0001_foundation.sql' with { type: 'text' }
import monitoring from '../../../../sql/hub/0002_monitoring.sql' with { type: 'text' }
import notifications from '../../../../sql/hub/0003_notifications.sql' with { type: 'text' }
import jobOrder from '../../../../sql/hub/0004_job_order.sql' with { type: 'text' }
import alertCounts from '../../../../sql/hub/0005_alert_counts.sql' with { type: 'text' }
import identity from '../../../../sql/hub/0006_identity.sql' with { type: 'text' }
import jobLibrary from '../../../../sql/hub/0007_job_library.sql' with { type: 'text' }
import invitations from '../../../../sql/hub/0008_invitations.sql' with { type: 'text' }
import webhookScope from '../../../../sql/hub/0009_webhook_scope.sql' with { type: 'text' }
import listIndexes from '../../../../sql/hub/0010_list_indexes.sql' with { type: 'text' }
import groupWait from '../../../../sql/hub/0011_group_wait.sql' with { type: 'text' }
import checkCopies from '../../../../sql/hub/0012_check_copies.sql' with { type: 'text' }
import fewerPages from '../../../../sql/hub/0013_fewer_pages.sql' with { type: 'text' }
import auditCounts from '../../../../sql/hub/0014_audit_counts.sql' with { type: 'text' }
import eventReferences from '../../../../sql/hub/0015_event_references.sql' with { type: 'text' }
import failedDeliveries from '../../../../sql/hub/0016_failed_deliveries.sql' with { type: 'text' }
import viewerSeesAll from '../../../../sql/hub/0017_viewer_sees_all.sql' with { type: 'text' }
import idsWithoutOrder from '../../../../sql/hub/0018_ids_without_order.sql' with { type: 'text' }
import groupCandidates from '../../../../sql/hub/0019_group_candidates.sql' with { type: 'text' }
import tokenMakers from '../../../../sql/hub/0020_token_makers.sql' with { type: 'text' }
import feedBytes from '../../../../sql/hub/0021_feed_bytes.sql' with { type: 'text' }
import checkLabels from '../../../../sql/hub/0022_check_labels.sql' with { type: 'text' }
import addresses from '../../../../sql/hub/0023_addresses.sql' with { type: 'text' }
import security from '../../../../sql/hub/0024_security.sql' with { type: 'text' }
import securityLists from '../../../../sql/hub/0025_security_lists.sql' with { type: 'text' }
import resources from '../../../../sql/hub/0026_resources.sql' with { type: 'text' }
import network from '../../../../sql/hub/0027_network.sql' with { type: 'text' }
import iac from '../../../../sql/hub/0028_iac.sql' with { type: 'text' }
import approvals from '../../../../sql/hub/0029_approvals.sql' with { type: 'text' }
import silencesOfRules from '../../../../sql/hub/0030_silences_of_rules.sql' with { type: 'text' }
import enrollmentRefusals from '../../../../sql/hub/0031_enrollment_refusals.sql' with { type: 'text' }
import system from '../../../../sql/hub/0032_system.sql' with { type: 'text' }
import filesAndExports from '../../../../sql/hub/0033_files_and_exports.sql' with { type: 'text' }
import mobile from '../../../../sql/hub/0034_mobile.sql' with { type: 'text' }
import certificates from '../../../../sql/hub/0035_certificates.sql' with { type: 'text' }
import connections from '../../../../sql/hub/0036_connections.sql' with { type: 'text' }
import loadBalancers from '../../../../sql/hub/0037_load_balancers.sql' with { type: 'text' }
import proxies from '../../../../sql/hub/0038_proxies.sql' with { type: 'text' }
import toldConditions from '../../../../sql/hub/0039_told_conditions.sql' with { type: 'text' }
import dns from '../../../../sql/hub/0040_dns.sql' with { type: 'text' }
import savedViews from '../../../../sql/hub/0041_saved_views.sql' with { type: 'text' }
import toldOfAlerts from '../../../../sql/hub/0042_told_of_alerts.sql' with { type: 'text' }
import resourceLists from '../../../../sql/hub/0043_resource_lists.sql' with { type: 'text' }
import addressFilters from '../../../../sql/hub/0044_address_filters.sql' with { type: 'text' }
import notedByStatement from '../../../../sql/hub/0045_noted_by_statement.sql' with { type: 'text' }
import searchTags from '../../../../sql/hub/0046_search_tags.sql' with { type: 'text' }
import iacFiles from '../../../../sql/hub/0048_iac_files.sql' with { type: 'text' }
import certificateLinks from '../../../../sql/hub/0049_certificate_links.sql' with { type: 'text' }
import commentIds from '../../../../sql/hub/0050_comment_ids.sql' with { type: 'text' }
import longLists from '../../../../sql/hub/0051_long_lists.sql' with { type: 'text' }
import exceptionChanges from '../../../../sql/hub/0052_exception_changes.sql' with { type: 'text' }
import findingNameCells from '../../../../sql/hub/0053_finding_name_cells.sql' with { type: 'text' }
import findingBatches from '../../../../sql/hub/0054_finding_batches.sql' with { type: 'text' }
import countedInserts from '../../../../sql/hub/0055_counted_inserts.sql' with { type: 'text' }
import newDocuments from '../../../../sql/hub/0056_new_documents.sql' with { type: 'text' }
import addressLists from '../../../../sql/hub/0058_address_lists.sql' with { type: 'text' }
import searchPrefixes from '../../../../sql/hub/0060_search_prefixes.sql' with { type: 'text' }
import filesInSearch from '../../../../sql/hub/0061_files_in_search.sql' with { type: 'text' }
import eventRows from '../../../../sql/hub/0062_event_rows.sql' with { type: 'text' }
import findingCellDigests from '../../../../sql/hub/0063_finding_cell_digests.sql' with { type: 'text' }
import pendingLists from '../../../../sql/hub/0067_pending_lists.sql' with { type: 'text' }
import optionItemsInSearch from '../../../../sql/hub/0068_option_items_in_search.sql' with { type: 'text' }
import untriedItems from '../../../../sql/hub/0069_untried_items.sql' with { type: 'text' }
import dueSoonIndex from '../../../../sql/hub/0070_due_soon_index.sql' with { type: 'text' }
import fileLists from '../../../../sql/hub/0073_file_lists.sql' with { type: 'text' }
import addressRows from '../../../../sql/hub/0080_address_rows.sql' with { type: 'text' }
import knownAddresses from '../../../../sql/hub/0081_known_addresses.sql' with { type: 'text' }
import addressMoves from '../../../../sql/hub/0082_address_moves.sql' with { type: 'text' }
import describedRecords from '../../../../sql/hub/0086_described_records.sql' with { type: 'text' }
import blocksAround from '../../../../sql/hub/0094_blocks_around.sql' with { type: 'text' }
import addressServers from '../../../../sql/hub/0101_address_servers.sql' with { type: 'text' }
import optionItemVersions from '../../../../sql/hub/0102_option_item_versions.sql' with { type: 'text' }
import whatAgentsSay from '../../../../sql/hub/0103_what_agents_say.sql' with { type: 'text' }
import addressText from '../../../../sql/hub/0104_address_text.sql' with { type: 'text' }
import partsNoted from '../../../../sql/hub/0105_parts_noted.sql' with { type: 'text' }
import securityExportAttempts from '../../../../sql/hub/0106_security_export_attempts.sql' with { type: 'text' }
import secondFactors from '../../../../sql/hub/0107_second_factors.sql' with { type: 'text' }
import alertsHeldBack from '../../../../sql/hub/0108_alerts_held_back.sql' with { type: 'text' }
import { isHeard } from './silence.ts'

type Migration = { readonly number: number; readonly name: string; readonly sql: string }

export const migrations: readonly Migration[] = [
  { number: 1, name: 'foundation', sql: foundation },
  { number: 2, name: 'monitoring', sql: monitoring },
  { number: 3, name: 'notifications', sql: notifications },
  { number: 4, name: 'job_order', sql: jobOrder },
  { number: 5, name: 'alert_counts', sql: alertCounts },
  { number: 6, name: 'identity', sql: identity },
  { number: 7, name: 'job_library', sql: jobLibrary },
  { number: 8, name: 'invitations', sql: invitations },
  { number: 9, name: 'webhook_scope', sql: webhookScope },
  { number: 10, name: 'list_indexes', sql: listIndexes },
  { number: 11, name: 'group_wait', sql: groupWait },
  { number: 12, name: 'check_copies', sql: checkCopies },
  { number: 13, name: 'fewer_pages', sql: fewerPages },
  { number: 14, name: 'audit_counts', sql: auditCounts },
  { number: 15, name: 'event_references', sql: eventReferences },
  { number: 16, name: 'failed_deliveries', sql: failedDeliveries },
  { number: 17, name: 'viewer_sees_all', sql: viewerSeesAll },
  { number: 18, name: 'ids_without_order', sql: idsWithoutOrder },
  { number: 19, name: 'group_candidates', sql: groupCandidates },
  { number: 20, name: 'token_makers', sql: tokenMakers },
  { number: 21, name: 'feed_bytes', sql: feedBytes },
  { number: 22, name: 'check_labels', sql: checkLabels },
  { number: 23, name: 'addresses', sql: addresses },
  { number: 24, name: 'security', sql: security },
  { number: 25, name: 'security_lists', sql: securityLists },
  { number: 26, name: 'resources', sql: resources },
  { number: 27, name: 'network', sql: network },
  { number: 28, name: 'iac', sql: iac },
  { number: 29, name: 'approvals', sql: approvals },
  { number: 30, name: 'silences_of_rules', sql: silencesOfRules },
  { number: 31, name: 'enrollment_refusals', sql: enrollmentRefusals },
  { number: 32, name: 'system', sql: system },
  { number: 33, name: 'files_and_exports', sql: filesAndExports },
  { number: 34, name: 'mobile', sql: mobile },
  { number: 35, name: 'certificates', sql: certificates },
  { number: 36, name: 'connections', sql: connections },
  { number: 37, name: 'load_balancers', sql: loadBalancers },
  { number: 38, name: 'proxies', sql: proxies },
  { number: 39, name: 'told_conditions', sql: toldConditions },
  { number: 40, name: 'dns', sql: dns },
  { number: 41, name: 'saved_views', sql: savedViews },
  { number: 42, name: 'told_of_alerts', sql: toldOfAlerts },
  { number: 43, name: 'resource_lists', sql: resourceLists },
  { number: 44, name: 'address_filters', sql: addressFilters },
  { number: 45, name: 'noted_by_statement', sql: notedByStatement },
  { number: 46, name: 'search_tags', sql: searchTags },
  { number: 48, name: 'iac_files', sql: iacFiles },
  { number: 49, name: 'certificate_links', sql: certificateLinks },
  { number: 50, name: 'comment_ids', sql: commentIds },
  { number: 51, name: 'long_lists', sql: longLists },
  { number: 52, name: 'exception_changes', sql: exceptionChanges },
  { number: 53, name: 'finding_name_cells', sql: findingNameCells },
  { number: 54, name: 'finding_batches', sql: findingBatches },
  { number: 55, name: 'counted_inserts', sql: countedInserts },
  { number: 56, name: 'new_documents', sql: newDocuments },
  { number: 58, name: 'address_lists', sql: addressLists },
  { number: 60, name: 'search_prefixes', sql: searchPrefixes },
  { number: 61, name: 'files_in_search', sql: filesInSearch },
  { number: 62, name: 'event_rows', sql: eventRows },
  { number: 63, name: 'finding_cell_digests', sql: findingCellDigests },
  { number: 67, name: 'pending_lists', sql: pendingLists },
  { number: 68, name: 'option_items_in_search', sql: optionItemsInSearch },
  { number: 69, name: 'untried_items', sql: untriedItems },
  { number: 70, name: 'due_soon_index', sql: dueSoonIndex },
  { number: 73, name: 'file_lists', sql: fileLists },
  { number: 80, name: 'address_rows', sql: addressRows },
  { number: 81, name: 'known_addresses', sql: knownAddresses },
  { number: 82, name: 'address_moves', sql: addressMoves },
  { number: 86, name: 'described_records', sql: describedRecords },
  { number: 94, name: 'blocks_around', sql: blocksAround },
  { number: 101, name: 'address_servers', sql: addressServers },
  { number: 102, name: 'option_item_versions', sql: optionItemVersions },
  { number: 103, name: 'what_agents_say', sql: whatAgentsSay },
  { number: 104, name: 'address_text', sql: addressText },
  { number: 105, name: 'parts_noted', sql: partsNoted },
  { number: 106, name: 'security_export_attempts', sql: securityExportAttempts },
  { number: 107, name: 'second_factors', sql: secondFactors },
  { number: 108, name: 'alerts_held_back', sql: alertsHeldBack },
]

/** A load balancer gives up on a question that takes longer, and would not be told what is wrong. */
const ANSWER_WAIT_MS = 2000
/** Any number will do, as long as every hub uses the same one. */
const MIGRATION_LOCK = 7_203_145_001

/** The database must not be touched by this program; the message tells the operator why. */
export class MigrationError extends Error {}

/**
 * The migrations that the database still lacks. Throws MigrationError when its records contradict the known migrations.
 */
function pendingMigrations(
  applied: readonly { number: number; name: string; checksum: string }[],
  known: readonly Migration[],
): Migration[] {
  for (const record of applied) {
    const migration = known.find(item => item.number === record.number)
    if (!migration)
      throw new MigrationError(
        `the database is newer than this program: it has migration ${record.number} (${record.name}), ` +
          `the newest known here is ${known.at(-1)?.number ?? 0}. Start a hub of the newer version.`,
      )
    if (sha256Hex(migration.sql) !== record.checksum)
      throw new MigrationError(
        `migration ${record.number} (${record.name}) differs from the one that was applied to the database`,
      )
  }
  const numbers = new Set(applied.map(record => record.number))
  return known.filter(migration => !numbers.has(migration.number))
}

/** What is to be said of the encoding of the database; null where it holds text of every language as such. */
export async function encodingWarning(connection: postgres.Sql): Promise<string | null> {
  const [row] = await connection<{ name: string; encoding: string }[]>`
    select current_database() as name, getdatabaseencoding() as encoding`
  if (!row || row.encoding === 'UTF8') return null
  return (
    `the database has the encoding ${row.encoding}, in which lengths, capitals and search of most languages are wrong: ` +
    `make it anew with create database "${row.name}" encoding 'UTF8' template template0`
  )
}

/**
 * Brings the database up to date under an advisory lock. `prepare` creates the tables of the job library, which no
 * migration here creates but a migration may refer to. Returns the names of the migrations applied by this call.
 */
export async function migrateDatabase(
  client: postgres.Sql,
  prepare: () => Promise<void>,
  known: readonly Migration[] = migrations,
): Promise<readonly string[]> {
  const connection = await client.reserve()
  try {
    // One that rewrites a million rows takes longer than a statement of the hub may, and so does who waits for it.
    await connection`set statement_timeout = 0`
    await connection`set lock_timeout = 0`
    await connection`select pg_advisory_lock(${MIGRATION_LOCK})`
    await connection`reset lock_timeout`
    await connection`create table if not exists hub_migrations (
      number integer primary key, name text not null, checksum text not null, applied_at timestamptz not null default now())`
    const applied = await connection<{ number: number; name: string; checksum: string }[]>`
      select number, name, checksum from hub_migrations order by number`
    const pending = pendingMigrations(applied, known)
    await prepare()
    for (const migration of pending) {
      await connection`begin`
      try {
        await connection.unsafe(migration.sql)
        await connection`insert into hub_migrations (number, name, checksum)
          values (${migration.number}, ${migration.name}, ${sha256Hex(migration.sql)})`
        await connection`commit`
      } catch (error) {
        await connection`rollback`
        throw error
      }
    }
    return pending.map(migration => `${String(migration.number).padStart(4, '0')}_${migration.name}`)
  } finally {
    await connection`select pg_advisory_unlock(${MIGRATION_LOCK})`.catch(() => {})
    await connection`reset statement_timeout`.catch(() => {})
    connection.release()
  }
}

/**
 * True when every migration of this program is applied. Throws where the database does not answer in time, also when
 * only some of the connections are silent: what is asked next may have one of them.
 */
export async function isMigrated(client: postgres.Sql): Promise<boolean> {
  const asked = client<{ count: number }[]>`select count(*)::int as count from hub_migrations`.execute()
  const rows = await pTimeout(asked, { milliseconds: ANSWER_WAIT_MS })
  const isAnswered = await pTimeout(isHeard(client, ANSWER_WAIT_MS), { milliseconds: ANSWER_WAIT_MS })
  if (!isAnswered) throw new Error('connections to the database are silent')
  return (rows[0]?.count ?? 0) >= migrations.length
}

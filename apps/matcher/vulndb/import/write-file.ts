// Writes the file of a database from a staging, waits until it is on the disk, and looks at it once more (MAT-071).
import { Database } from 'bun:sqlite'
import { KNOWN_RELEASES } from '../../../../core/matching/end-of-life.ts'
import { syncPath } from '../../../files/replace-file.ts'
import { sha256 } from '../rules-text.ts'
import { createTables, FILE_FORMAT } from '../schema.ts'
import type { ReleasePart } from '../sources/source.ts'
import { grouped, type MergedRow, mergeReleases, mergeRows, mergeVulnerability, rowKey } from './merge.ts'
import type { Staging } from './staging.ts'

/** A row of `source`. */
export type SourceRow = {
  readonly id: number
  readonly name: string
  readonly part: string
  readonly url: string
  readonly etag: string
  readonly last_modified: string
  readonly sha256: string
  readonly fetched_at_ms: number
  readonly records: number
  readonly rejected: number
  readonly licence: string
}

type FileInput = {
  readonly staging: Staging
  readonly sources: readonly SourceRow[]
  readonly rankOf: (sourceId: number) => number
  readonly version: number
  readonly nowMs: number
}

function writeMeta(database: Database, input: FileInput): void {
  const insert = database.query('insert into meta (key, value) values (?, ?)')
  insert.run('format', String(FILE_FORMAT))
  insert.run('db_version', String(input.version))
  insert.run('built_at_ms', String(input.nowMs))
  const source = database.query(
    `insert into source (id, name, part, url, etag, last_modified, sha256, fetched_at_ms, records, rejected, licence)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  for (const row of input.sources)
    source.run(
      row.id,
      row.name,
      row.part,
      row.url,
      row.etag,
      row.last_modified,
      row.sha256,
      row.fetched_at_ms,
      row.records,
      row.rejected,
      row.licence,
    )
}

/** Returns the vulnerabilities that rules name, and the releases that have rows. */
function writeRows(database: Database, staging: Staging): { vulns: Set<string>; releases: Set<string> } {
  const vulns = new Set<string>()
  const releases = new Set<string>()
  const affected = database.query(
    'insert into affected (release_id, package, "by", digest, rules, source_id) values (?, ?, ?, ?, ?, ?)',
  )
  const contribution = database.query(
    'insert into contribution (source_id, release_id, package, "by", rules) values (?, ?, ?, ?, ?)',
  )
  const write = (row: MergedRow): void => {
    for (const vuln of row.vulns) vulns.add(vuln)
    if (row.rules !== null) {
      releases.add(row.release)
      affected.run(row.release, row.package, row.by, sha256(row.rules), row.rules, row.sourceId)
    }
    for (const share of row.shares) contribution.run(share.sourceId, row.release, row.package, row.by, share.rules)
  }
  for (const rows of grouped(staging.rows(), rowKey)) write(mergeRows(rows))
  return { vulns, releases }
}

/** A vulnerability that no rule names is kept as it was said: a later version may need it, matching does not. */
function writeVulnerabilities(database: Database, input: FileInput, vulns: ReadonlySet<string>): void {
  const vuln = database.query(
    `insert into vuln (id, aliases, severity, cvss_vector, cvss_score, score_source, published_ms, modified_ms, title,
       "references", kev, kev_due_date, epss, digest, source_id)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const part = database.query('insert into vuln_part (source_id, id, part) values (?, ?, ?)')
  for (const staged of grouped(input.staging.parts(), ({ id }) => id)) {
    const { vulnerability: v, sourceId, shares } = mergeVulnerability(staged, input.rankOf)
    const isNamed = vulns.has(v.id)
    if (!isNamed || sourceId === null) for (const share of shares) part.run(share.sourceId, v.id, share.part)
    if (!isNamed) continue
    vuln.run(
      v.id,
      JSON.stringify(v.aliases),
      v.severity,
      v.cvss_vector,
      v.cvss_score,
      v.score_source,
      v.published_ms,
      v.modified_ms,
      v.title,
      JSON.stringify(v.references),
      v.kev ? 1 : 0,
      v.kev_due_date,
      v.epss,
      sha256(JSON.stringify(v)),
      sourceId,
    )
  }
}

function writeReleases(database: Database, staging: Staging, withRows: ReadonlySet<string>): void {
  const parts: ReleasePart[] = []
  const kept = database.query('insert into release_part (source_id, part) values (?, ?)')
  for (const { source_id: id, part } of staging.releases()) {
    kept.run(id, part)
    parts.push(JSON.parse(part))
  }
  const insert = database.query(
    `insert into release (id, distro, version, codename, standard_until, extended_until, eol_until, channel, successors)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  for (const release of mergeReleases(KNOWN_RELEASES, parts, withRows))
    insert.run(
      release.id,
      release.distro,
      release.version,
      release.codename,
      release.standard_until,
      release.extended_until,
      release.eol_until,
      release.channel,
      JSON.stringify(release.successors),
    )
}

export function writeFile(path: string, input: FileInput): void {
  const database = new Database(path, { create: true })
  try {
    // Nobody reads it before it is whole: a kill leaves a file that no pointer names.
    for (const pragma of ['journal_mode = OFF', 'synchronous = OFF', 'cache_size = -65536'])
      database.run(`PRAGMA ${pragma}`)
    createTables(statement => void database.run(statement))
    database.run('BEGIN')
    writeMeta(database, input)
    const { vulns, releases } = writeRows(database, input.staging)
    writeVulnerabilities(database, input, vulns)
    writeReleases(database, input.staging, releases)
    database.run('COMMIT')
  } finally {
    database.close()
  }
  syncPath(path)
}

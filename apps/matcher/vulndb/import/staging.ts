// Where an import collects rows before it can sort them: a SQLite file of its own, so that memory stays bounded however
// large a source is (MAT-073). Rows are kept by source, and a source that is refused takes its rows with it.
import { Database } from 'bun:sqlite'
import type { Rule } from '../../../../core/matching/advisory.ts'
import type { PackageSystem } from '../../../../core/matching/report-schema.ts'
import { isValidVersion } from '../../../../core/matching/version.ts'
import type { RecordSink, ReleasePart, RuleKey, VulnerabilityPart } from '../sources/source.ts'

/** Advisories that rules of other sources are to name. */
export type AdvisoryNote = { readonly vuln: string; readonly advisories: readonly string[] }

export type StagedRow = {
  readonly release_id: string
  readonly package: string
  readonly by: 'source' | 'binary'
  readonly source_id: number
  /** JSON: an array of rules, or of AdvisoryNote. */
  readonly rules: string
}

export type StagedPart = { readonly id: string; readonly source_id: number; readonly part: string }
type StagedRelease = { readonly source_id: number; readonly part: string }

const PROGRESS_EVERY = 5_000
/** No report has a longer one. */
const VERSION_CHARS_MAX = 256

export class Staging {
  private readonly database: Database

  constructor(path: string) {
    this.database = new Database(path, { create: true })
    for (const statement of [
      'PRAGMA journal_mode = OFF',
      'PRAGMA synchronous = OFF',
      'PRAGMA cache_size = -65536',
      'create table row (release_id text, package text, "by" text, source_id integer, rules text)',
      'create table part (id text, source_id integer, part text)',
      'create table release (source_id integer, part text)',
      'BEGIN',
    ])
      this.database.run(statement)
  }

  addRow(key: RuleKey, sourceId: number, rules: string): void {
    this.database
      .query('insert into row (release_id, package, "by", source_id, rules) values (?, ?, ?, ?, ?)')
      .run(key.release, key.package, key.by, sourceId, rules)
  }

  addPart(id: string, sourceId: number, part: string): void {
    this.database.query('insert into part (id, source_id, part) values (?, ?, ?)').run(id, sourceId, part)
  }

  addRelease(sourceId: number, part: string): void {
    this.database.query('insert into release (source_id, part) values (?, ?)').run(sourceId, part)
  }

  dropSource(sourceId: number): void {
    for (const table of ['row', 'part', 'release'])
      this.database.query(`delete from ${table} where source_id = ?`).run(sourceId)
  }

  /** In the order of their keys, those of one package together. */
  rows(): Iterable<StagedRow> {
    return this.database
      .query<StagedRow, []>(
        'select release_id, package, "by", source_id, rules from row order by release_id, package, "by", source_id',
      )
      .iterate()
  }

  parts(): Iterable<StagedPart> {
    return this.database.query<StagedPart, []>('select id, source_id, part from part order by id, source_id').iterate()
  }

  /** The vulnerabilities that a source has described so far. */
  partIds(sourceId: number): Set<string> {
    const rows = this.database.query<{ id: string }, [number]>('select distinct id from part where source_id = ?')
    return new Set(rows.all(sourceId).map(({ id }) => id))
  }

  releases(): Iterable<StagedRelease> {
    return this.database.query<StagedRelease, []>('select source_id, part from release').iterate()
  }

  close(): void {
    this.database.close()
  }
}

/** Takes what the parser of one source reads into the staging, and counts. */
export class StagingSink implements RecordSink {
  records = 0
  unreadable = 0
  droppedRules = 0
  readonly replaced = new Set<string>()

  constructor(
    private readonly staging: Staging,
    readonly sourceId: number,
    private readonly system: PackageSystem | null,
    private readonly onProgress: (records: number) => void,
  ) {}

  record(): void {
    this.records += 1
    if (this.records % PROGRESS_EVERY === 0) this.onProgress(this.records)
  }

  reject(): void {
    this.records += 1
    this.unreadable += 1
  }

  rule(key: RuleKey, rule: Rule): void {
    if (this.isComparable(rule)) this.staging.addRow(key, this.sourceId, JSON.stringify([rule]))
    else this.droppedRules += 1
  }

  advisories(key: RuleKey, vuln: string, ids: readonly string[]): void {
    if (ids.length === 0) return
    const note: AdvisoryNote = { vuln, advisories: ids }
    this.staging.addRow(key, this.sourceId, JSON.stringify([note]))
  }

  vulnerability(part: VulnerabilityPart): void {
    this.staging.addPart(part.id, this.sourceId, JSON.stringify(part))
  }

  release(part: ReleasePart): void {
    this.staging.addRelease(this.sourceId, JSON.stringify(part))
  }

  replace(vuln: string): void {
    this.replaced.add(vuln)
  }

  private isComparable(rule: Rule): boolean {
    const { system } = this
    if (system === null) return false
    const bounds = [rule.introduced, rule.fixed, rule.last_affected, ...(rule.versions ?? [])]
    return bounds.every(
      bound => bound === undefined || (bound.length <= VERSION_CHARS_MAX && isValidVersion(system, bound)),
    )
  }
}

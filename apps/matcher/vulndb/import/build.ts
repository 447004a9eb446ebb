// One import, in the process of its own (MAT-073): reads what was fetched or given, takes or refuses each source whole
// (MAT-064 to 066), carries over what the version before has of the others, and writes the new file.
import { Database, SQLiteError } from 'bun:sqlite'
import { rmSync } from 'node:fs'
import type { Rule } from '../../../../core/matching/advisory.ts'
import { KNOWN_RELEASES } from '../../../../core/matching/end-of-life.ts'
import { checkWhole } from '../check-file.ts'
import { documentsOf } from '../input/documents.ts'
import { SourceRefused, sourceFault } from '../source-refused.ts'
import { type Source, sourceNamed, sourceRank } from '../sources/catalogue.ts'
import type { BuildJob, BuildOutcome, InputPart, SourceInput, SourceOutcome } from './job.ts'
import type { AdvisoryNote } from './staging.ts'
import { Staging, StagingSink } from './staging.ts'
import { type SourceRow, writeFile } from './write-file.ts'

type Progress = (source: string, records: number) => void

/** What one part of a source gave. */
type ReadPart = { readonly row: SourceRow; readonly sink: StagingSink }

/** The version before, as far as its rows are carried over. */
class PreviousFile {
  private readonly database: Database
  readonly sources: readonly SourceRow[]

  constructor(path: string) {
    this.database = new Database(path, { readonly: true })
    this.sources = this.database
      .query<SourceRow, []>(
        `select id, name, part, url, etag, last_modified, sha256, fetched_at_ms, records, rejected, licence from source`,
      )
      .all()
  }

  recordsOf(name: string): number {
    return this.sources.filter(source => source.name === name).reduce((sum, { records }) => sum + records, 0)
  }

  /** Copies the rows of one source; `isReplaced` names vulnerabilities that are left out. Returns those it kept. */
  carry(from: number, to: number, staging: Staging, isReplaced: (vuln: string) => boolean): void {
    type Row = { release_id: string; package: string; by: 'source' | 'binary'; rules: string }
    const rows = this.database
      .query<Row, [number, number]>(
        `select release_id, package, "by", rules from affected where source_id = ?
         union all select release_id, package, "by", rules from contribution where source_id = ?`,
      )
      .iterate(from, from)
    for (const row of rows) {
      const items: (Rule | AdvisoryNote)[] = JSON.parse(row.rules)
      const kept = items.filter(({ vuln }) => !isReplaced(vuln))
      const key = { release: row.release_id, package: row.package, by: row.by }
      if (kept.length > 0) staging.addRow(key, to, kept.length === items.length ? row.rules : JSON.stringify(kept))
    }
    this.carryParts(from, to, staging, isReplaced)
    const releases = this.database
      .query<{ part: string }, [number]>('select part from release_part where source_id = ?')
      .iterate(from)
    for (const { part } of releases) staging.addRelease(to, part)
  }

  private carryParts(from: number, to: number, staging: Staging, isReplaced: (vuln: string) => boolean): void {
    const own = this.database
      .query<{ id: string; part: string }, [number]>('select id, part from vuln_part where source_id = ?')
      .iterate(from)
    for (const { id, part } of own) if (!isReplaced(id)) staging.addPart(id, to, part)
    // Named by a rule and said by this source alone: the columns are what it said.
    const alone = this.database
      .query<{ id: string; part: string }, [number]>(
        `select id, json_object('id', id, 'aliases', json(aliases), 'severity', severity, 'cvss_vector', cvss_vector,
           'cvss_score', cvss_score, 'score_source', score_source, 'published_ms', published_ms, 'modified_ms',
           modified_ms, 'title', title, 'references', json("references"), 'kev', json(iif(kev, 'true', 'false')),
           'kev_due_date', kev_due_date, 'epss', epss) as part
         from vuln where source_id = ?`,
      )
      .iterate(from)
    for (const { id, part } of alone) if (!isReplaced(id)) staging.addPart(id, to, part)
  }

  close(): void {
    this.database.close()
  }
}

/** The state of one import. */
class Build {
  readonly rows: SourceRow[] = []
  readonly outcomes: SourceOutcome[] = []
  private nextId = 1

  constructor(
    private readonly job: BuildJob,
    readonly staging: Staging,
    private readonly previous: PreviousFile | null,
    private readonly onProgress: Progress,
  ) {}

  async run(): Promise<void> {
    const taken = new Set<string>()
    const replaced = new Set<string>()
    for (const input of this.job.inputs) {
      const startedAtMs = performance.now()
      const source = sourceNamed(input.source)
      if (source === undefined) throw new SourceRefused(`${input.source} is no source`)
      const parts: ReadPart[] = []
      const fault = await this.read(source, input, parts)
      const rejected = parts.reduce((sum, { row }) => sum + row.rejected, 0)
      const records = parts.reduce((sum, { row }) => sum + row.records, 0)
      const seconds = Math.round(performance.now() - startedAtMs) / 1000
      this.outcomes.push({ source: source.name, records, rejected, seconds, fault })
      if (fault !== null) {
        for (const { row } of parts) this.staging.dropSource(row.id)
        continue
      }
      if (input.replaces === 'all') replaced.add(source.name)
      for (const { row } of parts) {
        this.rows.push(row)
        taken.add(`${row.name}\n${row.part}`)
      }
    }
    for (const row of this.previous?.sources ?? [])
      if (!taken.has(`${row.name}\n${row.part}`) && !replaced.has(row.name)) {
        const id = this.nextId++
        this.previous?.carry(row.id, id, this.staging, () => false)
        this.rows.push({ ...row, id })
      }
  }

  /** Reads all parts of a source; the reason when it is refused. */
  private async read(source: Source, input: SourceInput, parts: ReadPart[]): Promise<string | null> {
    try {
      for (const part of input.parts) parts.push(await this.readPart(source, part))
      if (input.replaces === 'changes') this.keepUnchanged(source, input, parts)
      return this.refusal(source, input, parts)
    } catch (error) {
      if (error instanceof SourceRefused) return error.message
      // The disk or the database of the import itself: no other source would fare better.
      if (error instanceof SQLiteError) throw error
      return error instanceof Error && 'code' in error ? 'it cannot be read' : 'it is malformed'
    }
  }

  private async readPart(source: Source, part: InputPart): Promise<ReadPart> {
    const id = this.nextId++
    const base = this.onProgress
    const sink = new StagingSink(this.staging, id, source.system, records => base(source.name, records))
    const row = {
      id,
      name: source.name,
      part: part.part,
      url: part.url,
      etag: part.etag,
      last_modified: part.lastModified,
      sha256: part.sha256,
      fetched_at_ms: this.job.nowMs,
      licence: source.licence,
    }
    try {
      await source.parser(KNOWN_RELEASES)(documentsOf(part.path, part.fileName), sink)
    } catch (error) {
      this.staging.dropSource(id)
      throw error
    }
    return { sink, row: { ...row, records: sink.records, rejected: sink.unreadable + sink.droppedRules } }
  }

  /** The rest of the source's one part stays as it was: only what occurs in the changes is replaced. */
  private keepUnchanged(source: Source, input: SourceInput, parts: ReadPart[]): void {
    const before = this.previous?.sources.find(({ name }) => name === source.name)
    const [read] = parts
    if (before === undefined || read === undefined) throw new SourceRefused('there is nothing that changes apply to')
    const { replaced } = read.sink
    const gone = new Set(input.deleted ?? [])
    const described = this.staging.partIds(read.row.id)
    const wereThere = new Set<string>()
    this.previous?.carry(before.id, read.row.id, this.staging, vuln => {
      const isReplaced = gone.has(vuln) || replaced.has(vuln)
      if (isReplaced) wereThere.add(vuln)
      return isReplaced
    })
    // A record that says nothing of a package leaves no trace to be counted by: it counts as it did before.
    const added = described.difference(wereThere).size
    const removed = gone.intersection(wereThere).difference(replaced).size
    const records = Math.max(before.records + added - removed, read.row.records)
    parts[0] = { ...read, row: { ...read.row, records } }
  }

  private refusal(source: Source, input: SourceInput, parts: readonly ReadPart[]): string | null {
    const read = parts.reduce((sum, { sink }) => sum + sink.records, 0)
    const unreadable = parts.reduce((sum, { sink }) => sum + sink.unreadable, 0)
    const own = new Set(parts.map(({ row }) => row.part))
    const kept = (this.previous?.sources ?? [])
      .filter(({ name, part }) => name === source.name && input.replaces === 'part' && !own.has(part))
      .reduce((sum, { records }) => sum + records, 0)
    const now = parts.reduce((sum, { row }) => sum + row.records, 0) + kept
    const before = this.previous?.recordsOf(source.name) ?? 0
    return sourceFault({ read, unreadable, now, before, mayShrink: this.job.acceptShrink })
  }
}

/** Throws SourceRefused when no source was taken: then there is no new version. */
export async function build(job: BuildJob, onProgress: Progress): Promise<BuildOutcome> {
  const previous = job.previousFile === null ? null : new PreviousFile(job.previousFile)
  const staging = new Staging(job.stagingFile)
  try {
    const run = new Build(job, staging, previous, onProgress)
    await run.run()
    if (run.outcomes.every(({ fault }) => fault !== null)) return { kind: 'build', sources: run.outcomes }
    const ranks = new Map(run.rows.map(({ id, name }) => [id, sourceRank(name)]))
    writeFile(job.outFile, {
      staging,
      sources: run.rows,
      rankOf: id => ranks.get(id) ?? ranks.size,
      version: job.version,
      nowMs: job.nowMs,
    })
    checkBuilt(job.outFile)
    return { kind: 'build', sources: run.outcomes }
  } finally {
    staging.close()
    previous?.close()
    rmSync(job.stagingFile, { force: true })
  }
}

function checkBuilt(path: string): void {
  const database = new Database(path, { readonly: true })
  try {
    checkWhole(database)
  } finally {
    database.close()
  }
}

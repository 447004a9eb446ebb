// A database file as matching reads it: point look-ups through prepared statements, with the rows read last kept
// decoded, and the keys in which two files differ (MAT-182).
import { Database } from 'bun:sqlite'
import type {
  AdvisoryReader,
  Affected,
  FixChannel,
  Release,
  Rule,
  Vulnerability,
} from '../../../core/matching/advisory.ts'
import { RecentMap } from '../state/recent-map.ts'
import { checkedRules, checkedTexts, checkWhole, metaValue } from './check-file.ts'
import type { SourceRow } from './import/write-file.ts'
import { sourceOfDistro } from './sources/catalogue.ts'

export type OpenAdvisories = AdvisoryReader & {
  readonly builtAtMs: number
  readonly sources: readonly SourceRow[]
  /** All rows of rules by key, with their digests. */
  digests(): Iterable<Key & { readonly digest: string }>
  close(): void
}

type Key = Pick<Affected, 'release' | 'package' | 'by'>
type AffectedRow = { digest: Uint8Array; rules: string }
type ReleaseRow = Omit<Release, 'successors'> & { readonly successors: string }
type VulnRow = Omit<Vulnerability, 'aliases' | 'references' | 'kev'> & {
  readonly aliases: string
  readonly references: string
  readonly kev: number
}

const KEPT_ROWS = 20_000

const VULN_ROWS = `select id, aliases, severity, cvss_vector, cvss_score, score_source, published_ms, modified_ms, title,
  "references", kev, kev_due_date, epss from vuln`

/** How the texts of rows are read. */
type RowTexts = {
  rules(row: AffectedRow): readonly Rule[]
  texts(json: string): readonly string[]
}

const NONE: readonly string[] = []

/** Of a file whose rows were all looked at. Most lists are empty. */
const CHECKED: RowTexts = {
  rules: row => JSON.parse(row.rules),
  texts: json => (json === '[]' ? NONE : JSON.parse(json)),
}

const UNCHECKED: RowTexts = {
  rules: checkedRules,
  texts: json => (json === '[]' ? NONE : checkedTexts(json)),
}

/** What was read lately; that there is nothing to read is kept too: most packages have no row. */
class ReadRows<T> {
  private readonly entries = new RecentMap<string, { readonly value: T | undefined }>(KEPT_ROWS)

  has(key: string): boolean {
    return this.entries.get(key) !== undefined
  }

  get(key: string, read: () => T | undefined): T | undefined {
    let entry = this.entries.get(key)
    if (entry === undefined) {
      entry = { value: read() }
      this.entries.set(key, entry)
    }
    return entry.value
  }
}

const CHANNELS: readonly FixChannel[] = ['standard', 'esm', 'elts']

function openReadOnly(path: string): Database {
  const database = new Database(path, { readonly: true })
  database.run('PRAGMA query_only = ON')
  database.run('PRAGMA mmap_size = 1073741824')
  return database
}

/** Opens a file that an import made or that `checkRows` has looked at. Throws when it is damaged or of another form. */
export const openAdvisories = (path: string): OpenAdvisories => open(path, CHECKED)

/**
 * Opens a file of which `checkForm` has looked at the form alone: a row is looked at when it is first read, and throws
 * SourceRefused. One report asks for some hundred of a hundred thousand rows.
 */
export const openUnchecked = (path: string): OpenAdvisories => open(path, UNCHECKED)

function open(path: string, rowTexts: RowTexts): OpenAdvisories {
  const database = openReadOnly(path)
  try {
    return new SqliteAdvisories(database, rowTexts)
  } catch (error) {
    database.close()
    throw error
  }
}

class SqliteAdvisories implements OpenAdvisories {
  readonly version: number
  readonly builtAtMs: number
  readonly sources: readonly SourceRow[]
  private readonly byId: ReadonlyMap<string, Release>
  private readonly releasesWithRows: ReadonlySet<string>
  private readonly rows = new ReadRows<Affected>()
  private readonly vulns = new ReadRows<Vulnerability>()
  private readonly covered: ReadonlySet<string>

  constructor(
    private readonly database: Database,
    private readonly rowTexts: RowTexts,
  ) {
    this.version = Number(metaValue(database, 'db_version'))
    this.builtAtMs = Number(metaValue(database, 'built_at_ms'))
    this.sources = database
      .query<SourceRow, []>(
        `select id, name, part, url, etag, last_modified, sha256, fetched_at_ms, records, rejected, licence
         from source order by name, part`,
      )
      .all()
    const releases = database
      .query<ReleaseRow, []>(
        `select id, distro, version, codename, standard_until, extended_until, eol_until, channel, successors
         from release order by id`,
      )
      .all()
    this.byId = new Map(
      releases.map(row => [
        row.id,
        {
          ...row,
          channel: CHANNELS.find(channel => channel === row.channel) ?? 'standard',
          successors: rowTexts.texts(row.successors),
        },
      ]),
    )
    this.releasesWithRows = new Set(releases.map(({ id }) => id).filter(id => this.hasAny(id)))
    this.covered = new Set(this.sources.filter(({ records }) => records > 0).map(({ name }) => name))
  }

  private hasAny(id: string): boolean {
    return (
      this.database
        .query<{ one: number }, [string]>('select 1 as one from affected where release_id = ? limit 1')
        .get(id) !== null
    )
  }

  release(id: string): Release | undefined {
    return this.byId.get(id)
  }

  releases(): readonly Release[] {
    return [...this.byId.values()]
  }

  coversDistro(distro: string): boolean {
    const source = sourceOfDistro(distro)
    return source !== undefined && this.covered.has(source)
  }

  hasRows(releaseId: string): boolean {
    return this.releasesWithRows.has(releaseId)
  }

  affected(release: string, name: string, by: Affected['by']): Affected | undefined {
    if (!this.releasesWithRows.has(release)) return undefined
    return this.rows.get(`${by}\n${release}\n${name}`, () => {
      const row = this.database
        .query<AffectedRow, [string, string, string]>(
          'select digest, rules from affected where release_id = ? and package = ? and "by" = ?',
        )
        .get(release, name, by)
      if (row === null) return undefined
      const digest = Buffer.from(row.digest).toString('hex')
      return { release, package: name, by, digest, rules: this.rowTexts.rules(row) }
    })
  }

  vulnerability(id: string): Vulnerability | undefined {
    return this.vulns.get(id, () => {
      const row = this.database.query<VulnRow, [string]>(`${VULN_ROWS} where id = ?`).get(id)
      return row === null ? undefined : this.vulnerabilityOf(row)
    })
  }

  /** One statement: a server with thousands of findings asks for as many rows, and each alone costs ten times it. */
  readVulnerabilities(ids: readonly string[]): void {
    const unread = ids.filter(id => !this.vulns.has(id)).slice(0, KEPT_ROWS / 2)
    if (unread.length === 0) return
    const rows = this.database
      .query<VulnRow, [string]>(`${VULN_ROWS} where id in (select value from json_each(?))`)
      .all(JSON.stringify(unread))
    const found = new Map(rows.map(row => [row.id, row]))
    for (const id of unread) {
      const row = found.get(id)
      this.vulns.get(id, () => row && this.vulnerabilityOf(row))
    }
  }

  private vulnerabilityOf(row: VulnRow): Vulnerability {
    const { texts } = this.rowTexts
    return { ...row, aliases: texts(row.aliases), references: texts(row.references), kev: row.kev !== 0 }
  }

  *digests(): Generator<Key & { readonly digest: string }> {
    yield* this.database
      .query<Key & { readonly digest: string }, []>(
        'select release_id as release, package, "by", hex(digest) as digest from affected',
      )
      .iterate()
  }

  close(): void {
    this.database.close()
  }
}

/** The (release, package, by) whose rules differ between two files, or that only one has; by digest, inside SQLite. */
export function* changedKeys(oldFile: string, newFile: string): Generator<Key> {
  const database = openReadOnly(newFile)
  try {
    database.query('attach ? as old').run(oldFile)
    yield* database
      .query<Key, []>(
        `select a.release_id as release, a.package as package, a."by" as "by" from main.affected a
         where not exists (select 1 from old.affected b where b.release_id = a.release_id and b.package = a.package
           and b."by" = a."by" and b.digest = a.digest)
         union
         select b.release_id, b.package, b."by" from old.affected b
         where not exists (select 1 from main.affected a where a.release_id = b.release_id and a.package = b.package
           and a."by" = b."by")`,
      )
      .iterate()
  } finally {
    database.close()
  }
}

/**
 * The same of two files that are open: for a version whose file was removed since, as when a command has made two
 * versions between two looks of a running matcher.
 */
export function* changedKeysOfOpen(before: OpenAdvisories, after: OpenAdvisories): Generator<Key> {
  const textOf = ({ release, package: name, by }: Key): string => `${by}\n${release}\n${name}`
  const left = new Map<string, Key & { readonly digest: string }>()
  for (const row of before.digests()) left.set(textOf(row), row)
  for (const row of after.digests()) {
    const key = textOf(row)
    const isSame = left.get(key)?.digest === row.digest
    left.delete(key)
    if (!isSame) yield { release: row.release, package: row.package, by: row.by }
  }
  for (const { release, package: name, by } of left.values()) yield { release, package: name, by }
}

/** A file as it is opened first: whole and of this program's form. */
export function checkedVersion(path: string): number {
  const database = openReadOnly(path)
  try {
    checkWhole(database)
    return Number(metaValue(database, 'db_version'))
  } finally {
    database.close()
  }
}

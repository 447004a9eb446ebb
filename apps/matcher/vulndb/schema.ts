// The tables of a vulnerability database (MAT section 4). A file is written once, by one import, and never changed:
// what is open reads it without locks, and a bundle that has any other table, trigger or view is refused.

/** Forms of the file that this program reads; a file of a greater one is refused. */
export const FILE_FORMAT = 1

/**
 * `affected` and `vuln` are what is looked up. Where one source alone said it, `source_id` names it; where several did,
 * it is null and `contribution` and `vuln_part` hold the share of each, so that a source that fails keeps its rows
 * (MAT-064).
 */
const TABLES: readonly string[] = [
  'create table meta (key text primary key, value text not null) without rowid',
  `create table source (id integer primary key, name text not null, part text not null, url text not null,
    etag text not null, last_modified text not null, sha256 text not null, fetched_at_ms integer not null,
    records integer not null, rejected integer not null, licence text not null)`,
  `create table release (id text primary key, distro text not null, version text not null, codename text not null,
    standard_until text not null, extended_until text not null, eol_until text not null, channel text not null,
    successors text not null)`,
  `create table release_part (source_id integer not null, part text not null)`,
  `create table affected (release_id text not null, package text not null, "by" text not null, digest blob not null,
    rules text not null, source_id integer)`,
  'create unique index affected_key on affected (release_id, package, "by", digest)',
  `create table contribution (source_id integer not null, release_id text not null, package text not null,
    "by" text not null, rules text not null)`,
  `create table vuln (id text primary key, aliases text not null, severity text not null, cvss_vector text not null,
    cvss_score real, score_source text not null, published_ms integer, modified_ms integer, title text not null,
    "references" text not null, kev integer not null, kev_due_date text not null, epss real, digest blob not null,
    source_id integer) without rowid`,
  `create table vuln_part (source_id integer not null, id text not null, part text not null)`,
]

export const createTables = (run: (statement: string) => void): void => {
  for (const statement of TABLES) run(statement)
}

const spaceless = (sql: string): string => sql.replace(/\s+/g, ' ').trim().toLowerCase()

/** Whether `sqlite_schema` names these tables and nothing else: no trigger of somebody else's file runs here. */
export function isOwnSchema(statements: readonly (string | null)[]): boolean {
  const found = statements.flatMap(sql => (sql === null ? [] : [spaceless(sql)])).toSorted()
  const wanted = TABLES.map(spaceless).toSorted()
  return found.length === wanted.length && found.every((sql, index) => sql === wanted[index])
}

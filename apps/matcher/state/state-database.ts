// The file of the state: its lock, its format and its tables. One process, one writer; a commit is on the disk when it
// returns (MAT-032, 160, 237).
import { constants, Database, SQLiteError } from 'bun:sqlite'
import { existsSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { ensureFolder, ensureOwnFile, ownerForFolder } from '../../files/replace-file.ts'

/** A directory of a greater format is refused untouched. */
export const STATE_FORMAT = 1

export const STATE_FILE = 'state.sqlite'
const LOCK_FILE = 'matcher.lock'

/**
 * Pages of 4 KiB that the log grows by before they go into the file: a report with new packages touches thousands of
 * pages, and most of them again with the next.
 */
const LOG_PAGES = 16_384

/** Page cache of SQLite in KiB: the hot rows of a large fleet, while most of the file stays with the system's cache. */
const CACHE_KIB = 64 * 1024

/**
 * Contents that many hosts share (contexts, scans, lists, instances, findings) are rows of their own, found by a digest
 * of 16 bytes; whoever refers to one holds its number.
 */
const TABLES = [
  'meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID',
  'company (id INTEGER PRIMARY KEY AUTOINCREMENT, company_id TEXT NOT NULL UNIQUE)',
  `host (
    id INTEGER PRIMARY KEY AUTOINCREMENT, host_id TEXT NOT NULL UNIQUE, company INTEGER NOT NULL, server_id TEXT,
    public_key TEXT NOT NULL, is_revoked INTEGER NOT NULL, is_inactive INTEGER NOT NULL, version INTEGER NOT NULL,
    machine_hash TEXT NOT NULL, last_seq INTEGER NOT NULL DEFAULT 0, last_time_ms INTEGER NOT NULL DEFAULT 0,
    last_signature TEXT NOT NULL DEFAULT '', last_status TEXT NOT NULL DEFAULT 'no_db',
    last_open INTEGER NOT NULL DEFAULT 0, reported_ms INTEGER NOT NULL DEFAULT 0,
    early_day INTEGER NOT NULL DEFAULT 0, purged_ms INTEGER NOT NULL DEFAULT 0, content_hash TEXT NOT NULL DEFAULT '',
    context INTEGER, scan INTEGER, list INTEGER, finding_count INTEGER NOT NULL DEFAULT 0,
    is_stale INTEGER NOT NULL DEFAULT 0)`,
  'host_findings (host INTEGER PRIMARY KEY, body BLOB NOT NULL)',
  'package_list (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, body BLOB NOT NULL)',
  `context (
    id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, body TEXT NOT NULL, ecosystem TEXT NOT NULL,
    applied TEXT NOT NULL)`,
  'scan (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, body TEXT NOT NULL)',
  'package_group (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)',
  `instance (
    id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, package_group INTEGER NOT NULL, system TEXT NOT NULL,
    release TEXT NOT NULL, name TEXT NOT NULL, version TEXT NOT NULL, arch TEXT NOT NULL, source TEXT NOT NULL,
    source_version TEXT NOT NULL, module TEXT NOT NULL, vendor TEXT NOT NULL)`,
  'instance_key (key TEXT NOT NULL, instance INTEGER NOT NULL, PRIMARY KEY (key, instance)) WITHOUT ROWID',
  `finding (
    id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, package_group INTEGER NOT NULL, vuln TEXT NOT NULL,
    body TEXT NOT NULL)`,
  `outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT, company INTEGER NOT NULL, host INTEGER NOT NULL, at_ms INTEGER NOT NULL,
    first_seq INTEGER NOT NULL, event_count INTEGER NOT NULL, settled INTEGER NOT NULL DEFAULT 0,
    db_version INTEGER NOT NULL, body BLOB NOT NULL)`,
  `dead_letter (
    id INTEGER PRIMARY KEY AUTOINCREMENT, company INTEGER NOT NULL, host INTEGER NOT NULL, event_id TEXT NOT NULL UNIQUE,
    at_ms INTEGER NOT NULL, reason TEXT NOT NULL, seq INTEGER NOT NULL, occurred_ms INTEGER NOT NULL,
    db_version INTEGER NOT NULL, body BLOB NOT NULL)`,
  `resync (
    company INTEGER PRIMARY KEY, behind INTEGER NOT NULL, after_host INTEGER NOT NULL, until_host INTEGER NOT NULL,
    event_count INTEGER NOT NULL)`,
  // Companies that are purged and have rows left: see purged-companies.ts.
  'purge (company INTEGER PRIMARY KEY, company_id TEXT NOT NULL, at_ms INTEGER NOT NULL)',
  // Of hosts whose events the hub refused as of another server: see retelling.ts.
  'refused (host INTEGER PRIMARY KEY, version INTEGER NOT NULL, has_scan INTEGER NOT NULL, body BLOB NOT NULL)',
  `tombstone (
    company_id TEXT NOT NULL, server_id TEXT NOT NULL, at_ms INTEGER NOT NULL, PRIMARY KEY (company_id, server_id))
    WITHOUT ROWID`,
  `settings (
    company_id TEXT PRIMARY KEY, version INTEGER NOT NULL, is_enabled INTEGER NOT NULL, interval_hours REAL NOT NULL,
    fetched_ms INTEGER NOT NULL, disabled_since_ms INTEGER, min_interval_hours REAL) WITHOUT ROWID`,
  'rematch_key (key TEXT PRIMARY KEY, target INTEGER NOT NULL) WITHOUT ROWID',
  'rematch_context (context INTEGER PRIMARY KEY)',
  `reference (
    vuln TEXT PRIMARY KEY, sent_digest TEXT NOT NULL DEFAULT '', is_pending INTEGER NOT NULL DEFAULT 1) WITHOUT ROWID`,
] as const

/** Columns that tables of format 1 did not begin with. They may be empty, so that a program before them goes on too. */
const ADDED_COLUMNS = [{ table: 'settings', column: 'min_interval_hours', type: 'REAL' }] as const

const INDEXES = [
  'host_by_server ON host (company, server_id, id)',
  'host_by_context ON host (context)',
  'host_of_company ON host (company, context) WHERE list IS NOT NULL',
  'host_by_list ON host (list)',
  'instance_by_name ON instance (name)',
  'instance_by_source ON instance (source)',
  'finding_by_vuln ON finding (vuln)',
  'outbox_by_company ON outbox (company, id)',
  'outbox_by_host ON outbox (host)',
  'dead_letter_by_company ON dead_letter (company)',
  'reference_pending ON reference (vuln) WHERE is_pending = 1',
] as const

/** Holds the directory for this process until `release`; the system gives it back however the process ends. */
export function lockState(dir: string): { readonly release: () => void } {
  const path = join(realpathSync(dir), LOCK_FILE)
  ensureOwnFile(path, ownerForFolder(dir))
  const database = new Database(path, constants.SQLITE_OPEN_READWRITE | constants.SQLITE_OPEN_NOFOLLOW)
  try {
    database.run('PRAGMA busy_timeout = 0')
    // A journal on disk would need room.
    database.run('PRAGMA journal_mode = MEMORY')
    database.run('BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    if (error instanceof SQLiteError && error.code === 'SQLITE_BUSY')
      throw new Error('another matcher uses this data directory: stop it first, or give this one its own', {
        cause: error,
      })
    throw error
  }
  return { release: () => database.close() }
}

function formatOf(database: Database): number {
  return database.query<{ user_version: number }, []>('PRAGMA user_version').get()?.user_version ?? 0
}

const DAMAGED = ['SQLITE_NOTADB', 'SQLITE_CORRUPT']
const WAY_OUT = 'keep this data directory aside and restore a backup into an empty one'

/** Opens the state of a directory that is already locked, and makes it when there is none. */
export function openStateDatabase(dir: string): Database {
  const path = join(realpathSync(dir), STATE_FILE)
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw new Error(`cannot open the state ${path}: it is a folder; ${WAY_OUT}`)
  try {
    return openFile(dir, path)
  } catch (error) {
    // What SQLite says names no file.
    if (!(error instanceof SQLiteError)) throw error
    const wayOut = DAMAGED.includes(error.code ?? '') ? `; ${WAY_OUT}` : ''
    throw new Error(`cannot open the state ${path}: ${error.message}${wayOut}`, { cause: error })
  }
}

function openFile(dir: string, path: string): Database {
  if (existsSync(path)) refuseNewer(path)
  ensureOwnFile(path, ownerForFolder(dir))
  const database = new Database(path, { create: false, readwrite: true, strict: true })
  try {
    database.run('PRAGMA busy_timeout = 10000')
    database.run('PRAGMA journal_mode = WAL')
    database.run('PRAGMA synchronous = FULL')
    database.run(`PRAGMA cache_size = -${CACHE_KIB}`)
    database.run('PRAGMA temp_store = MEMORY')
    database.run(`PRAGMA wal_autocheckpoint = ${LOG_PAGES}`)
    database
      .transaction(() => {
        for (const table of TABLES) database.run(`CREATE TABLE IF NOT EXISTS ${table}`)
        for (const added of ADDED_COLUMNS) addColumn(database, added)
        for (const index of INDEXES) database.run(`CREATE INDEX IF NOT EXISTS ${index}`)
        database.run(`PRAGMA user_version = ${STATE_FORMAT}`)
      })
      .immediate()
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

function addColumn(database: Database, { table, column, type }: (typeof ADDED_COLUMNS)[number]): void {
  const columns = database.query<{ name: string }, []>(`PRAGMA table_info(${table})`).all()
  if (!columns.some(({ name }) => name === column)) database.run(`ALTER TABLE ${table} ADD COLUMN ${column} ${type}`)
}

/** Looks at the format without writing a byte: an older program must leave the directory as it is. */
function refuseNewer(path: string): void {
  const database = new Database(path, { readonly: true })
  try {
    const format = formatOf(database)
    if (format > STATE_FORMAT)
      throw new Error(
        `the state in this data directory is of format ${format} and this program knows ${STATE_FORMAT}: use the newer program`,
      )
  } finally {
    database.close()
  }
}

/** Makes the directory, readable by its owner only. */
export function ensureStateDir(dir: string): void {
  ensureFolder(dir, 0o700, null)
}

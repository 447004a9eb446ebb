// The registry on disk: a SQLite file that the processes of one collector share. Every written row gets the next change
// number, by which each process finds the writes of the others. The cursor of the agents feed is stored in the same
// file.
import { Database } from 'bun:sqlite'
import { chmodSync } from 'node:fs'
import { agentStates } from '../../../../core/lifecycle/agent.ts'
import { openFault, openFile } from '../open-file.ts'
import { useWriteAheadLog } from '../write-ahead-log.ts'
import type { AgentRecord } from './agent-record.ts'
import { invitationOf } from './agent-record-faults.ts'

const FORMAT_VERSION = 3

export type RegistryCursor = { readonly since: number; readonly syncedAtMs: number }

/** A row: an agent's record, or null when the agent was removed. */
export type RegistryRow = { readonly agentId: string; readonly record: AgentRecord | null }

type Row = {
  agent_id: string
  company_id: string
  server_id: string
  state: number
  token_hash: string
  prev_token_hash: string
  prev_expires_ms: number
  version: number
  sync_version: number
  server_status: string
  subnet_id: string
  datacenter: string
  hostname: string
  interval_seconds: number
  enrolled_ms: number
  removed: number
  change: number
  scan: string
}

const COLUMNS =
  'agent_id, company_id, server_id, state, token_hash, prev_token_hash, prev_expires_ms, version, sync_version, server_status, subnet_id, datacenter, interval_seconds, enrolled_ms, removed, change, hostname, scan'

const SCHEMA = `CREATE TABLE IF NOT EXISTS agents (
  agent_id TEXT PRIMARY KEY, company_id TEXT NOT NULL, server_id TEXT NOT NULL, state INTEGER NOT NULL,
  token_hash TEXT NOT NULL, prev_token_hash TEXT NOT NULL, prev_expires_ms INTEGER NOT NULL, version INTEGER NOT NULL,
  sync_version INTEGER NOT NULL, server_status TEXT NOT NULL, subnet_id TEXT NOT NULL, datacenter TEXT NOT NULL,
  interval_seconds INTEGER NOT NULL, enrolled_ms INTEGER NOT NULL, removed INTEGER NOT NULL, change INTEGER NOT NULL,
  hostname TEXT NOT NULL DEFAULT '', scan TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID`

const REVOKED = agentStates.indexOf('revoked')

/**
 * The version rule holds between processes too: an older record never replaces a newer row, and revoked is for good.
 */
const UPSERT = `INSERT INTO agents (${COLUMNS}) VALUES (${'?, '.repeat(17)}?)
  ON CONFLICT (agent_id) DO UPDATE SET ${COLUMNS.split(', ')
    .filter(column => column !== 'agent_id' && column !== 'state')
    .map(column => `${column} = excluded.${column}`)
    .join(', ')},
    state = CASE WHEN agents.removed = 0 AND agents.state = ${REVOKED} THEN agents.state ELSE excluded.state END
  WHERE agents.removed = 1 OR excluded.version > agents.version
    OR (excluded.version = agents.version AND excluded.sync_version >= agents.sync_version)`

/** Rows of removed agents are kept for the other processes to see, then dropped. */
const REMOVED_ROWS_MAX = 100_000

export class RegistryStore {
  private readonly database: Database
  private readonly path: string
  /** The highest change number that this process has read or written. */
  private change = 0
  private dataVersion = -1
  /** Equal texts (companies, subnets, data centres) are stored once in memory. */
  private readonly shared = new Map<string, string>()

  constructor(path: string) {
    this.path = path
    this.database = openFile('registry', path, 'move it away: the agents are fetched from the hub again', () => {
      const database = new Database(path, { create: true, strict: true })
      if (path !== ':memory:') chmodSync(path, 0o600)
      useWriteAheadLog(database)
      database.run('PRAGMA synchronous = NORMAL')
      database.transaction(() => this.migrate(database)).immediate()
      return database
    })
  }

  private migrate(database: Database): void {
    const version = database.query<{ user_version: number }, []>('PRAGMA user_version').get()?.user_version ?? 0
    if (version > FORMAT_VERSION)
      throw openFault(
        'registry',
        this.path,
        `it is of format ${version}, this program knows ${FORMAT_VERSION}; use the newer program`,
      )
    database.run(SCHEMA)
    database.run('CREATE INDEX IF NOT EXISTS agents_by_change ON agents (change)')
    database.run(
      'CREATE TABLE IF NOT EXISTS cursor (id INTEGER PRIMARY KEY CHECK (id = 1), since INTEGER NOT NULL, synced_at_ms INTEGER NOT NULL, change INTEGER NOT NULL)',
    )
    database.run('INSERT OR IGNORE INTO cursor (id, since, synced_at_ms, change) VALUES (1, 0, 0, 0)')
    database.run('CREATE TABLE IF NOT EXISTS reloads (feed TEXT PRIMARY KEY, count INTEGER NOT NULL)')
    if (version === 1) {
      // Format 2 added hostnames: the feed is read again from its start, which completes the stored records.
      database.run("ALTER TABLE agents ADD COLUMN hostname TEXT NOT NULL DEFAULT ''")
      database.run('UPDATE cursor SET since = 0')
    }
    // Format 3 added where agents report their packages to.
    const hasScan = database.query("SELECT 1 FROM pragma_table_info('agents') WHERE name = 'scan'").get() !== null
    if (!hasScan) database.run("ALTER TABLE agents ADD COLUMN scan TEXT NOT NULL DEFAULT ''")
    database.run(`PRAGMA user_version = ${FORMAT_VERSION}`)
    database
      .query('DELETE FROM agents WHERE removed = 1 AND change < (SELECT change FROM cursor) - ?')
      .run(REMOVED_ROWS_MAX)
  }

  private share(text: string): string {
    const held = this.shared.get(text)
    if (held !== undefined) return held
    this.shared.set(text, text)
    return text
  }

  private toRecord(row: Row): AgentRecord {
    const status = row.server_status
    const scan = row.scan === '' ? undefined : invitationOf(JSON.parse(row.scan))
    return {
      agentId: row.agent_id,
      companyId: this.share(row.company_id),
      serverId: row.server_id,
      state: agentStates[row.state] ?? 'revoked',
      tokenHash: row.token_hash,
      prevTokenHash: row.prev_token_hash,
      prevTokenExpiresAtMs: row.prev_expires_ms,
      version: row.version,
      syncVersion: row.sync_version,
      serverStatus: status === 'maintenance' || status === 'decommissioned' ? status : '',
      subnetId: this.share(row.subnet_id),
      datacenter: this.share(row.datacenter),
      hostname: row.hostname,
      intervalSeconds: row.interval_seconds,
      enrolledAtMs: row.enrolled_ms,
      ...(scan ? { scan } : {}),
    }
  }

  /** Everything that was written since the last call, by any process; the first call gives the whole registry. */
  readChanges(): RegistryRow[] {
    // data_version changes when another connection commits: a poll without changes costs one pragma.
    const { data_version: dataVersion } = this.database
      .query<{ data_version: number }, []>('PRAGMA data_version')
      .get() ?? { data_version: 0 }
    if (dataVersion === this.dataVersion) return []
    this.dataVersion = dataVersion
    const changes: RegistryRow[] = []
    const rows = this.database.query<Row, [number]>(`SELECT ${COLUMNS} FROM agents WHERE change > ? ORDER BY change`)
    for (const row of rows.iterate(this.change)) {
      changes.push({ agentId: row.agent_id, record: row.removed ? null : this.toRecord(row) })
      this.change = row.change
    }
    return changes
  }

  cursor(): RegistryCursor {
    const row = this.database
      .query<{ since: number; synced_at_ms: number }, []>('SELECT since, synced_at_ms FROM cursor')
      .get()
    return { since: row?.since ?? 0, syncedAtMs: row?.synced_at_ms ?? 0 }
  }

  /** Writes rows, and the cursor when it is given, in one transaction. */
  write(rows: readonly RegistryRow[], cursor: RegistryCursor | null): void {
    this.database
      .transaction(() => {
        const before = this.database.query<{ change: number }, []>('SELECT change FROM cursor').get()?.change ?? 0
        let change = before
        const insert = this.database.query(UPSERT)
        const remove = this.database.query(
          "UPDATE agents SET removed = 1, token_hash = '', prev_token_hash = '', scan = '', change = ? WHERE agent_id = ?",
        )
        const revoke = this.database.query(
          `UPDATE agents SET state = ${REVOKED}, change = ? WHERE agent_id = ? AND removed = 0 AND state <> ${REVOKED}`,
        )
        for (const { agentId, record } of rows) {
          change++
          if (record) insert.run(...valuesOf(record), change, record.hostname, scanOf(record))
          else remove.run(change, agentId)
          // A revocation holds whatever version another process has written meanwhile.
          if (record?.state === 'revoked') revoke.run(change, agentId)
        }
        this.database.query('UPDATE cursor SET change = ?').run(change)
        if (cursor)
          this.database
            .query('UPDATE cursor SET since = max(since, ?), synced_at_ms = max(synced_at_ms, ?)')
            .run(cursor.since, cursor.syncedAtMs)
        // Changes that other processes wrote in between have lower numbers than ours; the next poll reads them.
        if (before === this.change) this.change = change
      })
      .immediate()
  }

  /**
   * Asks the other processes to pull a feed now: raises its counter (document 3: the shared counter of a reload call).
   */
  raiseReload(feed: string): void {
    this.database
      .query('INSERT INTO reloads (feed, count) VALUES (?, 1) ON CONFLICT (feed) DO UPDATE SET count = count + 1')
      .run(feed)
  }

  /** The counter of a feed's reload calls; a process that sees it grow pulls the feed. */
  reloadCount(feed: string): number {
    return (
      this.database.query<{ count: number }, [string]>('SELECT count FROM reloads WHERE feed = ?').get(feed)?.count ?? 0
    )
  }

  close(): void {
    this.database.close()
  }
}

/** As the feed has it; empty without an invitation. */
const scanOf = ({ scan }: AgentRecord): string =>
  scan ? JSON.stringify({ matcher_url: scan.matcherUrl, enrol_code: scan.enrolCode }) : ''

function valuesOf(record: AgentRecord): (string | number)[] {
  return [
    record.agentId,
    record.companyId,
    record.serverId,
    agentStates.indexOf(record.state),
    record.tokenHash,
    record.prevTokenHash,
    record.prevTokenExpiresAtMs,
    record.version,
    record.syncVersion,
    record.serverStatus,
    record.subnetId,
    record.datacenter,
    record.intervalSeconds,
    record.enrolledAtMs,
    0,
  ]
}

// The raw set of a feed and its cursor on disk, so that a restart while the hub is down runs the last set (document 2
// "Rule sync on the collector"). One JSON file a feed, written beside and renamed, readable by the owner only.
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { emptyFeed, type FeedState } from '../../../core/sync/feed.ts'
import { type FeedStore, isRawRecord, type RawRecord } from './feed-store.ts'
import { isJsonObject } from './registry/agent-record.ts'

const FORMAT = 1

export class FileFeedStore implements FeedStore {
  private readonly path: string
  private readonly log: Logger
  private writes = 0

  /** `directory` is made when it is missing. */
  constructor(directory: string, feed: string, log: Logger) {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    this.path = join(directory, `${feed}.json`)
    this.log = log
  }

  /** The set of the last save; an empty one when there is none, or when the file cannot be read (said in the log). */
  load(): FeedState<RawRecord> {
    let content: unknown
    try {
      content = JSON.parse(readFileSync(this.path, 'utf8'))
    } catch (error) {
      const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
      if (!isMissing) this.log.error({ err: error, file: this.path }, 'cannot read a saved feed; it is pulled anew')
      return emptyFeed()
    }
    if (!isJsonObject(content) || content.format !== FORMAT || !Array.isArray(content.records)) {
      this.log.error({ file: this.path }, 'a saved feed is of another format; it is pulled anew')
      return emptyFeed()
    }
    const records = new Map<string, RawRecord>()
    for (const record of content.records) if (isRawRecord(record)) records.set(record.id, record)
    const since = typeof content.since === 'number' ? content.since : 0
    const syncedAtMs = typeof content.synced_at_ms === 'number' ? content.synced_at_ms : 0
    return { since, records, syncedAtMs }
  }

  /** Keeps a set durably. */
  async save(state: FeedState<RawRecord>): Promise<void> {
    const temporary = `${this.path}.${process.pid}.${++this.writes}.tmp`
    const head = JSON.stringify({ format: FORMAT, since: state.since, synced_at_ms: state.syncedAtMs })
    // Each by itself: a text of tens of megabytes takes several times as long as one piece.
    const records = [...state.records.values()].map(record => JSON.stringify(record)).join(',')
    const text = `${head.slice(0, -1)},"records":[${records}]}`
    try {
      const file = await open(temporary, 'wx', 0o600)
      try {
        await file.writeFile(text)
        await file.sync()
      } finally {
        await file.close()
      }
      chmodSync(temporary, 0o600)
      renameSync(temporary, this.path)
    } catch (error) {
      rmSync(temporary, { force: true })
      throw error
    }
  }
}

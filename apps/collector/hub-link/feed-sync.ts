// A feed of raw records (rules, silences, checks): pulled page by page, applied in one piece, kept on disk (document 1
// "Rule sync envelope"; document 2 "Rule sync on the collector").
import type { Logger } from 'pino'
import { limits } from '../../../core/limits.ts'
import { applyFeed, dropExpired, type FeedState, feedStart } from '../../../core/sync/feed.ts'
import { describeResponse, type LargePage } from '../../hub-link/hub-connection.ts'
import { type PullOutcome, SyncLoop, type SyncResult, type SyncStatus } from '../../hub-link/sync-loop.ts'
import { type FeedStore, isRawRecord, type RawRecord } from '../store/feed-store.ts'
import { isJsonObject } from '../store/registry/agent-record.ts'
import type { CollectorMetrics } from '../telemetry.ts'
import type { FeedName, HubClient } from './hub-client.ts'

/** A set is never longer than this many pages: a hub that always says `more` must not hold the loop for ever. */
const PAGES_MAX = 100_000

/** Why a record of a feed is skipped: the label of svc_sync_skipped_total. */
export const skipReasons = ['malformed', 'too_large'] as const

const SAVE_PERIOD_MS = 3_600_000

/**
 * When a page is too large to be read it is requested with a limit this many times smaller; after each page that was
 * read the limit grows by the same factor.
 */
const LIMIT_STEP = 8

type Pulled = { readonly records: readonly unknown[]; readonly nextSince: number }

/**
 * Replaces a record that is too large to be read: the version held so far leaves force, and the record is reported as
 * invalid.
 */
const tooLarge = ({ bytes, first }: LargePage, feed: FeedName, syncVersion: number): unknown => ({
  ...(first.id === null ? {} : { [feed === 'agents' ? 'agent_id' : 'id']: first.id }),
  ...(first.companyId === null ? {} : { company_id: first.companyId }),
  sync_version: syncVersion,
  too_large: bytes,
})

/**
 * Reads a feed by next_since to its end. Nothing is applied here, so an error midway loses nothing. A single record
 * that is too large to be read does not end the pull: it is skipped, and a `too_large` record takes its place.
 */
export async function pullPages(
  hub: Pick<HubClient, 'pullFeed'>,
  feed: FeedName,
  since: number,
  limitMax: number,
): Promise<Pulled | { readonly error: string }> {
  const records: unknown[] = []
  let cursor = since
  let limit = limitMax
  for (let page = 0; page < PAGES_MAX; page++) {
    const answer = await hub.pullFeed(feed, cursor, limit)
    if (answer.kind === 'too_large') {
      if (limit > 1) {
        limit = Math.max(1, Math.floor(limit / LIMIT_STEP))
        continue
      }
      if (answer.end === null || answer.end.nextSince <= cursor)
        return { error: `the hub's answer of ${answer.bytes} bytes is larger than is read, and not a page of ${feed}` }
      cursor = answer.end.nextSince
      records.push(tooLarge(answer, feed, cursor))
      if (!answer.end.more) return { records, nextSince: cursor }
      continue
    }
    limit = Math.min(limitMax, limit * LIMIT_STEP)
    // A hub without a checks feed manages no checks (document 3 "Agent config semantics"), so its feed counts as empty.
    if (feed === 'checks' && answer.kind === 'refused' && answer.status === 404)
      return { records: [], nextSince: since }
    if (answer.kind !== 'ok') return { error: describeResponse(answer) }
    const { [feed]: rows, next_since: nextSince, more } = answer.data
    if (!Array.isArray(rows) || typeof nextSince !== 'number' || !Number.isSafeInteger(nextSince))
      return { error: `the hub's answer is not a page of ${feed}` }
    for (const row of rows) records.push(row)
    if (more === true && nextSince <= cursor) return { error: `the hub's cursor of ${feed} does not move` }
    cursor = nextSince
    if (more !== true) return { records, nextSince: cursor }
  }
  return { error: `the hub's feed of ${feed} does not end` }
}

type FeedSyncOptions = {
  readonly feed: 'rules' | 'silences' | 'checks'
  readonly intervalMs: number
  /** null: the collector has no hub and runs the set on disk. */
  readonly hub: HubClient | null
  readonly store: FeedStore
  /** True for a record that deletes the record with its id. */
  readonly isGone: (record: RawRecord) => boolean
  /** True for a record that is too old to matter: it leaves the set without a tombstone. */
  readonly isExpired?: (record: RawRecord, nowMs: number) => boolean
  /**
   * Puts a set in force: at the start the set on disk, later each set that a pull changed; `since` is its cursor. The
   * set is stored on disk only after this, so that the set on disk has always been in force.
   */
  readonly onApplied: (records: ReadonlyMap<string, RawRecord>, since: number) => void | Promise<void>
  readonly log: Logger
  readonly metrics: CollectorMetrics
  readonly nowMs: () => number
}

export class FeedSync {
  private readonly options: FeedSyncOptions
  private readonly loop: SyncLoop
  private state: FeedState<RawRecord>
  private savedAtMs = 0

  /** Puts the saved set in force at once. */
  constructor(options: FeedSyncOptions) {
    this.options = options
    const { feed, intervalMs, log, metrics, nowMs, store } = options
    this.state = store.load()
    this.loop = new SyncLoop({
      feed,
      intervalMs,
      pull: () => this.pull(),
      since: () => this.state.since,
      syncedAtMs: this.state.syncedAtMs,
      log,
      nowMs,
      onSynced: atMs => metrics.syncLastSuccess.set({ feed }, atMs / 1000),
      onError: () => metrics.syncErrors.inc({ feed }),
    })
    if (this.state.syncedAtMs > 0) metrics.syncLastSuccess.set({ feed }, this.state.syncedAtMs / 1000)
    metrics.syncErrors.inc({ feed }, 0)
    for (const reason of skipReasons) metrics.syncSkipped.inc({ feed, reason }, 0)
    void options.onApplied(this.state.records, this.state.since)
  }

  get records(): ReadonlyMap<string, RawRecord> {
    return this.state.records
  }

  /** True once the feed was read to its end, now or before a restart. */
  get isFilled(): boolean {
    return this.state.syncedAtMs > 0
  }

  start(): Promise<SyncResult> {
    return this.loop.start()
  }
  reload(): Promise<SyncResult> {
    return this.loop.reload()
  }
  status(): SyncStatus {
    return this.loop.status()
  }
  stop(): Promise<void> {
    return this.loop.stop()
  }

  /**
   * Returns the records with an id and a sync_version; others are skipped alone and logged. A `too_large` record is
   * logged too, and kept to replace the version held so far.
   */
  private readable(given: readonly unknown[]): RawRecord[] {
    const { feed, log, metrics } = this.options
    const records: RawRecord[] = []
    for (const record of given) {
      if (isJsonObject(record) && typeof record.too_large === 'number') {
        const { id, company_id, too_large: bytes } = record
        metrics.syncSkipped.inc({ feed, reason: 'too_large' })
        log.error(
          { feed, id, company_id, bytes },
          'a record of the hub is too large and is skipped: it is not in force',
        )
      }
      if (isRawRecord(record)) records.push(record)
      else if (!isJsonObject(record) || typeof record.too_large !== 'number') {
        metrics.syncSkipped.inc({ feed, reason: 'malformed' })
        const id = isJsonObject(record) ? record.id : undefined
        log.error(
          { feed, id },
          'a record without id or sync_version is skipped: what was known of it before stays in force',
        )
      }
    }
    return records
  }

  private async pull(): Promise<PullOutcome> {
    const { feed, hub, log, nowMs, store } = this.options
    if (!hub) return { error: 'no hub is configured' }
    const { since, isReplacing } = feedStart(this.state, nowMs())
    const pulled = await pullPages(hub, feed, since, limits.syncPageMax)
    if ('error' in pulled) return pulled
    const records = this.readable(pulled.records)
    const before = this.state
    const { isGone, isExpired } = this.options
    const atMs = nowMs()
    const applied = applyFeed(before, { records, nextSince: pulled.nextSince, isReplacing }, isGone, atMs)
    const next = isExpired ? dropExpired(applied, record => isExpired(record, atMs)) : applied
    const isChanged = records.length > 0 || isReplacing || next.since !== before.since || next !== applied
    if (isChanged) await this.options.onApplied(next.records, next.since)
    this.state = next
    // When nothing changed, only the time of the last success would change on disk; its age matters only after days.
    if (!isChanged && nowMs() - this.savedAtMs < SAVE_PERIOD_MS) return { error: null }
    this.savedAtMs = nowMs()
    try {
      await store.save(next)
    } catch (error) {
      log.error({ err: error, feed }, 'cannot keep a feed on disk; it is in force until the next restart')
    }
    return { error: null }
  }
}

// The outbox of a worker in Redis: one stream of events for each shard, read by the worker that has the shard's lease;
// events of one server stay in order. Also the values that the leader stores by name, committed with the events that
// they led to.

import type { Redis } from 'ioredis'
import type { JournalRecord } from '../../../../core/alerting/durability/journal-record.ts'
import type { AlertEvent } from '../../../../core/alerting/evaluate/event.ts'
import { eventPairKey } from '../../../../core/alerting/evaluate/event-id.ts'
import { assert } from '../../../../core/assert.ts'
import { shardOfServer } from '../../../../core/bus/shard-of-server.ts'
import { limits } from '../../../../core/limits.ts'
import { TombstoneSet } from '../../../../core/retention/tombstone.ts'
import type { OutboxRow, OutboxStore, SetAsideKey, Skipped } from '../outbox-store.ts'
import { RedisScript, whenReplicated } from './redis-client.ts'
import { LEADER, type RedisKeys } from './redis-keys.ts'
import { LUA_HOLDS } from './redis-lease-assignment.ts'
import { LUA_OUTBOX, LUA_TEXT } from './redis-scripts.ts'

/**
 * KEYS: outbox, ids. ARGV: numbers and event ids of the events to remove. Both are compared, because after Redis lost
 * its newest writes a number may belong to another event.
 */
const REMOVE = new RedisScript(`
for at = 1, #ARGV, 2 do
  if redis.call('HGET', KEYS[2], ARGV[at + 1]) == ARGV[at] then
    redis.call('XDEL', KEYS[1], ARGV[at] .. '-0')
    redis.call('HDEL', KEYS[2], ARGV[at + 1])
  end
end
return 1
`)

/**
 * KEYS: lease, kept value, then outbox and ids of each event. ARGV: token, value, made at, then id, type, JSON of each
 * event.
 */
const COMMIT_KEPT = new RedisScript(`${LUA_HOLDS}${LUA_TEXT}${LUA_OUTBOX}
if not holds(KEYS[1], ARGV[1]) then return 0 end
redis.call('SET', KEYS[2], ARGV[2])
for event = 0, (#ARGV - 3) / 3 - 1 do
  local at, key = 4 + event * 3, 3 + event * 2
  addEvent(KEYS[key], KEYS[key + 1], ARGV[at], ARGV[at + 1], ARGV[3], ARGV[at + 2])
end
return 1
`)

/** KEYS: outboxes. Returns for each how many events wait in it, and when the oldest was made or an empty text. */
const MEASURE = new RedisScript(`
local found = {}
for at, outbox in ipairs(KEYS) do
  local first = redis.call('XRANGE', outbox, '-', '+', 'COUNT', 1)[1]
  found[at * 2 - 1] = redis.call('XLEN', outbox)
  found[at * 2] = first and first[2][6] or ''
end
return found
`)

const PAGE = 1_000

export class RedisOutboxStore implements OutboxStore {
  /** The event ids, by row, of events that were read and may be removed. */
  private readonly eventIds = new Map<number, string>()
  private nextShard = 0
  private depth = 0
  private oldestMs: number | null = null

  /**
   * `ownedShards` returns the shards whose lease this worker has now, `isHandedOut` whether events of one may leave. An
   * event is handed out once `replicas` have it, with the state that led to it: else the hub could know of an alert
   * that Redis has forgotten.
   */
  constructor(
    private readonly redis: Redis,
    private readonly keys: RedisKeys,
    private readonly ownedShards: () => readonly number[],
    private readonly replicas = 0,
    private readonly isHandedOut: (shard: number) => boolean = () => true,
  ) {}

  private static rowId(shard: number, number: number): number {
    return number * limits.stateShards + shard
  }

  /** The oldest events of the shards of this worker; a server's in order. */
  nextEvents(limit: number, { pairKeys, companyIds }: Skipped = { pairKeys: [], companyIds: [] }) {
    const [pairs, companies] = [new Set(pairKeys), new Set(companyIds)]
    const isAll = pairs.size === 0 && companies.size === 0
    return this.oldest(
      limit,
      isAll ? limit : PAGE,
      (event, pairKey) => !pairs.has(pairKey) && !companies.has(event.company_id),
    )
  }

  async oldestEventOf(key: SetAsideKey): Promise<OutboxRow | null> {
    const [row] = await this.oldest(1, PAGE, (event, pairKey) =>
      'pairKey' in key ? pairKey === key.pairKey : event.company_id === key.companyId,
    )
    return row ?? null
  }

  private async oldest(
    limit: number,
    pageSize: number,
    isWanted: (event: AlertEvent, pairKey: string) => boolean,
  ): Promise<OutboxRow[]> {
    const rows: OutboxRow[] = []
    this.eventIds.clear()
    for (const shard of await this.filledShards()) {
      let from = '-'
      while (rows.length < limit) {
        const found = await this.redis.xrange(this.keys.outbox(shard), from, '+', 'COUNT', pageSize)
        for (const [id, fields] of found) {
          from = `(${id}`
          const event: AlertEvent = JSON.parse(fields[1]!)
          const pairKey = eventPairKey(event)
          if (rows.length === limit || !isWanted(event, pairKey)) continue
          const row = RedisOutboxStore.rowId(shard, Number.parseInt(id, 10))
          this.eventIds.set(row, event.event_id)
          rows.push({ id: row, pairKey, event })
        }
        if (found.length < pageSize) break
      }
    }
    if (rows.length > 0) await this.whenReplicated()
    return rows
  }

  private async whenReplicated(): Promise<void> {
    if (this.replicas === 0) return
    // Others wrote the events: a write of this connection is behind theirs, and so is the wait for it.
    await this.redis.set(this.keys.replicationMark, '1')
    await whenReplicated(this.redis, this.replicas)
  }

  /** The shards of this worker that have events, starting with another one every time. */
  private async filledShards(): Promise<number[]> {
    const filled = await this.measure()
    if (filled.length === 0) return filled
    this.nextShard = (this.nextShard + 1) % filled.length
    return [...filled.slice(this.nextShard), ...filled.slice(0, this.nextShard)]
  }

  /** Counts the events that wait in the shards of this worker, and since when. Returns the shards that have some. */
  async measure(): Promise<number[]> {
    const owned = this.ownedShards().filter(this.isHandedOut)
    // One call for all: it is made each second, and was two commands a shard.
    const found = await MEASURE.run(
      this.redis,
      owned.map(shard => this.keys.outbox(shard)),
      [],
    )
    assert(Array.isArray(found) && found.length === owned.length * 2, 'each outbox is measured')
    const depths = owned.map((_, index) => Number(found[index * 2]))
    const times = owned.flatMap((_, index) => (depths[index]! > 0 ? [Number(found[index * 2 + 1])] : []))
    this.depth = depths.reduce((sum, depth) => sum + depth, 0)
    this.oldestMs = times.length === 0 ? null : Math.min(...times)
    return owned.filter((_, index) => depths[index]! > 0)
  }

  /** Removes events that the hub has accepted, or will never accept. */
  async removeEvents(rowIds: readonly number[]): Promise<void> {
    const byShard = new Map<number, (string | number)[]>()
    for (const row of rowIds) {
      const shard = row % limits.stateShards
      const args = byShard.get(shard) ?? []
      const eventId = this.eventIds.get(row)
      assert(eventId !== undefined, 'an event that leaves was read before')
      args.push(Math.floor(row / limits.stateShards), eventId)
      byShard.set(shard, args)
    }
    for (const [shard, args] of byShard)
      await REMOVE.run(this.redis, [this.keys.outbox(shard), this.keys.outboxIds(shard)], args)
  }

  /** Removes the events and open alerts of a purged company, or of one of its servers, in the shards of this worker. */
  async removeEventsOf(companyId: string, serverId: string | null): Promise<void> {
    const owned = this.ownedShards()
    const shards = serverId === null ? owned : owned.filter(shard => shard === shardOfServer(serverId))
    const purged = new TombstoneSet([{ companyId, serverId, untilMs: Number.POSITIVE_INFINITY }])
    for (const shard of shards) await this.removePurged(shard, purged, 0)
  }

  /**
   * Removes of a shard the events that were made before the tombstone of their tenant ended, and the open alerts of
   * tenants under one that is in force.
   */
  async removePurged(shard: number, tombstones: TombstoneSet, nowMs: number): Promise<void> {
    await this.removeOpen(shard, ({ companyId, serverId }) => tombstones.covers(companyId, serverId, nowMs))
    await this.removeWhere(shard, Number.POSITIVE_INFINITY, ({ company_id, server_id }, madeAtMs) =>
      tombstones.covers(company_id, server_id, Math.min(madeAtMs, nowMs)),
    )
  }

  /**
   * Trims to the share of the bound that belongs to this worker's shards: the oldest reminders first, then the oldest
   * events.
   */
  async trimOutbox(eventsMax: number): Promise<number> {
    await this.measure()
    const owned = this.ownedShards()
    let over = this.depth - Math.floor((eventsMax * owned.length) / limits.stateShards)
    if (over <= 0) return 0
    let removed = 0
    for (const isReminder of [true, false])
      for (const shard of owned) {
        if (over <= 0) return removed
        const gone = await this.removeWhere(shard, over, event => !isReminder || event.type === 'alert.reminder')
        over -= gone
        removed += gone
      }
    return removed
  }

  private async removeOpen(shard: number, isGone: (record: JournalRecord) => boolean): Promise<void> {
    const key = this.keys.openRecords(shard)
    const gone: string[] = []
    for (const [field, text] of Object.entries(await this.redis.hgetall(key))) {
      const { r: record }: { r: JournalRecord } = JSON.parse(text)
      if (isGone(record)) gone.push(field)
    }
    if (gone.length > 0) await this.redis.hdel(key, ...gone)
  }

  private async removeWhere(
    shard: number,
    countMax: number,
    isWanted: (event: AlertEvent, madeAtMs: number) => boolean,
  ): Promise<number> {
    const args: string[] = []
    let from = '-'
    while (args.length / 2 < countMax) {
      const rows = await this.redis.xrange(this.keys.outbox(shard), from, '+', 'COUNT', PAGE)
      for (const [id, fields] of rows) {
        from = `(${id}`
        const event: AlertEvent = JSON.parse(fields[1]!)
        if (isWanted(event, Number(fields[5])) && args.length / 2 < countMax)
          args.push(String(Number.parseInt(id, 10)), event.event_id)
      }
      if (rows.length < PAGE) break
    }
    const { outbox, outboxIds } = this.keys
    for (let at = 0; at < args.length; at += PAGE)
      await REMOVE.run(this.redis, [outbox(shard), outboxIds(shard)], args.slice(at, at + PAGE))
    return args.length / 2
  }

  /** The number of events that waited in this worker's shards at the last count. */
  outboxDepth(): number {
    return this.depth
  }

  oldestEventMs(): number | null {
    return this.oldestMs
  }

  /** The value stored under a name, or null. */
  async kept(name: string): Promise<unknown> {
    const text = await this.redis.get(this.keys.kept(name))
    return text === null ? null : JSON.parse(text)
  }

  /**
   * Stores a value together with the events that led to it, under the leader's lease. False when this worker no longer
   * has the lease; nothing was stored.
   */
  async commitKept(
    token: string,
    events: readonly AlertEvent[],
    name: string,
    value: unknown,
    nowMs: number,
  ): Promise<boolean> {
    const scriptKeys = [this.keys.lease(LEADER), this.keys.kept(name)]
    const args: (string | number)[] = [token, JSON.stringify(value), Math.floor(nowMs)]
    for (const event of events) {
      const shard = shardOfServer(event.server_id)
      scriptKeys.push(this.keys.outbox(shard), this.keys.outboxIds(shard))
      args.push(event.event_id, event.type, JSON.stringify(event))
    }
    return (await COMMIT_KEPT.run(this.redis, scriptKeys, args)) === 1
  }

  /** Servers that are declared lost, of all shards, and since when. */
  async downServers(): Promise<[serverId: string, sinceMs: number][]> {
    const found = await this.redis.hgetall(this.keys.presenceDown)
    return Object.entries(found).map(([serverId, sinceMs]) => [serverId, Number(sinceMs)])
  }

  /** Drops servers that were purged or have no agent any more. */
  async forgetDown(serverIds: readonly string[]): Promise<void> {
    if (serverIds.length > 0) await this.redis.hdel(this.keys.presenceDown, ...serverIds)
  }
}

// The durable state of one shard in Redis: snapshot, journal, series keys, rule changes, and events. Everything is read
// once, when the shard is acquired. Writes are queued and done one after another, each under the token of the lease. So
// the durable state is always that of some instant of the evaluation, and an earlier owner cannot add to it.

import type { Redis } from 'ioredis'
import { isOpenRecord, type JournalRecord, journalKey } from '../../../../core/alerting/durability/journal-record.ts'
import { type RuleChangeRecord, ruleName } from '../../../../core/alerting/durability/rule-change-record.ts'
import type { AlertEvent } from '../../../../core/alerting/evaluate/event.ts'
import { recordText } from '../../../../core/alerting/rules/packed-rule.ts'
import type { RuleRecord } from '../../../../core/alerting/rules/rule.ts'
import type { QuietPresence } from '../../../../core/alerting/state/evaluation-state.ts'
import { assert } from '../../../../core/assert.ts'
import { shardOfServer } from '../../../../core/bus/shard-of-server.ts'
import type { KnownShard, PlacedRecord, ShardStore } from '../shard-store.ts'
import type { RecentCommits } from './commit-again-after-loss.ts'
import { asBuffer, RedisScript } from './redis-client.ts'
import type { RedisKeys } from './redis-keys.ts'
import { LUA_HOLDS } from './redis-lease-assignment.ts'
import { LUA_OUTBOX, LUA_TEXT } from './redis-scripts.ts'

/**
 * Another worker owns the shard now, or Redis refused a write: evaluation of the shard must start again from the
 * durable state.
 */
export class ShardLost extends Error {}

/**
 * KEYS: lease, outbox, its ids, lost servers, journal, shard state, open records. ARGV: token, made at, last journal
 * number, number of events, then id, type, server, key of the agent's presence (empty for rule events), time, JSON of
 * each; then key, 1 = open, JSON of each journal record.
 */
const COMMIT = new RedisScript(`${LUA_HOLDS}${LUA_TEXT}${LUA_OUTBOX}
if not holds(KEYS[1], ARGV[1]) then return 0 end
local at = 5
for _ = 1, tonumber(ARGV[4]) do
  local id, kind, server, presence, sinceMs, event = unpack(ARGV, at, at + 5)
  at = at + 6
  local isNew = addEvent(KEYS[2], KEYS[3], id, kind, ARGV[2], event)
  if isNew and kind == 'agent.down' then
    redis.call('SET', presence, 'down ' .. sinceMs)
    redis.call('HSET', KEYS[4], server, sinceMs)
  elseif isNew and kind == 'agent.up' then
    redis.call('SET', presence, 'up ' .. sinceMs)
    redis.call('HDEL', KEYS[4], server)
  end
end
for record = at, #ARGV, 3 do
  redis.call('RPUSH', KEYS[5], ARGV[record + 2])
  if ARGV[record + 1] == '1' then
    redis.call('HSET', KEYS[7], ARGV[record], ARGV[record + 2])
  else
    redis.call('HDEL', KEYS[7], ARGV[record])
  end
end
redis.call('HSET', KEYS[6], 'journal', ARGV[3], 'writer', ARGV[1])
return 1
`)

/** KEYS: lease. ARGV: token, then key and value of each presence; an empty value removes the key. */
const KEEP_PRESENCE = new RedisScript(`${LUA_HOLDS}
if not holds(KEYS[1], ARGV[1]) then return 0 end
for at = 2, #ARGV, 2 do
  if ARGV[at + 1] == '' then redis.call('DEL', ARGV[at]) else redis.call('SET', ARGV[at], ARGV[at + 1]) end
end
return 1
`)

/** Removes the notes of `KEYS[key]` whose positions are below a bound. */
const LUA_PASS_NOTES = `
local function passNotes(key, bound)
  while true do
    local note = redis.call('LINDEX', key, 0)
    if not note or cjson.decode(note).p >= bound then break end
    redis.call('LPOP', key)
  end
end
`

/**
 * KEYS: lease, snapshot, journal, notes of rules, shard state. ARGV: token, bytes, position, journal mark. What came
 * after the two stays, and so do notes at the position: they may be younger than the snapshot.
 */
const SAVE = new RedisScript(`${LUA_HOLDS}${LUA_PASS_NOTES}
if not holds(KEYS[1], ARGV[1]) then return 0 end
redis.call('SET', KEYS[2], ARGV[2])
local after = tonumber(redis.call('HGET', KEYS[5], 'journal') or '0') - tonumber(ARGV[4])
if after > 0 then redis.call('LTRIM', KEYS[3], -after, -1) else redis.call('DEL', KEYS[3]) end
passNotes(KEYS[4], tonumber(ARGV[3]))
return 1
`)

/** KEYS: lease, notes of rules. ARGV: token, position. */
const PASS_RULES = new RedisScript(`${LUA_HOLDS}${LUA_PASS_NOTES}
if not holds(KEYS[1], ARGV[1]) then return 0 end
passNotes(KEYS[2], tonumber(ARGV[2]) + 1)
return 1
`)

/** KEYS: lease, set. ARGV: token, members. */
const ADD_KEYS = new RedisScript(`${LUA_HOLDS}
if not holds(KEYS[1], ARGV[1]) then return 0 end
for at = 2, #ARGV, 1000 do redis.call('SADD', KEYS[2], unpack(ARGV, at, math.min(at + 999, #ARGV))) end
return 1
`)

/** KEYS: lease, set. ARGV: token, members. */
const DROP_KEYS = new RedisScript(`${LUA_HOLDS}
if not holds(KEYS[1], ARGV[1]) then return 0 end
for at = 2, #ARGV, 1000 do redis.call('SREM', KEYS[2], unpack(ARGV, at, math.min(at + 999, #ARGV))) end
return 1
`)

/**
 * KEYS: lease, notes of the shard, newest notes of all. ARGV: token, then rule id, cursor and JSON of each note. A note
 * without a rule is of the shard alone.
 */
const KEEP_RULES = new RedisScript(`${LUA_HOLDS}
if not holds(KEYS[1], ARGV[1]) then return 0 end
for at = 2, #ARGV, 3 do
  redis.call('RPUSH', KEYS[2], ARGV[at + 2])
  local newest = redis.call('HGET', KEYS[3], ARGV[at])
  local isNewer = not newest or cjson.decode(newest).s < tonumber(ARGV[at + 1])
  if isNewer and ARGV[at] ~= '' then redis.call('HSET', KEYS[3], ARGV[at], ARGV[at + 2]) end
end
return 1
`)

/** A rule as a record of its change names it; its JSON stands for a day under that name, once for all shards. */
const RULE_TEXT_SECONDS = 86_400
const KEYS_A_CALL = 5_000
const PRESENCES_A_CALL = 1_000
const AGENT_SERIES = 'agent:'

/** A journal record with its number and its position on the bus. */
type Numbered = { readonly i: number; readonly p: number; readonly r: JournalRecord }

type Found = {
  readonly snapshot: Buffer | null
  /** What the snapshot may not reflect, and all that is open, in the order in which it was made. */
  readonly journal: readonly Numbered[]
  readonly journalMark: number
  /** The lease under which the last journal record was written; empty when that is not known. */
  readonly writer: string
  readonly keys: readonly string[]
  /** Changes of rules since the snapshot, and the newest of every rule by any shard. */
  readonly ruleChanges: readonly RuleChangeRecord[]
}

/** A rule change as it stands in Redis: position, cursor, rule, company, names of what it was and is. */
type StoredRuleChange = {
  readonly p: number
  readonly s: number
  readonly id: string
  readonly c: string
  readonly b: string | null
  readonly a: string | null
}

/** Records of the journal, each once, by number. */
function inOrder(texts: readonly string[]): Numbered[] {
  const byNumber = new Map<number, Numbered>()
  for (const text of texts) {
    const record: Numbered = JSON.parse(text)
    byNumber.set(record.i, record)
  }
  return [...byNumber.values()].sort((a, b) => a.i - b.i)
}

/** A shard whose lease this worker holds, and what it is kept with. */
type LeasedShard = {
  readonly redis: Redis
  readonly keys: RedisKeys
  readonly shard: number
  readonly token: string
  /** Shared by the shards of a thread. */
  readonly records: RuleRecords
  /** What this worker committed of the shard, under this lease or an earlier one. */
  readonly recent?: RecentCommits
}

/**
 * Rules, which rule changes name: the first shard that needs one writes it, and the others of its thread wait for
 * that.
 */
export class RuleRecords {
  private readonly writing = new Map<string, Promise<void>>()

  constructor(
    private readonly redis: Redis,
    private readonly keys: RedisKeys,
  ) {}

  keep(rule: RuleRecord): Promise<void> {
    const key = this.keys.ruleText(ruleName(rule))
    const writing = this.writing.get(key) ?? this.write(key, rule).finally(() => this.writing.delete(key))
    this.writing.set(key, writing)
    return writing
  }

  private async write(key: string, rule: RuleRecord): Promise<void> {
    const isThere = (await this.redis.expire(key, RULE_TEXT_SECONDS)) === 1
    if (!isThere) await this.redis.set(key, recordText(rule), 'EX', RULE_TEXT_SECONDS)
  }
}

/**
 * The rule changes that a replay of the shard needs. The newest change of a rule by any other shard counts as made
 * before everything here. So a state of such a rule does not count as one of a removed rule, even if this worker has an
 * older set.
 */
async function readRuleChanges({ redis, keys, shard }: LeasedShard): Promise<RuleChangeRecord[]> {
  const [newest, own] = await Promise.all([redis.hvals(keys.newestRules), redis.lrange(keys.ruleChanges(shard), 0, -1)])
  const ofOthers = newest.map((text): StoredRuleChange => ({ ...JSON.parse(text), p: 0 })).sort((a, b) => a.s - b.s)
  const changes = ofOthers.concat(own.map((text): StoredRuleChange => JSON.parse(text)))
  const names = [...new Set(changes.flatMap(({ a, b }) => [a, b]))].filter(name => name !== null)
  const texts = names.length === 0 ? [] : await redis.mget(names.map(keys.ruleText))
  const rules = new Map(names.map((name, index) => [name, texts[index] ?? null]))
  // A rule text that has expired is more than a day old; every worker has pulled that set since.
  const known = changes.filter(({ a, b }) => [a, b].every(name => name === null || rules.get(name) !== null))
  const ruleOf = (name: string | null): RuleRecord | null =>
    name === null ? null : JSON.parse(rules.get(name) ?? 'null')
  return known.map(({ p, s, id, a, b }) => ({ position: p, since: s, ruleId: id, before: ruleOf(b), after: ruleOf(a) }))
}

/** Empty for a record that names no company: it is rejected, and runs nowhere. */
const companyOf = (rule: RuleRecord | null): string => (typeof rule?.company_id === 'string' ? rule.company_id : '')

/** A lease's token is its owner and a number. */
const ownerOf = (token: string): string => token.slice(0, Math.max(0, token.lastIndexOf(' ')))

export class RedisShardStore implements ShardStore {
  /** Number of the last journal record of the shard. */
  journalMark: number
  private readonly waiting: (() => Promise<unknown>)[] = []
  private writing: Promise<void> | null = null
  private failure: ShardLost | null = null

  private constructor(
    private readonly leased: LeasedShard,
    private found: Found | null,
  ) {
    this.journalMark = found?.journalMark ?? 0
  }

  /**
   * Reads what is kept of the shard. The lease must be held already: nobody writes any more then.
   */
  static async open(leased: LeasedShard): Promise<RedisShardStore> {
    const { redis, keys, shard } = leased
    const [snapshot, journal, open, state, seriesKeys, ruleChanges] = await Promise.all([
      redis.getBuffer(keys.snapshot(shard)),
      redis.lrange(keys.journal(shard), 0, -1),
      redis.hvals(keys.openRecords(shard)),
      redis.hmget(keys.shardState(shard), 'journal', 'writer'),
      redis.smembers(keys.seriesKeys(shard)),
      readRuleChanges(leased),
    ])
    return new RedisShardStore(leased, {
      snapshot,
      journal: inOrder([...journal, ...open]),
      journalMark: Number(state[0] ?? 0),
      writer: state[1] ?? '',
      keys: seriesKeys,
      ruleChanges,
    })
  }

  /** Resolves once everything that was handed over is durable. Rejects with ShardLost when it will never be. */
  async flushed(): Promise<void> {
    while (this.writing) await this.writing
    if (this.failure) throw this.failure
  }

  /**
   * Ends all writes to the shard, even while the lease is valid. After a reconnect Redis may have lost its newest
   * writes, and changes that build on them must not be added to what is left.
   */
  abandon(): void {
    this.failure ??= new ShardLost(`shard ${this.leased.shard} was given up`)
    this.waiting.length = 0
  }

  private write(operation: () => Promise<unknown>): void {
    if (this.failure) return
    this.waiting.push(operation)
    this.writing ??= this.writeAll()
  }

  private async writeAll(): Promise<void> {
    try {
      for (let next = this.waiting.shift(); next; next = this.waiting.shift())
        if ((await next()) !== 1) throw new Error('the lease is not held any more')
    } catch (error) {
      this.failure ??= new ShardLost(`shard ${this.leased.shard} cannot be written`, { cause: error })
      this.waiting.length = 0
    }
    this.writing = null
  }

  commit(events: readonly AlertEvent[], journal: readonly JournalRecord[], position: number, nowMs: number): void {
    const { redis, keys, shard, token } = this.leased
    for (const record of journal) assert(record.shard === shard, 'a shard keeps what it knows of its own servers')
    for (const event of events)
      assert(shardOfServer(event.server_id) === shard, 'an event goes into the outbox of its own shard')
    const records = journal.flatMap(record => [
      journalKey(record),
      isOpenRecord(record) ? 1 : 0,
      JSON.stringify({ i: ++this.journalMark, p: position, r: record }),
    ])
    const args: (string | number)[] = [token, Math.floor(nowMs), this.journalMark, events.length]
    for (const event of events) {
      const isAgent = event.type === 'agent.down' || event.type === 'agent.up'
      const presenceKey = isAgent ? keys.agentState(event.series_key.slice(AGENT_SERIES.length)) : ''
      args.push(event.event_id, event.type, event.server_id, presenceKey, Date.parse(event.occurred_at))
      args.push(JSON.stringify(event))
    }
    args.push(...records)
    const scriptKeys = [
      keys.lease(shard),
      keys.outbox(shard),
      keys.outboxIds(shard),
      keys.presenceDown,
      keys.journal(shard),
      keys.shardState(shard),
      keys.openRecords(shard),
    ]
    const commit = { events, journal, position, nowMs, mark: this.journalMark }
    this.leased.recent?.begin(commit)
    this.write(async () => {
      const taken = await COMMIT.run(redis, scriptKeys, args)
      if (taken === 1) this.leased.recent?.add(commit)
      return taken
    })
  }

  /**
   * Writes presence changes without an event: an agent's first batch, and its removal. Changes with an event are
   * written with that event.
   */
  keepPresence(changes: readonly QuietPresence[]): void {
    const { redis, keys, shard, token } = this.leased
    for (let at = 0; at < changes.length; at += PRESENCES_A_CALL) {
      const args = changes
        .slice(at, at + PRESENCES_A_CALL)
        .flatMap(({ agentId, state, atMs }) => [
          keys.agentState(agentId),
          state === 'up' ? `up ${Math.floor(atMs)}` : '',
        ])
      this.write(() => KEEP_PRESENCE.run(redis, [keys.lease(shard)], [token, ...args]))
    }
  }

  *journalAfter(_shard: number, position: number, mark: number): Generator<PlacedRecord> {
    for (const { i, p, r } of this.found?.journal ?? []) if (p > position || i > mark) yield { position: p, record: r }
  }

  keys(_shard: number): string[] {
    return [...(this.found?.keys ?? [])]
  }

  keepKeys(_shard: number, seriesKeys: readonly string[]): void {
    this.writeKeys(ADD_KEYS, seriesKeys)
  }

  /** Keys that no snapshot of the shard needs any more. */
  dropKeys(_shard: number, seriesKeys: readonly string[]): void {
    this.writeKeys(DROP_KEYS, seriesKeys)
  }

  private writeKeys(script: RedisScript, seriesKeys: readonly string[]): void {
    const { redis, keys, shard, token } = this.leased
    for (let at = 0; at < seriesKeys.length; at += KEYS_A_CALL) {
      const some = seriesKeys.slice(at, at + KEYS_A_CALL)
      this.write(() => script.run(redis, [keys.lease(shard), keys.seriesKeys(shard)], [token, ...some]))
    }
  }

  keepRules(_thread: number, changes: readonly RuleChangeRecord[]): void {
    const { redis, keys, shard, token, records } = this.leased
    const stored = changes.map(
      ({ position, since, ruleId, before, after }): StoredRuleChange => ({
        p: position,
        s: since,
        id: ruleId,
        c: companyOf(after ?? before),
        b: before && ruleName(before),
        a: after && ruleName(after),
      }),
    )
    const args = stored.flatMap(change => [change.id, change.s, JSON.stringify(change)])
    const rules = changes.flatMap(({ before, after }) => [before, after]).filter(rule => rule !== null)
    this.write(async () => {
      for (const rule of rules) await records.keep(rule)
      const scriptKeys = [keys.lease(shard), keys.ruleChanges(shard), keys.newestRules]
      return KEEP_RULES.run(redis, scriptKeys, [token, ...args])
    })
  }

  /** What was noted when the shard was opened. */
  ruleChanges(_thread: number): RuleChangeRecord[] {
    return [...(this.found?.ruleChanges ?? [])]
  }

  passRules(_thread: number, position: number): void {
    const { redis, keys, shard, token } = this.leased
    this.write(() => PASS_RULES.run(redis, [keys.lease(shard), keys.ruleChanges(shard)], [token, position]))
  }

  saveSnapshot(_shard: number, bytes: Uint8Array, position: number, mark: number): void {
    const { redis, keys, shard, token } = this.leased
    const scriptKeys = [keys.lease(shard), keys.snapshot(shard), keys.journal(shard), keys.ruleChanges(shard)]
    scriptKeys.push(keys.shardState(shard))
    this.write(() => SAVE.run(redis, scriptKeys, [token, asBuffer(bytes), position, mark]))
  }

  loadSnapshot(_shard: number): Uint8Array | null {
    return this.found?.snapshot ?? null
  }

  /**
   * The bus ends at `head`: positions beyond it are of a bus that is lost. What they stand beside came before
   * everything that is on the bus now.
   */
  distrustAfter(head: number): void {
    if (!this.found) return
    const journal = this.found.journal.map(record => (record.p > head ? { ...record, p: 0 } : record))
    const ruleChanges = this.found.ruleChanges.map(change =>
      change.position > head ? { ...change, position: 0 } : change,
    )
    this.found = { ...this.found, journal, ruleChanges }
  }

  /** Nothing is kept of the shard, as of one that never had a server, or where Redis has lost everything. */
  get isEmpty(): boolean {
    const { found } = this
    return found !== null && found.snapshot === null && found.journal.length === 0 && found.writer === ''
  }

  /**
   * Redis has lost everything, and this worker knows what it had: the shard starts from there, and what the hub may not
   * have been told of is committed again. Returns the number of events.
   */
  startFrom({ snapshot, keys, endedAtMs }: KnownShard, nowMs: number): number {
    const { found } = this
    const { shard, recent } = this.leased
    assert(found && this.isEmpty, 'what is kept of a shard comes first')
    this.found = { ...found, snapshot: Buffer.from(snapshot), keys }
    this.keepKeys(shard, keys)
    let eventCount = 0
    for (const { events } of recent?.takeBefore(endedAtMs) ?? []) {
      if (events.length > 0) this.commit(events, [], 0, nowMs)
      eventCount += events.length
    }
    return eventCount
  }

  /**
   * Commits again what this worker committed and Redis has lost, unless another worker has written since. `head` is the
   * last position of the bus. Returns the number of events.
   */
  commitAgain(head: number): number {
    const { found } = this
    const { recent, token } = this.leased
    if (!found || !recent || ownerOf(found.writer) !== ownerOf(token)) return 0
    const journal = [...found.journal]
    let eventCount = 0
    for (const { events, journal: records, position, nowMs } of recent.takeAfter(found.journalMark)) {
      const p = Math.min(position, head)
      let i = this.journalMark
      for (const r of records) journal.push({ i: ++i, p, r })
      this.commit(events, records, p, nowMs)
      eventCount += events.length
    }
    this.found = { ...found, journal }
    return eventCount
  }

  /** What was read at the opening is not needed any more. */
  restored(): void {
    this.found = null
  }
}

// What the evaluation of one shard keeps in Redis: snapshot, journal, keys of series, rules in force, and the events it makes. Everything
// is read once, when the shard is taken over. Writes are handed over in order and done one after another, each under the token of
// the lease: what is durable is always what some instant of the evaluation had made, and an owner of before cannot add to it.
import type { Redis } from 'ioredis'
import type { AlertEvent } from '../../../core/alerting/event.ts'
import { isOpenRecord, type JournalRecord, journalKey } from '../../../core/alerting/journal-record.ts'
import type { RawRule } from '../../../core/alerting/rule.ts'
import type { ShardKeys } from '../../../core/alerting/series-dictionary.ts'
import { asBuffer, RedisScript } from './redis-client.ts'
import type { RedisKeys } from './redis-keys.ts'
import { LUA_HOLDS } from './redis-leases.ts'
import { LUA_OUTBOX, LUA_TEXT } from './redis-scripts.ts'

/** The shard is another worker's now, or Redis did not take a write: evaluation of it starts again from what is durable. */
export class ShardLost extends Error {}

/**
 * KEYS: lease, outbox, its ids, lost machines, journal, shard state, open records. ARGV: token, made at, prefix of agent states, last
 * journal number, number of events, then id, type, machine, agent (empty for rule events), time, JSON of each; then key, 1 = open,
 * JSON of each journal record.
 */
const COMMIT = new RedisScript(`${LUA_HOLDS}${LUA_TEXT}${LUA_OUTBOX}
if not holds(KEYS[1], ARGV[1]) then return 0 end
local at = 6
for _ = 1, tonumber(ARGV[5]) do
  local id, kind, server, agent, sinceMs, event = unpack(ARGV, at, at + 5)
  at = at + 6
  local isNew = addEvent(KEYS[2], KEYS[3], id, kind, ARGV[2], event)
  if isNew and kind == 'agent.down' then
    redis.call('SET', ARGV[3] .. agent .. ':st', 'down ' .. sinceMs)
    redis.call('HSET', KEYS[4], server, sinceMs)
  elseif isNew and kind == 'agent.up' then
    redis.call('SET', ARGV[3] .. agent .. ':st', 'up ' .. sinceMs)
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
redis.call('HSET', KEYS[6], 'journal', ARGV[4])
return 1
`)

/** KEYS: lease, snapshot, journal. ARGV: token, bytes. All of the journal is older than the snapshot: both are written in order. */
const SAVE = new RedisScript(`${LUA_HOLDS}
if not holds(KEYS[1], ARGV[1]) then return 0 end
redis.call('SET', KEYS[2], ARGV[2])
redis.call('DEL', KEYS[3])
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

/** KEYS: lease, rules, their cursors. ARGV: token, cursor, then company and rules. The first shard that comes to a set notes it for all. */
const KEEP_RULES = new RedisScript(`${LUA_HOLDS}
if not holds(KEYS[1], ARGV[1]) then return 0 end
for at = 3, #ARGV, 2 do
  if tonumber(redis.call('HGET', KEYS[3], ARGV[at]) or '-1') < tonumber(ARGV[2]) then
    redis.call('HSET', KEYS[3], ARGV[at], ARGV[2])
    redis.call('HSET', KEYS[2], ARGV[at], ARGV[at + 1])
  end
end
return 1
`)

const KEYS_A_CALL = 5_000
const AGENT_SERIES = 'agent:'

/** A journal record with its number and its position on the bus. */
type Numbered = { readonly i: number; readonly p: number; readonly r: JournalRecord }

type Found = {
  readonly snapshot: Buffer | null
  /** What the snapshot may not reflect, and all that is open, in the order in which it was made. */
  readonly journal: readonly Numbered[]
  readonly journalMark: number
  readonly keys: readonly string[]
  /** Rules of companies that some shard was put under after the set of this worker. */
  readonly rules: ReadonlyMap<string, RawRule[]>
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

type Place = { readonly redis: Redis; readonly keys: RedisKeys; readonly shard: number; readonly token: string }

/** Rules that were put in force after the set with cursor `since`, by any worker: a state under such a rule is not one of a removed rule. */
async function rulesAfter({ redis, keys }: Place, since: number): Promise<Map<string, RawRule[]>> {
  const later = Object.entries(await redis.hgetall(keys.appliedSince)).filter(([, at]) => Number(at) > since)
  const companies = later.map(([companyId]) => companyId)
  const found = companies.length === 0 ? [] : await redis.hmget(keys.appliedRules, ...companies)
  return new Map(companies.map((companyId, index) => [companyId, JSON.parse(found[index] ?? '[]')]))
}

export class RedisShardStore {
  /** Number of the last journal record of the shard. */
  journalMark: number
  private readonly waiting: (() => Promise<unknown>)[] = []
  private writing: Promise<void> | null = null
  private failure: ShardLost | null = null

  private constructor(
    private readonly place: Place,
    private found: Found | null,
  ) {
    this.journalMark = found?.journalMark ?? 0
  }

  /**
   * Reads what is kept of the shard. The lease must be held already: nobody writes any more then. `rulesSince`: the cursor of the
   * rules that this worker has.
   */
  static async open(place: Place, rulesSince: number): Promise<RedisShardStore> {
    const { redis, keys, shard } = place
    const [snapshot, journal, open, state, seriesKeys, rules] = await Promise.all([
      redis.getBuffer(keys.snapshot(shard)),
      redis.lrange(keys.journal(shard), 0, -1),
      redis.hvals(keys.openRecords(shard)),
      redis.hget(keys.shardState(shard), 'journal'),
      redis.smembers(keys.seriesKeys(shard)),
      rulesAfter(place, rulesSince),
    ])
    return new RedisShardStore(place, {
      snapshot,
      journal: inOrder([...journal, ...open]),
      journalMark: Number(state ?? 0),
      keys: seriesKeys,
      rules,
    })
  }

  /** Resolves once everything that was handed over is durable. Rejects with ShardLost when it will never be. */
  async settled(): Promise<void> {
    while (this.writing) await this.writing
    if (this.failure) throw this.failure
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
      this.failure = new ShardLost(`shard ${this.place.shard} cannot be written`, { cause: error })
      this.waiting.length = 0
    }
    this.writing = null
  }

  commit(events: readonly AlertEvent[], journal: readonly JournalRecord[], position: number, nowMs: number): void {
    const { redis, keys, shard, token } = this.place
    const records = journal.flatMap(record => [
      journalKey(record),
      isOpenRecord(record) ? 1 : 0,
      JSON.stringify({ i: ++this.journalMark, p: position, r: record }),
    ])
    const args: (string | number)[] = [token, Math.floor(nowMs), `${keys.prefix}agent:`, this.journalMark]
    args.push(events.length)
    for (const event of events) {
      const isAgent = event.type === 'agent.down' || event.type === 'agent.up'
      const agentId = isAgent ? event.series_key.slice(AGENT_SERIES.length) : ''
      args.push(event.event_id, event.type, event.server_id, agentId, Date.parse(event.occurred_at))
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
    this.write(() => COMMIT.run(redis, scriptKeys, args))
  }

  *journalAfter(
    _shard: number,
    position: number,
    mark: number,
  ): Generator<{ position: number; record: JournalRecord }> {
    for (const { i, p, r } of this.found?.journal ?? []) if (p > position || i > mark) yield { position: p, record: r }
  }

  keys(_shard: number): string[] {
    return [...(this.found?.keys ?? [])]
  }

  keepKeys(shards: readonly ShardKeys[]): void {
    for (const { keys } of shards) this.writeKeys(ADD_KEYS, keys)
  }

  /** Keys that no snapshot of the shard needs any more. */
  dropKeys(_shard: number, seriesKeys: readonly string[]): void {
    this.writeKeys(DROP_KEYS, seriesKeys)
  }

  private writeKeys(script: RedisScript, seriesKeys: readonly string[]): void {
    const { redis, keys, shard, token } = this.place
    for (let at = 0; at < seriesKeys.length; at += KEYS_A_CALL) {
      const some = seriesKeys.slice(at, at + KEYS_A_CALL)
      this.write(() => script.run(redis, [keys.lease(shard), keys.seriesKeys(shard)], [token, ...some]))
    }
  }

  keepRules(_thread: number, since: number, companies: ReadonlyMap<string, readonly RawRule[]>): void {
    if (companies.size === 0) return
    const { redis, keys, shard, token } = this.place
    const args = [...companies].flatMap(([companyId, rules]) => [companyId, JSON.stringify(rules)])
    const scriptKeys = [keys.lease(shard), keys.appliedRules, keys.appliedSince]
    this.write(() => KEEP_RULES.run(redis, scriptKeys, [token, since, ...args]))
  }

  /** Rules that were put in force after the set of this worker, by company; they were read at the opening. */
  rulesAfter(_thread: number, _since: number): Map<string, RawRule[]> {
    return new Map(this.found?.rules)
  }

  saveSnapshot(_shard: number, bytes: Uint8Array, _position: number, _mark: number): void {
    const { redis, keys, shard, token } = this.place
    const scriptKeys = [keys.lease(shard), keys.snapshot(shard), keys.journal(shard)]
    this.write(() => SAVE.run(redis, scriptKeys, [token, asBuffer(bytes)]))
  }

  loadSnapshot(_shard: number): Uint8Array | null {
    return this.found?.snapshot ?? null
  }

  /** What was read at the opening is not needed any more. */
  restored(): void {
    this.found = null
  }
}

// Leases of the shards in Redis: who evaluates which shard. Every value contains a fence, a number that grows with each
// change of owner, so that scripts can refuse writes of an earlier owner. One script renews leases, acquires free ones
// and returns the fair share.

import type { Redis } from 'ioredis'
import { assert } from '../../../../core/assert.ts'
import { limits } from '../../../../core/limits.ts'
import { RedisScript } from './redis-client.ts'
import { LEADER, LEASES, type RedisKeys, STREAM_WORKER } from './redis-keys.ts'
import { LUA_NOW, LUA_TEXT } from './redis-scripts.ts'

/**
 * A worker that has not renewed its leases for this long counts as dead; others acquire them. With the time between two
 * looks of theirs, and what it takes to start a shard, its shards are evaluated again within ten seconds.
 */
export const LEASE_MS = 8_000

/** A lease of this worker: `token` is its value in Redis, and is sent with every write. */
export type HeldLease = { readonly lease: number; readonly token: string }

/**
 * KEYS: workers, fence, leases. ARGV: owner, time to live (ms), 1 = take what is free, leases to take first. Returns
 * the share, the last number that was given to a lease, whether there was none before, whether a worker of a former
 * version is there, then number and token of each lease. Beside such a worker this one takes nothing and counts for
 * nothing: what it moved to the streams of now the former one would pass unseen, should it get the shard back.
 */
const TEND = new RedisScript(`${LUA_NOW}${LUA_TEXT}
local owner, ttlMs, takes = ARGV[1], ARGV[2], ARGV[3] == '1'
local worker = owner .. '${STREAM_WORKER}'
local nowMs = now()
local isBesideFormer = false
for _, other in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], text(nowMs), '+inf')) do
  if string.sub(other, -${STREAM_WORKER.length}) ~= '${STREAM_WORKER}' then isBesideFormer = true end
end
takes = takes and not isBesideFormer
if takes then
  redis.call('ZADD', KEYS[1], text(nowMs + ttlMs), worker)
else
  redis.call('ZREM', KEYS[1], worker)
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', text(nowMs))
local share = isBesideFormer and ${limits.stateShards}
  or math.ceil(${limits.stateShards} / math.max(1, redis.call('ZCARD', KEYS[1])))
local isEmpty = not redis.call('GET', KEYS[2])
local held, free, shards = {share, 0, isEmpty and 1 or 0, isBesideFormer and 1 or 0}, {}, 0
for lease = 0, #KEYS - 3 do
  local key = KEYS[lease + 3]
  local value = redis.call('GET', key)
  if not value then
    free[#free + 1] = lease
  elseif string.sub(value, 1, #owner + 1) == owner .. ' ' then
    redis.call('PEXPIRE', key, ttlMs)
    held[#held + 1] = lease
    held[#held + 1] = value
    if lease < ${LEADER} then shards = shards + 1 end
  end
end
if takes then
  local wanted = {}
  for at = 4, #ARGV do wanted[tonumber(ARGV[at])] = true end
  -- A Redis that has lost everything: each worker takes what it had, of which it knows all, before anybody takes more.
  isEmpty = isEmpty and #ARGV > 3
  table.sort(free, function(a, b)
    if wanted[a] ~= wanted[b] then return wanted[a] == true end
    return a < b
  end)
  for _, lease in ipairs(free) do
    if (lease == ${LEADER} or shards < share) and (wanted[lease] or not isEmpty) then
      local value = owner .. ' ' .. text(redis.call('INCR', KEYS[2]))
      redis.call('SET', KEYS[lease + 3], value, 'PX', ttlMs)
      held[#held + 1] = lease
      held[#held + 1] = value
      if lease < ${LEADER} then shards = shards + 1 end
    end
  end
end
held[2] = redis.call('GET', KEYS[2]) or 0
return held
`)

/** KEYS: lease. ARGV: token. */
const RELEASE = new RedisScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
`)

/** For scripts that write under a lease; they return `lost` without it. */
export const LUA_HOLDS = `
local function holds(lease, token)
  return redis.call('GET', lease) == token
end
`

export class RedisLeases {
  private readonly leaseKeys: string[]
  /** The leases of this worker before Redis was away: it takes these first, since it knows most of their shards. */
  private before: readonly number[] = []
  /** The last number that was given to a lease, as last heard; it grows as long as Redis has what it had. */
  private newestFence = 0

  /**
   * `owner` is unique to this run of the worker: it differs after a restart. `onSetBack` is called when numbers of
   * leases are given out again: Redis has lost what it had, or at least the newest of it.
   */
  constructor(
    private readonly redis: Redis,
    private readonly keys: RedisKeys,
    readonly owner: string,
    private readonly ttlMs: number,
    private readonly onSetBack: () => void = () => {},
  ) {
    this.leaseKeys = Array.from({ length: LEASES }, (_, lease) => keys.lease(lease))
  }

  /**
   * Renews the leases of this worker; with `takes` also acquires free shards up to its share, and the leader's lease.
   */
  async renew(takes: boolean): Promise<{
    readonly share: number
    readonly held: readonly HeldLease[]
    /** It takes nothing, since a worker of a former version runs. */
    readonly isBesideFormer: boolean
  }> {
    const keys = [this.keys.workers, this.keys.fence, ...this.leaseKeys]
    const answer = await TEND.run(this.redis, keys, [this.owner, this.ttlMs, takes ? 1 : 0, ...this.before])
    const parts = Array.isArray(answer) ? answer : []
    const held: HeldLease[] = []
    for (let at = 4; at + 1 < parts.length; at += 2) {
      const token = String(parts[at + 1])
      assert(token.startsWith(`${this.owner} `), 'a lease that is held names its holder')
      held.push({ lease: Number(parts[at]), token })
    }
    if (held.length > 0) this.before = held.map(({ lease }) => lease)
    this.noteFence(Number(parts[1] ?? 0), Number(parts[2] ?? 0) === 1)
    return { share: Number(parts[0] ?? 0), held, isBesideFormer: Number(parts[3] ?? 0) === 1 }
  }

  private noteFence(fence: number, wasEmpty: boolean): void {
    const isSetBack = fence < this.newestFence || (wasEmpty && this.newestFence > 0)
    this.newestFence = fence
    if (isSetBack) this.onSetBack()
  }

  async release({ lease, token }: HeldLease): Promise<void> {
    await RELEASE.run(this.redis, [this.keys.lease(lease)], [token])
  }
}

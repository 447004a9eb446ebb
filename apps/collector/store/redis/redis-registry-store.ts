// The registry that all processes of a collector share in Redis. Each process holds all of it in memory, so that the
// look-up of a token costs no round trip, and polls the changes of the others by change number; redis.cache_ttl bounds
// the delay. The script enforces the version rule too: an older record never replaces a newer one, and revoked is for
// good (G-35).
import type { Redis } from 'ioredis'
import { agentStates } from '../../../../core/lifecycle/agent.ts'
import type { AgentRecord } from '../registry/agent-record.ts'
import type { RegistryCursor, RegistryRow } from '../registry/file-registry-store.ts'
import { RedisScript } from './redis-client.ts'
import type { RedisKeys } from './redis-keys.ts'

const REMOVED = '-'
const ROWS_A_CALL = 500
const PAGE = 2_000

/**
 * KEYS: agents, changes, state. ARGV: since and time of the cursor (empty: unchanged), then agent id and record of each
 * row.
 */
const WRITE = new RedisScript(`
for at = 3, #ARGV, 2 do
  local id, record = ARGV[at], ARGV[at + 1]
  local held = redis.call('HGET', KEYS[1], id)
  local isNewer = true
  if record ~= '${REMOVED}' and held and held ~= '${REMOVED}' then
    local a, b = cjson.decode(held), cjson.decode(record)
    isNewer = b.version > a.version or (b.version == a.version and b.syncVersion >= a.syncVersion)
    -- A revocation holds whatever version another process has written meanwhile.
    if b.state == 'revoked' and a.state ~= 'revoked' and not isNewer then
      record = string.gsub(held, '"state":"%a+"', '"state":"revoked"', 1)
      isNewer = true
    elseif a.state == 'revoked' then
      record = string.gsub(record, '"state":"%a+"', '"state":"revoked"', 1)
    end
  end
  if isNewer then
    redis.call('HSET', KEYS[1], id, record)
    redis.call('ZADD', KEYS[2], redis.call('HINCRBY', KEYS[3], 'change', 1), id)
  end
end
for field, value in pairs({since = ARGV[1], synced_at_ms = ARGV[2]}) do
  if value ~= '' and tonumber(redis.call('HGET', KEYS[3], field) or '0') < tonumber(value) then
    redis.call('HSET', KEYS[3], field, value)
  end
end
return 1
`)

const isRecord = (value: unknown): value is AgentRecord =>
  typeof value === 'object' &&
  value !== null &&
  'agentId' in value &&
  'tokenHash' in value &&
  'state' in value &&
  agentStates.some(state => state === value.state)

/**
 * The store behind AgentRegistry, with the same synchronous interface as the one on disk: `poll` fetches changes before
 * they are read, and writes are sent in the background.
 */
export class RedisRegistryStore {
  private readonly found: RegistryRow[] = []
  private cursorNow: RegistryCursor = { since: 0, syncedAtMs: 0 }
  private change = 0
  /** Arguments of the pending script calls, in order. */
  private readonly writes: (readonly (string | number)[])[] = []
  private writing: Promise<void> | null = null

  /** Empty until the first `poll`, which reads the whole registry. */
  constructor(
    private readonly redis: Redis,
    private readonly keys: RedisKeys,
  ) {
    // After a restart Redis may have lost its newest changes and given their numbers to others, so everything is read
    // again.
    redis.on('close', () => {
      this.change = 0
    })
  }

  /** Fetches the changes since the last poll, and sends writes that failed before. */
  async poll(): Promise<void> {
    if (this.writes.length > 0) await this.flush()
    // The cursor is read first: the records that it covers were written before it.
    const [since, syncedAtMs, last] = await this.redis.hmget(this.keys.registryState, 'since', 'synced_at_ms', 'change')
    // A lower change number means another server, or lost writes: the registry is read again as a whole.
    if (Number(last ?? 0) < this.change) this.change = 0
    for (;;) {
      const page = await this.redis.zrangebyscore(
        this.keys.agentChanges,
        `(${this.change}`,
        '+inf',
        'WITHSCORES',
        'LIMIT',
        0,
        PAGE,
      )
      const ids = page.filter((_, index) => index % 2 === 0)
      if (ids.length === 0) break
      const records = await this.redis.hmget(this.keys.agents, ...ids)
      ids.forEach((agentId, index) => {
        const text = records[index]
        const record: unknown = text === REMOVED || text === null || text === undefined ? null : JSON.parse(text)
        this.found.push({ agentId, record: isRecord(record) ? record : null })
      })
      this.change = Number(page.at(-1))
    }
    this.cursorNow = { since: Number(since ?? 0), syncedAtMs: Number(syncedAtMs ?? 0) }
  }

  /** Whether polls found changes that were not read yet. */
  get hasChanges(): boolean {
    return this.found.length > 0
  }

  /** The changes that polls found. */
  readChanges(): RegistryRow[] {
    return this.found.splice(0)
  }

  cursor(): RegistryCursor {
    return this.cursorNow
  }

  /**
   * Queues rows to be written, and the cursor with the last of them. What Redis does not accept now is written later.
   */
  write(rows: readonly RegistryRow[], cursor: RegistryCursor | null): void {
    const args = rows.flatMap(({ agentId, record }) => [agentId, record ? JSON.stringify(record) : REMOVED])
    for (let at = 0; at < args.length || at === 0; at += ROWS_A_CALL * 2) {
      const isLast = at + ROWS_A_CALL * 2 >= args.length
      const head = isLast && cursor ? [cursor.since, cursor.syncedAtMs] : ['', '']
      this.writes.push([...head, ...args.slice(at, at + ROWS_A_CALL * 2)])
    }
    // Callers that need to know await `flushed`.
    this.flush().catch(() => {})
  }

  /** Resolves once all queued rows are in Redis; rejects when Redis does not accept them now. */
  async flushed(): Promise<void> {
    await this.flush()
  }

  private flush(): Promise<void> {
    if (this.writes.length === 0) return Promise.resolve()
    this.writing ??= this.writeAll()
    return this.writing
  }

  private async writeAll(): Promise<void> {
    const { agents, agentChanges, registryState } = this.keys
    try {
      for (let next = this.writes[0]; next; next = this.writes[0]) {
        await WRITE.run(this.redis, [agents, agentChanges, registryState], next)
        this.writes.shift()
      }
    } finally {
      this.writing = null
    }
  }
}

// A lock over all processes of a collector, for work that may take hours. It expires by itself when its holder dies.
import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { RedisScript, redisCause } from './redis-client.ts'

const TTL_MS = 10_000
const RENEW_MS = 2_000
const POLL_MS = 100

/** KEYS: lock. ARGV: token, time to live (ms). */
const RENEW = new RedisScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`)

/** KEYS: lock. ARGV: token. */
const RELEASE = new RedisScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
`)

/**
 * Throws when another process may have the lock now. The work calls it before every step that two holders must not both
 * do.
 */
type StillHeld = () => void

/**
 * Waits for the lock under `key`, does the work and releases the lock. Rejects when Redis does not answer, or with the
 * error of the work.
 */
export async function underLock(
  redis: Redis,
  key: string,
  work: (stillHeld: StillHeld) => Promise<void>,
): Promise<void> {
  const token = randomUUID()
  while ((await redis.set(key, token, 'PX', TTL_MS, 'NX')) === null) await Bun.sleep(POLL_MS)
  let heldUntilMs = performance.now() + TTL_MS
  let cause = 'it was not renewed in time'
  const timer = setInterval(async () => {
    const askedMs = performance.now()
    try {
      if ((await RENEW.run(redis, [key], [token, TTL_MS])) === 1) heldUntilMs = askedMs + TTL_MS
      else heldUntilMs = 0
    } catch (error) {
      cause = redisCause(error)
    }
  }, RENEW_MS)
  try {
    await work(() => {
      if (performance.now() >= heldUntilMs) throw new Error(`the lock ${key} is not held any more: ${cause}`)
    })
  } finally {
    clearInterval(timer)
    // A lock that cannot be released expires.
    await RELEASE.run(redis, [key], [token]).catch(() => {})
  }
}

// What is wrong with how a Redis is set up, for the operator: what it does not persist, evicts or does not replicate is
// lost, however carefully it is written.
import type { Redis } from 'ioredis'
import type { Logger } from 'pino'
import { redisCause } from './redis-client.ts'
import type { RedisKeys } from './redis-keys.ts'

/**
 * Logs what is wrong with how the server is set up, now and whenever another one may have taken its place: a replica
 * that was promoted is often set up otherwise.
 */
export function logRedisFaults(redis: Redis, findFaults: () => Promise<readonly string[]>, log: Logger): void {
  const check = (): void => {
    findFaults().then(
      faults => {
        for (const fault of faults) log.warn(fault)
      },
      error => log.warn({ cause: redisCause(error) }, 'cannot read how Redis is set up'),
    )
  }
  redis.on('ready', check)
  if (redis.status === 'ready') check()
}

/** A setting of the server; empty where it refuses CONFIG, as a hosted one may. */
const settingOf = (redis: Redis, name: string): Promise<string> =>
  redis.config('GET', name).then(
    answer => (Array.isArray(answer) ? String(answer[1] ?? '') : ''),
    () => '',
  )

/** Commands of every kind that scripts write with, as they stand in the append-only file. */
const writesTo = (key: string): readonly (readonly [string, ...string[]])[] => [
  ['set', key, '1'],
  ['incr', key],
  ['del', key],
  ['pexpireat', key, '1'],
  ['hset', key, 'a', '1'],
  ['hdel', key, 'a'],
  ['hincrby', key, 'a', '1'],
  ['rpush', key, '1'],
  ['lpop', key],
  ['ltrim', key, '0', '1'],
  ['sadd', key, '1'],
  ['srem', key, '1'],
  ['zadd', key, '1', 'a'],
  ['zrem', key, 'a'],
  ['zremrangebyscore', key, '0', '1'],
  ['xadd', key, '*', 'a', '1'],
  ['xtrim', key, 'MAXLEN', '1'],
  ['xdel', key, '1-0'],
]

/**
 * Whether Redis will read again what it writes. It reads its append-only file as the user `default` (7.0.15), and of a
 * transaction, which is what a script becomes there, a command that this user may not give is left out without a word
 * to anybody but its log. Nothing where the server is older than ACL DRYRUN, or refuses it.
 */
async function unreadableWrites(redis: Redis, { busState, outbox }: RedisKeys): Promise<string[]> {
  const asked = [busState, outbox(0)].flatMap(writesTo).map(command =>
    redis.call('ACL', 'DRYRUN', 'default', ...command).then(
      answer => (answer === 'OK' ? [] : [command[0].toUpperCase()]),
      () => [],
    ),
  )
  const refused = [...new Set((await Promise.all(asked)).flat())]
  return refused.length === 0
    ? []
    : [
        `the user default may not ${refused.join(', ')} keys of the collector: Redis reads its append-only file as that user, and loses at its next start what was acknowledged; give it back its rights, with "off" so that nobody logs in as it: user default off ~* &* +@all`,
      ]
}

/**
 * Faults of the server's configuration for the operator: whether it persists what it acknowledges, and can read that
 * again, whether it evicts keys, and whether a primary without replicas goes on. Empty where all is well or the server
 * does not say.
 */
export async function durabilityFaults(
  redis: Redis,
  keys: RedisKeys,
  isReplicated: boolean,
  waitReplicas = 0,
): Promise<string[]> {
  const info = await redis.info()
  const of = (name: string): string => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? ''
  const faults: string[] = []
  if (of('role') === 'slave')
    faults.push(
      'redis.url is a replica: it takes no write, and no batch can be acknowledged; name the primary, or its Sentinels',
    )
  if (of('aof_enabled') === '0')
    faults.push('appendonly is off: acknowledged batches and open alerts are lost when Redis ends; set appendonly yes')
  else faults.push(...(await unreadableWrites(redis, keys)))
  const sync = await settingOf(redis, 'appendfsync')
  if (of('aof_enabled') !== '0' && sync !== '' && sync !== 'always')
    faults.push(
      `appendfsync is ${sync}: the newest acknowledged batches and alerts are lost when Redis is killed while its disk is busy; set appendfsync always`,
    )
  const policy = of('maxmemory_policy')
  if (policy !== '' && policy !== 'noeviction')
    faults.push(`maxmemory-policy is ${policy}: Redis may throw away batches and alerts; set noeviction`)
  if (isReplicated && (await settingOf(redis, 'min-replicas-to-write')) === '0')
    faults.push(
      'min-replicas-to-write is 0: a primary that the Sentinels have replaced goes on acknowledging batches, which are lost when it comes back; set min-replicas-to-write 1',
    )
  // Any replica may be promoted, also one that has not confirmed.
  const connected = Number(of('connected_slaves'))
  if (waitReplicas > 0 && connected > waitReplicas)
    faults.push(
      `redis.wait_replicas is ${waitReplicas} and ${connected} replicas follow: a fail-over to one that has not confirmed loses the newest acknowledged batches; set redis.wait_replicas to ${connected}`,
    )
  return faults
}

// A connection to Redis as the collector needs it: a command fails at once while the connection is down, no command is
// sent twice, every command has a deadline, scripts are called by their digest, and trouble is logged once and not at
// every attempt.
import { createHash } from 'node:crypto'
import { Redis } from 'ioredis'
import type { Logger } from 'pino'

const COMMAND_TIMEOUT_MS = 5_000
const CONNECT_TIMEOUT_MS = 5_000
const RETRY_MAX_MS = 1_000

type RedisOptions = {
  readonly url: string
  /** The name of the connection in CLIENT LIST. */
  readonly name: string
  /**
   * `onTrouble` is called once, with the cause, when the connection breaks or cannot be made; `onRecovered` once it is
   * back.
   */
  readonly onTrouble: (cause: string) => void
  readonly onRecovered: () => void
}

/** The text of an error. Errors of the driver carry the command and its arguments; these stay out of the log. */
export function redisCause(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.name === 'MaxRetriesPerRequestError' ? 'the connection broke before the answer came' : error.message
}

/** Reports trouble to a log. */
export const toldTo = (log: Logger): Pick<RedisOptions, 'onTrouble' | 'onRecovered'> => ({
  onTrouble: cause => log.error({ cause }, 'cannot reach Redis; it is tried again'),
  onRecovered: () => log.info('Redis answers again'),
})

/** Opens a connection, which reconnects until it is closed. */
export function openRedis(options: RedisOptions): Redis {
  let isTroubled = false
  let cause = 'the connection was closed'
  const redis = new Redis(options.url, {
    connectionName: options.name,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    // Commands under way fail when the connection breaks, not only at their deadline.
    maxRetriesPerRequest: 0,
    commandTimeout: COMMAND_TIMEOUT_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: tries => Math.min(RETRY_MAX_MS, 50 * 2 ** Math.min(tries, 5)),
  })
  // Each shard that is being opened may add a listener for the connection.
  redis.setMaxListeners(0)
  redis.on('error', (error: unknown) => {
    cause = redisCause(error)
  })
  redis.on('close', () => {
    if (!isTroubled && redis.status !== 'end') options.onTrouble(cause)
    isTroubled = true
  })
  redis.on('ready', () => {
    if (isTroubled) options.onRecovered()
    isTroubled = false
    cause = 'the connection was closed'
  })
  return redis
}

/** Resolves once the connection is ready. */
export function whenReady(redis: Redis): Promise<void> {
  if (redis.status === 'ready') return Promise.resolve()
  return new Promise(resolve => redis.once('ready', () => resolve()))
}

/** A Redis script. It is called by its digest, or by its text where the server does not know it yet. */
export class RedisScript {
  private readonly digest: string

  constructor(private readonly text: string) {
    this.digest = createHash('sha1').update(text).digest('hex')
  }

  /** Rejects with the message of the server or the connection, without keys and arguments. */
  async run(redis: Redis, keys: readonly string[], args: readonly (string | number | Buffer)[]): Promise<unknown> {
    try {
      return await redis.evalsha(this.digest, keys.length, ...keys, ...args)
    } catch (error) {
      if (!redisCause(error).startsWith('NOSCRIPT')) throw new Error(redisCause(error))
    }
    return redis.eval(this.text, keys.length, ...keys, ...args).catch(error => {
      throw new Error(redisCause(error))
    })
  }
}

/** Bytes as the driver takes them, without a copy. */
export const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/**
 * Faults of the server's configuration for the operator: whether it persists what it acknowledges, and whether it
 * evicts keys. Empty where all is well or the server does not say.
 */
export async function durabilityFaults(redis: Redis): Promise<string[]> {
  const info = await redis.info()
  const of = (name: string): string => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? ''
  const faults: string[] = []
  if (of('aof_enabled') === '0')
    faults.push('appendonly is off: acknowledged batches and open alerts are lost when Redis ends; set appendonly yes')
  // A hosted server may refuse CONFIG.
  const [, sync = ''] = await redis.config('GET', 'appendfsync').then(
    answer => (Array.isArray(answer) ? answer.map(String) : []),
    () => [],
  )
  if (of('aof_enabled') !== '0' && sync !== '' && sync !== 'always')
    faults.push(
      `appendfsync is ${sync}: the newest acknowledged batches and alerts are lost when Redis is killed while its disk is busy; set appendfsync always`,
    )
  const policy = of('maxmemory_policy')
  if (policy !== '' && policy !== 'noeviction')
    faults.push(`maxmemory-policy is ${policy}: Redis may throw away batches and alerts; set noeviction`)
  return faults
}

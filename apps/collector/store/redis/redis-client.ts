// A connection to Redis as the collector needs it: a command fails at once while the connection is down, no command is
// sent twice, every command has a deadline, scripts are called by their digest, and trouble is logged once and not at
// every attempt.
import { createHash } from 'node:crypto'
import { tracingChannel } from 'node:diagnostics_channel'
import { type RedisOptions as DriverOptions, Redis } from 'ioredis'
import type { Logger } from 'pino'
import { assert } from '../../../../core/assert.ts'
import { parseRedisUrl, type RedisAddress } from './redis-address.ts'

const COMMAND_TIMEOUT_MS = 5_000
const CONNECT_TIMEOUT_MS = 5_000
const RETRY_MAX_MS = 1_000

/**
 * The driver tells tracing channels of every command, with its arguments as texts, unless a channel says that nobody
 * listens. Bun's channels have no such member, and a publish would be decoded as text: a fifth of what ingest does.
 */
const tracingChannels: object = Object.getPrototypeOf(tracingChannel('ioredis:command'))
if (!('hasSubscribers' in tracingChannels))
  Object.defineProperty(tracingChannels, 'hasSubscribers', {
    get(this: Pick<ReturnType<typeof tracingChannel>, 'start' | 'end' | 'asyncStart' | 'asyncEnd' | 'error'>) {
      return [this.start, this.end, this.asyncStart, this.asyncEnd, this.error].some(channel => channel.hasSubscribers)
    },
    configurable: true,
  })

type RedisOptions = {
  readonly address: RedisAddress
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

/** Throws with what the operator can do where the user of Redis lacks rights, as for another prefix than his. */
export function throwRightsFault(error: unknown, prefix: string): never {
  const cause = redisCause(error)
  const advice = `; redis.prefix is "${prefix}": give the user of redis.url ~${prefix}* and &${prefix}*, or set the prefix that it has`
  throw new Error(cause.startsWith('NOPERM') ? `${cause}${advice}` : cause)
}

/** Redis does not answer. */
export class RedisAway extends Error {}

export const redisAway = (error: unknown): never => {
  throw new RedisAway(redisCause(error), { cause: error })
}

/** Reports trouble to a log. */
export const toldTo = (log: Logger): Pick<RedisOptions, 'onTrouble' | 'onRecovered'> => ({
  onTrouble: cause => log.error({ cause }, 'cannot reach Redis; it is tried again'),
  onRecovered: () => log.info('Redis answers again'),
})

/** Whether the address names Sentinels. */
export const isOfSentinels = ({ url }: RedisAddress): boolean => parseRedisUrl(url)?.master != null

const retryAfterMs = (tries: number): number => Math.min(RETRY_MAX_MS, 50 * 2 ** Math.min(tries, 5))

/** What the driver is told of an address that the configuration has checked. */
function driverAddress({ url, sentinelPassword, ca, certificate, key }: RedisAddress): DriverOptions {
  const parsed = parseRedisUrl(url)
  assert(parsed, 'the address of Redis was checked when the configuration was read')
  const { isTls, username, password, endpoints, master, database } = parsed
  const tls = isTls
    ? { ...(ca ? { ca } : {}), ...(certificate ? { cert: certificate } : {}), ...(key ? { key } : {}) }
    : null
  const shared: DriverOptions = {
    db: database,
    ...(username === '' ? {} : { username }),
    ...(password === '' ? {} : { password }),
    ...(tls ? { tls } : {}),
  }
  if (master === null) return { ...shared, ...endpoints[0]! }
  return {
    ...shared,
    sentinels: [...endpoints],
    name: master,
    role: 'master',
    sentinelRetryStrategy: retryAfterMs,
    ...(sentinelPassword === null ? {} : { sentinelPassword }),
    ...(tls ? { sentinelTLS: tls, enableTLSForSentinelMode: true } : {}),
  }
}

/**
 * Opens a connection, which reconnects until it is closed: by Sentinels to the primary of the moment. A primary that
 * became a replica answers READONLY; the connection is made anew then.
 */
export function openRedis(options: RedisOptions): Redis {
  let isTroubled = false
  let cause = 'the connection was closed'
  const redis = new Redis({
    ...driverAddress(options.address),
    connectionName: options.name,
    disableClientInfo: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    // Commands under way fail when the connection breaks, not only at their deadline.
    maxRetriesPerRequest: 0,
    commandTimeout: COMMAND_TIMEOUT_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    // A host that is gone closes nothing: without this its connection would stand for a quarter of an hour.
    socketTimeout: COMMAND_TIMEOUT_MS,
    retryStrategy: retryAfterMs,
    reconnectOnError: error => error.message.startsWith('READONLY'),
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

/** A connection that has broken may count as ready for a moment. */
const READ_AGAIN_MS = 50

/** Reads what a start needs, again whenever the connection breaks meanwhile. Throws what the server refuses. */
export async function readWhenReady<T>(redis: Redis, read: () => Promise<T>): Promise<T> {
  for (;;) {
    await whenReady(redis)
    try {
      return await read()
    } catch (error) {
      if (error instanceof Error && error.name === 'ReplyError')
        throw new Error(`Redis refuses what a start needs: ${redisCause(error)}`, { cause: error })
      if (error instanceof SyntaxError) throw error
      await Bun.sleep(READ_AGAIN_MS)
    }
  }
}

/** The longest wait for replicas: what is late counts as not replicated, and is told or sent again. */
const REPLICAS_WAIT_MS = 1_000

/** Resolves once so many replicas have all that this connection wrote; rejects when they have not in time. */
export async function whenReplicated(redis: Redis, replicas: number): Promise<void> {
  if (replicas === 0) return
  const confirmed = await redis.wait(replicas, REPLICAS_WAIT_MS)
  if (confirmed < replicas)
    throw new Error(
      `${confirmed} of redis.wait_replicas = ${replicas} replicas had the write after ${REPLICAS_WAIT_MS} ms`,
    )
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

// A real redis-server for tests: on a free port, in a directory of its own, with an append-only file that has
// everything it acknowledged, so that it can be killed and started again. With `everysec` it would lose up to two
// seconds whenever the disk is busy.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { plainAddress } from '../../apps/collector/store/redis/redis-address.ts'
import { openRedis, whenReady } from '../../apps/collector/store/redis/redis-client.ts'
import { freePort } from '../../apps/standalone/ports.ts'
import type { Issued } from './certificates.ts'
import { until } from './until.ts'

export type TestRedis = {
  readonly url: string
  /** A connection of the test's own; closed with the server. */
  readonly client: Redis
  /** kill -9, as a crash would end it. */
  kill(): Promise<void>
  /** Starts it again on the files it left. */
  start(): Promise<void>
  /** Ends it and removes its directory. */
  close(): Promise<void>
}

type TestRedisOptions = {
  /** In bytes; writes beyond it are refused. */
  readonly maxMemory?: number
  /** Further options of the command line. */
  readonly more?: readonly string[]
  /** The user that the test itself is; `default` where it is left out. */
  readonly login?: { readonly username: string; readonly password: string }
  /** Served over TLS only, with certificates on both sides. */
  readonly tls?: { readonly ca: Issued; readonly server: Issued; readonly client: Issued }
}

/** Starts a server. Throws with the way out when redis-server is missing. */
export async function startTestRedis(options: TestRedisOptions = {}): Promise<TestRedis> {
  if (Bun.which('redis-server') === null)
    throw new Error('redis-server is not installed: apt-get install redis-server (CI does)')
  const directory = mkdtempSync(join(tmpdir(), 'redis-test-'))
  const port = freePort()
  const { tls, login = {} } = options
  const url = `redis${tls ? 's' : ''}://127.0.0.1:${port}`
  const trust = tls ? { tls: { ca: tls.ca.pem, cert: tls.client.pem, key: tls.client.key } } : {}
  let child: ReturnType<typeof Bun.spawn> | null = null
  const client = new Redis({
    ...{ host: '127.0.0.1', port, lazyConnect: true, maxRetriesPerRequest: null, retryStrategy: () => 20 },
    ...login,
    ...trust,
  })
  client.on('error', () => {})

  const start = async (): Promise<void> => {
    const command = ['redis-server', ...(tls ? ['--port', '0', '--tls-port'] : ['--port']), String(port)]
    command.push('--bind', '127.0.0.1', '--dir', directory, '--save', '')
    if (tls) command.push('--tls-ca-cert-file', tls.ca.certFile, '--tls-cert-file', tls.server.certFile)
    if (tls) command.push('--tls-key-file', tls.server.keyFile, '--tls-auth-clients', 'yes')
    command.push('--appendonly', 'yes', '--appendfsync', 'always', '--loglevel', 'warning')
    if (options.maxMemory) command.push('--maxmemory', String(options.maxMemory))
    command.push(...(options.more ?? []))
    child = Bun.spawn(command, { stdout: 'ignore', stderr: 'ignore' })
    await until('redis-server to answer', async () => {
      const probe = new Redis({
        ...{ host: '127.0.0.1', port, lazyConnect: true, retryStrategy: () => null, connectTimeout: 500 },
        ...login,
        ...trust,
      })
      probe.on('error', () => {})
      try {
        await probe.connect()
        return (await probe.ping()) === 'PONG'
      } catch {
        return false
      } finally {
        probe.disconnect()
      }
    })
  }
  const kill = async (): Promise<void> => {
    child?.kill('SIGKILL')
    await child?.exited
    child = null
  }
  await start()
  await client.connect()
  return {
    url,
    client,
    kill,
    start,
    close: async () => {
      client.disconnect()
      await kill()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** A server and a connection as the product opens one, for all tests of a file. */
export async function openTestRedis() {
  const server = await startTestRedis()
  const redis = openRedis({
    address: plainAddress(server.url),
    name: 'test',
    onTrouble: () => {},
    onRecovered: () => {},
  })
  await whenReady(redis)
  return {
    server,
    redis,
    close: async () => {
      redis.disconnect()
      await server.close()
    },
  }
}

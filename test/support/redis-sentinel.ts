// A primary, a replica and a Sentinel that watches them, as real processes. A fail-over takes about two seconds.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort } from '../../apps/standalone/ports.ts'
import { startTestRedis, type TestRedis } from './redis.ts'
import { until } from './until.ts'

const NAME = 'collector'
/** The user by which the replica follows: without it the replica falls behind. */
const FOLLOWER = 'follower'
const SECRET = 'secret-of-the-follower'

export type TestSentinel = {
  /** Of two Sentinels, of which the first does not live. */
  readonly url: string
  readonly primary: TestRedis
  readonly replica: TestRedis
  /** From now on the replica gets nothing. */
  cutReplica(): Promise<void>
  /** Resolves once the replica follows again. */
  mendReplica(): Promise<void>
  /** Resolves once the replica is the primary. */
  promoted(): Promise<void>
  close(): Promise<void>
}

async function startSentinelProcess(primaryPort: number) {
  const directory = mkdtempSync(join(tmpdir(), 'redis-sentinel-'))
  const port = freePort()
  const file = join(directory, 'sentinel.conf')
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${directory}`,
    `sentinel monitor ${NAME} 127.0.0.1 ${primaryPort} 1`,
    `sentinel down-after-milliseconds ${NAME} 1000`,
    `sentinel failover-timeout ${NAME} 4000`,
  ]
  writeFileSync(file, `${lines.join('\n')}\n`)
  const child = Bun.spawn(['redis-server', file, '--sentinel'], { stdout: 'ignore', stderr: 'ignore' })
  const client = new Redis({ host: '127.0.0.1', port, maxRetriesPerRequest: null, retryStrategy: () => 20 })
  client.on('error', () => {})
  await until('the Sentinel to answer', async () => (await client.ping()) === 'PONG')
  return {
    port,
    client,
    close: async () => {
      client.disconnect()
      child.kill('SIGKILL')
      await child.exited
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

const portOf = ({ url }: TestRedis): number => Number(new URL(url).port)

export async function startTestSentinel(): Promise<TestSentinel> {
  const primary = await startTestRedis()
  const setFollower = (state: 'on' | 'off') =>
    primary.client.call('ACL', 'SETUSER', FOLLOWER, state, `>${SECRET}`, '+psync', '+replconf', '+ping')
  await setFollower('on')
  const more = ['--replicaof', '127.0.0.1', String(portOf(primary)), '--masteruser', FOLLOWER, '--masterauth', SECRET]
  const replica = await startTestRedis({ more: [...more, '--repl-diskless-sync-delay', '0'] })
  const replicaState = async (): Promise<string> => /role:(\w+)/.exec(await replica.client.info('replication'))![1]!
  const follows = async (): Promise<boolean> =>
    /master_link_status:up/.test(await replica.client.info('replication')) &&
    /state=online/.test(await primary.client.info('replication'))
  await until('the replica to follow', follows)
  const sentinel = await startSentinelProcess(portOf(primary))
  await until('the Sentinel to know the replica', async () =>
    JSON.stringify(await sentinel.client.call('SENTINEL', 'REPLICAS', NAME)).includes(String(portOf(replica))),
  )
  return {
    url: `redis+sentinel://127.0.0.1:${freePort()},127.0.0.1:${sentinel.port}/${NAME}`,
    primary,
    replica,
    cutReplica: async () => {
      await setFollower('off')
      await primary.client.call('CLIENT', 'KILL', 'TYPE', 'replica')
      await until('the replica to be gone', async () =>
        /connected_slaves:0/.test(await primary.client.info('replication')),
      )
    },
    mendReplica: async () => {
      await setFollower('on')
      await until('the replica to follow', follows)
    },
    promoted: async () => {
      await until('the replica to be the primary', async () => (await replicaState()) === 'master', 60_000)
    },
    close: async () => {
      await Promise.all([sentinel.close(), replica.close(), primary.close()])
    },
  }
}

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { sharedHeartbeat } from '../../apps/collector/hub-link/heartbeat.ts'
import { FileHeartbeats, type HeartbeatBoard, RedisHeartbeats } from '../../apps/collector/store/process-heartbeats.ts'
import { plainAddress } from '../../apps/collector/store/redis/redis-address.ts'
import { openRedis, whenReady } from '../../apps/collector/store/redis/redis-client.ts'
import { redisKeys } from '../../apps/collector/store/redis/redis-keys.ts'
import { startTestRedis } from '../support/redis.ts'

const MAX_AGE_MS = 90_000
let directory = ''
let nowMs = 1_795_000_000_000
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-facts-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const fileFacts = (role: 'ingest' | 'worker') =>
  new FileHeartbeats({ directory: join(directory, 'facts'), role, maxAgeMs: MAX_AGE_MS, nowMs: () => nowMs })

const log = pino({ level: 'silent' })
const rest = { version: '1', agent_count: 3 }
const bodyOf = (board: HeartbeatBoard, own: Parameters<typeof sharedHeartbeat>[1]) =>
  sharedHeartbeat(board, own, rest, log)

test('[SYNC-043] the heartbeats of ingest and worker on one host each tell of both', async () => {
  const [ingest, worker] = [fileFacts('ingest'), fileFacts('worker')]
  expect(await bodyOf(ingest, { ingestRps: 2.5 })).toEqual({ ...rest, ingest_rps: 2.5 })
  expect(await bodyOf(worker, { outboxDepth: 4 })).toEqual({ ...rest, ingest_rps: 2.5, outbox_depth: 4 })
  expect(await bodyOf(ingest, { ingestRps: 3 })).toEqual({ ...rest, ingest_rps: 3, outbox_depth: 4 })
  // One that has gone is not told of for ever.
  nowMs += MAX_AGE_MS + 1
  expect(await bodyOf(worker, { outboxDepth: 5 })).toEqual({ ...rest, outbox_depth: 5 })
  for (const damaged of ['', '{"at_ms":', '[]', `{"at_ms":${nowMs},"ingest_rps":"many"}`]) {
    writeFileSync(join(directory, 'facts', 'ingest.json'), damaged)
    expect(await bodyOf(worker, { outboxDepth: 5 })).toEqual({ ...rest, outbox_depth: 5 })
  }
  rmSync(join(directory, 'facts'), { recursive: true })
  expect(await bodyOf(worker, { outboxDepth: 6 })).toEqual({ ...rest, outbox_depth: 6 })
})

test('[SYNC-043] over Redis a heartbeat tells the sums of all processes', async () => {
  const server = await startTestRedis()
  const redis = openRedis({
    address: plainAddress(server.url),
    name: 'test',
    onTrouble: () => {},
    onRecovered: () => {},
  })
  await whenReady(redis)
  const keys = redisKeys('facts:')
  const board = new RedisHeartbeats(redis, keys, MAX_AGE_MS, () => nowMs)
  const others = {
    'b:1': { at_ms: nowMs - 1000, ingest_rps: 10 },
    'c:1': { at_ms: nowMs - 2000, outbox_depth: 7 },
    'd:1': { at_ms: nowMs - MAX_AGE_MS - 1, ingest_rps: 100, outbox_depth: 100 },
  }
  for (const [name, note] of Object.entries(others)) await redis.hset(keys.processes, name, JSON.stringify(note))
  expect(await bodyOf(board, { ingestRps: 2.25 })).toEqual({ ...rest, ingest_rps: 12.25, outbox_depth: 7 })
  expect(await redis.hexists(keys.processes, 'd:1')).toBe(0)
  redis.disconnect()
  await server.close()
  expect(await bodyOf(board, { ingestRps: 2.25 })).toEqual({ ...rest, ingest_rps: 2.25 })
})

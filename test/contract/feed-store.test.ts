// The set of a feed that is kept for a restart without the hub, and the tombstones of purged tenants: in files, or in
// Redis.
import { afterAll, expect, setDefaultTimeout } from 'bun:test'
import { join } from 'node:path'
import pino from 'pino'
import type { FeedStore, RawRecord } from '../../apps/collector/store/feed-store.ts'
import { FileFeedStore } from '../../apps/collector/store/file-feed-store.ts'
import { RedisShared } from '../../apps/collector/store/redis/redis-announcements.ts'
import { RedisFeedStore } from '../../apps/collector/store/redis/redis-feed-store.ts'
import { Tombstones } from '../../apps/collector/store/tombstones.ts'
import type { WorkerStorage } from '../../apps/collector/worker/storage/worker-storage.ts'
import { limits } from '../../core/limits.ts'
import { type Case, contract, type Implementation, newDirectory, sharedRedis } from './contract.ts'

setDefaultTimeout(60_000)

type Subject = {
  readonly openFeed: (feed: string) => Promise<FeedStore>
  readonly openTombstones: (nowMs: () => number) => Promise<WorkerStorage['tombstones']>
}

const shared = await sharedRedis()
afterAll(() => shared.close())

const implementations: Implementation<Subject>[] = [
  {
    name: 'file',
    open: async closing => {
      const directory = newDirectory(closing)
      return {
        openFeed: async feed => new FileFeedStore(directory, feed, pino({ level: 'silent' })),
        openTombstones: async nowMs => new Tombstones(join(directory, 'tombstones.json'), nowMs),
      }
    },
  },
  {
    name: 'redis',
    open: async () => {
      const keys = shared.freshKeys()
      return {
        openFeed: feed => RedisFeedStore.open(shared.redis, keys, feed),
        openTombstones: async nowMs => {
          const tombstones = new RedisShared(shared.redis, keys, nowMs)
          await tombstones.poll()
          return tombstones
        },
      }
    },
  },
]

const stateOf = (since: number, ...records: RawRecord[]) => ({
  since,
  syncedAtMs: since * 100,
  records: new Map(records.map(record => [record.id, record])),
})
const rule = { id: 'r', sync_version: 4, name: 'x', unknown_here: { kept: [1, null] } }
const COMPANY = '11111111-1111-4111-8111-111111111111'
const SERVER = '22222222-2222-4222-8222-222222222222'

const cases: Case<Subject>[] = [
  {
    name: 'a feed of which nothing was kept is empty',
    run: async ({ openFeed }) => {
      expect((await openFeed('rules')).load()).toEqual({ since: 0, syncedAtMs: 0, records: new Map() })
    },
  },
  {
    name: 'a set that was kept is there for the next process, with its cursor and with fields that this version does not know',
    run: async ({ openFeed }) => {
      const store = await openFeed('rules')
      await store.save(stateOf(3, { id: 'gone', sync_version: 2 }))
      await store.save(stateOf(4, rule))
      expect((await openFeed('rules')).load()).toEqual(stateOf(4, rule))
      expect((await openFeed('silences')).load().since).toBe(0)
    },
  },
  {
    name: 'a set with a lower cursor does not take the storage of one with a higher',
    leftOut: { file: 'one process writes the file; a lower cursor is a feed that the hub began anew' },
    run: async ({ openFeed }) => {
      const [store, late] = [await openFeed('rules'), await openFeed('rules')]
      await store.save(stateOf(4, rule))
      await late.save(stateOf(3))
      expect((await openFeed('rules')).load()).toEqual(stateOf(4, rule))
    },
  },
  {
    name: '[PUR-004] a tombstone holds until its time, also for a process that starts later; a later one of the same tenant takes its storage',
    run: async ({ openTombstones }) => {
      let nowMs = 1_000
      const tombstones = await openTombstones(() => nowMs)
      const company = { companyId: COMPANY, serverId: null, untilMs: 2_000 }
      const server = { companyId: COMPANY, serverId: SERVER, untilMs: 5_000 }
      await tombstones.write(company)
      await tombstones.write(server)
      await tombstones.write({ ...company, untilMs: 3_000 })
      const living = async () => [...(await openTombstones(() => nowMs)).living()].sort((a, b) => a.untilMs - b.untilMs)
      expect(await living()).toEqual([{ ...company, untilMs: 3_000 }, server])
      nowMs = 3_000
      expect(tombstones.living()).toEqual([server])
      expect(await living()).toEqual([server])
      nowMs = 5_000
      expect(await living()).toEqual([])
      // What was received before its end may be read from the bus later.
      expect((await openTombstones(() => nowMs)).kept()).toContainEqual(server)
      nowMs += limits.purgeTombstoneKeptMs
      expect((await openTombstones(() => nowMs)).kept()).toEqual([])
    },
  },
]

contract('feed store and tombstones', implementations, cases)

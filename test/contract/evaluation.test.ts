// What is kept of the evaluation, and the events that wait for the hub: in files for one worker, in Redis for several.
import { afterAll, expect, setDefaultTimeout } from 'bun:test'
import { EvaluationStore } from '../../apps/collector/store/file-evaluation-store.ts'
import type { OutboxStore } from '../../apps/collector/store/outbox-store.ts'
import { RedisLeases } from '../../apps/collector/store/redis/redis-lease-assignment.ts'
import { RedisOutboxStore } from '../../apps/collector/store/redis/redis-outbox.ts'
import { RedisShardStore, RuleRecords, ShardLost } from '../../apps/collector/store/redis/redis-shard-store.ts'
import type { ShardStore } from '../../apps/collector/store/shard-store.ts'
import { limits } from '../../core/limits.ts'
import {
  alertEvent,
  closedRecord,
  eventCompany,
  eventServer,
  eventShard,
  presenceRecord,
} from '../support/alert-event.ts'
import { ruleRecord } from '../support/rule-record.ts'
import { type Case, contract, type Implementation, newDirectory, sharedRedis } from './contract.ts'

setDefaultTimeout(60_000)

type Subject = {
  /** The store as its next owner finds it; the one before writes no more. */
  readonly open: () => Promise<ShardStore>
  /** The outbox of a process that sends the events of the shard. */
  readonly outbox: OutboxStore
  /** The bound of the whole outbox of which this process may have `count` events. */
  readonly boundFor: (count: number) => number
}

const shared = await sharedRedis()
afterAll(() => shared.close())

const implementations: Implementation<Subject>[] = [
  {
    name: 'file',
    open: async closing => {
      const directory = newDirectory(closing)
      let store = new EvaluationStore(directory, directory)
      closing(() => store.close())
      const outbox = new EvaluationStore(directory, directory)
      closing(() => outbox.close())
      return {
        open: async () => {
          store.close()
          store = new EvaluationStore(directory, directory)
          return store
        },
        outbox,
        boundFor: count => count,
      }
    },
  },
  {
    name: 'redis',
    open: async () => {
      const { redis } = shared
      const keys = shared.freshKeys()
      let owners = 0
      return {
        open: async () => {
          await redis.del(keys.lease(eventShard))
          const { held } = await new RedisLeases(redis, keys, `owner${++owners}`, 60_000).renew(true)
          const { token } = held.find(({ lease }) => lease === eventShard)!
          return RedisShardStore.open({ redis, keys, shard: eventShard, token, records: new RuleRecords(redis, keys) })
        },
        outbox: new RedisOutboxStore(redis, keys, () => [eventShard]),
        boundFor: count => count * limits.stateShards,
      }
    },
  },
]

const seqs = async (outbox: OutboxStore): Promise<number[]> =>
  (await outbox.nextEvents(100)).map(({ event }) => event.seq)
const records = (store: ShardStore, position: number, mark: number) =>
  [...store.journalAfter(eventShard, position, mark)].map(({ record }) => record)

const cases: Case<Subject>[] = [
  {
    name: '[SNAP-004] [SNAP-005] snapshot and keys of a shard are there for its next owner, and the journal that the snapshot does not reflect',
    run: async ({ open }) => {
      const store = await open()
      expect(store.loadSnapshot(eventShard)).toBeNull()
      expect(store.keys(eventShard)).toEqual([])
      store.commit([alertEvent(1)], [closedRecord(1)], 4, 1000)
      // What is committed between the taking of a snapshot and its saving is not in it.
      const mark = store.journalMark
      store.commit([], [closedRecord(2)], 5, 1000)
      store.saveSnapshot(eventShard, new Uint8Array([1, 2, 255]), 5, mark)
      store.commit([], [closedRecord(3)], 5, 1000)
      store.keepKeys(eventShard, ['cpu_usage_percent', 'disk_used_percent{mount="/"}', 'no_longer'])
      store.keepKeys(eventShard, ['cpu_usage_percent'])
      store.dropKeys(eventShard, ['no_longer'])
      const last = store.journalMark
      await store.flushed?.()
      const next = await open()
      expect(next.journalMark).toBe(last)
      expect([...next.loadSnapshot(eventShard)!]).toEqual([1, 2, 255])
      expect(records(next, 5, mark)).toEqual([closedRecord(2), closedRecord(3)])
      expect(records(next, 5, mark + 1)).toEqual([closedRecord(3)])
      expect(next.keys(eventShard).sort()).toEqual(['cpu_usage_percent', 'disk_used_percent{mount="/"}'])
    },
  },
  {
    name: 'a snapshot takes the storage of the one before, and the journal that both reflect is gone',
    run: async ({ open }) => {
      const store = await open()
      store.commit([], [closedRecord(1)], 1, 1)
      store.saveSnapshot(eventShard, new Uint8Array([1]), 1, store.journalMark)
      store.commit([], [closedRecord(2)], 2, 2)
      store.saveSnapshot(eventShard, new Uint8Array([2, 2]), 2, store.journalMark)
      await store.flushed?.()
      const next = await open()
      expect([...next.loadSnapshot(eventShard)!]).toEqual([2, 2])
      expect(records(next, 0, 0)).toEqual([])
    },
  },
  {
    name: 'an open alert stays in the journal when its shard is saved, until it ends or its tenant is purged',
    run: async ({ open, outbox }) => {
      let store = await open()
      const kept = async () => {
        await store.flushed?.()
        store = await open()
        return records(store, 0, 0)
      }
      store.commit([], [closedRecord(1), presenceRecord('down')], 1, 1)
      expect(await kept()).toEqual([closedRecord(1), presenceRecord('down')])
      store.saveSnapshot(eventShard, new Uint8Array([1]), 1, store.journalMark)
      expect(await kept()).toEqual([presenceRecord('down')])
      store.commit([], [presenceRecord('up')], 2, 2)
      store.saveSnapshot(eventShard, new Uint8Array([1]), 2, store.journalMark)
      expect(await kept()).toEqual([])
      store.commit([], [presenceRecord('down')], 3, 3)
      store.saveSnapshot(eventShard, new Uint8Array([1]), 3, store.journalMark)
      expect(await kept()).toEqual([presenceRecord('down')])
      await outbox.removeEventsOf('99999999-1111-4111-8111-111111111111', null)
      expect(await kept()).toHaveLength(1)
      await outbox.removeEventsOf(eventCompany, eventServer)
      expect(await kept()).toEqual([])
    },
  },
  {
    name: 'changes of rules are there for the next owner until a snapshot has passed them; the last of a rule stays, as one from before the bus',
    run: async ({ open }) => {
      const [first, second] = [ruleRecord({ sync_version: 1 }), ruleRecord({ sync_version: 2 })]
      const [one, two] = [
        { position: 5, since: 1, ruleId: first.id, before: null, after: first },
        { position: 9, since: 2, ruleId: first.id, before: first, after: second },
      ]
      const store = await open()
      store.keepRules(eventShard, [one])
      store.keepRules(eventShard, [two])
      await store.flushed?.()
      let next = await open()
      expect(next.ruleChanges(eventShard).filter(({ position }) => position > 0)).toEqual([one, two])
      next.saveSnapshot(eventShard, new Uint8Array([1]), 9, next.journalMark)
      next.passRules(eventShard, 9)
      await next.flushed?.()
      next = await open()
      expect(next.ruleChanges(eventShard).map(({ position, since, after }) => [position, since, after])).toEqual([
        [0, 2, second],
      ])
    },
  },
  {
    name: '[PRES-016] an owner of before can write nothing more',
    leftOut: { file: 'a worker has its files to itself: a lock of the process refuses a second one' },
    run: async ({ open, outbox }) => {
      const before = await open()
      const now = await open()
      now.commit([alertEvent(1)], [], 1, 1)
      await now.flushed?.()
      before.commit([alertEvent(2)], [closedRecord(9)], 2, 2)
      before.saveSnapshot(eventShard, new Uint8Array([9]), 2, 9)
      before.keepKeys(eventShard, ['x'])
      await expect(before.flushed?.() ?? Promise.resolve()).rejects.toThrow(ShardLost)
      expect(await seqs(outbox)).toEqual([1])
      const next = await open()
      expect([next.loadSnapshot(eventShard), next.keys(eventShard), records(next, 0, 0)]).toEqual([null, [], []])
    },
  },
  {
    name: '[EVT-026] the outbox gives the events of a server in order, keeps what is not removed, and takes an event once',
    run: async ({ open, outbox }) => {
      const store = await open()
      for (const seq of [1, 2, 3, 4, 5]) store.commit([alertEvent(seq)], [], seq, seq)
      store.commit([alertEvent(3)], [], 6, 6)
      await store.flushed?.()
      const rows = await outbox.nextEvents(3)
      expect(rows.map(({ event }) => event)).toEqual([1, 2, 3].map(seq => alertEvent(seq)))
      expect(new Set(rows.map(({ pairKey }) => pairKey)).size).toBe(1)
      await outbox.removeEvents(rows.slice(0, 2).map(({ id }) => id))
      expect(await seqs(outbox)).toEqual([3, 4, 5])
      expect([outbox.outboxDepth(), outbox.oldestEventMs()]).toEqual([3, 3])
      // One that was removed is another one when it is made again.
      store.commit([alertEvent(1)], [], 7, 7)
      await store.flushed?.()
      expect(await seqs(outbox)).toEqual([3, 4, 5, 1])
      await outbox.removeEvents((await outbox.nextEvents(10)).map(({ id }) => id))
      expect(await seqs(outbox)).toEqual([])
      expect([outbox.outboxDepth(), outbox.oldestEventMs()]).toEqual([0, null])
    },
  },
  {
    name: '[EVT-030] at its bound the outbox gives up the oldest reminders first, then the oldest',
    run: async ({ open, outbox, boundFor }) => {
      expect(limits.outboxEventsMax).toBe(1_000_000)
      const store = await open()
      const types = ['alert.opened', 'alert.reminder', 'alert.opened', 'alert.reminder', 'alert.resolved'] as const
      for (const [index, type] of types.entries()) store.commit([alertEvent(index, type)], [], index, index)
      await store.flushed?.()
      const left = async (bound: number) => [await outbox.trimOutbox(boundFor(bound)), await seqs(outbox)]
      expect(await left(5)).toEqual([0, [0, 1, 2, 3, 4]])
      expect(await left(4)).toEqual([1, [0, 2, 3, 4]])
      expect(await left(2)).toEqual([2, [2, 4]])
    },
  },
  {
    name: 'events of a purged company, or of one server of it, leave the outbox; others stay',
    run: async ({ open, outbox }) => {
      const store = await open()
      const other = '44444444-1111-4111-8111-111111111111'
      store.commit([alertEvent(1), alertEvent(2, 'alert.opened', { company_id: other })], [], 1, 1)
      await store.flushed?.()
      await outbox.removeEventsOf(eventCompany, '55555555-1111-4111-8111-111111111111')
      expect(await seqs(outbox)).toEqual([1, 2])
      await outbox.removeEventsOf(eventCompany, eventServer)
      expect(await seqs(outbox)).toEqual([2])
      await outbox.removeEventsOf(other, null)
      expect(await seqs(outbox)).toEqual([])
    },
  },
]

contract('evaluation', implementations, cases)

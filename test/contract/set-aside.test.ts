// What the sender of the outbox does with events that the hub answers with a server error for ever: with the outbox in
// a file, and in Redis. The hub is a scripted peer over HTTP.
import { afterAll, expect, setDefaultTimeout } from 'bun:test'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pino from 'pino'
import { HubClient } from '../../apps/collector/hub-link/hub-client.ts'
import { EvaluationStore } from '../../apps/collector/store/file-evaluation-store.ts'
import type { OutboxStore } from '../../apps/collector/store/outbox-store.ts'
import { RedisLeases } from '../../apps/collector/store/redis/redis-lease-assignment.ts'
import { RedisOutboxStore } from '../../apps/collector/store/redis/redis-outbox.ts'
import { RedisShardStore, RuleRecords } from '../../apps/collector/store/redis/redis-shard-store.ts'
import type { ShardStore } from '../../apps/collector/store/shard-store.ts'
import { OutboxSender } from '../../apps/collector/worker/evaluation/outbox-sender.ts'
import type { AlertEvent } from '../../core/alerting/evaluate/event.ts'
import { hubToken, ScriptedHub } from '../ingest/scripted-hub.ts'
import { alertEvent, eventShard } from '../support/alert-event.ts'
import { until } from '../support/until.ts'
import { type Case, contract, type Implementation, newDirectory, sharedRedis } from './contract.ts'

setDefaultTimeout(60_000)
const IMPATIENT = { tries: 2, forMs: 0, retryStartMs: 50, retryCapMs: 100 }
const OF_TENANT_A = { company_id: 'aaaaaaaa-1111-4111-8111-111111111111' }

type Subject = { readonly store: ShardStore; readonly outbox: OutboxStore; readonly directory: string }

const shared = await sharedRedis()
afterAll(() => shared.close())

const implementations: Implementation<Subject>[] = [
  {
    name: 'file',
    open: async closing => {
      const directory = newDirectory(closing)
      const store = new EvaluationStore(directory, directory)
      closing(() => store.close())
      return { store, outbox: store, directory }
    },
  },
  {
    name: 'redis',
    open: async closing => {
      const { redis } = shared
      const keys = shared.freshKeys()
      const { held } = await new RedisLeases(redis, keys, 'owner', 60_000).renew(true)
      const { token } = held.find(({ lease }) => lease === eventShard)!
      const records = new RuleRecords(redis, keys)
      return {
        store: await RedisShardStore.open({ redis, keys, shard: eventShard, token, records }),
        outbox: new RedisOutboxStore(redis, keys, () => [eventShard]),
        directory: newDirectory(closing),
      }
    },
  },
]

/** A sender of the outbox to a hub that answers 500 to each batch that holds an event which is `poison`. */
async function sending(
  { outbox, directory }: Subject,
  poison: (event: AlertEvent) => boolean,
  run: (site: { hub: ScriptedHub; sender: OutboxSender; heal: () => void; taken: () => number[] }) => Promise<void>,
  { status = 500, deadLetterPath = join(directory, 'dead-letters.jsonl') } = {},
): Promise<void> {
  const hub = new ScriptedHub()
  hub.script = ({ path, body }) =>
    path === '/events' && (body as { events: AlertEvent[] }).events.some(poison) ? hub.error(status, 'not_taken') : null
  const log = pino({ level: 'silent' })
  const sender = new OutboxSender({
    store: outbox,
    hub: new HubClient({
      url: hub.url,
      token: hubToken,
      collectorId: null,
      isPlainAllowed: false,
      log,
      nowMs: Date.now,
      onClockSkew: () => {},
    }),
    log,
    deadLetterPath,
    nowMs: Date.now,
    onSent: () => {},
    onDropped: () => {},
    onSetAside: () => {},
    patience: IMPATIENT,
  })
  sender.start()
  try {
    const heal = () => {
      hub.script = () => null
    }
    await run({ hub, sender, heal, taken: () => hub.taken.map(event => Number(event.seq)) })
  } finally {
    await sender.stop()
    await hub.stop()
  }
}

async function commit({ store }: Subject, events: readonly AlertEvent[]): Promise<void> {
  for (const event of events) store.commit([event], [], event.seq, event.seq)
  await store.flushed?.()
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1)
const depthOf = async ({ outbox }: Subject): Promise<number> => (await outbox.nextEvents(1000)).length

const cases: Case<Subject>[] = [
  {
    name: '[EVT-026] an event that the hub always answers 500 waits with those behind it of its key, and all others are sent',
    run: async subject => {
      const ofKey = new Set([3, 250, 299])
      const events = upTo(300).map(seq =>
        alertEvent(seq, 'alert.opened', { series_key: ofKey.has(seq) ? 'poison' : `key ${seq % 7}` }),
      )
      await commit(subject, events)
      await sending(
        subject,
        event => event.seq === 3,
        async ({ sender, heal, taken }) => {
          await until('all others', () => new Set(taken()).size === 297 && sender.setAsideCount === 1)
          expect(taken().some(seq => ofKey.has(seq))).toBe(false)
          expect([...new Set(taken())]).toEqual(upTo(300).filter(seq => !ofKey.has(seq)))
          await until('only those of the fault to wait', async () => (await depthOf(subject)) === 3)
          // What comes later does not wait for it either.
          await commit(subject, [alertEvent(301, 'alert.opened', { series_key: 'key 1' })])
          await until('a later event', () => taken().includes(301))
          heal()
          await until('the rest', async () => (await depthOf(subject)) === 0)
          expect([...new Set(taken().filter(seq => ofKey.has(seq)))]).toEqual([...ofKey])
          await until('nothing to be set aside', () => sender.setAsideCount === 0)
        },
      )
    },
  },
  {
    name: '[EVT-026] a hub that answers 500 to everybody sets nothing aside, and gets all in order once it is well',
    run: async subject => {
      const events = upTo(60).map(seq => alertEvent(seq, 'alert.opened', { series_key: `key ${seq % 30}` }))
      await commit(subject, events)
      await sending(
        subject,
        () => true,
        async ({ hub, sender, heal, taken }) => {
          // A batch fails, smaller ones down to one event, twenty single ones of other keys, and the whole batch again.
          const sizes = () => hub.to('/events').map(({ body }) => (body as { events: unknown[] }).events.length)
          await until('a search that finds nothing', () => sizes().lastIndexOf(60) > 20)
          expect(sender.setAsideCount).toBe(0)
          heal()
          await until('all events', async () => (await depthOf(subject)) === 0)
          // A batch whose answer came too late on a slow host is sent again; the hub knows its events.
          expect([...new Set(taken())]).toEqual(upTo(60))
          expect(sender.setAsideCount).toBe(0)
        },
      )
    },
  },
  {
    name: '[EVT-026] a company whose events are all at fault is set aside as a whole, and the events of others are sent',
    run: async subject => {
      const isBad = (seq: number) => seq <= 40
      const events = upTo(80).map(seq =>
        alertEvent(seq, 'alert.opened', { series_key: `key ${seq}`, ...(isBad(seq) ? OF_TENANT_A : {}) }),
      )
      await commit(subject, events)
      await sending(
        subject,
        event => event.company_id === OF_TENANT_A.company_id,
        async ({ sender, heal, taken }) => {
          await until('all others', () => new Set(taken()).size === 40)
          expect(taken().some(isBad)).toBe(false)
          await until('only those of the fault to wait', async () => (await depthOf(subject)) === 40)
          for (let seq = 81; sender.setAsideCount !== 1; seq++) {
            await commit(subject, [alertEvent(seq, 'alert.opened', { series_key: 'well' })])
            await until('an event of another company', () => taken().includes(seq))
          }
          heal()
          await until('the rest', async () => (await depthOf(subject)) === 0)
          expect([...new Set(taken().filter(isBad))].sort((a, b) => a - b)).toEqual(upTo(40))
        },
      )
    },
  },
  {
    name: '[EVT-026] [EVT-028] an event that the hub never takes holds up no other while its file cannot be written',
    run: async subject => {
      const folder = join(subject.directory, 'no folder')
      const deadLetterPath = join(folder, 'dead-letters.jsonl')
      writeFileSync(folder, 'in the way')
      const isBad = (seq: number) => seq % 20 === 3
      const events = upTo(60).map(seq =>
        alertEvent(seq, 'alert.opened', { series_key: isBad(seq) ? 'poison' : `key ${seq % 7}` }),
      )
      await commit(subject, events)
      await sending(
        subject,
        event => isBad(Number(event.seq)),
        async ({ taken }) => {
          await until('all others', () => new Set(taken()).size === 57)
          await until('only those of the fault to wait', async () => (await depthOf(subject)) === 3)
          rmSync(folder)
          const letters = await until('the letters', () => {
            const lines = existsSync(deadLetterPath) ? readFileSync(deadLetterPath, 'utf8').trim().split('\n') : []
            return lines.length >= 3 ? lines : null
          })
          expect(letters.map(letter => JSON.parse(letter).event.seq)).toEqual([3, 23, 43])
          await until('an empty outbox', async () => (await depthOf(subject)) === 0)
        },
        { status: 422, deadLetterPath },
      )
      rmSync(folder, { recursive: true })
    },
  },
]

contract('set aside', implementations, cases)

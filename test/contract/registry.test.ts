// The registry that the processes of one collector share: in a file, or in Redis.
import { afterAll, expect, setDefaultTimeout } from 'bun:test'
import { join } from 'node:path'
import { RedisRegistryStore } from '../../apps/collector/store/redis/redis-registry-store.ts'
import type { AgentRecord } from '../../apps/collector/store/registry/agent-record.ts'
import { RegistryStore } from '../../apps/collector/store/registry/file-registry-store.ts'
import { AgentRegistry } from '../../apps/collector/store/registry/registry.ts'
import { type Case, contract, type Implementation, newDirectory, sharedRedis } from './contract.ts'

setDefaultTimeout(60_000)

const COMPANY = '11111111-1111-4111-8111-111111111111'
const SERVER = '22222222-2222-4222-8222-222222222222'
const AGENT = '33333333-3333-4333-8333-333333333333'

/** The registry as one process has it. */
type Node = {
  readonly registry: AgentRegistry
  /** Takes over what others wrote. */
  readonly poll: () => Promise<void>
  /** Resolves once what was written here can be read by others. */
  readonly flushed: () => Promise<void>
}
type Subject = { readonly openNode: () => Promise<Node> }

const shared = await sharedRedis()
afterAll(() => shared.close())

const implementations: Implementation<Subject>[] = [
  {
    name: 'file',
    open: async closing => {
      const path = join(newDirectory(closing), 'registry.sqlite')
      return {
        openNode: async () => {
          const store = new RegistryStore(path)
          closing(() => store.close())
          const registry = new AgentRegistry(store)
          return { registry, poll: async () => registry.refresh(), flushed: async () => {} }
        },
      }
    },
  },
  {
    name: 'redis',
    open: async () => {
      const keys = shared.freshKeys()
      return {
        openNode: async () => {
          const store = new RedisRegistryStore(shared.redis, keys)
          await store.poll()
          const registry = new AgentRegistry(store)
          const poll = async () => {
            await store.poll()
            registry.refresh()
          }
          return { registry, poll, flushed: () => registry.flushed() }
        },
      }
    },
  },
]

const record = (changes: Partial<AgentRecord> = {}): AgentRecord => ({
  agentId: AGENT,
  companyId: COMPANY,
  serverId: SERVER,
  state: 'active',
  tokenHash: 'a'.repeat(64),
  prevTokenHash: '',
  prevTokenExpiresAtMs: 0,
  version: 2,
  syncVersion: 2,
  serverStatus: '',
  subnetId: '',
  datacenter: '',
  hostname: '',
  intervalSeconds: 0,
  enrolledAtMs: 1_700_000_000_000,
  ...changes,
})

async function twoNodes({ openNode }: Subject): Promise<[worker: Node, ingest: Node]> {
  const [worker, ingest] = [await openNode(), await openNode()]
  return [worker, ingest]
}

const cases: Case<Subject>[] = [
  {
    name: '[REG-018] [REG-012] a push or a revocation at one process holds in the others after their next poll, and an older record never comes back',
    run: async subject => {
      const [worker, ingest] = await twoNodes(subject)
      expect(worker.registry.push(record({ hostname: 'web-1', serverStatus: 'maintenance' }))).toBe(true)
      await worker.flushed()
      await ingest.poll()
      expect(ingest.registry.byTokenHash('a'.repeat(64), 0)?.record).toEqual(
        record({ hostname: 'web-1', serverStatus: 'maintenance' }),
      )
      worker.registry.revoke(AGENT)
      await worker.flushed()
      // A process that has not looked yet still writes what it knows.
      ingest.registry.apply([record({ version: 3, syncVersion: 3, datacenter: 'x' })])
      ingest.registry.apply([record({ version: 1, syncVersion: 9, datacenter: 'old' })])
      await ingest.flushed()
      for (const node of [worker, ingest]) await node.poll()
      for (const node of [worker, ingest, await subject.openNode()])
        expect(node.registry.byAgent(AGENT)).toMatchObject({ state: 'revoked', version: 3, datacenter: 'x' })
    },
  },
  ...[
    { what: 'just enrolled there', isKnown: false },
    { what: 'given a newer record there', isKnown: true },
  ].map(
    ({ what, isKnown }): Case<Subject> => ({
      name: `[REG-014] the worker revokes an agent that ingest has ${what}, before it has read of it: ingest refuses it`,
      run: async subject => {
        const [worker, ingest] = await twoNodes(subject)
        if (isKnown) {
          ingest.registry.apply([record({ version: 1, syncVersion: 1 })])
          await ingest.flushed()
          await worker.poll()
        }
        ingest.registry.apply([record({ version: 5, syncVersion: 5 })])
        await ingest.flushed()
        worker.registry.revoke(AGENT)
        await worker.flushed()
        for (const node of [ingest, worker]) await node.poll()
        expect(ingest.registry.byAgent(AGENT)?.state).toBe('revoked')
        // So it is for one that starts later.
        for (const node of [worker, await subject.openNode()])
          expect(node.registry.byAgent(AGENT)).toMatchObject({ state: 'revoked', version: 5 })
      },
    }),
  ),
  {
    name: 'the cursor of the agents feed is seen with the records it stands for, and a removed company is gone everywhere',
    run: async subject => {
      const [first, second] = await twoNodes(subject)
      const many = Array.from({ length: 1200 }, (_, index) =>
        record({ agentId: `33333333-3333-4333-8333-${String(index).padStart(12, '0')}`, tokenHash: `${index}` }),
      )
      first.registry.apply(many, { since: 9, syncedAtMs: 5 })
      await first.flushed()
      await second.poll()
      expect(second.registry.size).toBe(1200)
      expect(second.registry.cursor).toEqual({ since: 9, syncedAtMs: 5 })
      expect(second.registry.removeCompany(COMPANY)).toBe(1200)
      await second.flushed()
      await first.poll()
      expect(first.registry.size).toBe(0)
      expect((await subject.openNode()).registry.size).toBe(0)
    },
  },
  {
    name: 'an agent that was removed can be enrolled again',
    run: async subject => {
      const [first, second] = await twoNodes(subject)
      first.registry.push(record({ version: 7 }))
      expect(first.registry.removeServer(COMPANY, SERVER)).toBe(1)
      first.registry.push(record({ version: 1 }))
      await first.flushed()
      await second.poll()
      expect(second.registry.byAgent(AGENT)).toMatchObject({ state: 'active', version: 1 })
    },
  },
]

contract('registry', implementations, cases)

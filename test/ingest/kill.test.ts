import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FileBusReader } from '../../apps/collector/bus/file-bus-reader.ts'
import { collectorPaths } from '../../apps/collector/config.ts'
import { isRecordFault, parseAgentRecord } from '../../apps/collector/store/registry/agent-record-faults.ts'
import { RegistryStore } from '../../apps/collector/store/registry/file-registry-store.ts'
import { AgentRegistry } from '../../apps/collector/store/registry/registry.ts'
import { EntryReader } from '../../core/bus/entry.ts'
import { sha256Hex } from '../../core/series/hash.ts'
import { commandOf } from '../support/executable.ts'
import { until } from '../support/until.ts'
import { sendFresh } from './connections.ts'
import { agentRecord, someSeries } from './rig.ts'
import { id } from './scripted-hub.ts'

const AGENTS = 24
let directory = ''
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-kill-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

async function start(readyFile: string, threads: number) {
  const child = Bun.spawn([...commandOf('collector-ingest'), '--ready-file', readyFile], {
    stdout: 'ignore',
    stderr: 'inherit',
    env: {
      ...process.env,
      SVC_DATA_DIR: directory,
      SVC_LISTEN: '127.0.0.1:0',
      SVC_INGEST_THREADS: String(threads),
      SVC_INGEST_LIMITS_METRICS_BURST: '100000',
    },
  })
  const read = (): string => {
    try {
      return readFileSync(readyFile, 'utf8')
    } catch {
      return ''
    }
  }
  await until('the ready file', () => read() !== '', 60_000)
  const ready = JSON.parse(read()) as { agent_url: string }
  return { child, url: ready.agent_url }
}

/** `agent seq` of everything on the bus, in its order. */
async function onBus(reader: FileBusReader): Promise<string[]> {
  const found: string[] = []
  const entries = new EntryReader()
  for (let position = 0; ; ) {
    const groups = await reader.read(0, position, 64 * 1024 * 1024)
    const last = groups.at(-1)
    if (!last) return found
    for (const group of groups) {
      entries.open(group.bytes)
      while (entries.next()) found.push(`${entries.agentId()} ${entries.seq}`)
    }
    position = last.firstPosition + last.count - 1
  }
}

test('[BUS-004] [BUS-005] kill -9 of two listener threads under load loses nothing that was acknowledged, and the start after it goes on', async () => {
  const store = new RegistryStore(collectorPaths(directory).registry)
  const registry = new AgentRegistry(store)
  for (let index = 0; index < AGENTS; index++) {
    const record = parseAgentRecord(
      agentRecord({ agent_id: id(`k${index}`), server_id: id(`s${index}`), token_hash: sha256Hex(`agt_k${index}`) }),
    )
    if (isRecordFault(record)) throw new Error(record.field)
    registry.apply([record], { since: 1, syncedAtMs: Date.now() })
  }
  store.close()
  const reader = new FileBusReader(collectorPaths(directory).bus, ['test'])
  const acknowledged: string[] = []
  const seqs = Array.from({ length: AGENTS }, () => 0)
  for (let round = 0; round < 3; round++) {
    const { child, url } = await start(join(directory, `ready-${round}`), 2)
    const goal = acknowledged.length + 300
    await Promise.all(
      seqs.map(async (_, index) => {
        for (;;) {
          const seq = seqs[index]!++
          const batch = { seq: BigInt(seq), series: someSeries(20) }
          const answer = await sendFresh(url, `agt_k${index}`, batch).catch(() => null)
          if (answer?.status !== 200) return
          acknowledged.push(`${id(`k${index}`)} ${seq}`)
          if (acknowledged.length >= goal) child.kill('SIGKILL')
        }
      }),
    )
    await child.exited
    expect(acknowledged.length).toBeGreaterThanOrEqual(goal)
    const kept = await onBus(reader)
    const held = new Set(kept)
    expect(held.size).toBe(kept.length)
    expect(acknowledged.filter(one => !held.has(one))).toEqual([])
    // Each agent's batches in the order in which they were sent.
    for (let index = 0; index < AGENTS; index++) {
      const own = kept.filter(one => one.startsWith(id(`k${index}`))).map(one => Number(one.split(' ')[1]))
      expect(own).toEqual([...own].sort((a, b) => a - b))
    }
  }
  await reader.close()
}, 90_000)

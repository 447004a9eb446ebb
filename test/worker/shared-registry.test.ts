import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isRecordFault, parseAgentRecord } from '../../apps/collector/store/registry/agent-record.ts'
import { RegistryStore } from '../../apps/collector/store/registry/file-registry-store.ts'
import { AgentRegistry } from '../../apps/collector/store/registry/registry.ts'
import { agentId, agentRecord } from '../ingest/rig.ts'

const recordOf = (changes: Record<string, unknown>) => {
  const record = parseAgentRecord(agentRecord(changes))
  if (isRecordFault(record)) throw new Error(record.field)
  return record
}

for (const [name, isKnown] of [
  ['just enrolled there', false],
  ['given a newer record there', true],
] as const)
  test(`[REG-014] the worker revokes an agent that ingest has ${name}, before it has read of it: ingest refuses it`, () => {
    const directory = mkdtempSync(join(tmpdir(), 'svc-shared-'))
    const stores = [0, 1].map(() => new RegistryStore(join(directory, 'registry.sqlite')))
    const [ingest, worker] = stores.map(store => new AgentRegistry(store))
    if (isKnown) {
      ingest!.apply([recordOf({ version: 1, sync_version: 1 })])
      worker!.refresh()
    }
    ingest!.apply([recordOf({ version: 2, sync_version: 2 })])
    worker!.revoke(agentId)
    ingest!.refresh()
    expect(ingest!.byAgent(agentId)?.state).toBe('revoked')
    worker!.refresh()
    expect(worker!.byAgent(agentId)).toMatchObject({ state: 'revoked', version: 2 })
    // So it is for one that starts later.
    const later = new RegistryStore(join(directory, 'registry.sqlite'))
    expect(new AgentRegistry(later).byAgent(agentId)?.state).toBe('revoked')
    for (const store of [...stores, later]) store.close()
    rmSync(directory, { recursive: true, force: true })
  })

// Files of the collector that cannot be opened: the operator is told which, where, and what to do.
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BusIndex } from '../../apps/collector/bus/segments-and-consumers.ts'
import { EvaluationStore } from '../../apps/collector/store/file-evaluation-store.ts'
import { lockFile } from '../../apps/collector/store/process-lock.ts'
import { RegistryStore } from '../../apps/collector/store/registry/file-registry-store.ts'

const folder = mkdtempSync(join(tmpdir(), 'svc-open-file-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const damaged = (name: string): string => {
  const path = join(folder, name)
  writeFileSync(path, 'this is no database, and longer than the head of one'.repeat(20))
  return path
}

test('a file that is damaged is named, with what to do', () => {
  const registry = damaged('registry.sqlite')
  expect(() => new RegistryStore(registry)).toThrow(`cannot open registry ${registry}: it is damaged`)
  expect(() => new RegistryStore(registry)).toThrow('move it away')
  const bus = damaged('bus.sqlite')
  const state = damaged('evaluation.db')
  expect(() => new EvaluationStore(folder, join(folder, 'snapshots'))).toThrow(
    `cannot open evaluation state ${state}: it is damaged`,
  )
  expect(() => BusIndex.open(bus, 'writer')).toThrow(`cannot open bus ${bus}: it is damaged`)
})

test('a file that cannot be made is named with its path', () => {
  const path = join(folder, 'a folder', 'below')
  expect(() => new RegistryStore(path)).toThrow(`cannot open registry ${path}: `)
  expect(() => lockFile(path, 'worker')).toThrow(`cannot lock ${path}: `)
})

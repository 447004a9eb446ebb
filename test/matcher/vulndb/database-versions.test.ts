// The folder of database files: which version a rollback goes to, and what is removed.
import { expect, test } from 'bun:test'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseVersions } from '../../../apps/matcher/vulndb/database-versions.ts'
import { Updater } from '../../../apps/matcher/vulndb/updater.ts'
import { buildOf, scratchFolder } from './support.ts'

const FIRST = 2026112201

/** A folder to which versions are added one after the other. */
async function folderOf(path: string, versions: readonly number[]) {
  mkdirSync(path, { recursive: true })
  const folder = new DatabaseVersions(path)
  const copyTo = async (version: number, name: string): Promise<string> => {
    using built = await buildOf(
      { debian: { 'tracker.json': { bash: { 'CVE-2024-0001': { releases: {} } } } } },
      { version },
    )
    copyFileSync(built.file, join(path, name))
    return join(path, name)
  }
  const add = async (version: number): Promise<void> => void folder.switchTo(await copyTo(version, 'new'), version)
  for (const version of versions) await add(version)
  return { folder, add, leave: (version: number) => copyTo(version, `${version}.sqlite`) }
}

const versionsIn = (path: string): number[] =>
  readdirSync(path)
    .filter(name => name.endsWith('.sqlite'))
    .map(name => Number(name.replace('.sqlite', '')))
    .toSorted()

test('[MAT-060] [MAT-072] a rollback goes to the version in use before, not to one that was left on purpose', async () => {
  using scratch = scratchFolder()
  const { folder, add } = await folderOf(scratch.path, [FIRST, FIRST + 1])
  expect(folder.rollback().version).toBe(FIRST)
  await add(FIRST + 2)
  expect(versionsIn(scratch.path)).toEqual([FIRST, FIRST + 2])
  expect(folder.rollback().version).toBe(FIRST)
  // And back again: the two that are kept change places.
  expect(folder.rollback().version).toBe(FIRST + 2)
})

test('[MAT-060] [MAT-072] a file that a killed import left without naming it is no version to go back to', async () => {
  using scratch = scratchFolder()
  const { folder, leave } = await folderOf(scratch.path, [FIRST, FIRST + 1])
  await leave(FIRST + 2)
  expect(folder.other()?.version).toBe(FIRST)
  folder.clean()
  expect(versionsIn(scratch.path)).toEqual([FIRST, FIRST + 1])
  expect(folder.nextVersion(0)).toBe(FIRST + 2)
})

test('a folder of a program that did not note the version before goes on: the greatest other one is it', async () => {
  using scratch = scratchFolder()
  const { folder, add } = await folderOf(scratch.path, [FIRST, FIRST + 1])
  const pointer = join(scratch.path, 'current.json')
  const { previous, ...older } = JSON.parse(readFileSync(pointer, 'utf8'))
  expect(previous).toBe(FIRST)
  writeFileSync(pointer, JSON.stringify(older))
  expect([folder.current()?.version, folder.other()?.version]).toEqual([FIRST + 1, FIRST])
  folder.clean()
  await add(FIRST + 2)
  expect(versionsIn(scratch.path)).toEqual([FIRST + 1, FIRST + 2])
  expect(folder.rollback().version).toBe(FIRST + 1)
})

test('[MAT-072] what is left is removed at the start, also when nothing is fetched; while an import runs it stays', async () => {
  using scratch = scratchFolder()
  const { folder, leave } = await folderOf(scratch.path, [FIRST, FIRST + 1])
  await leave(FIRST - 1)
  mkdirSync(join(scratch.path, 'scratch-1'))
  const startOnce = async (): Promise<string[]> => {
    const updater = new Updater({
      folder: scratch.path,
      sources: [],
      distros: () => [],
      referenceSources: [],
      intervalMs: null,
      mirror: null,
      sourceBytesMax: 1000,
      command: [],
      now: Date.now,
      random: () => 0,
      log: { info: () => {}, warn: () => {}, error: () => {} },
      onSwitch: () => {},
    })
    updater.current()
    updater.start()
    await updater.stop()
    return readdirSync(scratch.path).filter(name => /^(scratch|\d)/.test(name))
  }
  const found = await folder.exclusively(startOnce)
  expect(found.toSorted()).toEqual([`${FIRST - 1}.sqlite`, `${FIRST}.sqlite`, `${FIRST + 1}.sqlite`, 'scratch-1'])
  expect((await startOnce()).toSorted()).toEqual([`${FIRST}.sqlite`, `${FIRST + 1}.sqlite`])
})

// An import that is killed (MAT-071): real processes, SIGKILL at instants over the whole of a run.
// KILLS changes how many.
import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { checkFile } from '../../../apps/matcher/vulndb/check-file.ts'
import { DatabaseVersions } from '../../../apps/matcher/vulndb/database-versions.ts'
import { openAdvisories } from '../../../apps/matcher/vulndb/reader.ts'
import { runDb, scratchFolder, writeTree } from './support.ts'

const KILLS = Number(process.env.KILLS ?? 12)
const command = resolve(import.meta.dir, 'db.ts')

const tracker = (version: string): unknown =>
  Object.fromEntries(
    Array.from({ length: 400 }, (_, index) => [
      `package-${index}`,
      { 'CVE-2024-0001': { releases: { bookworm: { status: 'resolved', fixed_version: version, urgency: 'low' } } } },
    ]),
  )

/** What the version in use says; throws when there is none or it is not whole. */
function fixOf(folder: DatabaseVersions): string {
  const current = folder.current()
  if (current === null) throw new Error('no version is in use')
  expect(checkFile(current.file)).toBe(current.version)
  const reader = openAdvisories(current.file)
  try {
    return reader.affected('debian:12', 'package-7', 'source')!.rules[0]!.fixed!
  } finally {
    reader.close()
  }
}

async function killedAfter(args: readonly string[], delayMs: number): Promise<void> {
  const child = Bun.spawn([process.execPath, command, 'db', ...args], { stdout: 'ignore', stderr: 'ignore' })
  const timer = setTimeout(() => child.kill('SIGKILL'), delayMs)
  await child.exited
  clearTimeout(timer)
}

test('[MAT-071] [MAT-072] an import that is killed at any instant leaves the old version or the new one, and the next goes on', async () => {
  using scratch = scratchFolder()
  const data = join(scratch.path, 'data')
  const folder = new DatabaseVersions(join(data, 'vulndb'))
  const at = (name: string): string => join(scratch.path, name)
  const versions = Array.from({ length: KILLS + 2 }, (_, index) => `${index + 1}-1`)
  writeTree(scratch.path, Object.fromEntries(versions.map(version => [`${version}.json`, tracker(version)])))
  const update = (version: string): string[] => [
    'update',
    '--source',
    `debian=${at(`${version}.json`)}`,
    '--data-dir',
    data,
  ]
  const startedAt = performance.now()
  expect((await runDb(update('1-1'))).code).toBe(0)
  const quietMs = performance.now() - startedAt
  let inUse = '1-1'
  let highest = folder.current()!.version
  const seen = { old: 0, new: 0 }
  for (let kill = 0; kill < KILLS; kill++) {
    const wanted = versions[kill + 1]!
    await killedAfter(update(wanted), (quietMs * 1.3 * kill) / KILLS)
    const found = fixOf(folder)
    expect([inUse, wanted]).toContain(found)
    seen[found === wanted ? 'new' : 'old'] += 1
    inUse = found
    expect(folder.current()!.version).toBeGreaterThanOrEqual(highest)
    highest = folder.current()!.version
  }
  expect(seen.old).toBeGreaterThan(0)
  expect((await runDb(update(versions.at(-1)!))).code).toBe(0)
  expect(fixOf(folder)).toBe(versions.at(-1)!)
  const left = readdirSync(join(data, 'vulndb')).toSorted()
  expect(left.filter(name => name.endsWith('.sqlite')).length).toBeLessThanOrEqual(2)
  expect(left.filter(name => name.startsWith('scratch'))).toEqual([])
}, 120_000)

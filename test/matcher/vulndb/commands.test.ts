// The commands `db …` as processes: what they make, take and refuse.
import { describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { nowOf } from '../../../apps/matcher/commands/match-command.ts'
import { unpackBundle } from '../../../apps/matcher/vulndb/bundle.ts'
import { openDatabaseFile } from '../../../apps/matcher/vulndb/database-file.ts'
import { openAdvisories } from '../../../apps/matcher/vulndb/reader.ts'
import { SourceRefused } from '../../../apps/matcher/vulndb/source-refused.ts'
import { statusLines } from '../../../apps/matcher/vulndb/status.ts'
import { randomFrom } from '../../support/random.ts'
import { type Ran, runDb, scratchFolder, writeTree } from './support.ts'

const TODAY = Number(`${new Date().toISOString().slice(0, 10).replaceAll('-', '')}00`)

const tracker = (version: string): unknown => ({
  bash: { 'CVE-2024-0001': { releases: { bookworm: { status: 'resolved', fixed_version: version, urgency: 'low' } } } },
})

const ok = async (args: readonly string[], env: Record<string, string> = {}): Promise<Ran> => {
  const ran = await runDb(args, env)
  expect(ran).toMatchObject({ code: 0, err: '' })
  return ran
}

const refused = async (args: readonly string[], reason: string, env: Record<string, string> = {}): Promise<void> => {
  const ran = await runDb(args, env)
  expect(ran.err).toContain(reason)
  expect(ran.code).toBe(1)
}

const statusOf = async (dataDir: string): Promise<{ db_version: number; sources: Record<string, unknown>[] }> =>
  JSON.parse((await ok(['status', '--json', '--data-dir', dataDir])).out)

function keyPair(folder: string, name: string): { readonly key: string; readonly publicKey: string } {
  const pair = generateKeyPairSync('ed25519')
  const [key, publicKey] = [join(folder, `${name}.key`), join(folder, `${name}.pub`)]
  writeFileSync(key, pair.privateKey.export({ type: 'pkcs8', format: 'pem' }))
  writeFileSync(publicKey, pair.publicKey.export({ type: 'spki', format: 'pem' }))
  return { key, publicKey }
}

/** The header of a bundle changed, or its content. */
function changeBundle(
  from: string,
  to: string,
  change: (header: Record<string, unknown>, content: Buffer) => Buffer | undefined,
): void {
  const bytes = readFileSync(from)
  const end = bytes.indexOf(0x0a)
  const header = JSON.parse(bytes.toString('utf8', 0, end))
  const content = change(header, bytes.subarray(end + 1)) ?? bytes.subarray(end + 1)
  writeFileSync(to, Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), content]))
}

describe('update, status, rollback', () => {
  test('[MAT-060] [MAT-070] [MAT-087] an update of a file makes a version of the day, and status says what is in it', async () => {
    using scratch = scratchFolder()
    const data = join(scratch.path, 'data')
    writeTree(scratch.path, { 'one.json': tracker('1-1'), 'two.json': tracker('1-2'), 'three.json': tracker('1-3') })
    expect((await ok(['status', '--data-dir', data])).out).toContain('no vulnerability database: matcher db update')
    expect((await statusOf(data)).db_version).toBe(0)
    await ok(['update', '--source', `debian=${join(scratch.path, 'one.json')}`, '--data-dir', data])
    const first = await statusOf(data)
    expect(first.db_version).toBe(TODAY + 1)
    expect(first.sources).toMatchObject([{ name: 'debian', records: 1, rejected: 0, fault: null }])
    expect(first.sources[0]!.licence).toContain('Debian')
    for (const name of ['two', 'three'])
      await ok(['update', '--source', `debian=${join(scratch.path, `${name}.json`)}`, '--data-dir', data])
    expect((await statusOf(data)).db_version).toBe(TODAY + 3)
    const files = readdirSync(join(data, 'vulndb')).filter(name => name.endsWith('.sqlite'))
    expect(files.toSorted()).toEqual([`${TODAY + 2}.sqlite`, `${TODAY + 3}.sqlite`])
    await ok(['rollback', '--data-dir', data])
    expect((await statusOf(data)).db_version).toBe(TODAY + 2)
    // A number is never given twice, not even after going back.
    await ok(['update', '--source', `debian=${join(scratch.path, 'one.json')}`, '--data-dir', data])
    expect((await statusOf(data)).db_version).toBe(TODAY + 4)
  })

  test('[MAT-064] a refused source leaves the version in use, and stands in the status', async () => {
    using scratch = scratchFolder()
    const data = join(scratch.path, 'data')
    writeTree(scratch.path, { 'one.json': tracker('1-1'), 'broken.json': '{"bash":{' })
    await ok(['update', '--source', `debian=${join(scratch.path, 'one.json')}`, '--data-dir', data])
    await refused(
      ['update', '--source', `debian=${join(scratch.path, 'broken.json')}`, '--data-dir', data],
      'debian: refused, what was there before stays: broken.json is empty or truncated',
    )
    const status = await statusOf(data)
    expect(status.db_version).toBe(TODAY + 1)
    expect(status.sources).toMatchObject([{ name: 'debian', fault: 'broken.json is empty or truncated' }])
    await ok(['update', '--source', `debian=${join(scratch.path, 'one.json')}`, '--data-dir', data])
    expect((await statusOf(data)).sources).toMatchObject([{ name: 'debian', fault: null }])
  })

  test('[MAT-065] --accept-shrink takes what shrank', async () => {
    using scratch = scratchFolder()
    const data = join(scratch.path, 'data')
    writeTree(scratch.path, { 'one.json': tracker('1-1'), 'empty.json': {} })
    const update = (name: string) => ['update', '--source', `debian=${join(scratch.path, name)}`, '--data-dir', data]
    await ok(update('one.json'))
    await refused(update('empty.json'), 'it has no records')
    await ok([...update('empty.json'), '--accept-shrink'])
  })

  test('an unknown source, an absent file and a missing value are said', async () => {
    using scratch = scratchFolder()
    const at = ['--data-dir', join(scratch.path, 'data')]
    await refused(['update', '--source', 'redstar', ...at], 'redstar is no source')
    await refused(['update', '--source', 'debian=', ...at], '--source debian= names no file')
    await refused(['update', '--source', `debian=${join(scratch.path, 'absent')}`, ...at], 'cannot be read')
    await refused(['rollback', ...at], 'there is no other version to go back to')
    await refused(['export', join(scratch.path, 'x'), ...at], 'no vulnerability database')
    const absent = join(scratch.path, 'absent')
    await refused(['import', absent, ...at], `cannot open ${absent}: no such file or directory`)
    await refused(['verify', absent], `${absent} cannot be read`)
  })
})

describe('bundles', () => {
  test('[MAT-067] [MAT-068] [MAT-256] what is built, exported and imported elsewhere has the same rules', async () => {
    using scratch = scratchFolder()
    const { key, publicKey } = keyPair(scratch.path, 'own')
    writeTree(scratch.path, { 'one.json': tracker('1-1') })
    const bundle = join(scratch.path, 'built.zst')
    await ok(['build', '--source', `debian=${join(scratch.path, 'one.json')}`, '--out', bundle, '--key', key])
    const [a, b] = [join(scratch.path, 'a'), join(scratch.path, 'b')]
    await ok(['import', bundle, '--data-dir', a], { TEST_PUBLIC_KEY: publicKey })
    const exported = join(scratch.path, 'exported.zst')
    await ok(['export', exported, '--key', key, '--data-dir', a])
    await ok(['import', exported, '--data-dir', b], { TEST_PUBLIC_KEY: publicKey })
    const rules = (data: string) => {
      const reader = openAdvisories(join(data, 'vulndb', `${TODAY + 1}.sqlite`))
      try {
        return reader.affected('debian:12', 'bash', 'source')
      } finally {
        reader.close()
      }
    }
    expect(rules(b)).toEqual(rules(a))
    expect(rules(b)?.rules).toMatchObject([{ fixed: '1-1' }])
    const header = JSON.parse(readFileSync(bundle, 'utf8').split('\n', 1)[0]!)
    expect(Object.keys(header)).toEqual(Object.keys(header).toSorted())
    expect(header).toMatchObject({ format: 1, db_version: TODAY + 1, sources: [{ name: 'debian', records: 1 }] })
    expect(zstdDecompressSync(readFileSync(bundle).subarray(readFileSync(bundle).indexOf(0x0a) + 1)).length).toBe(
      header.size_bytes,
    )
    await ok(['verify', bundle, '--public-key', publicKey])
    const opened = await openDatabaseFile(join(a, 'vulndb', `${TODAY + 1}.sqlite`))
    expect(opened.reader.affected('debian:12', 'bash', 'source')).toEqual(rules(a))
    opened.dispose()
  })

  test('[MAT-068] [MAT-069] one byte changed, unsigned, signed by another, truncated, too large or of a greater format: refused', async () => {
    using scratch = scratchFolder()
    const { key, publicKey } = keyPair(scratch.path, 'own')
    const other = keyPair(scratch.path, 'other')
    writeTree(scratch.path, { 'one.json': tracker('1-1') })
    const path = (name: string) => join(scratch.path, name)
    const build = (name: string, ...more: string[]) =>
      ok(['build', '--source', `debian=${path('one.json')}`, '--out', path(name), ...more])
    await build('signed', '--key', key)
    await build('unsigned')
    await build('foreign', '--key', other.key)
    const trust = { TEST_PUBLIC_KEY: publicKey }
    const data = ['--data-dir', path('data')]
    const fails = (name: string, reason: string, env: Record<string, string> = trust) =>
      refused(['import', path(name), ...data], reason, env)
    await fails('unsigned', 'the bundle is not signed')
    await fails('foreign', 'signed by another key')
    changeBundle(path('signed'), path('renumbered'), header => {
      header.db_version = TODAY + 50
      return undefined
    })
    await fails('renumbered', 'was changed after it was signed')
    changeBundle(path('unsigned'), path('flipped'), (_header, content) => {
      const bytes = Buffer.from(zstdDecompressSync(content))
      bytes[bytes.length - 100] = bytes[bytes.length - 100]! ^ 1
      return zstdCompressSync(bytes)
    })
    await fails('flipped', 'the content of the bundle is not what its header says', {})
    changeBundle(path('unsigned'), path('short'), (_header, content) => content.subarray(0, content.length - 40))
    await fails('short', 'truncated', {})
    changeBundle(path('unsigned'), path('bomb'), (_header, _content) =>
      zstdCompressSync(Buffer.alloc(64 * 1024 * 1024)),
    )
    await fails('bomb', 'expands beyond its size_bytes', {})
    changeBundle(path('unsigned'), path('future'), header => {
      header.format = 2
      return undefined
    })
    await fails('future', 'use a newer matcher', {})
    writeFileSync(path('noise'), Buffer.alloc(2_000_000, 7))
    await fails('noise', 'it is not a bundle', {})
    expect((await statusOf(path('data'))).db_version).toBe(0)
  })

  test('[MAT-068] [MAT-069] whichever byte of a signed bundle is changed: it is refused, or holds what was signed', async () => {
    using scratch = scratchFolder()
    const seed = Number(process.env.SVC_FUZZ_SEED ?? Date.now() % 1_000_000)
    console.log(`changed bytes: SVC_FUZZ_SEED=${seed}`)
    const random = randomFrom(seed)
    const { key, publicKey } = keyPair(scratch.path, 'own')
    writeTree(scratch.path, { 'one.json': tracker('1-1') })
    const path = (name: string) => join(scratch.path, name)
    await ok(['build', '--source', `debian=${path('one.json')}`, '--out', path('signed'), '--key', key])
    const bytes = readFileSync(path('signed'))
    const headerBytes = bytes.indexOf(0x0a) + 1
    const check = { publicKeyPem: readFileSync(publicKey, 'utf8'), bytesMax: 2 ** 30 }
    const { sha256 } = await unpackBundle(path('signed'), path('whole.sqlite'), check)
    const whole = readFileSync(path('whole.sqlite'))
    let refusals = 0
    for (let run = 0; run < 400; run++) {
      // As many in the line that is signed as in what it stands for.
      const at = Math.floor(random() * (run % 2 === 0 ? headerBytes : bytes.length))
      const changed = Buffer.from(bytes)
      changed[at] = changed[at]! ^ (1 << Math.floor(random() * 8))
      writeFileSync(path('changed'), changed)
      const taken = await unpackBundle(path('changed'), path('changed.sqlite'), check).catch((error: unknown) => error)
      if (taken instanceof SourceRefused) refusals++
      else {
        expect([at, taken]).toEqual([at, expect.objectContaining({ sha256 })])
        expect(readFileSync(path('changed.sqlite')).equals(whole)).toBe(true)
      }
    }
    expect(refusals).toBeGreaterThan(360)
  })

  test('[MAT-070] an older bundle needs --force, and gets a new, greater version', async () => {
    using scratch = scratchFolder()
    writeTree(scratch.path, { 'one.json': tracker('1-1'), 'two.json': tracker('1-2') })
    const bundle = join(scratch.path, 'old.zst')
    const data = ['--data-dir', join(scratch.path, 'data')]
    await ok(['build', '--source', `debian=${join(scratch.path, 'one.json')}`, '--out', bundle])
    for (let round = 0; round < 2; round++)
      await ok(['update', '--source', `debian=${join(scratch.path, 'two.json')}`, ...data])
    await refused(['import', bundle, ...data], 'is not newer than')
    await ok(['import', bundle, '--force', ...data])
    const { db_version: version } = await statusOf(join(scratch.path, 'data'))
    expect(version).toBe(TODAY + 3)
    const reader = openAdvisories(join(scratch.path, 'data', 'vulndb', `${version}.sqlite`))
    expect(reader.affected('debian:12', 'bash', 'source')?.rules).toMatchObject([{ fixed: '1-1' }])
    expect(reader.version).toBe(version)
    reader.close()
  })

  test('a database file with rows that are no rules is refused by verify, and by who matches with such a row', async () => {
    using scratch = scratchFolder()
    const data = join(scratch.path, 'data')
    writeTree(scratch.path, { 'one.json': tracker('1-1') })
    await ok(['update', '--source', `debian=${join(scratch.path, 'one.json')}`, '--data-dir', data])
    const file = join(data, 'vulndb', `${TODAY + 1}.sqlite`)
    await ok(['verify', file])
    const [whole, cut] = [readFileSync(file), join(scratch.path, 'cut.sqlite')]
    for (const bytes of [
      whole.subarray(0, whole.length - 10_000),
      Buffer.concat([whole.subarray(0, 100), Buffer.alloc(50_000, 7)]),
    ]) {
      writeFileSync(cut, bytes)
      await refused(['verify', cut], 'it is no vulnerability database, or a damaged one')
    }
    const { Database } = await import('bun:sqlite')
    const database = new Database(file)
    database.run(`update affected set rules = '[{"vuln":"CVE-1"}]'`)
    database.close()
    await refused(['verify', file], 'a row of its advisories is malformed')
    // To match with, the row is looked at when it is read.
    const opened = await openDatabaseFile(file)
    expect(() => opened.reader.affected('debian:12', 'bash', 'source')).toThrow('a row of its advisories is malformed')
    opened.dispose()
    const rewritten = new Database(file)
    rewritten.run(`update affected set rules = '[]'`)
    rewritten.close()
    const other = await openDatabaseFile(file)
    expect(() => other.reader.affected('debian:12', 'bash', 'source')).toThrow('does not have its digest')
    other.dispose()
    rmSync(file)
  })
})

test('[MAT-060] what was never taken has no age, only its fault', () => {
  const eol = { name: 'eol', url: '', fetched_at_ms: 0, age_seconds: 0, records: 0, rejected: 0, licence: '' }
  const status = { db_version: 2026112801, built_at_ms: 1, age_seconds: 60, checked_at_ms: 1 }
  expect(statusLines({ ...status, sources: [{ ...eol, fault: 'it answers 404' }] })).toEqual([
    'version 2026112801, built 1 min ago',
    'eol: nothing of it is here yet',
    'eol: the last update did not take it: it answers 404',
  ])
})

test('[MAT-232] the day of --now is one of the calendar', () => {
  expect(nowOf('2028-02-29')).toBe(Date.UTC(2028, 1, 29))
  expect(nowOf('2026-11-23T12:00:00+02:00')).toBe(Date.UTC(2026, 10, 23, 10))
  for (const text of ['2026-02-30', '2026-02-29T00:00:00Z', '2026-13-01', 'yesterday', ''])
    expect(() => nowOf(text)).toThrow('is no day')
})

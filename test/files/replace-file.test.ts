// Files are written in one step and never through what somebody planted under their names.
import { afterAll, beforeEach, expect, test } from 'bun:test'
import {
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StateDir } from '../../apps/agent/state/state-dir.ts'
import { StateLock } from '../../apps/agent/state/state-lock.ts'
import { ensureOwnFile, replaceFile, writeNewFile } from '../../apps/files/replace-file.ts'
import { ReadyFile } from '../../apps/process/executable.ts'
import { openDataDir } from '../../apps/standalone/data-dir.ts'

const root = mkdtempSync(join(tmpdir(), 'replace-file-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

let folder = ''
let victim = ''
let count = 0
beforeEach(() => {
  folder = join(root, String(count++))
  mkdirSync(folder)
  victim = join(folder, 'victim')
  writeFileSync(victim, 'untouched', { mode: 0o640 })
})

function expectUntouched(): void {
  expect(readFileSync(victim, 'utf8')).toBe('untouched')
  expect(statSync(victim).mode & 0o777).toBe(0o640)
}

test('a file is replaced in one step, with the mode that was asked for whatever the umask, and nothing is left beside it', () => {
  const path = join(folder, 'file')
  replaceFile(path, 'first')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  const umask = process.umask(0o077)
  try {
    replaceFile(path, new TextEncoder().encode('second'), { mode: 0o644, isDurable: true })
  } finally {
    process.umask(umask)
  }
  expect(readFileSync(path, 'utf8')).toBe('second')
  expect(statSync(path).mode & 0o777).toBe(0o644)
  expect(readdirSync(folder).sort()).toEqual(['file', 'victim'])
})

for (const [kind, plant] of [
  ['a link', (path: string) => symlinkSync(victim, path)],
  ['a hard link', (path: string) => linkSync(victim, path)],
  ['a pipe', (path: string) => void Bun.spawnSync(['mkfifo', path])],
] as const) {
  test(`nothing is written through ${kind} under the name of the file, or under that of its first moments`, () => {
    for (const name of ['file', 'file.tmp']) {
      rmSync(join(folder, 'file'), { force: true })
      plant(join(folder, name))
      replaceFile(join(folder, 'file'), 'content')
      expect(readFileSync(join(folder, 'file'), 'utf8')).toBe('content')
      expect(lstatSync(join(folder, 'file')).isFile()).toBe(true)
      expectUntouched()
    }
  })

  test(`${kind} that was planted as the lock of an agent, or as its token in the making, leads nowhere`, () => {
    const state = join(folder, 'state')
    mkdirSync(state)
    // The directory of a service's own user, in which root enrolls: who runs this as root sees the owner kept out.
    if (process.geteuid?.() === 0) chownSync(state, 65_534, 65_534)
    plant(join(state, 'token.tmp'))
    plant(join(state, 'agent.lock'))
    const dir = new StateDir(state)
    expect(() => new StateLock(dir)).toThrow()
    dir.write('token', 'secret', true)
    expect(readFileSync(join(state, 'token'), 'utf8')).toBe('secret')
    expect(statSync(join(state, 'token')).uid).toBe(statSync(state).uid)
    expectUntouched()
    expect(statSync(victim).uid).toBe(process.getuid!())
  })

  test(`the ready file of a collector and the secrets of a site are not written through ${kind}`, () => {
    const data = join(folder, 'data')
    mkdirSync(data)
    for (const name of ['secrets.json', 'format.json'])
      for (const suffix of ['.new', '.tmp']) plant(join(data, `${name}${suffix}`))
    plant(join(folder, 'ready.tmp'))
    const ready = new ReadyFile(join(folder, 'ready'))
    ready.write({ pid: 1 })
    expect(JSON.parse(readFileSync(join(folder, 'ready'), 'utf8'))).toEqual({ pid: 1 })
    const dataDir = openDataDir(data)
    dataDir.saveSecrets({ admin_token: 'secret' })
    dataDir.unlock()
    expect(JSON.parse(readFileSync(join(data, 'secrets.json'), 'utf8'))).toEqual({ admin_token: 'secret' })
    expectUntouched()
  })
}

test('a file that cannot be put in place leaves what stands there, and nothing beside it', () => {
  const path = join(folder, 'taken')
  mkdirSync(path)
  expect(() => replaceFile(path, 'content')).toThrow()
  expect(lstatSync(path).isDirectory()).toBe(true)
  expect(existsSync(`${path}.tmp`)).toBe(false)
})

test('a new file is refused where a link that leads nowhere has its name', () => {
  const path = join(folder, 'link')
  symlinkSync(join(folder, 'nowhere'), path)
  expect(() => writeNewFile(path, 'content')).toThrow()
  expect(existsSync(join(folder, 'nowhere'))).toBe(false)
})

test('a lock file that is there already stays what it is, and becomes private', () => {
  const path = join(folder, 'lock')
  writeFileSync(path, 'kept', { mode: 0o644 })
  ensureOwnFile(path)
  expect(readFileSync(path, 'utf8')).toBe('kept')
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

import { Database } from 'bun:sqlite'
import { expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { commandOf } from '../../support/executable.ts'
import { runTool, SystemRoot } from '../../support/package-tools.ts'
import { scanOf } from './scan-of.ts'

setDefaultTimeout(120_000)

const ROCKY = 'ID="rocky"\nVERSION_ID="9.4"\nID_LIKE="rhel centos fedora"\n'

test('[MAT-011] a folder below the root whose name is a macro of rpm runs nothing', async () => {
  using root = new SystemRoot()
  root.write('etc/os-release', ROCKY)
  const mark = join(root.path, 'ran')
  // A name of a folder holds no slash: the macro makes them.
  const folder = `opt/%{lua:posix.mkdir((("${mark.replaceAll('/', '|')}"):gsub("|",string.char(47))))}`
  root.write(`${folder}/Packages`, 'junk')
  mkdirSync(join(root.path, 'var/lib'), { recursive: true })
  symlinkSync(`/${folder}`, join(root.path, 'var/lib/rpm'))
  // So rpm would take it.
  runTool(['rpm', '-qa', '--dbpath', join(root.path, folder)], 'rpm')
  expect(existsSync(mark)).toBe(true)
  rmSync(mark, { recursive: true })
  const report = await scanOf(root.path)
  expect(existsSync(mark)).toBe(false)
  expect(report.error_codes).toContain('packages_unreadable')
  expect(report.packages).toBeUndefined()
})

test('[MAT-015] a pipe in the place of a database of rpm is not waited for', async () => {
  using root = new SystemRoot()
  root.write('etc/os-release', ROCKY)
  mkdirSync(join(root.path, 'var/lib/rpm'), { recursive: true })
  runTool(['mkfifo', join(root.path, 'var/lib/rpm/rpmdb.sqlite')], 'coreutils')
  // In a process of its own: a thread that waits for a pipe could not end the test.
  const words = ['scan', '--json', '--root', root.path]
  const child = Bun.spawn([...commandOf('agent'), ...words], { stdout: 'pipe', stderr: 'pipe', timeout: 20_000 })
  const report = JSON.parse(await new Response(child.stdout).text())
  expect(await child.exited).toBe(0)
  expect(report.error_codes).toContain('packages_unreadable')
})

test('[MAT-003] lines of subscriptions that no tool writes cost no more time than their length', async () => {
  using root = new SystemRoot()
  root.write('etc/os-release', ROCKY)
  mkdirSync(join(root.path, 'var/lib/rpm'), { recursive: true })
  using database = new Database(join(root.path, 'var/lib/rpm/rpmdb.sqlite'))
  database.run('CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob BLOB)')
  root.write('etc/apt/sources.list', `deb ${'://'.repeat(300_000)}\n`)
  const lines = ['[a]\nname=a\nstream=1\nstate=enabled', `x=${' '.repeat(60_000)}y`, '\n'.repeat(60_000)]
  for (const [at, line] of lines.entries()) root.write(`etc/dnf/modules.d/${at}.module`, `${line}\n`)
  const began = performance.now()
  const report = await scanOf(root.path)
  expect(report.elts).toBe(false)
  expect(report.modules).toEqual({ a: '1' })
  expect(performance.now() - began).toBeLessThan(5_000)
})

test('[MAT-001] what os-release says moves no cursor and renames no window', async () => {
  using root = new SystemRoot()
  const name = 'Odd \u001b]0;renamed\u0007\u001b[2J\u009b31m\u202eOS'
  root.write('etc/os-release', `ID=debian\nVERSION_ID=12\nPRETTY_NAME="${name}"\n`)
  const words = ['scan', '--root', root.path]
  const child = Bun.spawn([...commandOf('agent'), ...words], { stdout: 'pipe', stderr: 'pipe', timeout: 20_000 })
  const text = await new Response(child.stdout).text()
  expect(await child.exited).toBe(0)
  expect(text).toContain('Odd ')
  expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e]/u)
})

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { reportContentHash } from '../../../core/matching/report-content.ts'
import type { Report } from '../../../core/matching/report-schema.ts'
import { buildRpms, installRpms, runTool, SystemRoot } from '../../support/package-tools.ts'
import { type Row, rowsOf, scanOf } from './scan-of.ts'

setDefaultTimeout(120_000)

const OS = 'ID="almalinux"\nVERSION_ID="9.4"\nID_LIKE="rhel centos fedora"\n'
const DATABASE = 'var/lib/rpm/rpmdb.sqlite'

let built: SystemRoot
let rpms: string[]
let later: string[]

beforeAll(() => {
  built = new SystemRoot()
  rpms = [
    ...buildRpms(built.path, { name: 'plain', version: '1.0', release: '1.el9' }),
    ...buildRpms(built.path, {
      name: 'bind',
      version: '9.16.23',
      release: '18.el9',
      epoch: 32,
      packages: ['bind-libs'],
    }),
    ...buildRpms(built.path, {
      name: 'nodejs',
      version: '18.20.2',
      release: '1.module_el8+1+2',
      epoch: 1,
      module: 'nodejs:18:8090020240:abc',
      vendor: 'Example "Vendor" Ltd',
    }),
  ]
  later = buildRpms(built.path, { name: 'later', version: '2', release: '3' })
})

afterAll(() => built[Symbol.dispose]())

/** What rpm itself says is installed. */
function rpmRows(database: string): Row[] {
  const tags = ['NAME', 'EPOCHNUM', 'VERSION', 'RELEASE', 'ARCH', 'SOURCERPM', 'MODULARITYLABEL', 'VENDOR']
  const format = `${tags.map(tag => `%{${tag}}`).join('|')}\\n`
  const rows = runTool(['rpm', '-qa', '--dbpath', database, '--qf', format], 'rpm').trim().split('\n')
  return rows
    .map(line => line.split('|').map(field => (field === '(none)' ? '' : field)))
    .map(([name, epoch, version, release, arch, source, module, vendor]) => {
      const prefix = epoch === '0' ? '' : `${epoch}:`
      const parts = source!.replace(/\.src\.rpm$/, '').split('-')
      return {
        name: name!,
        version: `${prefix}${version}-${release}`,
        arch: arch!,
        source: parts.slice(0, -2).join('-'),
        sourceVersion: prefix + parts.slice(-2).join('-'),
        module: module!,
        vendor: vendor!,
      }
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

function rpmRoot(): SystemRoot {
  const root = new SystemRoot()
  root.write('etc/os-release', OS)
  installRpms(join(root.path, 'var/lib/rpm'), rpms)
  return root
}

test('[MAT-009] [MAT-012] packages of an rpm database are what rpm says of them, field by field', async () => {
  using root = rpmRoot()
  const report = await scanOf(root.path)
  const rows = rowsOf(report)
  expect(rows).toEqual(rpmRows(join(root.path, 'var/lib/rpm')))
  expect(rows.map(row => `${row.name} ${row.version} ${row.source} ${row.sourceVersion}`)).toEqual([
    'bind 32:9.16.23-18.el9 bind 32:9.16.23-18.el9',
    'bind-libs 32:9.16.23-18.el9 bind 32:9.16.23-18.el9',
    'nodejs 1:18.20.2-1.module_el8+1+2 nodejs 1:18.20.2-1.module_el8+1+2',
    'plain 1.0-1.el9 plain 1.0-1.el9',
  ])
  expect(rows[2]).toMatchObject({ module: 'nodejs:18:8090020240:abc', vendor: 'Example "Vendor" Ltd' })
  expect(report).toMatchObject({ system: 'rpm', error_codes: ['kernel_unpackaged'] })
})

/** A database whose last change stands in its log only, as one that is in use has it. */
function copyWithLog(from: string, to: string): void {
  const other = join(built.path, 'other')
  if (!existsSync(other)) installRpms(other, later)
  using source = new Database(join(other, 'rpmdb.sqlite'))
  const added = source.query<{ blob: Uint8Array }, []>('SELECT blob FROM Packages').get()!
  using holder = new Database(join(from, 'rpmdb.sqlite'))
  holder.run('PRAGMA wal_autocheckpoint = 0')
  holder.run('INSERT INTO Packages (blob) VALUES (?)', [added.blob])
  mkdirSync(to, { recursive: true })
  for (const name of ['rpmdb.sqlite', 'rpmdb.sqlite-wal']) copyFileSync(join(from, name), join(to, name))
}

test('[MAT-010] the changes in a filled log are read too, and nothing is left of the copy', async () => {
  using root = rpmRoot()
  using used = new SystemRoot()
  used.write('etc/os-release', OS)
  copyWithLog(join(root.path, 'var/lib/rpm'), join(used.path, 'var/lib/rpm'))
  const log = join(used.path, `${DATABASE}-wal`)
  const before = statSync(log)
  expect(before.size).toBeGreaterThan(0)
  const stateDir = join(used.path, 'state')
  mkdirSync(stateDir)
  const names = rowsOf(await scanOf(used.path, { stateDir })).map(({ name }) => name)
  expect(names).toEqual(['bind', 'bind-libs', 'later', 'nodejs', 'plain'])
  expect(readdirSync(stateDir)).toEqual([])
  expect(statSync(log)).toMatchObject({ size: before.size, mtimeMs: before.mtimeMs })
})

/** Runs `agent scan` of a root as a user who owns nothing of it. */
function scanAsNobody(root: SystemRoot, folder: string): Report {
  const bun = join(folder, 'bun')
  copyFileSync(process.execPath, bun)
  chmodSync(bun, 0o755)
  runTool([process.execPath, 'build', 'apps/agent/main.ts', '--target=bun', `--outfile=${folder}/agent.js`], 'bun')
  for (const path of [folder, root.path]) chmodSync(path, 0o755)
  // A place of its own for what it copies: that of the tests may be root's alone.
  const scratch = join(folder, 'scratch')
  mkdirSync(scratch, { recursive: true })
  chmodSync(scratch, 0o777)
  const command = ['env', `TMPDIR=${scratch}`, bun, join(folder, 'agent.js'), 'scan', '--json', '--root', root.path]
  const isRoot = process.geteuid?.() === 0
  const asNobody = isRoot ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : []
  return JSON.parse(runTool([...asNobody, ...command], 'util-linux'))
}

/** Takes every right to write from a folder and its files. */
function protect(folder: string): void {
  for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o444)
  chmodSync(folder, 0o555)
}

test('[MAT-010] a user who may only read lists a database in WAL mode, with a filled log too', async () => {
  using root = rpmRoot()
  using used = new SystemRoot()
  using folder = new SystemRoot()
  used.write('etc/os-release', OS)
  const database = join(root.path, 'var/lib/rpm')
  copyWithLog(database, join(used.path, 'var/lib/rpm'))
  // Bytes 18 and 19 say how the file is written and read: 2 is a log.
  const file = await Bun.file(join(used.path, DATABASE)).bytes()
  expect([...file.subarray(18, 20)]).toEqual([2, 2])
  for (const path of [join(used.path, 'var/lib/rpm'), database]) protect(path)
  expect(existsSync(join(database, 'rpmdb.sqlite-shm'))).toBe(false)
  try {
    const withLog = rowsOf(scanAsNobody(used, folder.path))
    expect(withLog.map(({ name }) => name)).toEqual(['bind', 'bind-libs', 'later', 'nodejs', 'plain'])
    expect(rowsOf(scanAsNobody(root, folder.path))).toEqual(withLog)
  } finally {
    for (const path of [join(used.path, 'var/lib/rpm'), database]) chmodSync(path, 0o755)
  }
})

/** A root whose database only rpm can read, and an rpm that reads another one instead: Debian's knows SQLite only. */
function rootForQuery(database: string, before = ''): { root: SystemRoot; rpm: string } {
  const root = new SystemRoot()
  root.write('etc/os-release', OS)
  root.write('usr/lib/sysimage/rpm/Packages.db', 'RpmP')
  const rpm = root.write('rpm', `#!/bin/sh\n${before}\nexec rpm -qa --dbpath '${database}' --qf "$5"\n`)
  chmodSync(rpm, 0o755)
  return { root, rpm }
}

test('[MAT-011] [MAT-012] what rpm prints of a database gives the packages that its headers give', async () => {
  using read = rpmRoot()
  const { root, rpm } = rootForQuery(join(read.path, 'var/lib/rpm'))
  using _ = root
  const report = await scanOf(root.path, { rpmPaths: [rpm] })
  expect(rowsOf(report)).toEqual(rowsOf(await scanOf(read.path)))
})

test('[MAT-011] an rpm of before modules is asked again without their label', async () => {
  using read = rpmRoot()
  const refuse = 'case "$5" in *MODULARITY*) echo "error: incorrect format: unknown tag" >&2; exit 1;; esac'
  const { root, rpm } = rootForQuery(join(read.path, 'var/lib/rpm'), refuse)
  using _ = root
  const report = await scanOf(root.path, { rpmPaths: [rpm] })
  const expected = rowsOf(await scanOf(read.path)).map(row => ({ ...row, module: '' }))
  expect(rowsOf(report)).toEqual(expected)
  expect(report.error_codes).toContain('module_unknown')
})

test('[MAT-011] [MAT-015] without rpm, and when rpm says an error, there is a code and no list', async () => {
  using read = rpmRoot()
  const { root, rpm } = rootForQuery(join(read.path, 'var/lib/rpm'), 'echo "error: cannot open Packages" >&2')
  using _ = root
  for (const rpmPaths of [[], [join(root.path, 'none')], [rpm]]) {
    const report = await scanOf(root.path, { rpmPaths })
    expect(report.error_codes).toEqual(['packages_unreadable'])
    expect(report.packages).toBeUndefined()
  }
})

test('[MAT-015] a damaged database, and one that is not what it seems, give a code and no list', async () => {
  using root = rpmRoot()
  const path = join(root.path, DATABASE)
  const whole = await Bun.file(path).bytes()
  const broken: [string, Uint8Array][] = [
    ['empty', new Uint8Array(0)],
    ['cut', whole.subarray(0, 5_000)],
    ['half', whole.subarray(0, whole.length >> 1)],
    ['binary', crypto.getRandomValues(new Uint8Array(60_000))],
  ]
  for (const [what, bytes] of broken) {
    writeFileSync(path, bytes)
    const report = await scanOf(root.path)
    expect({ what, codes: report.error_codes, packages: report.packages }).toEqual({
      what,
      codes: ['packages_unreadable'],
      packages: undefined,
    })
  }
  const endless =
    'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS hnum, zeroblob(9) AS blob FROM n'
  for (const schema of [
    `CREATE VIEW Packages AS ${endless}`,
    'CREATE TABLE Packages(hnum INTEGER PRIMARY KEY, blob BLOB AS (zeroblob(900000000)))',
  ]) {
    runTool(['rm', '-f', path], 'coreutils')
    const database = new Database(path)
    database.run(schema)
    database.close()
    expect((await scanOf(root.path)).error_codes).toEqual(['packages_unreadable'])
  }
})

test('[MAT-008] [MAT-009] a header that is broken is left out with a code, and the others count', async () => {
  using root = rpmRoot()
  const database = new Database(join(root.path, DATABASE))
  database.run('UPDATE Packages SET blob = substr(blob, 1, 40) WHERE hnum = (SELECT min(hnum) FROM Packages)')
  database.run("INSERT INTO Packages (hnum, blob) VALUES (9000, 'text')")
  database.close()
  const report = await scanOf(root.path)
  expect(rowsOf(report)).toHaveLength(3)
  expect(report.error_codes).toEqual(['kernel_unpackaged', 'package_incomplete'])
})

test('[MAT-017] a library that was installed after the boot asks for a new start, until there was one', async () => {
  using root = new SystemRoot()
  root.write('etc/os-release', OS)
  const [glibc] = buildRpms(root.path, { name: 'glibc', version: '2.34', release: '100.el9' })
  const before = Date.now() - 60_000
  installRpms(join(root.path, 'var/lib/rpm'), [...rpms, glibc!])
  const scanBooted = (booted_at_ms: number) =>
    scanOf(root.path, { kernel: { running: '5.14.0-427.el9.x86_64', build: '#1 SMP', booted_at_ms } })
  const waiting = await scanBooted(before)
  expect(waiting.reboot_required).toBe(true)
  const restarted = await scanBooted(Date.now() + 60_000)
  expect(restarted.reboot_required).toBe(false)
  expect(reportContentHash(restarted)).not.toBe(reportContentHash(waiting))
  // Other packages ask for none.
  using plain = new SystemRoot()
  plain.write('etc/os-release', OS)
  installRpms(join(plain.path, 'var/lib/rpm'), rpms)
  const kernel = { running: '5.14.0-427.el9.x86_64', build: '#1 SMP', booted_at_ms: before }
  expect((await scanOf(plain.path, { kernel })).reboot_required).toBe(false)
})

import { expect, setDefaultTimeout, test } from 'bun:test'
import { closeSync, ftruncateSync, openSync, symlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { dpkgRoot, runTool, SystemRoot } from '../../support/package-tools.ts'
import { randomFrom } from '../../support/random.ts'
import { rowsOf, scanOf } from './scan-of.ts'

setDefaultTimeout(120_000)

const STATUS = 'var/lib/dpkg/status'
const paragraph = (name: string): string =>
  `Package: ${name}\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.0-1\nDescription: text\n more text\n\n`
const WHOLE = ['one', 'two', 'three'].map(paragraph).join('')

const codesOf = async (root: SystemRoot) => {
  const report = await scanOf(root.path)
  return { codes: report.error_codes.filter(code => code !== 'kernel_unpackaged'), packages: report.packages }
}

test('[MAT-015] a list that is empty, cut or binary gives a code and no list', async () => {
  using root = dpkgRoot()
  const cases: [string | Uint8Array, string][] = [
    ['', 'no_packages'],
    ['\n\n\n', 'no_packages'],
    ['Package: x\nStatus: deinstall ok config-files\nVersion: 1\n\n', 'no_packages'],
    [WHOLE.slice(0, -35), 'packages_unreadable'],
    [`${WHOLE}no field name\n\n`, 'packages_unreadable'],
    [` begins with a continuation\n${WHOLE}`, 'packages_unreadable'],
    [new Uint8Array(100_000), 'packages_unreadable'],
    [crypto.getRandomValues(new Uint8Array(60_000)), 'packages_unreadable'],
    [`Package: ${'x'.repeat(3_000_000)}\n\n${WHOLE}`, 'packages_unreadable'],
  ]
  for (const [content, code] of cases) {
    root.write(STATUS, content)
    expect(await codesOf(root)).toEqual({ codes: [code as 'no_packages'], packages: undefined })
  }
})

test('[MAT-008] [MAT-015] a status file cut anywhere is refused as dpkg refuses it, loses the paragraph that was cut, or lists what dpkg lists', async () => {
  const seed = Number(process.env.SVC_FUZZ_SEED ?? Date.now() % 1_000_000)
  console.log(`seed ${seed}`)
  const random = randomFrom(seed)
  using root = dpkgRoot()
  for (let round = 0; round < 40; round++) {
    root.write(STATUS, WHOLE.slice(0, Math.floor(random() * WHOLE.length)))
    const fields = ['Package', 'Version', 'db:Status-Status'].map(field => `\${${field}}`).join(' ')
    const query = ['dpkg-query', `--admindir=${join(root.path, 'var/lib/dpkg')}`, '-W', '-f', `${fields}\n`]
    const child = Bun.spawnSync(query, { env: { LC_ALL: 'C', PATH: process.env.PATH } })
    const { packages, codes } = await codesOf(root)
    const listed = child.stdout.toString().trim().split('\n')
    const whole = listed.filter(line => /^\S+ \S+ installed$/.test(line)).map(line => line.split(' ')[0]!)
    // dpkg passes over a single torn character. It refuses the whole for a paragraph that was cut before its version;
    // of that only the paragraph is left out, with its code (MAT-008).
    if (packages === undefined) expect(codes.length).toBeGreaterThan(0)
    else if (child.exitCode !== 0) expect(codes).toEqual(['package_incomplete'])
    else expect(packages.name).toEqual(whole.sort())
  }
})

test('[MAT-008] a paragraph without name or version is left out with a code, and the others count', async () => {
  using root = dpkgRoot()
  const torn = ['Status: install ok installed\nVersion: 1\n\n', 'Package: bare\nStatus: install ok installed\n\n']
  const foreign = 'Package: odd\nStatus: install ok strange\nVersion: 1\n\n'
  for (const broken of [...torn, foreign, `Package: a b\nStatus: install ok installed\nVersion: 1\n\n`]) {
    root.write(STATUS, WHOLE + broken)
    const report = await scanOf(root.path)
    expect(rowsOf(report).map(({ name }) => name)).toEqual(['one', 'three', 'two'])
    expect(report.error_codes).toContain('package_incomplete')
  }
  // What dpkg removed has no version, and is no fault.
  root.write(STATUS, `${WHOLE}Package: gone\nStatus: purge ok not-installed\n\n`)
  expect((await codesOf(root)).codes).toEqual([])
})

test('[MAT-015] a status file of 100 MB gives a code, without its size in memory', async () => {
  using root = dpkgRoot()
  const file = openSync(join(root.path, STATUS), 'w')
  writeSync(file, WHOLE)
  ftruncateSync(file, 100_000_000)
  closeSync(file)
  expect(await codesOf(root)).toEqual({ codes: ['packages_unreadable'], packages: undefined })
  // Below the bound of a file, and of more packages than a report may list.
  const many = openSync(join(root.path, STATUS), 'w')
  for (let part = 0; part < 100; part++) {
    writeSync(many, Array.from({ length: 4_000 }, (_, index) => paragraph(`p${part}-${index}`)).join(''))
  }
  closeSync(many)
  Bun.gc(true)
  const before = process.memoryUsage.rss()
  expect(await codesOf(root)).toEqual({ codes: ['too_many_packages'], packages: undefined })
  expect(process.memoryUsage.rss() - before).toBeLessThan(120 * 1024 * 1024)
})

test('[MAT-024] 20,000 packages are listed, and one more gives a code and no list', async () => {
  using root = dpkgRoot()
  const list = Array.from({ length: 20_000 }, (_, index) => paragraph(`p${index}`)).join('')
  root.write(STATUS, list)
  expect(rowsOf(await scanOf(root.path))).toHaveLength(20_000)
  root.write(STATUS, list + paragraph('more'))
  expect(await codesOf(root)).toEqual({ codes: ['too_many_packages'], packages: undefined })
})

test('[MAT-015] a pipe, a folder and a link in a circle in the place of the list are not waited for', async () => {
  using root = dpkgRoot()
  const status = join(root.path, STATUS)
  const places: (() => void)[] = [
    () => void runTool(['mkfifo', status], 'coreutils'),
    () => void runTool(['mkdir', status], 'coreutils'),
    () => symlinkSync('status', status),
    () => symlinkSync('/dev/zero', status),
  ]
  for (const place of places) {
    runTool(['rm', '-rf', status], 'coreutils')
    place()
    expect(await codesOf(root)).toEqual({ codes: ['packages_unreadable'], packages: undefined })
  }
})

test('[MAT-016] a system without os-release, or with one that names nothing, says so', async () => {
  using root = dpkgRoot()
  root.write(STATUS, WHOLE)
  for (const text of [null, '', 'NAME="nothing"\n', '\0\0\0']) {
    runTool(['rm', '-f', join(root.path, 'etc/os-release')], 'coreutils')
    if (text !== null) root.write('etc/os-release', text)
    const report = await scanOf(root.path)
    expect(report.error_codes).toContain('os_release_missing')
    expect(report.os.id).toBe('')
    expect(rowsOf(report)).toHaveLength(3)
  }
})

test('[MAT-014] [MAT-015] of several package systems the one that os-release names is reported, there or not', async () => {
  using root = dpkgRoot()
  root.write(STATUS, WHOLE)
  root.write('lib/apk/db/installed', 'P:musl\nV:1.2.5-r0\nA:x86_64\n\n')
  const systemOf = async (osRelease: string) => {
    root.write('etc/os-release', osRelease)
    const { system, error_codes, packages } = await scanOf(root.path)
    return { system, codes: error_codes.filter(code => code !== 'kernel_unpackaged'), count: packages?.name.length }
  }
  expect(await systemOf('ID=alpine\n')).toEqual({ system: 'apk', codes: [], count: 1 })
  expect(await systemOf('ID=mint\nID_LIKE="ubuntu debian"\n')).toEqual({ system: 'dpkg', codes: [], count: 3 })
  expect(await systemOf('ID=rocky\nID_LIKE="rhel centos fedora"\n')).toEqual({
    system: 'rpm',
    codes: ['packages_unreadable'],
    count: undefined,
  })
})

test('[MAT-015] a system without any package list says so', async () => {
  using root = new SystemRoot()
  root.write('etc/os-release', 'ID=arch\n')
  const report = await scanOf(root.path)
  expect(report).toMatchObject({ system: '', error_codes: ['packages_unreadable'] })
  expect(report.packages).toBeUndefined()
})

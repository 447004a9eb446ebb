import { expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { reportContentHash } from '../../../core/matching/report-content.ts'
import { buildDeb, dpkg, dpkgRoot, runTool, SystemRoot } from '../../support/package-tools.ts'
import { linesOf, rowsOf, scanOf } from './scan-of.ts'

setDefaultTimeout(60_000)

const PRESENT = ['installed', 'unpacked', 'half-configured', 'triggers-awaited', 'triggers-pending']

/** What dpkg says is there, in the lines of `linesOf`. */
function dpkgLines(admindir: string): string[] {
  const fields = ['Package', 'Version', 'Architecture', 'source:Package', 'source:Version']
  const format = `${fields.map(field => `\${${field}}`).join(' ')}\t\${db:Status-Status}\n`
  return runTool(['dpkg-query', `--admindir=${admindir}`, '-W', '-f', format], 'dpkg')
    .split('\n')
    .map(line => line.split('\t'))
    .filter(([, state]) => PRESENT.includes(state ?? ''))
    .map(([line]) => line!)
    .sort()
}

function installAll(root: SystemRoot): void {
  using build = new SystemRoot()
  const deb = (file: string, control: Record<string, string>) => buildDeb(build.path, file, control)
  dpkg(root, '--add-architecture', 'i386')
  dpkg(
    root,
    '-i',
    deb('plain', { Package: 'plain', Version: '1.0-1', Architecture: 'all' }),
    deb('named', { Package: 'named', Version: '2:1.4~rc1-3+deb12u1', Architecture: 'amd64', Source: 'other' }),
    deb('rebuilt', { Package: 'rebuilt', Version: '5.2-1+b3', Architecture: 'amd64', Source: 'rebuilt (5.2-1)' }),
    deb('libboth-amd64', { Package: 'libboth', Version: '3-1', Architecture: 'amd64', 'Multi-Arch': 'same' }),
    deb('libboth-i386', { Package: 'libboth', Version: '3-1', Architecture: 'i386', 'Multi-Arch': 'same' }),
    deb('gone', { Package: 'gone', Version: '1', Architecture: 'all' }),
  )
  dpkg(root, '--unpack', deb('half', { Package: 'half', Version: '7', Architecture: 'all' }))
  dpkg(root, '--purge', 'gone')
}

test('[MAT-005] [MAT-006] [MAT-007] packages that dpkg installed are listed as dpkg-query lists them', async () => {
  using root = dpkgRoot()
  installAll(root)
  const report = await scanOf(root.path)
  const admindir = join(root.path, 'var/lib/dpkg')
  expect(linesOf(report).sort()).toEqual(dpkgLines(admindir))
  expect(linesOf(report)).toEqual([
    'half 7 all half 7',
    'libboth 3-1 amd64 libboth 3-1',
    'libboth 3-1 i386 libboth 3-1',
    'named 2:1.4~rc1-3+deb12u1 amd64 other 2:1.4~rc1-3+deb12u1',
    'plain 1.0-1 all plain 1.0-1',
    'rebuilt 5.2-1+b3 amd64 rebuilt 5.2-1',
  ])
  expect(report).toMatchObject({ system: 'dpkg', os: { id: 'debian', version_id: '12', codename: 'bookworm' } })
})

test('[MAT-005] a package counts in exactly the states in which dpkg has its files in place', async () => {
  using root = dpkgRoot()
  installAll(root)
  const admindir = join(root.path, 'var/lib/dpkg')
  const status = root.read('var/lib/dpkg/status')
  const states = [...PRESENT, 'half-installed', 'config-files', 'not-installed']
  for (const state of states) {
    const more = state.startsWith('triggers-')
      ? state.endsWith('awaited')
        ? 'Triggers-Awaited: half\n'
        : 'Triggers-Pending: x\n'
      : ''
    root.write(
      'var/lib/dpkg/status',
      status.replace(/(Package: plain\n)Status: install ok installed\n/, `$1Status: install ok ${state}\n${more}`),
    )
    const found = linesOf(await scanOf(root.path))
    expect(found.some(line => line.startsWith('plain '))).toBe(PRESENT.includes(state))
    expect(found.sort()).toEqual(dpkgLines(admindir))
  }
})

test('[MAT-001] this host is listed as dpkg-query lists it, with its own kernel', async () => {
  const report = await scanOf('/')
  expect(linesOf(report).sort()).toEqual(dpkgLines('/var/lib/dpkg'))
  expect(report.kernel.running).toBe(runTool(['uname', '-r'], 'coreutils').trim())
  expect(report.kernel.build).toBe(runTool(['uname', '-v'], 'coreutils').trim())
})

test('[MAT-005] files of status.d count without a state, and their checksums are no packages', async () => {
  using root = new SystemRoot()
  root.write('etc/os-release', 'ID=debian\n')
  root.write('var/lib/dpkg/status.d/base', 'Package: base-files\nVersion: 12.4\nArchitecture: amd64')
  root.write('var/lib/dpkg/status.d/tz', 'Package: tzdata\nVersion: 2024a\nStatus: deinstall ok config-files\n')
  root.write('var/lib/dpkg/status.d/tls', 'Package: libssl3\nVersion: 3.0.1-1\nSource: openssl\n\n')
  root.write('var/lib/dpkg/status.d/base.md5sums', 'd41d8cd98f00b204e9800998ecf8427e  etc/host.conf\n')
  expect(linesOf(await scanOf(root.path))).toEqual([
    'base-files 12.4 amd64 base-files 12.4',
    'libssl3 3.0.1-1  openssl 3.0.1-1',
  ])
})

test('links of a scanned root lead within it', async () => {
  using root = dpkgRoot()
  root.write('real/status', 'Package: inside\nStatus: install ok installed\nVersion: 1\n\n')
  root.write('usr/lib/os-release', 'ID=ubuntu\nVERSION_ID="24.04"\n')
  runTool(['rm', '-r', join(root.path, 'var/lib/dpkg'), join(root.path, 'etc/os-release')], 'coreutils')
  mkdirSync(join(root.path, 'etc'), { recursive: true })
  symlinkSync('/real', join(root.path, 'var/lib/dpkg'))
  symlinkSync('../../../../usr/lib/os-release', join(root.path, 'etc/os-release'))
  const report = await scanOf(root.path)
  expect(report.os.id).toBe('ubuntu')
  expect(rowsOf(report).map(({ name }) => name)).toEqual(['inside'])
})

test('[MAT-017] a scan after the reboot into the newest kernel asks for no new start, and is another report', async () => {
  using root = dpkgRoot()
  const paragraph = (abi: number, version: string): string =>
    [
      `Package: linux-image-6.1.0-${abi}-amd64`,
      'Status: install ok installed',
      'Architecture: amd64',
      'Source: linux-signed-amd64',
      `Version: ${version}`,
      '',
      '',
    ].join('\n')
  root.write('var/lib/dpkg/status', paragraph(9, '6.1.27-1') + paragraph(18, '6.1.76-1') + paragraph(21, '6.1.90-1'))
  const scanRunning = (abi: number, booted_at_ms: number) =>
    scanOf(root.path, { kernel: { running: `6.1.0-${abi}-amd64`, build: '#1 SMP', booted_at_ms } })
  const before = await scanRunning(9, 1_000)
  expect(before).toMatchObject({ reboot_required: true, kernel: { running: '6.1.0-9-amd64' }, error_codes: [] })
  const after = await scanRunning(21, 2_000)
  expect(after).toMatchObject({ reboot_required: false, kernel: { running: '6.1.0-21-amd64' }, error_codes: [] })
  expect(reportContentHash(after)).not.toBe(reportContentHash(before))
  // A start into the same kernel changes nothing.
  expect(reportContentHash(await scanRunning(21, 3_000))).toBe(reportContentHash(after))
})

import { expect, test } from 'bun:test'
import {
  packageColumns as columnsInSteps,
  type InstalledPackage,
  PackageList,
} from '../../../core/matching/package-list.ts'
import { reportContentHash } from '../../../core/matching/report-content.ts'
import type { PackageColumns, Report } from '../../../core/matching/report-schema.ts'
import { sha256Hex } from '../../../core/series/hash.ts'

/** All steps at once. */
function packageColumns(packages: readonly InstalledPackage[]): PackageColumns {
  const steps = columnsInSteps(packages)
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

const installed = (name: string, arch = '', version = '1'): InstalledPackage => ({
  name,
  version,
  arch,
  source: name,
  sourceVersion: version,
  module: '',
  vendor: '',
})

test('[MAT-022] packages stand in the byte order of name, arch and version, each once', () => {
  const packages = [
    installed('b'),
    installed('a', 'i386'),
    installed('a', 'amd64', '2'),
    installed('a', 'amd64', '10'),
    installed('B'),
    installed('a', 'amd64', '2'),
    installed('a-b'),
    installed('\u{1f600}'),
    installed('\ufb00'),
  ]
  const { name, arch, version } = packageColumns(packages)
  expect(name.map((each, index) => [each, arch[index], version[index]].join(' '))).toEqual([
    'B  1',
    'a amd64 10',
    'a amd64 2',
    'a i386 1',
    'a-b  1',
    'b  1',
    // In UTF-16 the other way around.
    '\ufb00  1',
    '\u{1f600}  1',
  ])
})

test('[MAT-022] long lists are sorted as short ones are, whatever their order was', () => {
  for (const count of [0, 1, 999, 1_000, 1_001, 5_500]) {
    const names = Array.from({ length: count }, (_, index) => `p${(index * 7_919) % Math.max(1, count)}`)
    expect(packageColumns(names.map(name => installed(name))).name).toEqual([...new Set(names)].sort())
  }
})

test('what no package system would call a package is told, and what only describes one is cut', () => {
  const list = new PackageList()
  for (const name of ['', 'a b', 'a\n', 'x'.repeat(257)]) list.add(installed(name))
  list.add(installed('a', 'y'.repeat(33)))
  list.add(installed('a', '', 'v\0'))
  expect(list.packages).toEqual([])
  expect(list.isIncomplete).toBe(true)
  list.add({ ...installed('a'), source: 's t', vendor: 'v'.repeat(300) })
  expect(list.packages).toEqual([{ ...installed('a'), vendor: 'v'.repeat(256) }])
})

const REPORT: Report = {
  schema: 1,
  collected_at_ms: 1,
  scanner_version: '1',
  machine_id_hash: '',
  os: { id: 'debian', version_id: '12', codename: 'bookworm', id_like: [], cpe_name: '' },
  kernel: { running: '6.1', build: '#1', booted_at_ms: 5 },
  reboot_required: false,
  livepatch_active: false,
  esm: { attached: false, infra: false, apps: false },
  elts: false,
  modules: {},
  system: 'dpkg',
  error_codes: [],
  packages: packageColumns([installed('a')]),
}

test('[MAT-023] the hash is that of the JSON without the members that differ from scan to scan', () => {
  const text = JSON.parse(JSON.stringify(REPORT))
  delete text.collected_at_ms
  delete text.scanner_version
  delete text.kernel.booted_at_ms
  const hash = reportContentHash(REPORT)
  expect(hash).toBe(sha256Hex(JSON.stringify(text)))
  const later = { ...REPORT, collected_at_ms: 2, scanner_version: '2', kernel: { ...REPORT.kernel, booted_at_ms: 6 } }
  expect(reportContentHash(later)).toBe(hash)
  expect(reportContentHash({ ...REPORT, kernel: { ...REPORT.kernel, running: '6.2' } })).not.toBe(hash)
  expect(reportContentHash({ ...REPORT, packages: packageColumns([installed('a', '', '2')]) })).not.toBe(hash)
})

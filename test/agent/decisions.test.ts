// Small decisions of the agent: versions, update manifests, labels of checks, filters, series put together and apart.
import { expect, test } from 'bun:test'
import { evictionCount } from '../../core/agent/buffer-eviction.ts'
import { parseTarget } from '../../core/agent/check.ts'
import {
  compileFilter,
  filterFault,
  isBlockDeviceReported,
  isFileSystemReported,
  isInterfaceReported,
} from '../../core/agent/filters.ts'
import { groupCount, halveSeries, mergeSeries, pointCount, seriesOfCycle } from '../../core/agent/requests-of-cycles.ts'
import { capSeries } from '../../core/agent/series-ceiling.ts'
import { type Manifest, signedManifestText, updateVerdict } from '../../core/agent/update-verdict.ts'
import { compareVersions, isVersion } from '../../core/agent/version.ts'
import { distinctLabelValue } from '../../core/series/labels.ts'

test('versions are ordered as semantic versions', () => {
  const ascending = ['0.9.9', '1.0.0-alpha', '1.0.0-alpha.1', '1.0.0-alpha.beta', '1.0.0-beta.2', '1.0.0-beta.11']
  const all = [...ascending, '1.0.0-rc.1', '1.0.0', '1.0.1', '1.2.0', '1.10.0', '2.0.0']
  all.forEach((left, i) => {
    all.forEach((right, j) => {
      expect(compareVersions(left, right)).toBe(Math.sign(i - j))
    })
  })
  expect(compareVersions('1.0.0+build', '1.0.0')).toBe(0)
  for (const text of ['1', '1.0', 'v1.0.0', '', '1.0.0-', '01x.0.0', '=1.0.0', ' 1.0.0', '1.0.0\n'])
    expect([text, compareVersions(text, '1.0.0')]).toEqual([text, null])
  // Leading zeros and empty identifiers: two texts for one version would pass for two.
  for (const text of ['01.0.0', '1.02.0', '1.0.0-01', '1.0.0-a..b', '1.0.0-a.', '1.0.0+', '1.0.0+a..b'])
    expect([text, isVersion(text)]).toEqual([text, false])
  expect(compareVersions('1.0.0-beta.9007199254740990', '1.0.0-beta.9007199254740991')).toBe(-1)
})

const MANIFEST: Manifest = {
  version: '1.3.0',
  os: 'linux',
  arch: 'x64',
  channel: 'stable',
  sha256: '0123456789abcdef'.repeat(4),
  sizeBytes: 40 * 1024 * 1024,
  minVersion: '1.0.0',
  releasedAtMs: 1_780_000_000_000,
  revokedVersions: ['1.2.9', '1.2.10'],
  url: 'https://dl.example.com/agent',
}

test('the signed text is lines joined by newline, revoked versions sorted as strings, no rollout', () => {
  expect(signedManifestText(MANIFEST).split('\n')).toEqual([
    'svc-agent-update-manifest-v1',
    '1.3.0',
    'linux',
    'x64',
    'stable',
    '0123456789abcdef'.repeat(4),
    '41943040',
    '1.0.0',
    '1780000000000',
    '1.2.10,1.2.9',
    'https://dl.example.com/agent',
  ])
  expect(signedManifestText({ ...MANIFEST, revokedVersions: [] }).split('\n')[9]).toBe('')
})

function verdict(changed: Partial<Manifest>, runningVersion = '1.2.0', isSignatureValid = true): string {
  const situation = { runningVersion, os: 'linux', arch: 'x64', channel: 'stable', hosts: ['dl.example.com'] }
  const found = updateVerdict({ ...MANIFEST, ...changed }, { ...situation, isSignatureValid, isFailed: false })
  return found.take ? 'take' : found.reason
}

test('[AGT-074 AGT-076] an update is taken only when its version is strictly greater: never a downgrade', () => {
  expect(verdict({})).toBe('take')
  expect(verdict({}, '1.3.0')).toContain('not newer')
  expect(verdict({}, '1.4.0')).toContain('not newer')
  expect(verdict({ version: 'next' })).toContain('semantic')
})

test('[AGT-075] a version in revoked_versions is not taken', () => {
  expect(verdict({ revokedVersions: ['1.3.0'] })).toContain('revoked')
})

test('[AGT-077] an agent below min_version does not update', () => {
  expect(verdict({ minVersion: '1.2.1' })).toContain('1.2.1')
  expect(verdict({ minVersion: '1.2.0' })).toBe('take')
  expect(verdict({ minVersion: '' })).toBe('take')
})

test('[AGT-078 AGT-079] a download is taken only over https, from a declared host', () => {
  expect(verdict({ url: 'http://dl.example.com/agent' })).toContain('https')
  expect(verdict({ url: 'https://user@dl.example.com/agent' })).toContain('https')
  expect(verdict({ url: 'https://evil.example.com/agent' })).toContain('evil.example.com')
  expect(verdict({ url: 'https://dl.example.com:444/agent' })).toContain('dl.example.com:444')
  expect(verdict({ url: 'https://DL.example.com/agent' })).toBe('take')
})

test('[AGT-081] a manifest of more than 40 MiB is refused', () => {
  expect(verdict({ sizeBytes: 40 * 1024 * 1024 + 1 })).toContain('41943041')
  expect(verdict({ sizeBytes: 0 })).toContain('bytes')
})

test('[AGT-087] without a valid signature nothing else counts; another platform and a bad hash are refused', () => {
  expect(verdict({}, '1.2.0', false)).toContain('signature')
  expect(verdict({ arch: 'arm64' })).toContain('arm64')
  expect(verdict({ channel: 'beta' })).toContain('beta')
  expect(verdict({ sha256: 'ABC' })).toContain('sha256')
})

test('a label value over 128 bytes is a readable head and a hash, and two long ones stay two', () => {
  const base = `https://example.com/${'a'.repeat(130)}`
  const one = distinctLabelValue(`${base}1`)
  expect(one.startsWith('https://example.com/aaa')).toBe(true)
  expect(Buffer.byteLength(one)).toBe(128)
  expect(one).not.toBe(distinctLabelValue(`${base}2`))
  const exact = 'x'.repeat(128)
  expect(distinctLabelValue(exact)).toBe(exact)
  expect(Buffer.byteLength(distinctLabelValue(`https://example.com/${'ä'.repeat(100)}`))).toBeLessThanOrEqual(128)
})

test('targets are host:port', () => {
  expect(parseTarget('example.com:443')).toEqual({ host: 'example.com', port: 443 })
  expect(parseTarget('[::1]:80')).toEqual({ host: '::1', port: 80 })
  for (const text of ['example.com', ':80', 'a:0', 'a:65536', '::1:80', 'a b:80', 'http://a:80', ''])
    expect(parseTarget(text)).toBeNull()
})

const NONE = compileFilter({ include: [], exclude: [] })

test('file systems of the kernel, of containers and under /dev, /proc, /sys, /run are left out', () => {
  const f = (mount: string, fstype: string, expected: boolean) =>
    expect(`${mount} ${isFileSystemReported(mount, '/dev/x', fstype, NONE)}`).toBe(`${mount} ${expected}`)
  f('/', 'ext4', true)
  f('/home', 'xfs', true)
  f('/data', 'nfs4', true)
  f('/running', 'ext4', true)
  f('/dev/shm', 'ext4', false)
  f('/run/user/0', 'ext4', false)
  f('/var/lib/docker/overlay2/x/merged', 'ext4', false)
  f('/var/lib/kubelet/pods/x', 'ext4', false)
  f('/snap/core/1', 'ext4', false)
  for (const fstype of ['tmpfs', 'devtmpfs', 'overlay', 'squashfs', 'proc', 'sysfs', 'cgroup', 'cgroup2', 'autofs'])
    f('/x', fstype, false)
})

test('an include list replaces the defaults, an exclude list takes away from both', () => {
  const filter = compileFilter({ include: ['/', '/srv/.*'], exclude: ['/srv/old', '/dev/sdb1'] })
  expect(isFileSystemReported('/', 'overlay', 'overlay', filter)).toBe(true)
  expect(isFileSystemReported('/srv/new', '/dev/sda1', 'ext4', filter)).toBe(true)
  expect(isFileSystemReported('/srv/old', '/dev/sda1', 'ext4', filter)).toBe(false)
  expect(isFileSystemReported('/srv/two', '/dev/sdb1', 'ext4', filter)).toBe(false)
  expect(isFileSystemReported('/home', '/dev/sda2', 'ext4', filter)).toBe(false)
})

test('whole disks are reported, loop and memory devices are not', () => {
  for (const device of ['sda', 'nvme0n1', 'vda', 'dm-0', 'md0']) expect(isBlockDeviceReported(device, NONE)).toBe(true)
  for (const device of ['loop0', 'ram1', 'zram0', 'sr0']) expect(isBlockDeviceReported(device, NONE)).toBe(false)
  expect(isBlockDeviceReported('sda', compileFilter({ include: [], exclude: ['/dev/sda'] }))).toBe(false)
})

test('virtual interfaces are left out unless asked for', () => {
  for (const name of ['eth0', 'enp3s0', 'wlan0', 'bond0', 'wg0']) expect(isInterfaceReported(name, NONE)).toBe(true)
  for (const name of ['lo', 'veth12ab', 'docker0', 'br-0f', 'cali12'])
    expect(isInterfaceReported(name, NONE)).toBe(false)
  const filter = compileFilter({ include: ['docker.*'], exclude: ['docker1'] })
  expect(isInterfaceReported('docker0', filter)).toBe(true)
  expect(isInterfaceReported('docker1', filter)).toBe(false)
  expect(isInterfaceReported('eth0', filter)).toBe(false)
})

test('a filter is RE2 of 1 to 200 characters', () => {
  expect(filterFault('/data(/.*)?')).toBeNull()
  expect(filterFault('')).toContain('empty')
  expect(filterFault('(?=x)')).toContain('valid')
  expect(filterFault('a'.repeat(201))).toContain('200')
})

const point = (name: string, tsMs: number, value = 1, labels: Record<string, string> = {}) => ({
  name,
  labels,
  points: [{ tsMs, value }],
})

test('cycles are put together by series, and of two points at one instant the later holds', () => {
  const merged = mergeSeries([
    point('a', 1),
    point('b', 1),
    point('a', 2, 5),
    point('a', 2, 7),
    point('a', 1, 9, { x: '1' }),
  ])
  expect(merged).toEqual([
    {
      name: 'a',
      labels: {},
      points: [
        { tsMs: 1, value: 1 },
        { tsMs: 2, value: 7 },
      ],
    },
    point('b', 1),
    point('a', 1, 9, { x: '1' }),
  ])
})

test('values that are no finite number never leave a cycle; a result of a check keeps its own instant', () => {
  const samples = [
    { name: 'a', labels: {}, value: Number.NaN },
    { name: 'b', labels: {}, value: Number.POSITIVE_INFINITY },
    { name: 'c', labels: {}, value: 1, tsMs: 55 },
    { name: 'd', labels: {}, value: 2 },
  ]
  expect(seriesOfCycle(samples, 60)).toEqual([point('c', 55), point('d', 60, 2)])
})

test('long label values are cut so that two with the same beginning stay two series', () => {
  const mounted = (mount: string) => ({ name: 'disk_readonly', labels: { mount, fstype: 'ext4' }, value: 0 })
  const long = `/srv/${'ö'.repeat(100)}`
  const series = seriesOfCycle([mounted(`${long}/a`), mounted(`${long}/b`), mounted('/')], 60)
  expect(series.length).toBe(3)
  expect(series[2]?.labels).toEqual({ mount: '/', fstype: 'ext4' })
  for (const { labels } of series) expect(Buffer.byteLength(labels.mount ?? '')).toBeLessThanOrEqual(128)
  expect(series[0]?.labels.mount?.slice(0, 50)).toBe(long.slice(0, 50))
})

test('halves lose nothing, down to a single point', () => {
  const series = mergeSeries([point('a', 1), point('b', 1), point('c', 1), point('c', 2), point('c', 3)])
  const [left, right] = halveSeries(series)!
  expect(mergeSeries([...left, ...right])).toEqual(series)
  const [early, late] = halveSeries([series[2]!])!
  expect(pointCount(early) + pointCount(late)).toBe(3)
  expect(halveSeries([series[0]!])).toBeNull()
})

test('a ceiling on series keeps the first ones and counts the rest', () => {
  const series = mergeSeries([point('a', 1), point('b', 1), point('c', 1), point('c', 2)])
  expect(capSeries(series, 3).droppedPoints).toBe(0)
  expect(capSeries(series, 2)).toEqual({ kept: series.slice(0, 2), droppedPoints: 2 })
})

test('a full buffer gives up as many of its oldest as it must', () => {
  const f = (entries: number[], incoming: number, max: number, expected: number) =>
    expect(evictionCount(entries, incoming, max)).toBe(expected)
  f([], 5, 10, 0)
  f([5, 5], 0, 10, 0)
  f([5, 5], 1, 10, 1)
  f([1, 5, 5], 5, 10, 2)
  f([1, 1], 50, 10, 2)
})

test('a request takes the oldest cycles that fit, and one at least', () => {
  const f = (entries: number[], max: number, expected: number) => expect(groupCount(entries, max)).toBe(expected)
  f([], 10, 0)
  f([50], 10, 1)
  f([5, 5, 5], 10, 2)
  f([5, 50, 1], 10, 1)
})

test('over the limit series are kept in the order of the catalogue: checks and interfaces go first, whatever is outside it before them', () => {
  const one = (name: string, labels: Record<string, string> = {}) => ({ name, labels, points: [{ tsMs: 1, value: 1 }] })
  const many = (count: number, name: string, label: string) =>
    Array.from({ length: count }, (_, index) => one(name, { [label]: String(index) }))
  const series = [
    ...many(50, 'http_up', 'target'),
    one('of_its_own'),
    ...many(300, 'net_rx_bytes_per_second', 'interface'),
    ...many(200, 'net_interface_up', 'interface'),
    one('uptime_seconds'),
    one('disk_used_percent', { mount: '/' }),
    one('mem_used_percent'),
    one('cpu_load1'),
    one('cpu_usage_percent'),
  ]
  const { kept, droppedPoints } = capSeries(series, 500)
  expect(kept.length).toBe(500)
  expect(droppedPoints).toBe(series.length - 500)
  expect(kept.slice(0, 4).map(({ name }) => name)).toEqual([
    'cpu_usage_percent',
    'cpu_load1',
    'mem_used_percent',
    'disk_used_percent',
  ])
  const count = (name: string) => kept.filter(each => each.name === name).length
  expect([count('net_rx_bytes_per_second'), count('net_interface_up'), count('http_up')]).toEqual([300, 196, 0])
  // The same ones in every cycle.
  expect(kept.at(-1)?.labels).toEqual({ interface: '195' })
  expect(capSeries(series, 1000).kept).toBe(series)
})

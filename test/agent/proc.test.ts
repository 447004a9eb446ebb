// What /proc says, turned into samples: percentages, sizes and rates as pure functions of two readings.
import { expect, test } from 'bun:test'
import { keptReading } from '../../core/agent/counter-rates.ts'
import { compileFilter } from '../../core/agent/filters.ts'
import { cpuSamples, loadSamples, parseCpuInfo, parseProcStat, uptimeSamples } from '../../core/agent/proc-cpu.ts'
import {
  diskIoSamples,
  fileSystemSamples,
  mayHang,
  parseDiskStats,
  parseMountInfo,
  reportedMounts,
  silentMountsWarning,
  withSystemReadonly,
} from '../../core/agent/proc-disk.ts'
import { memorySamples, pageBytesOfAuxv, parseVmStat, swapSamples } from '../../core/agent/proc-memory.ts'
import { isInterfaceUp, isPortOpen, netSamples, parseNetDev, parseOsRelease } from '../../core/agent/proc-net.ts'
import type { Sample } from '../../core/agent/requests-of-cycles.ts'

const values = (samples: readonly Sample[]): Record<string, number> =>
  Object.fromEntries(
    samples.map(({ name, labels, value }) => {
      const suffix = Object.values(labels).join(' ')
      return [suffix === '' ? name : `${name} ${suffix}`, value]
    }),
  )
const all = () => true

const STAT_1 =
  'cpu  100 10 50 800 20 5 5 10 3 0\ncpu0 50 5 25 400 10 5 5 0 0 0\ncpu1 50 5 25 400 10 0 0 10 0 0\nbtime 1700000000\n'
// 200 ticks later: 40 user, 10 nice, 30 system, 90 idle, 10 iowait, 5 irq, 5 softirq, 10 steal.
const STAT_2 = 'cpu  140 20 80 890 30 10 10 20 3 0\ncpu0 90 15 55 400 10 10 10 10 0 0\ncpu1 50 5 25 490 20 0 0 10 0 0\n'

test('cpu usage is everything but idle and iowait, so steal counts as used', () => {
  const first = parseProcStat(STAT_1, 0)
  expect(first.bootAtMs).toBe(1_700_000_000_000)
  expect(values(cpuSamples(first, parseProcStat(STAT_2, 1_000), false))).toEqual({
    cpu_cores: 2,
    cpu_usage_percent: 50,
    cpu_user_percent: 20,
    cpu_nice_percent: 5,
    cpu_system_percent: 15,
    cpu_idle_percent: 45,
    cpu_iowait_percent: 5,
    cpu_irq_percent: 2.5,
    cpu_softirq_percent: 2.5,
    cpu_steal_percent: 5,
  })
})

test('cores are reported when asked for', () => {
  const samples = cpuSamples(parseProcStat(STAT_1, 0), parseProcStat(STAT_2, 1_000), true)
  expect(values(samples)['cpu_core_usage_percent 0']).toBe(100)
  expect(values(samples)['cpu_core_usage_percent 1']).toBe(0)
})

test('the first reading, one too close, one without progress and one after a reset yield no cpu percentages', () => {
  const only = { cpu_cores: 2 }
  const first = parseProcStat(STAT_1, 0)
  expect(values(cpuSamples(null, first, true))).toEqual(only)
  expect(values(cpuSamples(first, parseProcStat(STAT_2, 100), true))).toEqual(only)
  expect(values(cpuSamples(first, parseProcStat(STAT_1, 1_000), true))).toEqual(only)
  expect(values(cpuSamples(parseProcStat(STAT_2, 0), parseProcStat(STAT_1, 1_000), true))).toEqual(only)
  expect(cpuSamples(null, parseProcStat('', 0), true)).toEqual([])
})

test('iowait that steps back is no reset and no negative share', () => {
  const later = STAT_2.replace('cpu  140 20 80 890 30', 'cpu  140 20 80 890 15')
  const found = values(cpuSamples(parseProcStat(STAT_1, 0), parseProcStat(later, 1_000), false))
  expect(found.cpu_iowait_percent).toBe(0)
  expect(found.cpu_user_percent).toBeCloseTo((100 * 40) / 190)
})

test('[AGT-032] load averages and load per core', () => {
  expect(values(loadSamples('1.50 3.00 0.25 1/84 5400\n', 4))).toEqual({
    cpu_load1: 1.5,
    cpu_load5: 3,
    cpu_load15: 0.25,
    load_per_core_5m: 0.75,
  })
  for (const text of ['', 'x y z', '1 2']) expect(loadSamples(text, 4)).toEqual([])
})

test('uptime in seconds', () => {
  expect(values(uptimeSamples('2062.63 4100.11\n'))).toEqual({ uptime_seconds: 2062.63 })
  for (const text of ['', 'x', '-1 0']) expect(uptimeSamples(text)).toEqual([])
})

test('cores are counted once a package, threads once a processor', () => {
  const block = (processor: number, pkg: number, core: number) =>
    `processor\t: ${processor}\nmodel name\t: Fast CPU\nphysical id\t: ${pkg}\ncore id\t: ${core}\n\n`
  const text = block(0, 0, 0) + block(1, 0, 0) + block(2, 1, 0) + block(3, 1, 0)
  expect(parseCpuInfo(text)).toEqual({ model: 'Fast CPU', cores: 2, threads: 4 })
  expect(parseCpuInfo('processor : 0\nprocessor : 1\n')).toEqual({ model: '', cores: 2, threads: 2 })
})

const MEMINFO =
  'MemTotal: 1000 kB\nMemFree: 200 kB\nMemAvailable: 600 kB\nBuffers: 50 kB\nCached: 300 kB\nSwapTotal: 400 kB\nSwapFree: 300 kB\nHugePages_Total: 3\n'

test('memory used is total less available', () => {
  const kib = 1024
  expect(values(memorySamples(MEMINFO))).toEqual({
    mem_total_bytes: 1000 * kib,
    mem_used_bytes: 400 * kib,
    mem_available_bytes: 600 * kib,
    mem_free_bytes: 200 * kib,
    mem_cached_bytes: 300 * kib,
    mem_buffers_bytes: 50 * kib,
    mem_used_percent: 40,
    mem_available_percent: 60,
    swap_total_bytes: 400 * kib,
    swap_used_bytes: 100 * kib,
    swap_used_percent: 25,
  })
})

test('a kernel that estimates nothing available, and a host without swap', () => {
  const found = values(memorySamples('MemTotal: 1000 kB\nMemFree: 200 kB\nBuffers: 50 kB\nCached: 300 kB\n'))
  expect(found.mem_available_bytes).toBe(550 * 1024)
  expect(found.swap_used_percent).toBe(0)
  expect(memorySamples('')).toEqual([])
})

test('pages swapped become bytes per second; never from a first reading or a reset', () => {
  const a = parseVmStat('pswpin 10\npswpout 100\n', 0)
  const b = parseVmStat('pswpin 30\npswpout 100\n', 10_000)
  expect(values(swapSamples(a, b, 4096))).toEqual({ swap_in_bytes_per_second: 8192, swap_out_bytes_per_second: 0 })
  expect(swapSamples(null, a, 4096)).toEqual([])
  expect(swapSamples(b, { ...a, elapsedMs: 20_000 }, 4096)).toEqual([])
  expect(swapSamples(parseVmStat('', 0), parseVmStat('', 10_000), 4096)).toEqual([])
})

test('the page size comes from the auxiliary vector', () => {
  const words = new BigUint64Array([33n, 1n, 6n, 16_384n, 0n, 0n])
  expect(pageBytesOfAuxv(new Uint8Array(words.buffer))).toBe(16_384)
  expect(pageBytesOfAuxv(new Uint8Array())).toBe(4_096)
  expect(pageBytesOfAuxv(new Uint8Array(new BigUint64Array([6n, 7n]).buffer))).toBe(4_096)
})

const MOUNTS = `22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
28 27 254:0 /var/data /srv/bind rw - ext4 /dev/vda rw
30 27 8:1 / /mnt/my\\040disk ro,relatime master:2 - xfs /dev/sda1 ro
31 27 0:50 / /home rw - nfs4 server:/home rw,vers=4
32 27 8:2 / /over rw - ext4 /dev/sdb2 rw
33 32 8:3 / /over rw - ext4 /dev/sdb3 ro
nonsense
`

test('mounts are read with their escapes; each file system once, under its shortest mount point', () => {
  const mounts = reportedMounts(parseMountInfo(MOUNTS), compileFilter({ include: [], exclude: [] }))
  expect(mounts.map(({ mount, device, fstype, isReadonly }) => [mount, device, fstype, isReadonly])).toEqual([
    ['/', '/dev/vda', 'ext4', false],
    ['/home', 'server:/home', 'nfs4', false],
    ['/mnt/my disk', '/dev/sda1', 'xfs', true],
    ['/over', '/dev/sdb3', 'ext4', true],
  ])
})

test('a mount that a later one over a folder above hides is left out, with what is mounted in it', () => {
  const f = (table: string, expected: readonly string[]) =>
    expect(parseMountInfo(table).map(({ mount, device }) => `${mount} ${device}`)).toEqual([...expected])
  const below = `27 1 8:0 / / rw - ext4 /dev/sda rw
28 27 8:1 / /srv/data rw - xfs /dev/sdb rw
29 28 8:2 / /srv/data/deep rw - xfs /dev/sdc rw
`
  f(below, ['/ /dev/sda', '/srv/data /dev/sdb', '/srv/data/deep /dev/sdc'])
  f(`${below}30 27 8:3 / /srv rw - xfs /dev/sdd rw\n`, ['/ /dev/sda', '/srv /dev/sdd'])
  // Mounted anew in the one that hides: a bind mount and a btrfs subvolume have numbers of their own all the same.
  f(`${below}30 27 0:31 /@srv /srv rw - btrfs /dev/sdd rw\n31 30 8:1 / /srv/data rw - xfs /dev/sde rw\n`, [
    '/ /dev/sda',
    '/srv /dev/sdd',
    '/srv/data /dev/sde',
  ])
  // Over the mount point itself, as over a folder above.
  f(`${below}30 28 8:3 / /srv/data rw - xfs /dev/sdd rw\n`, ['/ /dev/sda', '/srv/data /dev/sdd'])
  f(`1 1 0:2 / / rw - rootfs rootfs rw\n2 1 0:5 / /old rw - tmpfs tmpfs rw\n${below}`, [
    '/ /dev/sda',
    '/srv/data /dev/sdb',
    '/srv/data/deep /dev/sdc',
  ])
  f('1 1 0:2 / / rw - ext4 /dev/ram0 rw\n30 1 8:1 / /data rw - xfs /dev/sda1 rw\n', ['/ /dev/ram0', '/data /dev/sda1'])
  f(`${below}30 27 8:3 / /srv/dat rw - xfs /dev/sdd rw\n`, [
    '/ /dev/sda',
    '/srv/data /dev/sdb',
    '/srv/data/deep /dev/sdc',
    '/srv/dat /dev/sdd',
  ])
})

test('what JavaScript takes for white space is a part of the name of a mount', () => {
  const names = ['/nb\u00a0sp', '/line\u2028end', '/return\r', '/\ufeff', '/v\u000bt']
  const table = names.map((name, index) => `3${index} 27 8:${index} / ${name} rw - xfs /dev/sd${name.slice(1)} rw\n`)
  expect(parseMountInfo(table.join('')).map(({ mount, device }) => [mount, device])).toEqual(
    names.map(name => [name, `/dev/sd${name.slice(1)}`]),
  )
  const [unnamed] = parseMountInfo('30 27 0:9 / /empty rw - fuse.x  ro,user_id=0\n')
  expect(unnamed).toMatchObject({ mount: '/empty', device: 'none', fstype: 'fuse.x', isReadonly: true })
})

test('file systems of other hosts may hang, local ones do not', () => {
  for (const fstype of ['nfs', 'nfs4', 'cifs', 'fuse.sshfs', 'ceph', '9p']) expect(mayHang(fstype)).toBe(true)
  for (const fstype of ['ext4', 'xfs', 'btrfs', 'zfs', 'vfat']) expect(mayHang(fstype)).toBe(false)
  expect(mayHang('of-tomorrow')).toBe(true)
})

test('a local file system is asked as one that may hang where the way to it does, through a folder above or below it', () => {
  const table = `27 1 254:0 / / rw - ext4 /dev/vda rw
28 27 0:9 / /srv rw - fuse.sshfs host:/ rw
29 28 8:1 / /srv/data rw - xfs /dev/sda1 rw
30 29 8:2 / /srv/data/deep/er rw - xfs /dev/sdb1 rw
31 27 8:3 / /srv2 rw - xfs /dev/sdc1 rw
32 27 0:10 / /boot rw - autofs systemd-1 rw
33 32 8:4 / /boot rw - vfat /dev/sdd1 rw
34 27 0:11 / /merged rw - overlay overlay rw
`
  const hanging = (text: string) =>
    parseMountInfo(text)
      .filter(mount => mount.mayHang)
      .map(({ mount }) => mount)
  expect(hanging(table)).toEqual(['/srv', '/srv/data', '/srv/data/deep/er', '/boot', '/merged'])
  expect(hanging('27 1 0:40 / / rw - nfs4 server:/ rw\n28 27 8:1 / /srv rw - xfs /dev/sda1 rw')).toEqual(['/', '/srv'])
  expect(hanging('27 1 0:40 / / rw - overlay overlay rw\n28 27 8:1 / /srv rw - xfs /dev/sda1 rw')).toEqual([])
})

const MOUNT = {
  mount: '/',
  device: '/dev/vda',
  fstype: 'ext4',
  isReadonly: false,
  isWholeReadonly: false,
  deviceNumber: '254:0',
  mayHang: false,
}

test('used percent of a disk is used / (used + available to users), as df', () => {
  const stat = { bsize: 1024, blocks: 1000, bfree: 400, bavail: 200, files: 50, ffree: 40 }
  const found = values(fileSystemSamples(MOUNT, stat))
  const of = (name: string) => found[`${name} / /dev/vda ext4`]
  expect(of('disk_total_bytes')).toBe(1_024_000)
  expect(of('disk_used_bytes')).toBe(614_400)
  expect(of('disk_free_bytes')).toBe(204_800)
  expect(of('disk_used_percent')).toBe(75)
  expect(of('disk_inodes_total')).toBe(50)
  expect(of('disk_inodes_used')).toBe(10)
  expect(of('disk_inodes_used_percent')).toBe(20)
  expect(of('disk_readonly')).toBe(0)
})

test('many disks that do not answer are one warning, which names the first of them', () => {
  const silent = Array.from({ length: 7 }, (_, index) => ({ ...MOUNT, mount: `/m${index}` }))
  const warning = 'disks that do not answer, so that their sizes are missing: /m0, /m1, /m2, /m3, /m4'
  expect(silentMountsWarning(silent)).toEqual([`${warning} and 2 more`])
  expect(silentMountsWarning(silent.slice(0, 5))).toEqual([warning])
  expect(silentMountsWarning([])).toEqual([])
})

test('a file system without inodes or blocks reports what it has', () => {
  const stat = { bsize: 1024, blocks: 0, bfree: 0, bavail: 0, files: 0, ffree: 0 }
  expect(fileSystemSamples({ ...MOUNT, isReadonly: true }, stat).map(({ name, value }) => [name, value])).toEqual([
    ['disk_readonly', 1],
  ])
})

const DISK_1 = ' 8 0 sda 100 0 1000 500 200 0 2000 700 3 10000 0 0 0 0 0\n 8 1 sda1 1 0 1 1 1 0 1 1 0 1 1\n'
const DISK_2 = ' 8 0 sda 150 0 3000 600 250 0 2000 800 1 15000 0 0 0 0 0\n 8 1 sda1 1 0 1 1 1 0 1 1 0 1 1\n'

test('disk counters become rates, the share of time busy and the wait of a request', () => {
  const found = values(diskIoSamples(parseDiskStats(DISK_1, 0), parseDiskStats(DISK_2, 10_000), name => name === 'sda'))
  expect(found).toEqual({
    'disk_io_in_progress sda': 1,
    'disk_read_bytes_per_second sda': 102_400,
    'disk_write_bytes_per_second sda': 0,
    'disk_reads_per_second sda': 5,
    'disk_writes_per_second sda': 5,
    'disk_io_util_percent sda': 50,
    'disk_io_await_seconds sda': 0.002,
  })
})

test('a first reading or a reset of a disk yields the gauge only', () => {
  const a = parseDiskStats(DISK_1, 0)
  const b = parseDiskStats(DISK_2, 10_000)
  const gauge = ['disk_io_in_progress']
  expect(diskIoSamples(null, a, name => name === 'sda').map(({ name }) => name)).toEqual(gauge)
  const reset = { ...a, elapsedMs: 20_000 }
  expect(diskIoSamples(b, reset, name => name === 'sda').map(({ name }) => name)).toEqual(gauge)
  expect(diskIoSamples(a, b, () => false)).toEqual([])
})

const netDev = (rx: number, tx: number) =>
  `Inter-| Receive | Transmit\n face |bytes packets|\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  eth0:${rx} 20 1 2 0 0 0 0 ${tx} 40 3 4 0 0 0 0\n`

test('interface counters become rates', () => {
  const a = parseNetDev(netDev(1000, 5000), 0)
  const b = parseNetDev(netDev(3000, 10_000).replace('20 1 2', '40 3 6').replace('40 3 4 0', '60 4 9 0'), 10_000)
  expect(values(netSamples(a, b, name => name === 'eth0'))).toEqual({
    'net_rx_bytes_per_second eth0': 200,
    'net_tx_bytes_per_second eth0': 500,
    'net_rx_packets_per_second eth0': 2,
    'net_tx_packets_per_second eth0': 2,
    'net_rx_errors_per_second eth0': 0.2,
    'net_tx_errors_per_second eth0': 0.1,
    'net_rx_dropped_per_second eth0': 0.4,
    'net_tx_dropped_per_second eth0': 0.5,
  })
})

test('an interface that is new or was reset has no rates, and others go on', () => {
  const a = parseNetDev(netDev(3000, 5000), 0)
  const b = parseNetDev(netDev(1000, 6000), 10_000)
  expect(new Set(netSamples(a, b, all).map(({ labels }) => labels.interface))).toEqual(new Set(['lo']))
  expect(netSamples(null, b, all)).toEqual([])
})

test('what JavaScript takes for white space is a part of the name of an interface', () => {
  const named = parseNetDev(netDev(0, 0).replace('eth0:', '\u2028eth0:'), 0)
  expect([...named.bySubject.keys()]).toEqual(['lo', '\u2028eth0'])
})

test('a reading too close to the last one does not become the new baseline', () => {
  const a = parseNetDev(netDev(0, 0), 0)
  const close = parseNetDev(netDev(0, 0), 100)
  const later = parseNetDev(netDev(0, 0), 5_000)
  expect(keptReading(a, close)).toBe(a)
  expect(keptReading(a, later)).toBe(later)
  expect(keptReading(null, a)).toBe(a)
})

test('an interface is up by its state, or by its carrier when it has no state', () => {
  const f = (state: string | null, carrier: string | null, expected: boolean) =>
    expect(isInterfaceUp(state, carrier)).toBe(expected)
  f('up\n', '1\n', true)
  f('down\n', '1\n', false)
  f('unknown\n', '1\n', true)
  f('unknown\n', '0\n', false)
  f('dormant\n', '1\n', false)
  f(null, null, false)
})

const HEADER = '  sl  local_address rem_address   st\n'
const TCP = `${HEADER}   0: 0100007F:1F90 00000000:0000 0A 00000000\n   1: 0100007F:0050 0200007F:C000 01 00000000\n`
const TCP6 = `${HEADER}   0: 00000000000000000000000000000000:01BB 00000000000000000000000000000000:0000 0A 0\n`
const UDP = `${HEADER}   5: 00000000:0035 00000000:0000 07 0\n   6: 0100007F:2710 0200007F:0035 01 0\n`

test('a tcp port is up when a socket listens on it, a udp port when one is bound to it', () => {
  const f = (port: number, proto: 'tcp' | 'udp', expected: boolean) =>
    expect(isPortOpen(proto === 'tcp' ? [TCP, TCP6] : [UDP, ''], port, proto)).toBe(expected)
  f(8080, 'tcp', true)
  f(443, 'tcp', true)
  f(80, 'tcp', false)
  f(8081, 'tcp', false)
  f(53, 'udp', true)
  f(10_000, 'udp', false)
})

test('the operating system is read from os-release, quoted or not', () => {
  expect(parseOsRelease('ID=debian\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\n')).toEqual({
    name: 'Debian GNU/Linux',
    version: '12',
  })
  expect(parseOsRelease("ID='arch'\n")).toEqual({ name: 'arch', version: '' })
})

/** Numbers in [0, 1) from a seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

test('whatever text /proc gives, nothing throws, and no sample is negative or no number', () => {
  const seedGiven = process.argv.indexOf('--seed')
  const seed = seedGiven > 0 ? Number(process.argv[seedGiven + 1]) : Math.floor(Math.random() * 2 ** 31)
  const random = randomFrom(seed)
  const texts = [STAT_1, STAT_2, MEMINFO, MOUNTS, DISK_1, DISK_2, netDev(1, 2), TCP, '1 2 3', 'pswpin 1\npswpout 2\n']
  const garble = (text: string): string => {
    const chars = [...text]
    for (let count = Math.floor(random() * 12); count > 0; count--)
      chars[Math.floor(random() * chars.length)] = ['', '-', ' ', '9', ':', '\n', 'x', '.', '99999999999999999999'][
        Math.floor(random() * 9)
      ]!
    return chars.slice(0, Math.ceil(random() * chars.length * 1.2)).join('')
  }
  for (let round = 0; round < 2_000; round++) {
    const text = garble(texts[Math.floor(random() * texts.length)]!)
    const other = garble(texts[Math.floor(random() * texts.length)]!)
    const samples = [
      ...cpuSamples(parseProcStat(text, 0), parseProcStat(other, 1_000), true),
      ...diskIoSamples(parseDiskStats(text, 0), parseDiskStats(other, 1_000), all),
      ...netSamples(parseNetDev(text, 0), parseNetDev(other, 1_000), all),
      ...swapSamples(parseVmStat(text, 0), parseVmStat(other, 1_000), 4096),
      ...memorySamples(text),
      ...uptimeSamples(text),
    ]
    parseMountInfo(text)
    isPortOpen([text, other], 80, 'tcp')
    loadSamples(text, 2)
    const odd = samples.filter(({ value }) => !(value >= 0))
    expect({ seed, odd }).toEqual({ seed, odd: [] })
  }
})

test('a sandbox that shows an agent its file systems as read-only does not make them so', () => {
  const table = (options: string) =>
    parseMountInfo(`27 1 254:0 / / ${options} - ext4 /dev/vda rw\n28 27 254:1 / /srv ro - ext4 /dev/vdb rw`)
  const flags = (system: string) =>
    withSystemReadonly(table('ro'), parseMountInfo(system)).map(({ isReadonly }) => isReadonly)
  expect(flags('1 0 254:0 / / rw - ext4 /dev/vda rw\n2 1 254:1 / /srv ro - ext4 /dev/vdb rw')).toEqual([false, true])
  expect(flags('1 0 254:9 / / rw - ext4 /dev/vdz rw')).toEqual([true, true])
  // The first process is hidden: a file system that is read-only itself is, a mount of the sandbox is not.
  expect(flags('')).toEqual([false, false])
  const failed = parseMountInfo(
    '27 1 254:0 / / ro - ext4 /dev/vda ro,errors=remount-ro\n28 27 8:1 / /srv ro - xfs /dev/sda',
  )
  expect(withSystemReadonly(failed, []).map(({ isReadonly }) => isReadonly)).toEqual([true, false])
})

// The collectors on another host: a folder that looks like one, and disks that do not answer.
import { expect, test } from 'bun:test'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseMachineGuid } from '../../apps/agent/collectors/host.ts'
import type { HostRoots } from '../../apps/agent/collectors/host-files.ts'
import { askStatFs, OPEN_QUESTIONS_MAX, StatFsAsker } from '../../apps/agent/collectors/stat-fs.ts'
import { StateDir } from '../../apps/agent/state/state-dir.ts'
import { metrics } from '../../core/series/catalogue.ts'
import { withHeldPool } from './held-pool.ts'
import { type Rig, withRig } from './rig.ts'

const CHECK_METRICS = /^(?:service|port|tcp|http|cert)_/

const FILES: Record<string, string> = {
  'proc/stat': 'cpu  100 10 50 800 20 5 5 10 0 0\ncpu0 100 10 50 800 20 5 5 10 0 0\nbtime 1700000000\n',
  'proc/loadavg': '1 2 3 1/2 3\n',
  'proc/uptime': '5000.5 100\n',
  'proc/meminfo': 'MemTotal: 1000 kB\nMemFree: 200 kB\nMemAvailable: 600 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n',
  'proc/vmstat': 'pswpin 1\npswpout 1\n',
  'proc/cpuinfo': 'processor : 0\nmodel name : Slow CPU\n',
  'proc/diskstats':
    ' 8 0 sda 1 0 1 1 1 0 1 1 0 1 1\n 8 1 sda1 1 0 1 1 1 0 1 1 0 1 1\n 7 0 loop0 1 0 1 1 1 0 1 1 0 1 1\n',
  'proc/self/mountinfo':
    '1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / /mnt/dead rw - nfs4 server:/x rw\n3 1 0:8 / /dev rw - devtmpfs dev rw\n',
  'proc/net/dev': 'x\nx\n  eth0: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n',
  'sys/block/sda/size': '1\n',
  'sys/block/loop0/size': '1\n',
  'sys/class/net/eth0/operstate': 'up\n',
  'etc/machine-id': `${'0123456789abcdef'.repeat(2)}\n`,
  'etc/os-release': 'NAME=Test\nVERSION_ID=1\n',
}

function makeHost(rig: Rig, changed: Record<string, string> = {}): HostRoots {
  const root = join(rig.stateDir, 'host')
  for (const [path, content] of Object.entries({ ...FILES, ...changed })) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
  return { proc: join(root, 'proc'), sys: join(root, 'sys'), etc: join(root, 'etc'), dbus: join(root, 'dbus') }
}

const SIZE = { bsize: 1024, blocks: 1000, bfree: 400, bavail: 200, files: 50, ffree: 40 }
const namesOf = (rig: Rig, index: number): Set<string> =>
  new Set(rig.peer.batches[index]?.series.map(({ name }) => name))

test('a Linux host reports every metric of the catalogue that is not a check', () =>
  withRig(async rig => {
    const roots = makeHost(rig)
    await rig.start({ 'collectors.cpu_per_core': true }, { roots, statFs: async () => SIZE })
    await rig.clock.runUntil(() => rig.peer.batches.length >= 1, 'a batch')
    makeHost(rig, {
      'proc/stat': FILES['proc/stat']!.replaceAll('cpu  100', 'cpu  200').replaceAll('cpu0 100', 'cpu0 200'),
    })
    await rig.clock.runUntil(() => rig.peer.batches.length >= 2, 'a second batch')
    const expected = metrics.map(({ name }) => name).filter(name => !CHECK_METRICS.test(name))
    expect([...namesOf(rig, 1)].sort()).toEqual(expected.sort())
    expect(rig.peer.points('disk_io_in_progress').every(({ labels }) => labels.device === 'sda')).toBe(true)
    expect(rig.peer.points('net_interface_up').every(({ labels }) => labels.interface === 'eth0')).toBe(true)
    expect(rig.peer.points('disk_total_bytes').map(({ labels }) => labels.mount)).toContain('/')
    expect(rig.peer.enrollments[0]?.machineId).toBe('0123456789abcdef'.repeat(2))
  }))

test('what the system does not let the agent read is left out and told once, and the rest is reported', () =>
  withRig(async rig => {
    const roots = makeHost(rig)
    for (const path of ['proc/stat', 'proc/meminfo', 'proc/net/dev', 'sys/class/net/eth0/operstate']) {
      rmSync(join(rig.stateDir, 'host', path))
      mkdirSync(join(rig.stateDir, 'host', path))
    }
    await rig.start({}, { roots, statFs: async () => SIZE })
    await rig.clock.runUntil(() => rig.peer.batches.length >= 3, 'three batches')
    expect([...namesOf(rig, 2)].some(name => /^(cpu_usage|mem_total|net_)/.test(name))).toBe(false)
    for (const name of ['uptime_seconds', 'cpu_load1', 'swap_in_bytes_per_second', 'disk_total_bytes'])
      expect([...namesOf(rig, 2)]).toContain(name)
    await rig.clock.idle()
    const bare = { proc: '/none', sys: '/none', etc: '/none', dbus: '/none' }
    await rig.start({ state_dir: join(rig.stateDir, 'second') }, { roots: bare })
    await rig.clock.runUntil(
      () => rig.peer.batches.some(({ series }) => series.length === 0),
      'a heartbeat without series',
      120_000,
      4,
    )
    await rig.clock.runFor(120_000, 4)
    // The memory of the first host, then all three of the second, once each.
    expect(rig.lines('cannot collect').map(({ collector }) => collector)).toEqual(['memory', 'uptime', 'memory', 'cpu'])
  }))

test('counters that start over give no rate in that cycle, and rates again in the next', () =>
  withRig(async rig => {
    const dev = (bytes: number) => ({
      'proc/net/dev': `x\nx\n  eth0: ${bytes} 1 0 0 0 0 0 0 ${bytes} 1 0 0 0 0 0 0\n`,
    })
    const roots = makeHost(rig, dev(50_000))
    await rig.start({}, { roots, statFs: async () => SIZE })
    await rig.clock.runUntil(() => rig.peer.batches.length >= 1, 'a batch')
    makeHost(rig, dev(10))
    await rig.clock.runUntil(() => rig.peer.batches.length >= 2, 'the batch of the reset')
    makeHost(rig, dev(3_010))
    await rig.clock.runUntil(() => rig.peer.batches.length >= 3, 'a third batch')
    expect(namesOf(rig, 1).has('net_rx_bytes_per_second')).toBe(false)
    expect(rig.peer.points('net_rx_bytes_per_second').at(-1)?.value).toBe(100)
  }))

test(
  'a file system that never answers stops nothing else',
  () =>
    withRig(async rig => {
      const roots = makeHost(rig)
      let asked = 0
      const statFs = (mount: { mount: string }) => {
        if (mount.mount === '/') return Promise.resolve(SIZE)
        asked++
        return new Promise<typeof SIZE>(() => {})
      }
      await rig.start({}, { roots, statFs })
      await rig.clock.runUntil(() => rig.peer.batches.length >= 2, 'two batches')
      expect(new Set(rig.peer.points('disk_total_bytes').map(({ labels }) => labels.mount))).toEqual(new Set(['/']))
      expect(namesOf(rig, 0).has('mem_total_bytes')).toBe(true)
      // Once by the collector, once by the inventory: an open question is not asked again.
      expect(asked).toBe(2)
    }),
  20_000,
)

test(
  'a file system that does not answer is named in a warning, until it answers again',
  () =>
    withRig(async rig => {
      const roots = makeHost(rig)
      const answers: ((size: typeof SIZE) => void)[] = []
      let isDead = true
      const statFs = ({ mount }: { mount: string }) =>
        isDead && mount === '/mnt/dead'
          ? new Promise<typeof SIZE>(resolve => answers.push(resolve))
          : Promise.resolve(SIZE)
      await rig.start({}, { roots, statFs })
      const warned = () => rig.peer.batches.at(-1)?.stats?.warnings ?? []
      const warning = 'disks that do not answer, so that their sizes are missing: /mnt/dead'
      await rig.clock.runUntil(() => warned().includes(warning), 'the warning')
      expect(rig.status().warnings).toContain(warning)
      isDead = false
      for (const answer of answers) answer(SIZE)
      await rig.clock.runUntil(() => rig.peer.batches.length > 0 && warned().length === 0, 'no warning')
      expect(rig.lines(warning).length).toBe(1)
    }),
  20_000,
)

test('an asker gives up after its deadline, and asks again once the old question is answered', async () => {
  let answer = (_: typeof SIZE) => {}
  let asked = 0
  const asker = new StatFsAsker(() => {
    asked++
    return new Promise(resolve => {
      answer = resolve
    })
  }, 5)
  const mount = {
    mount: '/x',
    device: 'x',
    fstype: 'nfs',
    isReadonly: false,
    isWholeReadonly: false,
    deviceNumber: '0:1',
    mayHang: true,
  }
  expect(await asker.size(mount)).toBeNull()
  expect(await asker.size(mount)).toBeNull()
  expect(asked).toBe(1)
  answer(SIZE)
  await new Promise(resolve => setImmediate(resolve))
  const second = asker.size(mount)
  answer(SIZE)
  expect(await second).toEqual(SIZE)
})

test('of hundreds of file systems few are asked at one instant, and dead ones keep no others from being asked', async () => {
  let running = 0
  let most = 0
  const mounts = Array.from({ length: 60 }, (_, index) => ({
    mount: `/m${index}`,
    device: `d${index}`,
    fstype: 'nfs',
    isReadonly: false,
    isWholeReadonly: false,
    deviceNumber: `0:${index}`,
    mayHang: true,
  }))
  const asker = new StatFsAsker(async ({ mount }) => {
    most = Math.max(most, ++running)
    if (Number(mount.slice(2)) < 20) await new Promise(() => {})
    running--
    return SIZE
  }, 30)
  const answered = new Set<string>()
  for (let cycle = 0; cycle < 4; cycle++)
    await Promise.all(
      mounts.map(async mount => {
        if (await asker.size(mount)) answered.add(mount.mount)
      }),
    )
  expect(answered.size).toBe(40)
  expect(most - 20).toBeLessThanOrEqual(8)
})

test('of file systems that never answer a bounded number is asked, and local ones all the same', async () => {
  let asked = 0
  const asker = new StatFsAsker(({ mayHang }) => {
    if (!mayHang) return Promise.resolve(SIZE)
    asked++
    return new Promise(() => {})
  }, 5)
  const local = {
    mount: '/',
    device: 'd',
    fstype: 'ext4',
    isReadonly: false,
    isWholeReadonly: false,
    deviceNumber: '8:1',
    mayHang: false,
  }
  const dead = Array.from({ length: 100 }, (_, index) => ({ ...local, mount: `/m${index}`, mayHang: true }))
  for (let cycle = 0; cycle < 20; cycle++) {
    const sizes = await Promise.all([...dead, local].map(mount => asker.size(mount)))
    expect(sizes.at(-1)).toEqual(SIZE)
  }
  expect([...dead, local].filter(mount => asker.isSilent(mount))).toEqual(dead)
  expect(asked).toBe(OPEN_QUESTIONS_MAX)
})

const ROOT = {
  mount: '/',
  device: 'x',
  fstype: 'ext4',
  isReadonly: false,
  isWholeReadonly: false,
  deviceNumber: '0:1',
  mayHang: false,
}

test('what may hang is asked by a child process, with the same numbers', async () => {
  const here = await askStatFs(ROOT)
  const child = await askStatFs({ ...ROOT, mayHang: true })
  expect(child.blocks * child.bsize).toBe(here.blocks * here.bsize)
  expect(child.files).toBe(here.files)
  expect(child.bavail).toBeGreaterThan(0)
  await expect(askStatFs({ ...ROOT, mayHang: true, mount: '/no/such/mount' })).rejects.toThrow()
  await expect(askStatFs({ ...ROOT, mount: '/no/such/mount' })).rejects.toThrow()
})

test('sizes are asked while every thread of the pool waits for something else', () =>
  withHeldPool(async () => {
    for (const mayHang of [false, true]) expect((await askStatFs({ ...ROOT, mayHang })).blocks).toBeGreaterThan(0)
  }))

test('[AGT-032] elsewhere than on Linux there are no load averages, and only metrics of all platforms', () =>
  withRig(async rig => {
    await rig.start({ 'collectors.cpu_per_core': true }, { platform: 'darwin' })
    await rig.clock.runUntil(() => rig.peer.batches.length >= 2, 'two batches')
    const names = namesOf(rig, 1)
    expect(names.has('mem_used_percent')).toBe(true)
    for (const { name, platform } of metrics) if (platform === 'linux') expect(names.has(name)).toBe(false)
    for (const name of ['cpu_load1', 'cpu_load5', 'cpu_load15', 'load_per_core_5m']) expect(names.has(name)).toBe(false)
    expect(rig.peer.enrollments[0]?.os?.family).toBe('darwin')
  }))

test('a collector that is switched off by the config reports nothing', () =>
  withRig(async rig => {
    const on = { enabled: true }
    rig.peer.setConfig({ etag: 'one', collectors: { cpu: on, memory: { enabled: false }, uptime: on, disk: on } })
    await rig.start({}, { roots: makeHost(rig), statFs: async () => SIZE })
    await rig.clock.runUntil(() => rig.peer.batches.length >= 1, 'a batch')
    const names = [...namesOf(rig, 0)]
    expect(names.some(name => name.startsWith('mem_') || name.startsWith('net_'))).toBe(false)
    expect(names).toContain('cpu_load1')
    expect(names).toContain('disk_total_bytes')
  }))

test('limits.max_series of the config caps a cycle, counts the rest as dropped, and says so', () =>
  withRig(async rig => {
    rig.peer.setConfig({ etag: 'one', limits: { maxSeries: 5 } })
    await rig.start()
    await rig.clock.runUntil(() => rig.peer.batches.length >= 1, 'a batch')
    expect(rig.peer.batches[0]?.series.length).toBe(5)
    expect(rig.peer.batches[0]?.stats?.droppedPoints).toBeGreaterThan(0n)
    expect(rig.peer.batches[0]?.stats?.warnings.join()).toContain('more than 5 series')
  }))

test('[AGT-031] the machine id of Windows is the machine GUID of the registry', () => {
  const printed =
    '\r\nHKEY_LOCAL_MACHINE\\SOFTWARE\\Microsoft\\Cryptography\r\n    MachineGuid    REG_SZ    6F1A2B3C-0001-4D5E-8F90-ABCDEF012345\r\n\r\n'
  expect(parseMachineGuid(printed)).toBe('6f1a2b3c-0001-4d5e-8f90-abcdef012345')
  expect(parseMachineGuid('ERROR: The system was unable to find the key')).toBeNull()
})

test('a host without machine-id is given one, which stays', () =>
  withRig(async rig => {
    const roots = makeHost(rig, { 'etc/machine-id': 'uninitialized\n' })
    const agent = await rig.start({}, { roots, statFs: async () => SIZE })
    await agent.enrolled
    const made = rig.peer.enrollments[0]?.machineId
    expect(made).toMatch(/^[0-9a-f]{32}$/)
    expect(new StateDir(rig.stateDir).madeMachineId()).toBe(made!)
  }))

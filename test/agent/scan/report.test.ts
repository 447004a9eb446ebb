import { expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { Value } from '@sinclair/typebox/value'
import { Slices } from '../../../apps/agent/scan/slices.ts'
import { reportContentHash } from '../../../core/matching/report-content.ts'
import { reportSchema } from '../../../core/matching/report-schema.ts'
import { sha256Hex } from '../../../core/series/hash.ts'
import { dpkgRoot, SystemRoot } from '../../support/package-tools.ts'
import { linesOf, scanOf } from './scan-of.ts'

setDefaultTimeout(60_000)

const STATUS = 'Package: base-files\nStatus: install ok installed\nArchitecture: amd64\nVersion: 12.4\n\n'

function debian(): SystemRoot {
  const root = dpkgRoot()
  root.write('var/lib/dpkg/status', STATUS)
  return root
}

test('[MAT-021] a report of any system has the form that a matcher takes', async () => {
  using root = debian()
  using empty = new SystemRoot()
  for (const path of ['/', root.path, empty.path])
    expect([...Value.Errors(reportSchema, await scanOf(path))]).toEqual([])
})

test('[MAT-022] [MAT-023] a system that did not change has the same hash, whenever it is scanned', async () => {
  const first = await scanOf('/', { nowMs: 1, scannerVersion: '1' })
  const second = await scanOf('/', { nowMs: 2, scannerVersion: '2' })
  expect(second.collected_at_ms).not.toBe(first.collected_at_ms)
  expect(reportContentHash(second)).toBe(reportContentHash(first))
})

test('[MAT-013] [MAT-014] Alpine is listed with its branch, below either path', async () => {
  for (const path of ['lib/apk/db/installed', 'usr/lib/apk/db/installed']) {
    using root = new SystemRoot()
    root.write('etc/os-release', 'ID=alpine\nVERSION_ID=3.20.1\n')
    root.write('etc/apk/repositories', 'https://dl-cdn.alpinelinux.org/alpine/v3.20/main\n')
    root.write(path, 'P:libssl3\nV:3.3.1-r0\nA:x86_64\no:openssl\nF:usr/lib\nR:libssl.so.3\n\n')
    const report = await scanOf(root.path)
    expect(linesOf(report)).toEqual(['libssl3 3.3.1-r0 x86_64 openssl 3.3.1-r0'])
    expect(report).toMatchObject({ system: 'apk', os: { id: 'alpine', version_id: '3.20.1', branch: 'v3.20' } })
  }
})

test('[MAT-019] a container says that its kernel is of no package, a system with an image does not', async () => {
  using root = debian()
  expect((await scanOf(root.path)).error_codes).toEqual(['kernel_unpackaged'])
  root.write('var/lib/dpkg/status', `${STATUS}${STATUS.replace('base-files', 'linux-image-6.1.0-18-amd64')}`)
  expect(await scanOf(root.path)).toMatchObject({ error_codes: [], kernel: { running: '', build: '' } })
  for (const mark of ['.dockerenv', 'run/.containerenv']) {
    using container = debian()
    container.write('var/lib/dpkg/status', root.read('var/lib/dpkg/status'))
    container.write(mark, '')
    expect((await scanOf(container.path)).error_codes).toEqual(['kernel_unpackaged'])
  }
})

test('[MAT-016] a version that cannot be compared is listed and told', async () => {
  using root = debian()
  root.write('var/lib/dpkg/status', `${STATUS}${STATUS.replace('base-files', 'odd').replace('12.4', '1 2')}`)
  const report = await scanOf(root.path)
  expect(linesOf(report)[1]).toBe('odd 1 2 amd64 odd 1 2')
  expect(report.error_codes).toEqual(['kernel_unpackaged', 'version_invalid'])
})

test('[MAT-017] [MAT-018] what waits for a new start and what is patched in place stand in the report', async () => {
  using root = debian()
  expect(await scanOf(root.path)).toMatchObject({ reboot_required: false, livepatch_active: false })
  root.write('run/reboot-required', '*** System restart required ***\n')
  root.write('sys/kernel/livepatch/one/enabled', '0\n')
  expect(await scanOf(root.path)).toMatchObject({ reboot_required: true, livepatch_active: false })
  root.write('sys/kernel/livepatch/two/enabled', '1\n')
  expect(await scanOf(root.path)).toMatchObject({ reboot_required: true, livepatch_active: true })
})

test('extended support is what Ubuntu and the sources of apt say', async () => {
  using root = debian()
  const supportOf = async () => {
    const { esm, elts } = await scanOf(root.path)
    return { ...esm, elts }
  }
  const none = { attached: false, infra: false, apps: false, elts: false }
  expect(await supportOf()).toEqual(none)
  for (const broken of ['', '[]', 'null', '{"attached":"yes","services":{}}', '{"services":[null,1]}']) {
    root.write('var/lib/ubuntu-advantage/status.json', broken)
    expect(await supportOf()).toEqual(none)
  }
  const services = [
    { name: 'esm-infra', status: 'enabled' },
    { name: 'esm-apps', status: 'disabled' },
  ]
  root.write('var/lib/ubuntu-advantage/status.json', JSON.stringify({ attached: true, services }))
  expect(await supportOf()).toEqual({ ...none, attached: true, infra: true })
  const sources = 'Types: deb\nURIs: http://deb.freexian.com/extended-lts\nSuites: buster\n'
  root.write('etc/apt/sources.list', '# deb http://deb.freexian.com/extended-lts buster main\n')
  root.write('etc/apt/sources.list.d/elts.sources', `${sources}Enabled: no\n`)
  expect((await supportOf()).elts).toBe(false)
  root.write('etc/apt/sources.list.d/elts.sources', sources)
  expect((await supportOf()).elts).toBe(true)
  root.write('etc/apt/sources.list.d/elts.sources', '')
  root.write(
    'etc/apt/sources.list.d/elts.list',
    'deb [signed-by=/x] http://deb.freexian.com/extended-lts buster main\n',
  )
  expect((await supportOf()).elts).toBe(true)
})

test('the enabled streams of modules are read as dnf keeps them', async () => {
  using root = new SystemRoot()
  root.write('etc/os-release', 'ID=rhel\n')
  root.write('var/lib/rpm/rpmdb.sqlite', '')
  root.write('etc/dnf/modules.d/nodejs.module', '[nodejs]\nname=nodejs\nprofiles=common\nstate=enabled\nstream=18\n')
  root.write('etc/dnf/modules.d/perl.module', '[perl]\nname=perl\nstate=disabled\nstream=\n')
  root.write('etc/dnf/modules.d/container-tools.module', '[container-tools]\nstate = enabled\nstream = rhel8\n')
  root.write('etc/dnf/modules.d/broken.module', '\0\0[[[=\n')
  expect((await scanOf(root.path)).modules).toEqual({ 'container-tools': 'rhel8', nodejs: '18' })
})

test('[MAT-020] of the host only the hash of its machine-id leaves', async () => {
  using root = debian()
  const id = '0123456789abcdef0123456789abcdef'
  expect((await scanOf(root.path)).machine_id_hash).toBe('')
  root.write('etc/machine-id', 'uninitialized\n')
  root.write('var/lib/dbus/machine-id', `${id.toUpperCase()}\n`)
  const report = await scanOf(root.path)
  expect(report.machine_id_hash).toBe(sha256Hex(`svc-scan-v1\n${id}`))
  expect(JSON.stringify(report)).not.toContain(id)
  const own = JSON.stringify(await scanOf('/'))
  const status = readFileSync('/var/lib/dpkg/status', 'utf8')
  const maintainer = /^Maintainer: .*<(.*)>$/m.exec(status)?.[1] ?? 'no maintainer'
  const description = /^Description: (.*)$/m.exec(status)?.[1] ?? 'no description'
  for (const kept of [maintainer, description, process.env.HOME ?? '/nonexistent']) expect(own).not.toContain(kept)
})

test('[MAT-003] a scan goes on in slices, between which everything else has its turn', async () => {
  let nowMs = 0
  const slices = new Slices(() => nowMs)
  const turns: string[] = []
  const work = async () => {
    for (let step = 0; step < 10; step++) {
      nowMs += 4
      turns.push(`step ${step}`)
      await slices.breathe()
    }
  }
  const ended = work()
  const others = new Promise<void>(resolve => {
    let count = 0
    const turn = () => {
      turns.push('other')
      if (++count < 3) setImmediate(turn)
      else resolve()
    }
    setImmediate(turn)
  })
  await Promise.all([ended, others])
  const waits = turns.slice(0, turns.lastIndexOf('other'))
  expect(waits.indexOf('other')).toBe(3)
  expect(waits.filter(turn => turn === 'other').length).toBeGreaterThanOrEqual(2)
})

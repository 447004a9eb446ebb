import { expect, test } from 'bun:test'
import type { InstalledPackage } from '../../../core/matching/package-list.ts'
import { kernelState } from '../../../core/matching/reboot-required.ts'
import type { PackageSystem } from '../../../core/matching/report-schema.ts'

/** Packages as `name version`, with the arch of rpm's kernels. */
const state = (system: PackageSystem, running: string, packages: readonly string[], build = '#1 SMP') =>
  kernelState(
    system,
    packages.map((line): InstalledPackage => {
      const [name = '', version = ''] = line.split(' ')
      return { name, version, arch: 'x86_64', source: name, sourceVersion: version, module: '', vendor: '' }
    }),
    { running, build },
  )

const current = { isPackaged: true, isNewerInstalled: false }
const outdated = { isPackaged: true, isNewerInstalled: true }
const foreign = { isPackaged: false, isNewerInstalled: false }

test('[MAT-017] dpkg: a newer image of the kind that runs waits for a new start', () => {
  const debian = ['linux-image-6.1.0-18-amd64 6.1.76-1', 'linux-image-amd64 6.1.90-1', 'linux-libc-dev 6.1.90-1']
  expect(state('dpkg', '6.1.0-18-amd64', debian)).toEqual(current)
  expect(state('dpkg', '6.1.0-18-amd64', [...debian, 'linux-image-6.1.0-9-amd64 6.1.27-1'])).toEqual(current)
  expect(state('dpkg', '6.1.0-18-amd64', [...debian, 'linux-image-6.1.0-21-amd64 6.1.90-1'])).toEqual(outdated)
  const others = ['linux-image-6.1.0-21-cloud-amd64 6.1.90-1', 'linux-image-6.1.0-21-amd64-dbg 6.1.90-1']
  expect(state('dpkg', '6.1.0-18-amd64', [...debian, ...others])).toEqual(current)
  const ubuntu = [
    'linux-image-5.15.0-91-generic 5.15.0-91.101',
    'linux-image-unsigned-5.15.0-107-generic 5.15.0-107.117',
  ]
  expect(state('dpkg', '5.15.0-91-generic', ubuntu)).toEqual(outdated)
  expect(state('dpkg', '5.15.0-107-generic', ubuntu)).toEqual(current)
})

test('[MAT-017] dpkg: new files of the release that runs wait too, as its build tells', () => {
  const build = '#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01)'
  expect(state('dpkg', '6.1.0-18-amd64', ['linux-image-6.1.0-18-amd64 6.1.76-1'], build)).toEqual(current)
  expect(state('dpkg', '6.1.0-18-amd64', ['linux-image-6.1.0-18-amd64 6.1.82-1'], build)).toEqual(outdated)
})

test('[MAT-017] dpkg: the image that runs may be gone when the newer one is there', () => {
  expect(state('dpkg', '6.1.0-18-amd64', ['linux-image-6.1.0-21-amd64 6.1.90-1'])).toEqual({
    isPackaged: false,
    isNewerInstalled: true,
  })
  expect(state('dpkg', '6.1.0-18-amd64', ['linux-image-6.1.0-9-amd64 6.1.27-1'])).toEqual(foreign)
})

test('[MAT-017] rpm: kernels stand beside each other, and the newest is to run', () => {
  const alma = ['kernel-core 5.14.0-362.8.1.el9_3', 'kernel 5.14.0-362.8.1.el9_3', 'kernel-tools 5.14.0-427.el9']
  const newer = [...alma, 'kernel-core 5.14.0-427.13.1.el9_4', 'kernel 5.14.0-427.13.1.el9_4']
  expect(state('rpm', '5.14.0-362.8.1.el9_3.x86_64', alma)).toEqual(current)
  expect(state('rpm', '5.14.0-362.8.1.el9_3.x86_64', newer)).toEqual(outdated)
  expect(state('rpm', '5.14.0-427.13.1.el9_4.x86_64', newer)).toEqual(current)
  expect(state('rpm', '5.14.0-362.8.1.el9_3.x86_64+rt', [...alma, 'kernel-rt-core 5.14.0-362.8.1.el9_3'])).toEqual(
    current,
  )
  expect(state('rpm', '5.15.0-200.131.27.el8uek.x86_64', ['kernel-uek 5.15.0-200.131.27.el8uek', ...newer])).toEqual(
    current,
  )
  const suse = ['kernel-default 5.14.21-150500.55.39.1', 'kernel-default 5.14.21-150500.55.52.1']
  expect(state('rpm', '5.14.21-150500.55.39-default', suse)).toEqual(outdated)
  expect(state('rpm', '5.14.21-150500.55.52-default', suse)).toEqual(current)
})

test('[MAT-017] apk: the one image there is may be newer than what runs', () => {
  const alpine = ['linux-lts 6.6.30-r0', 'linux-firmware 20240513-r0', 'linux-pam 1.6-r0']
  expect(state('apk', '6.6.30-0-lts', alpine)).toEqual(current)
  expect(state('apk', '6.6.29-1-lts', alpine)).toEqual({ isPackaged: false, isNewerInstalled: true })
  expect(state('apk', '6.6.30-0-virt', alpine)).toEqual(foreign)
})

test('[MAT-019] a kernel of no package is told, of the host of a container above all', () => {
  for (const system of ['dpkg', 'rpm', 'apk'] as const) {
    expect(state(system, '6.18.44-fc', ['bash 5.2'])).toEqual(foreign)
    expect(state(system, '', ['bash 5.2'])).toEqual(foreign)
  }
  // Where no kernel runs there is an image or not.
  expect(state('dpkg', '', ['linux-image-6.1.0-18-amd64 6.1.76-1'])).toEqual(current)
  expect(state('rpm', '', ['kernel-core 5.14.0-362.8.1.el9_3'])).toEqual(current)
  expect(state('apk', '', ['linux-virt 6.6.30-r0'])).toEqual(current)
})

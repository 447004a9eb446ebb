import { describe, expect, test } from 'bun:test'
import { isKernelImage, isKernelSource, isRunning, kernelKind, sourceOf } from '../../../core/matching/kernel-names.ts'
import { DEFAULT_MATCH_OPTIONS } from '../../../core/matching/match-options.ts'
import { matchReport } from '../../../core/matching/match-report.ts'
import { instancesOfReport, type PackageInstance } from '../../../core/matching/package-instance.ts'
import type { Report } from '../../../core/matching/report-schema.ts'
import { databaseOf, reportOf } from './made-database.ts'

const DAY = Date.parse('2026-01-15T12:00:00Z')

const matched = (report: Report, reader: ReturnType<typeof databaseOf>) =>
  matchReport(report, reader, DAY, DEFAULT_MATCH_OPTIONS)

const instanceOf = (id: Parameters<typeof reportOf>[0], words: string): PackageInstance =>
  instancesOfReport(reportOf(id, [words]), DEFAULT_MATCH_OPTIONS)[0]!

describe('sources', () => {
  test('[MAT-121] kernels by the names of their distributions, and what only sounds like one', () => {
    const are = (system: 'dpkg' | 'rpm' | 'apk', names: string) =>
      names.split(' ').filter(name => !isKernelSource(system, name))
    const areNot = (system: 'dpkg' | 'rpm' | 'apk', names: string) =>
      names.split(' ').filter(name => isKernelSource(system, name))
    expect(are('dpkg', 'linux linux-6.1 linux-5.10 linux-aws linux-aws-6.8 linux-hwe-6.8 linux-azure-fde')).toEqual([])
    expect(are('dpkg', 'linux-gcp linux-gkeop linux-oem-6.5 linux-raspi linux-lowlatency-hwe-6.8')).toEqual([])
    expect(
      are('dpkg', 'linux-kvm linux-oracle linux-ibm linux-nvidia-tegra-igx linux-intel-iotg linux-xilinx-zynqmp'),
    ).toEqual([])
    expect(areNot('dpkg', 'linux-base linux-firmware linux-atm linuxptp linux-apfs-rw linux-ftpd-ssl linux86')).toEqual(
      [],
    )
    expect(areNot('dpkg', 'linux-restricted-modules util-linux linux-show-player linux-wlan-ng linux-')).toEqual([])
    expect(are('rpm', 'kernel kernel-rt kernel-uek kernel-default kernel-azure')).toEqual([])
    expect(areNot('rpm', 'kernel-srpm-macros kernelshark linux-firmware kernel-livepatch-SLE15')).toEqual([])
    expect(are('apk', 'linux-lts linux-virt linux-rpi linux-edge')).toEqual([])
    expect(areNot('apk', 'linux-firmware linux-headers linux-pam linux-tools')).toEqual([])
  })

  test('[MAT-120] signed kernels become what they sign, with the version of the binary; what has no code is nothing', () => {
    const source = (words: string) => {
      const { source: name, version } = sourceOf(instanceOf('debian', words)) ?? {}
      return name ? `${name} ${version}` : undefined
    }
    expect(source('linux-image-6.1.0-18-amd64 6.1.76-1 source=linux-signed-amd64 sv=6.1.76+1')).toBe('linux 6.1.76-1')
    expect(source('linux-image-6.1.0-0.deb11.7-amd64 6.1.20-2 source=linux-signed-6.1-amd64 sv=1')).toBe(
      'linux-6.1 6.1.20-2',
    )
    expect(source('linux-image-5.15.0-91-generic 5.15.0-91.101 source=linux-signed')).toBe('linux 5.15.0-91.101')
    expect(source('linux-image-6.5.0-14-generic 6.5.0-14.14 source=linux-signed-hwe-6.5')).toBe(
      'linux-hwe-6.5 6.5.0-14.14',
    )
    expect(source('linux-image-6.2.0-1018-aws 6.2.0-1018.18 source=linux-signed-aws-6.2')).toBe(
      'linux-aws-6.2 6.2.0-1018.18',
    )
    expect(source('x 5.15.0-91.101+1 source=linux-restricted-signatures-aws sv=5')).toBe(
      'linux-restricted-modules-aws 5.15.0-91.101+1',
    )
    expect(source('linux-image-generic 5.15.0.91.88 source=linux-meta')).toBeUndefined()
    expect(source('linux-image-aws 6.2 source=linux-meta-aws-6.2')).toBeUndefined()
    expect(source('linux-image-686 105 source=linux-latest')).toBeUndefined()
    expect(source('bash 5.2-1')).toBe('bash 5.2-1')
  })
})

describe('images', () => {
  test('[MAT-122] the image that runs, by uname, in each system', () => {
    const runs = (id: Parameters<typeof reportOf>[0], words: string, uname: string) => {
      const image = instanceOf(id, words)
      return isKernelImage(image) && isRunning(image, uname)
    }
    expect(runs('debian', 'linux-image-6.1.0-18-amd64 6.1.76-1', '6.1.0-18-amd64')).toBe(true)
    expect(runs('debian', 'linux-image-6.1.0-18-amd64-unsigned 6.1.76-1', '6.1.0-18-amd64')).toBe(true)
    expect(runs('debian', 'linux-image-6.1.0-18-amd64-dbg 6.1.76-1', '6.1.0-18-amd64')).toBe(false)
    expect(runs('debian', 'linux-image-6.1.0-17-amd64 6.1.69-1', '6.1.0-18-amd64')).toBe(false)
    expect(runs('debian', 'linux-image-amd64 6.1.76-1', '6.1.0-18-amd64')).toBe(false)
    expect(runs('ubuntu', 'linux-image-unsigned-5.15.0-91-generic 5.15.0-91.101', '5.15.0-91-generic')).toBe(true)
    expect(runs('rocky', 'kernel-core 5.14.0-362.8.1.el9_3', '5.14.0-362.8.1.el9_3.x86_64')).toBe(true)
    expect(runs('rocky', 'kernel 5.14.0-362.8.1.el9_3', '5.14.0-362.8.1.el9_3.x86_64')).toBe(true)
    expect(runs('rocky', 'kernel-core 5.14.0-362.13.1.el9_3', '5.14.0-362.8.1.el9_3.x86_64')).toBe(false)
    expect(runs('rocky', 'kernel-core 5.14.0-362.8.1.el9_3', '5.14.0-362.8.1.el9_3.x86_64+rt')).toBe(false)
    expect(runs('rocky', 'kernel-rt-core 5.14.0-362.8.1.el9_3', '5.14.0-362.8.1.el9_3.x86_64+rt')).toBe(true)
    expect(runs('rocky', 'kernel-rt-core 4.18.0-513.5.1.rt7.307.el8_9', '4.18.0-513.5.1.rt7.307.el8_9.x86_64')).toBe(
      true,
    )
    expect(runs('rocky', 'kernel-modules 5.14.0-362.8.1.el9_3', '5.14.0-362.8.1.el9_3.x86_64')).toBe(false)
    expect(runs('rocky', 'kernel-uek-core 1:5.15.0-1.el9uek', '5.15.0-1.el9uek.x86_64')).toBe(true)
    expect(runs('sles', 'kernel-default 5.14.21-150500.55.49.1', '5.14.21-150500.55.49-default')).toBe(true)
    expect(runs('sles', 'kernel-default 5.14.21-150500.55.52.1', '5.14.21-150500.55.49-default')).toBe(false)
    expect(runs('sles', 'kernel-azure 5.14.21-150500.33.29.1', '5.14.21-150500.33.29-default')).toBe(false)
    expect(runs('sles', 'kernel-default 5.14.21-150500.55.49.1', '5.14.21-150500.55.49.1.x86_64')).toBe(true)
    expect(runs('sles', 'kernel-azure 5.14.21-150500.33.29.1', '5.14.21-150500.33.29.1.x86_64')).toBe(false)
    expect(runs('alpine', 'linux-lts 6.6.14-r0', '6.6.14-0-lts')).toBe(true)
    expect(runs('alpine', 'linux-lts 6.6.14-r0', '6.6.14-r0-lts')).toBe(true)
    expect(runs('alpine', 'linux-virt 6.6.14-r0 source=linux-lts', '6.6.14-0-lts')).toBe(false)
    expect(runs('alpine', 'linux-virt 6.6.14-r2 source=linux-lts', '6.6.14-2-virt')).toBe(true)
    expect(runs('alpine', 'linux-lts-dev 6.6.14-r0 source=linux-lts', '6.6.14-0-lts')).toBe(false)
    expect(runs('debian', 'linux-image-6.1.0-18-amd64 6.1.76-1', '')).toBe(false)
  })

  test('[MAT-124] images of one kind', () => {
    const kind = (words: string) => kernelKind(instanceOf('debian', words))
    expect(kind('linux-image-6.1.0-18-amd64 1')).toBe('amd64')
    expect(kind('linux-image-6.1.0-18-cloud-amd64 1')).toBe('cloud-amd64')
    expect(kind('linux-image-6.12.43+deb13-amd64 1')).toBe('amd64')
    expect(kind('linux-image-unsigned-6.5.0-14-generic 1')).toBe('generic')
    expect(kind('linux-image-6.1.0-0.deb11.7-rt-amd64 1')).toBe('rt-amd64')
  })
})

describe('findings of kernels', () => {
  const debian = databaseOf({
    'debian:12 linux': [
      { vuln: 'CVE-1', fixed: '6.1.76-1' },
      { vuln: 'CVE-2', fixed: '6.1.90-1' },
      { vuln: 'CVE-3', status: 'no_fix' },
      { vuln: 'CVE-4', fixed: '6.1.60-1' },
    ],
  })
  const three = [
    'linux-image-6.1.0-16-amd64 6.1.67-1 source=linux-signed-amd64 sv=6.1.67+1',
    'linux-image-6.1.0-18-amd64 6.1.76-1 source=linux-signed-amd64 sv=6.1.76+1',
    'linux-image-6.1.0-21-amd64 6.1.90-1 source=linux-signed-amd64 sv=6.1.90+1',
    'linux-image-6.1.0-21-cloud-amd64 6.1.99-1 source=linux-signed-amd64 sv=6.1.99+1',
    'linux-headers-6.1.0-16-amd64 6.1.67-1 source=linux',
    'linux-libc-dev 6.1.67-1 source=linux',
    'linux-perf 6.1.67-1 source=linux',
    'bpftool 7.1.0+6.1.67-1 source=linux sv=6.1.67-1',
  ]
  const told = (report: Report, reader = debian) =>
    matched(report, reader).findings.map(each =>
      [each.package_key, each.vuln_id, each.installed_version, each.kernel, each.reboot_required].join(' '),
    )

  test('[MAT-122] [MAT-123] [MAT-124] three kernels on disk: only what runs counts, and a reboot helps where it does', () => {
    expect(told(reportOf('debian', three, { running: '6.1.0-16-amd64' }))).toEqual([
      'linux CVE-1 6.1.67-1 true true',
      'linux CVE-2 6.1.67-1 true true',
      'linux CVE-3 6.1.67-1 true false',
    ])
    expect(told(reportOf('debian', three, { running: '6.1.0-18-amd64' }))).toEqual([
      'linux CVE-2 6.1.76-1 true true',
      'linux CVE-3 6.1.76-1 true false',
    ])
    expect(told(reportOf('debian', three, { running: '6.1.0-21-amd64' }))).toEqual(['linux CVE-3 6.1.90-1 true false'])
    const [finding] = matched(reportOf('debian', three, { running: '6.1.0-16-amd64' }), debian).findings
    expect(finding!.packages).toEqual([{ name: 'linux-image-6.1.0-16-amd64', version: '6.1.67-1', arch: 'amd64' }])
  })

  test('[MAT-124] an image of another kind, or an older one, is no reason to reboot', () => {
    const older = databaseOf({ 'debian:12 linux': [{ vuln: 'CVE-9', introduced: '6.1.70-1', fixed: '6.1.99-9' }] })
    const images = [three[0]!, three[1]!, 'linux-image-6.1.0-25-cloud-amd64 6.1.100-1 source=linux-signed-amd64']
    expect(told(reportOf('debian', images, { running: '6.1.0-18-amd64' }), older)).toEqual([
      'linux CVE-9 6.1.76-1 true false',
    ])
  })

  test('[MAT-019] a kernel that no package has makes no findings, and is told; nor does one of which nothing is known', () => {
    const result = matched(reportOf('debian', three, { running: '6.8.12-4-pve' }), debian)
    expect(result).toMatchObject({ error_codes: ['kernel_unpackaged'], findings: [] })
    expect(matched(reportOf('debian', three), debian)).toMatchObject({ error_codes: [], findings: [] })
    const contained = reportOf('debian', three, { running: '6.1.0-16-amd64', error_codes: ['kernel_unpackaged'] })
    expect(matched(contained, debian)).toMatchObject({ error_codes: ['kernel_unpackaged'], findings: [] })
  })

  test('[MAT-141] [MAT-122] Ubuntu: variants have rows of their own, and a newer image of the other source helps too', () => {
    const reader = databaseOf({
      'ubuntu:22.04 linux': [{ vuln: 'CVE-1', fixed: '5.15.0-100.110' }],
      'ubuntu:22.04 linux-hwe-6.5': [{ vuln: 'CVE-1', fixed: '6.5.0-14.14~22.04.1' }],
    })
    const images = [
      'linux-image-5.15.0-91-generic 5.15.0-91.101 source=linux-signed',
      'linux-image-6.5.0-14-generic 6.5.0-14.14~22.04.1 source=linux-signed-hwe-6.5 sv=6.5.0-14.14~22.04.1',
    ]
    expect(told(reportOf('ubuntu', images, { running: '5.15.0-91-generic' }), reader)).toEqual([
      'linux CVE-1 5.15.0-91.101 true true',
    ])
    expect(told(reportOf('ubuntu', images, { running: '6.5.0-14-generic' }), reader)).toEqual([])
  })

  test('[MAT-122] AlmaLinux by binary, Rocky, SUSE and Alpine by source: the running image only', () => {
    const alma = databaseOf({
      'almalinux:9 binary:kernel': [{ vuln: 'CVE-1', fixed: '5.14.0-427.13.1.el9_4' }],
      'almalinux:9 binary:kernel-core': [{ vuln: 'CVE-1', fixed: '5.14.0-427.13.1.el9_4' }],
      'almalinux:9 binary:kernel-modules': [{ vuln: 'CVE-1', fixed: '5.14.0-427.13.1.el9_4' }],
      'almalinux:9 binary:bpftool': [{ vuln: 'CVE-1', fixed: '7.3.0-427.13.1.el9_4' }],
    })
    const installed = ['kernel', 'kernel-core', 'kernel-modules', 'bpftool'].flatMap(name => [
      `${name} 5.14.0-362.8.1.el9_3 source=kernel`,
      `${name} 5.14.0-427.13.1.el9_4 source=kernel`,
    ])
    const report = reportOf('almalinux', installed, { running: '5.14.0-362.8.1.el9_3.x86_64' })
    expect(told(report, alma)).toEqual(['kernel CVE-1 5.14.0-362.8.1.el9_3 true true'])
    expect(matched(report, alma).findings[0]!.packages.map(each => each.name)).toEqual(['kernel', 'kernel-core'])
    const rocky = databaseOf({ 'rocky:9 kernel': [{ vuln: 'CVE-1', fixed: '0:5.14.0-427.13.1.el9_4' }] })
    const rockyHost = reportOf('rocky', ['kernel-core 5.14.0-362.8.1.el9_3 source=kernel'], {
      running: '5.14.0-362.8.1.el9_3.x86_64',
    })
    expect(told(rockyHost, rocky)).toEqual(['kernel CVE-1 5.14.0-362.8.1.el9_3 true false'])
    const alpine = databaseOf({ 'alpine:3.20 linux-lts': [{ vuln: 'CVE-1', fixed: '6.6.32-r0' }] })
    const alpineHost = reportOf('alpine', ['linux-virt 6.6.31-r0 source=linux-lts'], { running: '6.6.31-0-virt' })
    expect(told(alpineHost, alpine)).toEqual(['linux-lts CVE-1 6.6.31-r0 true false'])
    const leap = databaseOf({ 'opensuse:15.6 kernel-default': [{ vuln: 'CVE-1', fixed: '6.4.0-150600.23.7.3' }] })
    const leapHost = reportOf('opensuse-leap', ['kernel-default 6.4.0-150600.21.3 vendor=SUSE_LLC'], {
      running: '6.4.0-150600.21-default',
    })
    expect(told(leapHost, leap)).toEqual(['kernel-default CVE-1 6.4.0-150600.21.3 true false'])
  })
})

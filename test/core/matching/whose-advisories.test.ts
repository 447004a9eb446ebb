// Releases of hosts, by what their os-release says.
import { expect, test } from 'bun:test'
import { DEFAULT_MATCH_OPTIONS } from '../../../core/matching/match-options.ts'
import type { Report } from '../../../core/matching/report-schema.ts'
import { releaseOf } from '../../../core/matching/whose-advisories.ts'

test('[MAT-110] releases by their distributions’ names', () => {
  const release = (id: string, os: Partial<Report['os']>) => {
    const all = { id, version_id: '', codename: '', id_like: [], cpe_name: '', ...os }
    const { ecosystem, database } = releaseOf(all, DEFAULT_MATCH_OPTIONS) ?? {}
    return ecosystem === database ? ecosystem : `${ecosystem} by ${database}`
  }
  expect(release('debian', { version_id: '12' })).toBe('debian:12')
  expect(release('debian', { codename: 'forky' })).toBe('debian:forky')
  expect(release('debian', { pretty_name: 'Debian GNU/Linux trixie/sid' })).toBe('debian:sid')
  expect(release('ubuntu', { version_id: '24.10' })).toBe('ubuntu:24.10')
  expect(release('alpine', { version_id: '3.9.6' })).toBe('alpine:3.9')
  expect(release('alpine', { version_id: '3.21_alpha20240807', branch: 'edge' })).toBe('alpine:edge')
  expect(release('rhel', { version_id: '8.10' })).toBe('rhel:8')
  expect(release('almalinux', { version_id: '10.0' })).toBe('almalinux:10')
  expect(release('rocky', { version_id: '9.3' })).toBe('rocky:9')
  expect(release('centos', { version_id: '9', pretty_name: 'CentOS Stream 9' })).toBe('centos:9 by rhel:9')
  expect(release('sles', { version_id: '15.5', pretty_name: 'SUSE Linux Enterprise Server 15 SP5' })).toBe(
    'suse:linux enterprise server 15 sp5 by suse:15.5',
  )
  expect(release('sles', { version_id: '15.5' })).toBe('suse:linux enterprise server 15 sp5 by suse:15.5')
  expect(release('sles', { version_id: '15', pretty_name: 'SUSE Linux Enterprise Server 15' })).toBe(
    'suse:linux enterprise server 15 by suse:15',
  )
  expect(
    release('sles', { version_id: '15.6', pretty_name: 'SUSE Linux Enterprise Server for SAP Applications 15 SP6' }),
  ).toBe('suse:linux enterprise server for sap applications 15 sp6 by suse:15.6')
  const computing = 'suse:linux enterprise high performance computing 15 sp5 by suse:15.5'
  const ofComputing = { version_id: '15.5', pretty_name: 'SUSE Linux Enterprise High Performance Computing 15 SP5' }
  expect(release('sle_hpc', ofComputing)).toBe(computing)
  expect(release('sle_hpc', { version_id: '15.5' })).toBe(computing)
  expect(release('sle_rt', { version_id: '15.6' })).toBe('suse:linux enterprise real time 15 sp6 by suse:15.6')
  const sixteen = 'suse:linux enterprise server 16.0 by suse:16.0'
  expect(release('sles', { version_id: '16.0', pretty_name: 'SUSE Linux Enterprise Server 16.0' })).toBe(sixteen)
  expect(release('sles', { version_id: '16.0' })).toBe(sixteen)
  expect(release('sl-micro', { version_id: '6.1' })).toBe('suse:linux micro 6.1')
  expect(release('sle-micro', { version_id: '5.5' })).toBe('suse:linux enterprise micro 5.5')
  expect(release('slackware', { version_id: '15.0' })).toBeUndefined()
  expect(release('opensuse-leap', { version_id: '15.6', pretty_name: 'openSUSE Leap 15.6' })).toBe(
    'opensuse:leap 15.6 by opensuse:15.6',
  )
  expect(release('opensuse-tumbleweed', { version_id: '20240101' })).toBe('opensuse:tumbleweed')
  expect(release('pop', { version_id: '22.04', ubuntu_codename: 'jammy' })).toBe('pop:22.04 by ubuntu:22.04')
  expect(release('pop', { version_id: '22.10', ubuntu_codename: 'kinetic' })).toBe('pop:22.10 by ubuntu:22.10')
  expect(release('pop', { version_id: '22', codename: 'jammy', id_like: ['ubuntu'] })).toBe('pop:22 by ubuntu:22.04')
  expect(release('mint', { version_id: '17', ubuntu_codename: 'trusty' })).toBe('mint:17 by ubuntu:14.04')
  expect(release('devuan', { version_id: '5', codename: 'daedalus', id_like: ['debian'] })).toBeUndefined()
  expect(release('fedora', { version_id: '40' })).toBeUndefined()
  expect(release('', {})).toBeUndefined()
})

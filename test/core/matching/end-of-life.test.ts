import { describe, expect, test } from 'bun:test'
import {
  dayOf,
  KNOWN_RELEASES,
  knownRelease,
  releaseSupport,
  supportEnd,
  supportedSuccessors,
} from '../../../core/matching/end-of-life.ts'

const isDay = (text: string): boolean => {
  const ms = Date.parse(`${text}T00:00:00Z`)
  return /^\d{4}-\d\d-\d\d$/.test(text) && dayOf(ms) === text
}

describe('the table', () => {
  test('[MAT-127] ends are days that exist, the paid end lies behind the free one, and ids are said once', () => {
    expect(KNOWN_RELEASES.filter(each => !isDay(each.standard_until))).toEqual([])
    expect(KNOWN_RELEASES.filter(each => each.extended_until !== '' && !isDay(each.extended_until))).toEqual([])
    expect(KNOWN_RELEASES.filter(each => each.extended_until && each.extended_until <= each.standard_until)).toEqual([])
    expect(KNOWN_RELEASES.filter(each => each.id !== `${each.distro}:${each.version}`)).toEqual([])
    expect(new Set(KNOWN_RELEASES.map(each => each.id)).size).toBe(KNOWN_RELEASES.length)
  })

  test('[MAT-127] successors are known, later than the release, and stand in the order of their versions', () => {
    const place = (id: string) =>
      (knownRelease(id)?.version ?? '')
        .split('.')
        .map(each => each.padStart(4, '0'))
        .join('.')
    for (const release of KNOWN_RELEASES) {
      const places = release.successors.map(place)
      expect([release.id, places]).toEqual([release.id, places.toSorted()])
      if (release.distro !== 'centos')
        expect([release.id, places.filter(each => each <= place(release.id))]).toEqual([release.id, []])
    }
  })

  test('[MAT-127] what is asked for is there', () => {
    const distros = (distro: string) => KNOWN_RELEASES.filter(each => each.distro === distro).map(each => each.version)
    for (const version of ['10', '11', '12', '13']) expect(distros('debian')).toContain(version)
    for (const version of ['16.04', '18.04', '20.04', '22.04', '24.04', '25.10'])
      expect(distros('ubuntu')).toContain(version)
    for (let minor = 15; minor <= 22; minor++) expect(distros('alpine')).toContain(`3.${minor}`)
    for (const version of ['6', '7', '8', '9', '10']) expect(distros('rhel')).toContain(version)
    for (const distro of ['almalinux', 'rocky']) expect(distros(distro)).toEqual(['8', '9', '10'])
    expect(distros('suse')).toContain('15.7')
    expect(distros('opensuse')).toContain('15.6')
  })

  test('[MAT-127] [MAT-128] the days are those that the distributions say', () => {
    const days = (id: string) => [knownRelease(id)?.standard_until, knownRelease(id)?.extended_until]
    expect(days('suse:16.0')).toEqual(['2027-11-30', '2030-11-30'])
    expect(days('suse:15.7')).toEqual(['2031-07-31', '2034-07-31'])
    expect(days('ubuntu:22.04')).toEqual(['2027-06-01', '2032-04-21'])
    expect(days('ubuntu:26.10')).toEqual(['2027-07-15', ''])
    expect(days('debian:12')).toEqual(['2028-06-30', '2033-06-30'])
    expect(days('rhel:9')).toEqual(['2032-05-31', '2036-05-31'])
    expect(days('almalinux:8')).toEqual(['2029-05-31', ''])
    expect(days('alpine:3.24')).toEqual(['2028-06-01', ''])
    expect(days('centos-stream:10')).toEqual(['2030-05-31', ''])
  })

  test('[MAT-128] what is free counts as standard, what is paid for as extended', () => {
    const debian = knownRelease('debian:11')
    expect(releaseSupport(debian, '2026-08-31')).toBe('standard')
    expect(releaseSupport(debian, '2026-09-01')).toBe('esm_only')
    expect(releaseSupport(debian, '2031-07-01')).toBe('eol')
    expect(releaseSupport(knownRelease('almalinux:8'), '2029-01-01')).toBe('standard')
    expect(releaseSupport(knownRelease('alpine:3.15'), '2026-01-01')).toBe('eol')
    expect(releaseSupport(undefined, '2026-01-01')).toBe('')
    expect(supportEnd(debian, false)).toBe('2026-08-31')
    expect(supportEnd(debian, true)).toBe('2031-06-30')
    expect(supportEnd(knownRelease('alpine:3.15'), true)).toBe('2023-11-01')
  })

  test('[MAT-127] only successors that are supported on the day are named', () => {
    const successors = (id: string, day: string) => supportedSuccessors(knownRelease(id)!, day, knownRelease)
    expect(successors('ubuntu:16.04', '2026-01-15')).toEqual(['ubuntu:22.04', 'ubuntu:24.04'])
    expect(successors('ubuntu:16.04', '2026-04-23')).toEqual(['ubuntu:22.04', 'ubuntu:24.04', 'ubuntu:26.04'])
    expect(successors('alpine:3.18', '2025-12-01')).toEqual(['alpine:3.20', 'alpine:3.21', 'alpine:3.22'])
    expect(successors('centos:7', '2026-01-15')).toEqual(['centos-stream:9', 'centos-stream:10'])
  })
})

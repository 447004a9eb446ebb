import { describe, expect, test } from 'bun:test'
import { explainReport, explanationLines } from '../../../core/matching/explain.ts'
import { DEFAULT_MATCH_OPTIONS } from '../../../core/matching/match-options.ts'
import { matchReport } from '../../../core/matching/match-report.ts'
import { databaseOf, reportOf } from './made-database.ts'

const DAY = Date.parse('2026-01-15T12:00:00Z')
const reader = databaseOf({
  'debian:12 openssl': [
    { vuln: 'CVE-1', fixed: '3.0.14-1', advisories: ['DSA-1'] },
    { vuln: 'CVE-2', fixed: '3.0.11-1' },
    { vuln: 'CVE-3', status: 'undetermined' },
    { vuln: 'CVE-4', fixed: '3.0.99-1', arches: ['arm64'] },
    { vuln: 'CVE-5', fixed: '3.0.99-1' },
    { vuln: 'CVE-5', fixed: '3.0.13-1+esm1', channel: 'esm' },
    { vuln: 'CVE-6', introduced: '3.1', status: 'no_fix' },
  ],
  'debian:12 linux': [{ vuln: 'CVE-9', fixed: '6.1.76-1' }],
})
const report = reportOf(
  'debian',
  [
    'openssl 3.0.13-1+esm1',
    'linux-image-6.1.0-16-amd64 6.1.67-1 source=linux-signed-amd64',
    'linux-libc-dev 6.1.67-1 source=linux',
    'docker-ce 26.1-1',
    'zlib1g 1.2 source=zlib',
  ],
  { running: '6.1.0-18-amd64' },
)
const explain = (filter = {}) => explainReport(report, reader, DAY, DEFAULT_MATCH_OPTIONS, filter)

describe('explain', () => {
  test('[MAT-232] says of every rule why it hits or not', () => {
    const [openssl] = explain({ package: 'openssl' }).packages
    expect(openssl!.rows[0]!.rules.map(({ rule, result }) => `${rule.vuln} ${rule.channel} ${result}`)).toEqual([
      'CVE-1 standard hit',
      'CVE-2 standard not_affected',
      'CVE-3 standard undetermined',
      'CVE-4 standard arch',
      'CVE-5 standard cleared',
      'CVE-5 esm not_affected',
      'CVE-6 standard not_affected',
    ])
    expect(explanationLines(explain({ package: 'openssl', vuln: 'CVE-1' }))).toEqual([
      'debian 12: matched, with the rows of debian:12',
      'openssl 3.0.13-1+esm1 amd64: source openssl 3.0.13-1+esm1, hit by CVE-1',
      '  row source package openssl of debian:12, compared with 3.0.13-1+esm1:',
      '    CVE-1 DSA-1: hits: 3.0.13-1+esm1 is below 3.0.14-1',
    ])
  })

  test('[MAT-232] says of every package why it is not looked up', () => {
    expect(explain().packages.map(each => `${each.name}: ${each.unmatched ?? each.words}`)).toEqual([
      'openssl: source openssl 3.0.13-1+esm1, hit by CVE-1',
      'linux-image-6.1.0-16-amd64: source linux 6.1.67-1, no vulnerability hits',
      'linux-libc-dev: kernel_part',
      'docker-ce: third_party',
      'zlib1g: the database has no row of source zlib 1.2 or of this binary in debian:12',
    ])
    const [image] = explain({ package: 'linux', vuln: 'CVE-9' }).packages
    expect(image!.rows[0]!.rules[0]!.words).toBe(
      'would hit (below 6.1.76-1), but this kernel does not run (6.1.0-18-amd64)',
    )
  })

  test('[MAT-232] what hits in the explanation is what is found', () => {
    const { findings } = matchReport(report, reader, DAY, DEFAULT_MATCH_OPTIONS)
    const hits = explain().packages.flatMap(each =>
      each.rows.flatMap(row =>
        row.rules.filter(rule => rule.result === 'hit').map(rule => `${each.package_key} ${rule.rule.vuln}`),
      ),
    )
    expect(hits).toEqual(findings.map(each => `${each.package_key} ${each.vuln_id}`))
    expect(hits).toEqual(['openssl CVE-1'])
  })
})

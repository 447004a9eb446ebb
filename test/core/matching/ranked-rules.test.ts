import { expect, test } from 'bun:test'
import type { AdvisoryReader } from '../../../core/matching/advisory.ts'
import { DEFAULT_MATCH_OPTIONS } from '../../../core/matching/match-options.ts'
import { matchReport } from '../../../core/matching/match-report.ts'
import type { Report } from '../../../core/matching/report-schema.ts'
import { Random, seedOf } from '../../fuzz/seeded.ts'
import { databaseOf, reportOf } from './made-database.ts'

const DAY = Date.parse('2026-01-15T12:00:00Z')

const matchOf = (report: Report, reader: AdvisoryReader) => matchReport(report, reader, DAY, DEFAULT_MATCH_OPTIONS)

const byVuln = (a: { readonly vuln_id: string }, b: { readonly vuln_id: string }): number =>
  a.vuln_id < b.vuln_id ? -1 : 1

test('[MAT-114] [MAT-180] a long row says of every version what its rules say one by one, however often it is asked', () => {
  const random = new Random(seedOf('ranked rules'))
  const numbers = Array.from({ length: 12 }, (_, index) => `${1 + (index % 3)}.${index % 5}`)
  for (const [system, place, end] of [
    ['debian', 'debian:12 foo', ['-1', '-1~deb12u1', '-2']],
    ['alpine', 'alpine:3.20 foo', ['-r0', '-r1', '_p1-r2']],
  ] as const)
    for (let round = 0; round < 8; round++) {
      const version = (): string => random.pick(numbers) + random.pick(end)
      const rules = Array.from({ length: 8 + random.below(60) }, (_, index) => ({
        // Now and then several rules of one vulnerability.
        vuln: `CVE-2024-${1000 + index - random.below(2)}`,
        ...(random.chance(0.8) && { fixed: version() }),
        ...(random.chance(0.1) && { introduced: version() }),
        ...(random.chance(0.1) && { last_affected: version() }),
        ...(random.chance(0.05) && { versions: [version()] }),
        ...(random.chance(0.1) && { channel: 'esm' as const }),
      }))
      const whole = databaseOf({ [place]: rules })
      const single = [...new Set(rules.map(({ vuln }) => vuln))].map(vuln =>
        databaseOf({ [place]: rules.filter(rule => rule.vuln === vuln) }),
      )
      for (let asked = 0; asked < 6; asked++) {
        const report = reportOf(system, [`foo ${version()}`])
        const { findings } = matchOf(report, whole)
        expect(findings).toEqual(single.flatMap(reader => matchOf(report, reader).findings).toSorted(byVuln))
      }
    }
})

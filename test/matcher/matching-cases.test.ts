// Servers of every distribution against one database that the importer made of every source's own format. What is
// expected of each was written from the words of the requirements alone (matching-cases.txt).
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DEFAULT_MATCH_OPTIONS } from '../../core/matching/match-options.ts'
import { type MatchedReport, matchReport } from '../../core/matching/match-report.ts'
import type { Report } from '../../core/matching/report-schema.ts'
import { reportOf } from '../core/matching/made-database.ts'
import { sources } from './matching-sources.ts'
import { buildOf } from './vulndb/support.ts'

/** Where a case names no day. */
const DAY = '2026-01-15'
const file = join(import.meta.dir, 'matching-cases.txt')

type Case = { readonly what: string; readonly lines: readonly (readonly [word: string, rest: string])[] }

/** `# group`, then cases: a line that says what it shows, and indented lines of a word and what it says. */
function groupsOf(text: string): { readonly name: string; readonly cases: readonly Case[] }[] {
  return text.split(/^# /m).flatMap(group => {
    const [name = '', ...paragraphs] = group.trim().split('\n\n')
    if (name === '') return []
    const cases = paragraphs.map(paragraph => {
      const [what = '', ...lines] = paragraph.trim().split('\n')
      return { what, lines: lines.map(line => /^ {2}(\w+)\s*(.*)$/.exec(line)!.slice(1) as [string, string]) }
    })
    return [{ name, cases }]
  })
}

const rest = ({ lines }: Case, word: string): string[] => lines.filter(([own]) => own === word).map(([, said]) => said)

/** `a=b c=d`, each value a boolean where it is one; `~` stands for a blank. */
function pairs(words: readonly string[]): Record<string, string | boolean> {
  const meantBy = (text: string) => (/^(true|false)$/.test(text) ? text === 'true' : text.replaceAll('~', ' '))
  return Object.fromEntries(words.map(word => [word.split('=', 1)[0]!, meantBy(word.slice(word.indexOf('=') + 1))]))
}

function reportOfCase(one: Case): Report {
  const [id = '', ...os] = rest(one, 'host').flatMap(said => said.split(' '))
  const attached = rest(one, 'attached')
  const isPro = attached.includes('esm')
  return reportOf(id as Parameters<typeof reportOf>[0], rest(one, 'package'), {
    os: pairs(os),
    running: rest(one, 'running')[0] ?? '',
    esm: { attached: isPro, infra: isPro, apps: isPro },
    elts: attached.includes('elts'),
    livepatch_active: attached.includes('livepatch'),
  })
}

/** A finding in words: the installed packages are named where they are more than one of the source's name. */
function worded(each: MatchedReport['findings'][number]): string {
  if (each.kind === 'release_eol') return [each.vuln_id, each.eol_date, each.upgrade_to.join()].join(' ').trim()
  const names = [...new Set(each.packages.map(({ name }) => name))].join()
  return [
    each.package_key,
    each.vuln_id,
    each.installed_version,
    each.fix_status,
    each.fixed_version,
    each.fix_channel,
    each.severity_label,
    each.minor && 'minor',
    each.no_distro_fix && 'no_distro_fix',
    each.kernel && 'kernel',
    each.reboot_required && 'reboot',
    names !== each.package_key && names,
    each.advisory_ids.join(),
  ]
    .filter(Boolean)
    .join(' ')
}

let built: Awaited<ReturnType<typeof buildOf>>
beforeAll(async () => {
  built = await buildOf(sources)
  expect(built.outcomes.filter(({ fault, rejected }) => fault !== null || rejected > 0)).toEqual([])
})
afterAll(() => built[Symbol.dispose]())

for (const { name, cases } of groupsOf(readFileSync(file, 'utf8')))
  describe(name, () => {
    for (const one of cases)
      test(one.what, () => {
        const options = { ...DEFAULT_MATCH_OPTIONS, ...pairs(rest(one, 'option').flatMap(said => said.split(' '))) }
        const day = Date.parse(`${rest(one, 'day')[0] ?? DAY}T12:00:00Z`)
        const matched = matchReport(reportOfCase(one), built.reader, day, options)
        expect(matched.findings.map(worded)).toEqual(rest(one, 'finding'))
        const answer = [matched.match_status, matched.release_support, ...matched.error_codes].join(' ').trim()
        for (const said of rest(one, 'answer')) expect(answer).toBe(said)
      })
  })

// Why a package of a report has findings or not: which rules were looked at, and why each hits or does not, in words
// and as data (MAT-232). Decides nothing itself: it asks what matching asks.
import type { AdvisoryReader, Affected, Rule } from './advisory.ts'
import type { MatchStatus, ReleaseSupport } from './finding-event.ts'
import { isRunning } from './kernel-names.ts'
import type { MatchOptions } from './match-options.ts'
import { type HostInfo, type HostMatch, hostMatch } from './match-status.ts'
import { instancesOfReport, type PackageInstance } from './package-instance.ts'
import type { Report } from './report-schema.ts'
import {
  isCounted,
  lookUpOf,
  type Matched,
  ownVulnsOf,
  packageKeyOf,
  type Row,
  rowsOf,
  type Unmatched,
} from './rows-of-instance.ts'
import { type Build, buildOf, hitsOf, isHit, type Misfit, misfitOf } from './rule-hit.ts'
import { ecosystemOf } from './whose-advisories.ts'

type ExplainFilter = {
  /** Name of a binary or source package; all packages when absent. */
  readonly package?: string
  readonly vuln?: string
}

type ExplainedRule = {
  readonly rule: Rule
  /** `hit` alone makes a finding. */
  readonly result: 'hit' | 'not_affected' | 'cleared' | 'borrowed' | 'undetermined' | 'kernel_not_running' | Misfit
  readonly words: string
}

type ExplainedRow = {
  readonly release: string
  readonly package: string
  readonly by: Affected['by']
  /** The version that the rules' boundaries were compared with. */
  readonly compared_version: string
  readonly rules: readonly ExplainedRule[]
}

type ExplainedPackage = {
  readonly name: string
  readonly version: string
  readonly arch: string
  readonly package_key: string
  readonly unmatched: Unmatched | null
  readonly rows: readonly ExplainedRow[]
  readonly words: string
}

type Explanation = {
  readonly match_status: MatchStatus
  readonly release_support: ReleaseSupport
  readonly ecosystem: string
  /** Empty for a distribution that is unknown here. */
  readonly database_release: string
  readonly db_version: number
  readonly words: string
  readonly packages: readonly ExplainedPackage[]
}

/** `report` is one that was sent, or what is stored of a server in its form. */
export function explainReport(
  report: Report,
  reader: AdvisoryReader,
  nowMs: number,
  options: MatchOptions,
  filter: ExplainFilter = {},
): Explanation {
  const instances = instancesOfReport(report, options)
  const match = hostMatch(report, reader, nowMs, options)
  const wanted = instances.filter(
    each => filter.package === undefined || [each.name, each.source, packageKeyOf(each)].includes(filter.package),
  )
  const context = { reader, options, filter, running: report.kernel.running }
  return {
    match_status: match.status,
    release_support: match.support,
    ecosystem: ecosystemOf(report.os, options),
    database_release: match.release?.database ?? '',
    db_version: reader.version,
    words: hostWords(match, report),
    packages: wanted.map(instance => explainPackage(instance, context)),
  }
}

/** The explanation as lines of text for a terminal. */
export function explanationLines(explanation: Explanation): string[] {
  return [
    explanation.words,
    ...explanation.packages.flatMap(each => [
      `${each.name} ${each.version} ${each.arch}: ${each.words}`,
      ...each.rows.flatMap(row => [
        `  row ${row.by} package ${row.package} of ${row.release}, compared with ${row.compared_version}:`,
        ...row.rules.map(({ rule, words }) => `    ${[rule.vuln, ...rule.advisories].join(' ')}: ${words}`),
      ]),
    ]),
  ]
}

type Context = {
  readonly reader: AdvisoryReader
  readonly options: MatchOptions
  readonly filter: ExplainFilter
  readonly running: string
}

const STATUS_WORDS: Readonly<Record<MatchStatus, string>> = {
  ok: 'matched',
  unsupported_os: 'not matched: the distribution is unknown here',
  no_db: 'not matched: there is no database, or it has no source of the distribution',
  unsupported_release: 'not matched: the database has no rows of the release',
  release_eol: 'matched, and past the end of the support that it has',
}

function hostWords(match: HostMatch, { os }: HostInfo): string {
  const rows = match.release ? `, with the rows of ${match.release.database}` : ''
  const end = match.endedOn === '' ? '' : ` (${match.endedOn})`
  return `${os.id || 'unknown'} ${os.version_id}: ${STATUS_WORDS[match.status]}${end}${rows}`
}

const UNMATCHED_WORDS: Readonly<Record<Unmatched, string>> = {
  third_party: 'not matched: the package is not of the distribution',
  no_code: 'not matched: a kernel meta package has no code',
  kernel_part: 'not matched: of a kernel only the image that runs counts',
  version_invalid: 'not matched: the version is not valid',
}

function explainPackage(instance: PackageInstance, context: Context): ExplainedPackage {
  const matched = lookUpOf(instance)
  const shared = {
    name: instance.name,
    version: instance.version,
    arch: instance.arch,
    package_key: packageKeyOf(instance),
  }
  if (typeof matched === 'string') return { ...shared, unmatched: matched, rows: [], words: UNMATCHED_WORDS[matched] }
  const rows = rowsOf(matched, context.reader, context.options)
  const ownVulns = ownVulnsOf(rows)
  const explained = rows.map(row => explainRow(row, matched, ownVulns, context))
  const hits = new Set(
    explained.flatMap(row => row.rules.filter(each => each.result === 'hit').map(each => each.rule.vuln)),
  )
  const source = `source ${matched.source} ${matched.sourceVersion}`
  const words =
    rows.length === 0
      ? `the database has no row of ${source} or of this binary in ${instance.release}`
      : `${source}, ${hits.size === 0 ? 'no vulnerability hits' : `hit by ${[...hits].join(', ')}`}`
  return { ...shared, unmatched: null, rows: explained, words }
}

const BORROWED_WORDS =
  'not taken: the rows of the release itself say it, or it is a fix that the release numbers otherwise'

function explainRow(row: Row, matched: Matched, ownVulns: ReadonlySet<string>, context: Context): ExplainedRow {
  const { affected, version } = row
  const build = buildOf(matched)
  const { vuln } = context.filter
  const rules = affected.rules.filter(rule => vuln === undefined || rule.vuln === vuln)
  const judge = (rule: Rule): ExplainedRule => {
    if (!isCounted(rule, row.share, ownVulns)) return { rule, result: 'borrowed', words: BORROWED_WORDS }
    const group = affected.rules.filter(each => each.vuln === rule.vuln)
    return explainRule(rule, group, { matched, build, version, context })
  }
  return {
    release: affected.release,
    package: affected.package,
    by: affected.by,
    compared_version: version,
    rules: rules.map(judge),
  }
}

type Judged = {
  readonly matched: Matched
  readonly build: Build
  readonly version: string
  readonly context: Context
}

function explainRule(rule: Rule, group: readonly Rule[], { matched, build, version, context }: Judged): ExplainedRule {
  const { instance } = matched
  const misfit = misfitOf(rule, build)
  if (misfit) return { rule, result: misfit, words: misfitWords(misfit, rule, instance) }
  const bounds = boundaryWords(rule)
  if (!isHit(rule, instance.system, version))
    return { rule, result: 'not_affected', words: `does not hit: ${version} is not ${bounds}` }
  if (!hitsOf(group, version, build).includes(rule))
    return {
      rule,
      result: 'cleared',
      words: `does not hit: ${version} is ${bounds}, but at or above the fix of another channel`,
    }
  if (rule.status === 'undetermined' && !context.options.undetermined)
    return { rule, result: 'undetermined', words: `would hit (${bounds}), but the distribution has not determined it` }
  if (matched.isKernel && !isRunning(instance, context.running))
    return {
      rule,
      result: 'kernel_not_running',
      words: `would hit (${bounds}), but this kernel does not run (${context.running || 'none is known'})`,
    }
  return { rule, result: 'hit', words: `hits: ${version} is ${bounds}${channelWords(rule)}` }
}

function boundaryWords({ introduced, fixed, last_affected: last, versions }: Rule): string {
  if (versions) return `one of ${versions.join(', ')}`
  const bounds = [
    ...(introduced === undefined ? [] : [`at or above ${introduced}`]),
    ...(fixed === undefined ? [] : [`below ${fixed}`]),
    ...(last === undefined ? [] : [`at or below ${last}`]),
  ]
  return bounds.length === 0 ? 'any version, without a fix' : bounds.join(' and ')
}

const channelWords = (rule: Rule): string =>
  rule.channel === 'standard' || rule.fixed === undefined ? '' : `; the fix is in ${rule.channel}`

function misfitWords(misfit: Misfit, rule: Rule, instance: PackageInstance): string {
  switch (misfit) {
    case 'arch':
      return `does not concern ${instance.arch}: it names ${rule.arches?.join(', ')}`
    case 'binary':
      return `does not concern ${instance.name}: it names ${rule.binaries?.join(', ')}`
    case 'flavour':
      return `does not concern this build: it is of ${rule.flavour ?? 'ordinary'} builds`
    case 'module':
      return rule.module
        ? `does not concern ${instance.module || 'a package of no module'}: it is of module ${rule.module}`
        : `does not concern module ${instance.module}: it is of packages of no module`
    case 'module_unknown':
      return `does not concern this build: it is of a module that is not named, and of another version (${rule.fixed})`
  }
}

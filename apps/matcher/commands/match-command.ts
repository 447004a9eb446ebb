// The command `match` (MAT-232): the findings of one report, without a server or a state.
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { DEFAULT_MATCH_OPTIONS, type MatchOptions } from '../../../core/matching/match-options.ts'
import { type MatchedReport, matchReport } from '../../../core/matching/match-report.ts'
import { printable } from '../../../core/printable.ts'
import { guarded } from '../../process/executable.ts'
import { parseReport } from '../scan-api/parse-report.ts'
import { openDatabaseFile } from '../vulndb/database-file.ts'

type MatchFlags = {
  readonly report: string
  readonly db: string
  readonly json?: boolean
  readonly now?: string
  readonly config?: string
}

/** The instant that `--now` means: a day, or a whole time. */
export function nowOf(text: string | undefined): number {
  if (text === undefined) return Date.now()
  const ms = /^\d{4}-\d{2}-\d{2}(T.*)?$/.test(text) ? Date.parse(text) : Number.NaN
  // The runtime reads 30 February as a day of March.
  const day = Date.parse(`${text.slice(0, 10)}T00:00:00Z`)
  const isDay = !Number.isNaN(day) && new Date(day).toISOString().slice(0, 10) === text.slice(0, 10)
  if (Number.isNaN(ms) || !isDay) throw new Error(`--now ${text} is no day such as 2026-11-22`)
  return ms
}

function readReport(path: string) {
  let bytes: Uint8Array
  try {
    bytes = path === '-' ? readFileSync(0) : readFileSync(path)
  } catch (cause) {
    throw new Error(`cannot read the report ${path}`, { cause })
  }
  const parsed = parseReport(bytes)
  if (parsed instanceof Error) throw new Error(`the report is not valid: ${parsed.message}`)
  return parsed.report
}

async function optionsOf(config: string | undefined): Promise<MatchOptions> {
  if (config === undefined) return DEFAULT_MATCH_OPTIONS
  const { loadConfig, stateOptionsOf } = await import('../config.ts')
  return stateOptionsOf(loadConfig(config), Date.now).match
}

function print(matched: MatchedReport): void {
  const codes = matched.error_codes.length > 0 ? `, error codes ${matched.error_codes.join(', ')}` : ''
  const support = matched.release_support === '' ? 'unknown' : matched.release_support
  console.log(`match status ${matched.match_status}, release support ${support}${codes}`)
  for (const {
    vuln_id,
    package_key,
    installed_version,
    fixed_version,
    fix_status,
    severity_label,
  } of matched.findings) {
    const fix = fixed_version === '' ? fix_status : `${fix_status} in ${fixed_version}`
    const words = [vuln_id, package_key, installed_version, fix, severity_label]
    console.log(printable(words.filter(word => word !== '').join('  ')))
  }
  console.log(`${matched.findings.length} findings`)
}

async function match(flags: MatchFlags): Promise<void> {
  const nowMs = nowOf(flags.now)
  const report = readReport(flags.report)
  const options = await optionsOf(flags.config)
  const { reader, dispose } = await openDatabaseFile(flags.db)
  try {
    const matched = matchReport(report, reader, nowMs, options)
    if (flags.json) console.log(JSON.stringify(matched))
    else print(matched)
  } finally {
    dispose()
  }
}

export function registerMatchCommand(program: Command): void {
  program
    .command('match')
    .description('findings of one report, without a server or a state')
    .requiredOption('--report <file>', 'the report, as `agent scan --json` prints it; - for standard input')
    .requiredOption('--db <file>', 'a bundle or a database file')
    .option('--json', 'print one JSON object')
    .option('--now <day>', 'the day for ends of support')
    .option('--config <file>', 'configuration, YAML, for the options of matching')
    .action((_: unknown, command: Command) => guarded(() => match(command.optsWithGlobals<MatchFlags>())))
}

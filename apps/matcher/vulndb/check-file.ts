// Whether a file is a whole vulnerability database of this program's form, before anything is matched with it: after an
// import (MAT-071), and with every row looked at when it came from elsewhere (MAT-067 to 069).
import { Database, SQLiteError } from 'bun:sqlite'
import type { Rule } from '../../../core/matching/advisory.ts'
import { compareText, sha256 } from './rules-text.ts'
import { FILE_FORMAT, isOwnSchema } from './schema.ts'
import { SourceRefused } from './source-refused.ts'
import { isObject, isPackageName, isRecordId } from './sources/source.ts'

const STATUSES: readonly unknown[] = ['fixed', 'no_fix', 'wont_fix', 'undetermined']
const CHANNELS: readonly unknown[] = ['standard', 'esm', 'elts']
const TEXTS = ['introduced', 'fixed', 'last_affected', 'module', 'flavour'] as const
const LISTS = ['versions', 'arches', 'binaries'] as const
const RULE_KEYS = new Set<string>([
  'vuln',
  'advisories',
  'status',
  'channel',
  'severity',
  'minor',
  'no_distro_fix',
  ...TEXTS,
  ...LISTS,
])

const isTextList = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every(item => typeof item === 'string')

const areRules = (value: unknown): value is readonly Rule[] => Array.isArray(value) && value.every(isRule)

function isRule(value: unknown): value is Rule {
  return (
    isObject(value) &&
    isRecordId(value.vuln) &&
    isTextList(value.advisories) &&
    STATUSES.includes(value.status) &&
    CHANNELS.includes(value.channel) &&
    typeof value.severity === 'string' &&
    typeof value.minor === 'boolean' &&
    typeof value.no_distro_fix === 'boolean' &&
    TEXTS.every(key => value[key] === undefined || typeof value[key] === 'string') &&
    LISTS.every(key => value[key] === undefined || isTextList(value[key])) &&
    Object.keys(value).every(key => RULE_KEYS.has(key))
  )
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Throws SourceRefused unless SQLite finds the file whole and its tables are those of this program. */
export function checkWhole(database: Database): void {
  const pages = database.query<{ integrity_check: string }, []>('PRAGMA integrity_check(1)').all()
  if (pages.length !== 1 || pages[0]!.integrity_check !== 'ok') throw new SourceRefused('the database file is damaged')
  const schema = database.query<{ sql: string | null }, []>('select sql from sqlite_schema').all()
  if (!isOwnSchema(schema.map(({ sql }) => sql))) throw new SourceRefused('it is not a vulnerability database')
  const format = Number(metaValue(database, 'format'))
  if (format !== FILE_FORMAT)
    throw new SourceRefused(`its form is ${format}, this program reads ${FILE_FORMAT}: use a newer matcher`)
}

export function metaValue(database: Database, key: string): string {
  return database.query<{ value: string }, [string]>('select value from meta where key = ?').get(key)?.value ?? ''
}

type RulesRow = { readonly digest: Uint8Array; readonly rules: string }
type AffectedRow = RulesRow & { release_id: string; package: string; by: string }

/** The rules of a row. Throws SourceRefused unless they are rules and have the row's digest. */
export function checkedRules(row: RulesRow): readonly Rule[] {
  const rules = parsed(row.rules)
  if (!areRules(rules)) throw new SourceRefused('a row of its advisories is malformed')
  if (compareText(sha256(row.rules).toString('hex'), Buffer.from(row.digest).toString('hex')) !== 0)
    throw new SourceRefused('a row of its advisories does not have its digest')
  return rules
}

/** A list of texts as a row has it. Throws SourceRefused for anything else. */
export function checkedTexts(json: string): readonly string[] {
  const texts = parsed(json)
  if (!isTextList(texts)) throw new SourceRefused('a row of its vulnerabilities is malformed')
  return texts
}

/** Looks at every row: what a file from elsewhere claims must not end the matcher later. */
function checkRows(database: Database): void {
  const rows = database
    .query<AffectedRow, []>('select release_id, package, "by", digest, rules from affected')
    .iterate()
  for (const row of rows) {
    const isKnown = row.by === 'source' || row.by === 'binary'
    if (!isKnown || !isPackageName(row.package)) throw new SourceRefused('a row of its advisories is malformed')
    checkedRules(row)
  }
  const lists = database
    .query<{ a: string; b: string }, []>(
      `select aliases as a, "references" as b from vuln union all select successors as a, '[]' as b from release`,
    )
    .iterate()
  for (const { a, b } of lists) {
    checkedTexts(a)
    checkedTexts(b)
  }
}

function checkVersion(database: Database): number {
  const version = Number(metaValue(database, 'db_version'))
  if (!isVersion(version)) throw new SourceRefused('it has no version')
  return version
}

/** yyyymmddNN (MAT-070), whatever the count. */
export const isVersion = (version: number): boolean =>
  Number.isSafeInteger(version) && version >= 1_000_000_000 && version <= 99_999_999_999

/** Checks a database file, every row of it when `areRowsRead`. Returns its version. */
function check(path: string, areRowsRead: boolean): number {
  const database = new Database(path, { readonly: true })
  try {
    checkWhole(database)
    if (areRowsRead) checkRows(database)
    return checkVersion(database)
  } catch (error) {
    const isDamaged = error instanceof SQLiteError && /^SQLITE_(NOTADB|CORRUPT)/.test(error.code ?? '')
    throw isDamaged ? new SourceRefused('it is no vulnerability database, or a damaged one') : error
  } finally {
    database.close()
  }
}

/** Checks a database file, every row of it. Returns its version. */
export const checkFile = (path: string): number => check(path, true)

/** Checks the form of a database file, the rows of which are looked at as they are read (`openUnchecked`). */
export const checkForm = (path: string): number => check(path, false)

// Reads the source tree and refuses what the style forbids and the compiler allows. Rules that old code breaks have a
// list of its offenders, which may only shrink: a new offender fails, and so does an entry that its file has outgrown.
import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

const root = resolve(import.meta.dir, '..')
const FUNCTION_LINES_MAX = 70
const COMMENT_COLUMNS_MAX = 120

type SourceFile = { readonly path: string; readonly text: string; readonly lines: readonly string[] }

/** What breaks a rule: how much of it a file, or what a file has, holds. */
type Counts = Readonly<Record<string, number>>

const longFunctions: Counts = {}
const longComments: Counts = {
  // Layouts, which are read as tables.
  'core/alerting/durability/snapshot.ts': 2,
  'core/alerting/scenario/parse.ts': 2,
  'core/samples/block/chunk-codec.ts': 2,
}
const selectStars: Counts = {
  // Of a file in ClickHouse's own format, whose columns are those of the table.
  'apps/collector/store/clickhouse/clickhouse.ts': 1,
}
const doubleCasts: Counts = {}
const needlessExports: Counts = {}
/** The parts that pages are made of: there for any page, also before the second one needs them. */
const isKit = (path: string): boolean => /^apps\/hub\/web\/browser\/(?!pages\/)/.test(path)

/** Synonyms of words that the glossary of ARCHITECTURE.md has, and what to say instead. */
type BannedWord = { readonly word: RegExp; readonly but?: RegExp; readonly say: string }

const bannedWords: readonly BannedWord[] = [
  {
    word: /\bmachines?\b|\b[a-z]\w*Machines?\b|\bMachines?[A-Z]|_MACHINES?\b/,
    but: /state[ -]machines?|evaluation machine|FIRING machine|machine[-_]?id: ['`]machine-|HKEY_LOCAL_MACHINE|machine[ -]?ids?|machine GUID|MachineGuid|machine_id|machine_changed|let this machine reach/gi,
    say: 'server for what is monitored, host for the computer that runs our processes',
  },
  {
    word: /enrol(?!l)|Enrol(?!l)/,
    but: /enrol_?code|scan_enrolment_codes|enrolment-codes/gi,
    say: 'enroll, in code and in text',
  },
  { word: /\b(Worker|Disk|Redis|Ingest|Shard)Place\b/, say: 'worker storage: WorkerStorage, FileWorkerStorage, …' },
  { word: /whereabouts/i, say: 'ownership' },
  { word: /\btellNews\b|\bAgentNews\b/, say: 'registry update, broadcast' },
  { word: /\bCarrier|\b[Cc]arried[A-Z]|\bcarryRequest/, say: 'request forwarder, ForwardedRequest' },
  { word: /LOOK_MS\b|\blook(Every|Once|Ms|Now)\b/, say: 'poll: POLL_MS, pollEvery' },
  { word: /\bisOnDuty\b|\bduty\b|\bDUTIES\b|\bhasDuties\b/, say: 'leader: isLeader, leaderToken' },
  { word: /\bhurriedSaves\b|\bisHurried\b/, say: 'forced snapshot' },
  { word: /\bputInForce\b/, say: 'activate' },
  { word: /\b[A-Z]\w*Facts\b/, but: /\bInventoryFacts(Schema)?\b/g, say: 'headers, info or heartbeat' },
  { word: /\b[A-Za-z]\w*Answers?\b/, say: 'response' },
  { word: /\bRunWriter\b|\bHeldSource\b|\bdistrustAll\b/, say: 'chunk writer, buffered points' },
  { word: /\bLateNotes\b/, say: 'late marks of rollups' },
  { word: /\btellLater\b|\bVoices\b|\bEventBook\b/, say: 'notification, alert book' },
  { word: /\bSurroundings\b/i, say: 'environment, context or options' },
  { word: /\bmayMiss\b|\bfurtherFaults\b|\bbodyShown\b/, say: 'optional, validate, request body' },
  { word: /\bUndo\b(?! a\b)/, say: 'AsyncDisposableStack' },
]

function filesUnder(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name)
    if (entry.name === 'node_modules') return []
    return entry.isDirectory() ? filesUnder(path) : [path]
  })
}

const sources: readonly SourceFile[] = ['apps', 'core', 'test', 'bench']
  .flatMap(filesUnder)
  .filter(path => /(?<!\.d)\.tsx?$/.test(path))
  .map(path => ({ path, text: readFileSync(join(root, path), 'utf8') }))
  .map(file => ({ ...file, lines: file.text.split('\n') }))

const production = sources.filter(({ path }) => /^(apps|core)\//.test(path))

function countIn(files: readonly SourceFile[], isOffence: (line: string) => boolean): Counts {
  const counts: Record<string, number> = {}
  for (const { path, lines } of files) {
    const count = lines.filter(isOffence).length
    if (count > 0) counts[path] = count
  }
  return counts
}

/** Fails for a file that breaks the rule more often than its entry says, and for an entry that says too much. */
function onlyOld(found: Counts, old: Counts, advice: string): void {
  const paths = new Set([...Object.keys(found), ...Object.keys(old)])
  const faults = [...paths].flatMap(path => {
    const [now, before] = [found[path] ?? 0, old[path] ?? 0]
    if (now > before) return [`${path}: ${now}, at most ${before}: ${advice}`]
    return now < before ? [`${path}: ${now} are left of ${before}: lower its entry in the list of old offenders`] : []
  })
  expect(faults).toEqual([])
}

const isComment = (line: string): boolean => /^\s*(\/\/|\/?\*)/.test(line)

/** The first line of what may be a function: a declaration, an arrow with a name, a method. */
const FUNCTION_HEADS = [
  /^(\s*)(?:export )?(?:async )?function\*? (\w+)/,
  /^(\s*)(?:export )?const (\w+)(?:: [^=]+)? = (?:async )?(?:\(|<|\w+ =>)/,
  /^(\s+)(?:readonly )?([\w-]+)(?::| =) (?:async )?(?:\(|\w+ =>)/,
  /^(\s+)(?:(?:private|protected|override|static|async|get|set) |\*)*(?!if|for|while|switch|catch|return)(#?\w+)(?:<.*>)?\((?:[^=]*\{)?$/,
] as const

/**
 * The functions of a file with their lines, those inside them included. The formatter indents what is inside: a
 * function ends before the next line that stands no deeper and closes nothing.
 */
function functionsOf({ path, lines }: SourceFile): { readonly name: string; readonly length: number }[] {
  return lines.flatMap((line, from) => {
    const head = FUNCTION_HEADS.map(form => form.exec(line)).find(found => found !== null)
    if (!head) return []
    const indent = head[1]!.length
    const isInside = (next: string): boolean =>
      next.trim() === '' || next.search(/\S/) > indent || /^[)}\]`]/.test(next.slice(indent))
    let to = from + 1
    while (to < lines.length && isInside(lines[to]!)) to++
    while (lines[to - 1]!.trim() === '') to--
    const own = lines.slice(from, to)
    const isFunction = /\bfunction\b/.test(line) || own.some(each => /=>|\).* \{$/.test(each))
    return isFunction ? [{ name: `${path} ${head[2]}`, length: own.length }] : []
  })
}

/** What a file exports by name. */
const exportsOf = ({ text }: SourceFile): string[] =>
  [...text.matchAll(/^export (?:async )?(?:abstract )?(?:function\*?|const|let|class|type|interface) (\w+)/gm)].map(
    found => found[1]!,
  )

/** What each file is asked for by others: names, and `*` where all of it is. */
function importedNames(): Map<string, Set<string>> {
  const names = new Map<string, Set<string>>()
  const add = (file: SourceFile, specifier: string, name: string): void => {
    if (!specifier.startsWith('.')) return
    const path = relative(root, resolve(root, dirname(file.path), specifier))
    names.set(path, (names.get(path) ?? new Set()).add(name))
  }
  for (const file of sources) {
    for (const [, list, specifier] of file.text.matchAll(/(?:import|export) (?:type )?\{([^}]*)\} from '([^']+)'/g))
      for (const item of list!.split(','))
        add(
          file,
          specifier!,
          item
            .trim()
            .replace(/^type /, '')
            .split(' as ')[0]!,
        )
    for (const [, specifier] of file.text.matchAll(/\* as \w+ from '([^']+)'|import\(\s*'([^']+)'/g))
      if (specifier) add(file, specifier, '*')
    for (const [, specifier] of file.text.matchAll(/import\(\s*'([^']+)'/g)) add(file, specifier!, '*')
  }
  return names
}

describe('style', () => {
  test(`a function has at most ${FUNCTION_LINES_MAX} lines`, () => {
    const counts: Record<string, number> = {}
    for (const { name, length } of production.flatMap(functionsOf))
      if (length > FUNCTION_LINES_MAX) counts[name] = Math.max(length, counts[name] ?? 0)
    onlyOld(counts, longFunctions, 'name its parts')
  })

  test('a function is measured to its end, whatever its form', () => {
    const body = ['    if (a) {', '      b()', '', '    }']
    const lengthsOf = (lines: string[]): string[] =>
      functionsOf({ path: 'f', text: '', lines }).map(({ name, length }) => `${name} ${length}`)
    expect(lengthsOf(['export async function one(', '  a: A,', '): B {', ...body, '}', '', 'two()'])).toEqual([
      'f one 8',
    ])
    expect(lengthsOf(['const two = (', '  a: A,', '): B => {', ...body, '}', 'const b = 1'])).toEqual(['f two 8'])
    expect(lengthsOf(['  private three(', '    a: A,', '  ): B {', ...body, '  }', '', '  b = 1'])).toEqual([
      'f three 8',
    ])
    expect(lengthsOf(['  four: async (a, b) => {', ...body, '  },', '  five: 5,'])).toEqual(['f four 6'])
    expect(lengthsOf(['const six = (a: A): B =>', '  b({', '    a,', '  })', '', '/** c */'])).toEqual(['f six 4'])
  })

  test(`a comment has at most ${COMMENT_COLUMNS_MAX} columns`, () => {
    const isLong = (line: string): boolean => isComment(line) && line.length > COMMENT_COLUMNS_MAX
    onlyOld(countIn(sources, isLong), longComments, 'break the line')
  })

  test('a statement names its columns', () => {
    const isStar = (line: string): boolean => !isComment(line) && /\bselect\s+(\w+\.)?\*/i.test(line)
    onlyOld(countIn(production, isStar), selectStars, 'name the columns')
  })

  test('a value is checked, not cast twice', () => {
    onlyOld(
      countIn(production, line => /\bas unknown as\b/.test(line)),
      doubleCasts,
      'look at the value',
    )
  })

  test('what only its own file uses is not exported', () => {
    const imported = importedNames()
    const counts: Record<string, number> = {}
    for (const file of sources) {
      const names = imported.get(file.path)
      if (names?.has('*') || isKit(file.path)) continue
      const needless = exportsOf(file).filter(name => !names?.has(name))
      for (const name of needless) counts[`${file.path} ${name}`] = 1
    }
    onlyOld(counts, needlessExports, 'take the word export away, or the whole if nothing uses it')
  })

  test('one word a meaning: the word of the glossary', () => {
    const faults = sources
      .filter(({ path }) => !path.startsWith('test/tidy'))
      .flatMap(({ path, lines }) =>
        lines.flatMap((line, index) =>
          bannedWords
            .filter(({ word, but }) => word.test(but ? line.replaceAll(but, '') : line))
            .map(({ say }) => `${path}:${index + 1}: say ${say} (glossary of ARCHITECTURE.md)`),
        ),
      )
    expect(faults).toEqual([])
  })
})

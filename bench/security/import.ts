// What does the import of a distribution's feed cost, in the process that it has for itself: CPU, memory at its
// highest, bytes of the database (MAT-073)? Throws when a feed of the real size takes more than it may. Linux counts
// what a process had at its highest before it became another program: whoever starts the import must be small, so
// another process measures it, and a third one makes the feed.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const MAIN = resolve(import.meta.dir, '../../apps/matcher/main.ts')
const MAKE_FEED = resolve(import.meta.dir, 'feeds.ts')
const MEMORY_MB_MAX = 600

type Feed = {
  readonly source: 'debian' | 'ubuntu' | 'redhat'
  readonly file: string
  /** Of how many the real feed has about `real`. */
  readonly vulnerabilities: number
  readonly real: number
  readonly cpuSecondsMax: number
  readonly fileMbMax: number
}

const feeds: readonly Feed[] = [
  {
    source: 'debian',
    file: 'tracker.json',
    vulnerabilities: 45_000,
    real: 45_000,
    cpuSecondsMax: 15,
    fileMbMax: 60,
  },
  {
    source: 'ubuntu',
    file: 'all.jsonl',
    vulnerabilities: 60_000,
    real: 60_000,
    cpuSecondsMax: 120,
    fileMbMax: 500,
  },
  {
    source: 'redhat',
    file: 'vex',
    vulnerabilities: 4_000,
    real: 40_000,
    cpuSecondsMax: 300,
    fileMbMax: 500,
  },
]

const tenths = (value: number): number => Math.round(value * 10) / 10

async function run(...command: readonly string[]): Promise<Bun.Subprocess> {
  const child = Bun.spawn([process.execPath, ...command], { stdout: 'ignore', stderr: 'inherit' })
  if ((await child.exited) !== 0) throw new Error(`${command.join(' ')} failed`)
  return child
}

async function measure(feed: Feed): Promise<Record<string, unknown>> {
  const dir = mkdtempSync(join(tmpdir(), 'bench-import-'))
  const path = (name: string): string => join(dir, name)
  try {
    await run(MAKE_FEED, feed.source, path(feed.file), String(feed.vulnerabilities))
    const source = `${feed.source}=${path(feed.file)}`
    // Of the command and of the process of the import that it waited for.
    const usage = (await run(MAIN, 'db', 'build', '--source', source, '--out', path('out.zst'))).resourceUsage()
    const cpuSeconds = Number(usage?.cpuTime.total ?? 0) / 1e6
    const memoryMb = (usage?.maxRSS ?? 0) / 1e6
    const bundle = readFileSync(path('out.zst'))
    const { size_bytes: size } = JSON.parse(bundle.subarray(0, bundle.indexOf(10)).toString()) as { size_bytes: number }
    const share = feed.vulnerabilities / feed.real
    const fileMb = size / 1e6
    const isWithin =
      cpuSeconds <= feed.cpuSecondsMax * share && memoryMb <= MEMORY_MB_MAX && fileMb <= feed.fileMbMax * share
    const figures = {
      question: `import of ${feed.source}`,
      vulnerabilities: feed.vulnerabilities,
      share_of_the_real_feed: share,
      cpu_seconds: tenths(cpuSeconds),
      memory_mb: Math.round(memoryMb),
      file_mb: tenths(fileMb),
      bundle_mb: tenths(bundle.length / 1e6),
    }
    if (!isWithin) throw new Error(`the import takes more than it may: ${JSON.stringify(figures)}`)
    return figures
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

export async function benchImport(): Promise<readonly Record<string, unknown>[]> {
  const lines: Record<string, unknown>[] = []
  for (const { source } of feeds) {
    const command = [process.execPath, import.meta.path, source]
    const child = Bun.spawn(command, { stdout: 'pipe', stderr: 'inherit' })
    const output = await new Response(child.stdout).text()
    if ((await child.exited) !== 0) throw new Error(`the feed of ${source} was not imported within its bounds`)
    lines.push(JSON.parse(output))
  }
  return lines
}

if (import.meta.main) {
  const feed = feeds.find(({ source }) => source === process.argv[2])
  if (feed === undefined) throw new Error(`a feed is one of ${feeds.map(({ source }) => source).join(', ')}`)
  console.log(JSON.stringify(await measure(feed)))
}

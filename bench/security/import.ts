// What does the import of a distribution's feed cost, in the process that it has for itself: CPU, memory at its
// highest, bytes of the database (MAT-073)? Throws when a feed of the real size takes more than it may.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { debianTracker, ubuntuRecords, writeVexFolder } from './feeds.ts'

const MAIN = resolve(import.meta.dir, '../../apps/matcher/main.ts')
const MEMORY_MB_MAX = 600

type Feed = {
  readonly source: string
  readonly file: string
  /** Of how many the real feed has about `real`. */
  readonly vulnerabilities: number
  readonly real: number
  readonly cpuSecondsMax: number
  readonly fileMbMax: number
  readonly write: (path: string, vulnerabilities: number) => void
}

const feeds: readonly Feed[] = [
  {
    source: 'debian',
    file: 'tracker.json',
    vulnerabilities: 45_000,
    real: 45_000,
    cpuSecondsMax: 15,
    fileMbMax: 60,
    write: (path, count) => writeFileSync(path, debianTracker(count)),
  },
  {
    source: 'ubuntu',
    file: 'all.jsonl',
    vulnerabilities: 60_000,
    real: 60_000,
    cpuSecondsMax: 120,
    fileMbMax: 500,
    write: (path, count) => writeFileSync(path, ubuntuRecords(count)),
  },
  {
    source: 'redhat',
    file: 'vex',
    vulnerabilities: 4_000,
    real: 40_000,
    cpuSecondsMax: 300,
    fileMbMax: 500,
    write: writeVexFolder,
  },
]

const tenths = (value: number): number => Math.round(value * 10) / 10

async function benchFeed(feed: Feed): Promise<Record<string, unknown>> {
  const dir = mkdtempSync(join(tmpdir(), 'bench-import-'))
  const path = (name: string): string => join(dir, name)
  try {
    feed.write(path(feed.file), feed.vulnerabilities)
    const words = ['db', 'build', '--source', `${feed.source}=${path(feed.file)}`, '--out', path('out.zst')]
    const child = Bun.spawn([process.execPath, MAIN, ...words], { stdout: 'ignore', stderr: 'inherit' })
    if ((await child.exited) !== 0) throw new Error(`the feed of ${feed.source} was not imported`)
    // Of the command and of the process of the import that it waited for.
    const usage = child.resourceUsage()
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
  for (const feed of feeds) lines.push(await benchFeed(feed))
  return lines
}

// One Debian server against a tracker as large as Debian's, by `matcher match`, by the matcher that serves, and by
// debsecan (Debian's own scanner), on the same data: how long does each take, and do they find the same?
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deflateSync } from 'node:zlib'
import { openState } from '../../apps/matcher/state/open-state.ts'
import { openAdvisories } from '../../apps/matcher/vulndb/reader.ts'
import { DEFAULT_MATCH_OPTIONS } from '../../core/matching/match-options.ts'
import { matchReport } from '../../core/matching/match-report.ts'
import type { Report } from '../../core/matching/report-schema.ts'
import { commandOf, runCommand } from '../../test/support/executable.ts'
import { dpkgRoot } from '../../test/support/package-tools.ts'
import { randomFrom } from '../../test/support/random.ts'
import { COMPANY, hostIdOf, serverIdOf } from './synthetic-fleet.ts'

const DEBSECAN = '/usr/bin/debsecan'
const RUNS = 9
/** A matcher that serves has matched before; the last `RUNS` of these count. */
const MATCHES = 40
const OTHER_SOURCES = 3_000
const RULES = 40_000
const KERNEL_RULES = 9_000
const IMAGES = ['6.1.0-16', '6.1.0-18', '6.1.0-21']
const SUITE = 'bookworm'
const seconds = (ms: number): number => Math.round(ms) / 1000
const tenths = (ms: number): number => Math.round(ms * 10) / 10
const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0

/** `fixed` null: not fixed. */
type Row = { readonly source: string; readonly vuln: string; readonly fixed: string | null }
type Installed = { readonly name: string; readonly source: string; readonly version: string }

/** This host's packages and three kernels of Debian 12, of which the first one runs. */
function statusText(): string {
  const own = readFileSync('/var/lib/dpkg/status', 'utf8')
    .split('\n\n')
    .filter(text => text.includes('install ok installed') && !/^Package: linux-image-/m.test(text))
  const images = IMAGES.map(
    (release, index) =>
      `Package: linux-image-${release}-amd64\nStatus: install ok installed\nArchitecture: amd64\nSource: linux-signed-amd64 (6.1.${67 + 9 * index}+1)\nVersion: 6.1.${67 + 9 * index}-1`,
  )
  return `${[...own.map(text => text.trim()), ...images].join('\n\n')}\n`
}

/** Most vulnerabilities were fixed before what is installed; some later, some in the very version, some never. */
function madeRows(installed: readonly Installed[]): Row[] {
  const random = randomFrom(12)
  const versions = new Map(installed.map(({ source, version }) => [source, version]))
  // The tracker has kernels under the name `linux` alone.
  const own = [...versions.keys()].filter(name => !name.startsWith('linux'))
  const names = [...own, ...Array.from({ length: OTHER_SOURCES }, (_, index) => `other-source-${index}`)]
  const fixOf = (version: string): string | null => {
    const draw = random()
    if (draw < 0.03) return null
    if (draw < 0.05) return `${version}+deb12u9`
    return draw < 0.1 ? version : `0.${Math.floor(random() * 900)}-1`
  }
  return Array.from({ length: RULES }, (_, index): Row => {
    const vuln = `CVE-${2010 + (index % 15)}-${10_000 + index}`
    if (index < KERNEL_RULES) return { source: 'linux', vuln, fixed: random() < 0.05 ? null : `6.1.${index % 80}-1` }
    const source = names[Math.floor(random() ** 2 * names.length)] ?? ''
    return { source, vuln, fixed: fixOf(versions.get(source) ?? '1.0-1') }
  })
}

/** As the tracker publishes it, with the two releases beside that it also speaks of. */
function trackerText(rows: readonly Row[]): string {
  const tracker: Record<string, Record<string, unknown>> = {}
  for (const { source, vuln, fixed } of rows) {
    const release =
      fixed === null
        ? { status: 'open', urgency: 'not yet assigned' }
        : { status: 'resolved', fixed_version: fixed, urgency: 'medium' }
    tracker[source] ??= {}
    tracker[source][vuln] = {
      description: `a fault of ${source} that somebody found`,
      scope: 'remote',
      releases: { bullseye: release, [SUITE]: release, trixie: release },
    }
  }
  return JSON.stringify(tracker)
}

/**
 * As debsecan fetches it for a suite: names, then rows. Its "version in unstable" stands for the fix in the suite, so
 * that both look at the same boundary.
 */
function debsecanData(rows: readonly Row[]): Buffer {
  const names = rows.map(({ vuln, source }) => `${vuln},,a fault of ${source} that somebody found`)
  const lines = rows.map(({ source, fixed }, index) => `${source},${index},SMR${fixed ? 'F' : ' '},${fixed ?? ''},`)
  return deflateSync(`VERSION 1\n${names.join('\n')}\n\n${lines.join('\n')}\n\n\n`)
}

type Timed = { readonly out: string; readonly ms: number; readonly cpuMs: number }

async function timed(words: readonly string[]): Promise<Timed> {
  const began = performance.now()
  const child = Bun.spawn([...words], { stdout: 'pipe', stderr: 'inherit' })
  const out = await new Response(child.stdout).text()
  if ((await child.exited) !== 0) throw new Error(`${words[0]} failed`)
  const ms = performance.now() - began
  return { out, ms, cpuMs: Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1000 }
}

async function scanned(status: string): Promise<Report> {
  using root = dpkgRoot()
  root.write('var/lib/dpkg/status', status)
  const { code, out, err } = await runCommand('agent', ['scan', '--json', '--root', root.path])
  if (code !== 0) throw new Error(`the scan failed: ${err}`)
  const report = JSON.parse(out) as Report
  return { ...report, kernel: { ...report.kernel, running: `${IMAGES[0]}-amd64` } }
}

const packagesOf = ({ packages }: Report): Installed[] =>
  (packages?.name ?? []).map((name, at) => ({
    name,
    source: packages?.source[at] ?? name,
    version: packages?.source_version[at] ?? '',
  }))

type Spent = { readonly ms: number; readonly cpuMs: number }

/** What a piece of work takes of the clock, and of all threads of this process. */
async function spent(work: () => unknown): Promise<Spent> {
  const began = performance.now()
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return { ms: performance.now() - began, cpuMs: (user + system) / 1000 }
}

/** What a matcher takes that serves: the first host with these packages, and others with the same. */
async function served(report: Report, database: string): Promise<Record<string, number>> {
  const dir = mkdtempSync(join(tmpdir(), 'bench-match-'))
  const state = openState(dir, {
    match: DEFAULT_MATCH_OPTIONS,
    outboxBytesMax: 2 ** 30,
    forgetAfterMs: Number.MAX_SAFE_INTEGER,
    now: Date.now,
    onError: (what, error) => console.error(what, error),
  })
  const reader = openAdvisories(database)
  try {
    const page = Array.from({ length: RUNS + 1 }, (_, host) => ({
      hostId: hostIdOf(host),
      companyId: COMPANY,
      serverId: serverIdOf(host),
      publicKey: '',
      state: 'active' as const,
      isInactive: false,
      version: 1,
      isDeleted: false,
    }))
    await state.applyHostsPage(page, { nextSince: 1, isLast: true })
    await state.switchTo(reader, [])
    const stored: Spent[] = []
    for (const { hostId } of page) {
      const call = { hostId, report, contentHash: 'first', requestTimeMs: Date.now(), signature: '' }
      stored.push(
        await spent(async () => {
          const { outcome } = await state.acceptReport({ ...call, receivedAtMs: Date.now(), minIntervalMs: 0 })
          if (outcome !== 'kept') throw new Error(`the report was not kept: ${outcome}`)
        }),
      )
    }
    const [first, ...others] = stored
    const matching: Spent[] = []
    for (let run = 0; run < MATCHES; run++)
      matching.push(await spent(() => matchReport(report, reader, Date.now(), DEFAULT_MATCH_OPTIONS)))
    const last = matching.slice(-RUNS)
    return {
      stored_first_ms: tenths(first?.ms ?? 0),
      stored_first_cpu_ms: tenths(first?.cpuMs ?? 0),
      stored_ms: tenths(median(others.map(({ ms }) => ms))),
      stored_cpu_ms: tenths(median(others.map(({ cpuMs }) => cpuMs))),
      match_first_cpu_ms: tenths(matching[0]?.cpuMs ?? 0),
      match_ms: tenths(median(last.map(({ ms }) => ms))),
      match_cpu_ms: tenths(median(last.map(({ cpuMs }) => cpuMs))),
    }
  } finally {
    await state.close()
    rmSync(dir, { recursive: true, force: true })
  }
}

/** Pairs of source package and vulnerability. */
function pairsOfDebsecan(out: string, installed: readonly Installed[]): Set<string> {
  const sources = new Map(installed.map(({ name, source }) => [name, source]))
  const lines = out.split('\n').filter(line => line !== '')
  return new Set(lines.map(line => line.split(' ')).map(([vuln, name = '']) => `${sources.get(name)} ${vuln}`))
}

const without = (some: ReadonlySet<string>, others: ReadonlySet<string>): string[] =>
  [...some].filter(pair => !others.has(pair))

const isOfKernel = (pair: string): boolean => pair.startsWith('linux ')

/** What `one` alone found: of the kernel, and else. */
const alone = (one: ReadonlySet<string>, other: ReadonlySet<string>) => {
  const pairs = without(one, other)
  return { kernel: pairs.filter(isOfKernel).length, else: pairs.filter(pair => !isOfKernel(pair)).length }
}

export async function benchMatchDebsecan(): Promise<readonly Record<string, unknown>[]> {
  const dir = mkdtempSync(join(tmpdir(), 'bench-debsecan-'))
  const path = (name: string): string => join(dir, name)
  try {
    const status = statusText()
    const report = await scanned(status)
    const installed = packagesOf(report)
    const rows = madeRows(installed)
    writeFileSync(path('status'), status)
    writeFileSync(path('report.json'), JSON.stringify(report))
    writeFileSync(path('tracker.json'), trackerText(rows))
    writeFileSync(path(SUITE), debsecanData(rows))
    const build = ['db', 'build', '--source', `debian=${path('tracker.json')}`, '--out', path('db.zst')]
    const built = await runCommand('matcher', build)
    if (built.code !== 0) throw new Error(`the database was not built: ${built.err}`)
    // A server has the file, and not the bundle.
    const database = path('db.sqlite')
    const bundle = readFileSync(path('db.zst'))
    writeFileSync(database, Bun.zstdDecompressSync(bundle.subarray(bundle.indexOf(10) + 1)))
    const matcher = (db: string) =>
      timed([...commandOf('matcher'), 'match', '--report', path('report.json'), '--db', db, '--json'])
    const debsecan = () =>
      timed([DEBSECAN, '--suite', SUITE, '--status', path('status'), '--source', `file://${dir}`, '--format', 'simple'])
    const runs: { file: Timed; bundle: Timed; debsecan: Timed }[] = []
    for (let run = 0; run < RUNS; run++)
      runs.push({ file: await matcher(database), bundle: await matcher(path('db.zst')), debsecan: await debsecan() })
    const of = (who: 'file' | 'bundle' | 'debsecan') => median(runs.map(run => run[who].ms))
    const cpuOf = (who: 'file' | 'bundle' | 'debsecan') => seconds(median(runs.map(run => run[who].cpuMs)))
    const { findings } = JSON.parse(runs[0]?.file.out ?? '') as { findings: Record<string, string>[] }
    const ours = new Set(findings.map(one => `${one.package_key} ${one.vuln_id}`))
    const theirs = pairsOfDebsecan(runs[0]?.debsecan.out ?? '', installed)
    const size = { packages: installed.length, rules: rows.length }
    return [
      {
        question: 'one Debian server, each a process of its own',
        ...size,
        match_seconds: seconds(of('file')),
        match_bundle_seconds: seconds(of('bundle')),
        debsecan_seconds: seconds(of('debsecan')),
        match_cpu_seconds: cpuOf('file'),
        match_bundle_cpu_seconds: cpuOf('bundle'),
        debsecan_cpu_seconds: cpuOf('debsecan'),
        times_debsecan: Math.round((of('debsecan') / of('file')) * 100) / 100,
      },
      { question: 'the same, in the matcher that serves', ...size, ...(await served(report, database)) },
      {
        question: 'pairs of source package and vulnerability',
        both: ours.size - without(ours, theirs).length,
        only_matcher_kernel: alone(ours, theirs).kernel,
        only_matcher_else: alone(ours, theirs).else,
        only_debsecan_kernel: alone(theirs, ours).kernel,
        only_debsecan_else: alone(theirs, ours).else,
      },
    ]
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

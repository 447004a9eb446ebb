// The whole check: generated code, types, format and lint, then every test, each file group in a process of its own
// (one embedded engine a process), as many at a time as the cores bear. Prints one line a step, when it ends, and
// closes with `N passed, M failed`. Options: names of groups to run only those; `--cores 0` runs one after the other.
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync, statSync } from 'node:fs'
import { availableParallelism, cpus, freemem, tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { allocatorSetting } from '../apps/process/allocator-setting.ts'
import { type ChildOptions, type Ended, endProcessesOf, type Front, runChild, startFront } from './support/child.ts'

const root = resolve(import.meta.dir, '..')

const MEMORY = '/dev/shm'
const SCRATCH_BYTES = 6 * 1024 ** 3

/**
 * In memory where there is room: on a slow disk most of the time goes by in waiting for small writes to be durable.
 * TMPDIR overrules.
 */
function placeOfScratch(): string {
  if (process.env.TMPDIR !== undefined || process.platform !== 'linux' || !existsSync(MEMORY)) return tmpdir()
  const { bavail, bsize } = statfsSync(MEMORY)
  const isRoom = bavail * bsize > SCRATCH_BYTES && freemem() > 2 * SCRATCH_BYTES
  // Tests start executables that they have made.
  const mayExecute = !/^\S+ \/dev\/shm \S+ \S*\bnoexec\b/m.test(readFileSync('/proc/mounts', 'utf8'))
  return isRoom && mayExecute ? MEMORY : tmpdir()
}
/**
 * Everything that a test lays down is below this; a process that was killed in mid-test cannot clean up after itself.
 */
const scratch = mkdtempSync(join(placeOfScratch(), 'check-'))
chmodSync(scratch, 0o711)

/** Far more than any command takes on a slow host: one that hangs is ended then, and has failed. */
const LIMIT_MS = 900_000

/** The loads of what runs together may come to so much of the cores: their highest points do not fall together. */
const FILL = 1.6

/** More than that begins where the cores are seen to have nothing to do: this share of them, for so long. */
const IDLE_SHARE = 0.1
const WATCH_MS = 2_000
/** For each core: what is in memory at once has an end, whatever waits. */
const MOST_PER_CORE = 4

type Outcome = Omit<Ended, 'code'> & { readonly passed: number; readonly failed: number }

type Step = {
  readonly name: string
  readonly run: () => Promise<Outcome>
  /** A step that must have ended before. */
  readonly after?: string
}

type Load = {
  readonly seconds: number
  /** How many cores it keeps busy: many groups mostly wait, for a lease that runs out or a process that starts. */
  readonly cores: number
}

/**
 * The load of what takes more than a few seconds, on two cores, with the servers that it talks to: the seconds as a
 * whole check takes them, where several run beside each other, the cores as measured alone. What takes long begins
 * first, and what fits runs beside it.
 */
const loads: Readonly<Record<string, Load>> = {
  // First of all: most of the check waits for it.
  build: { seconds: 2000, cores: 1 },
  'test/api 4/4': { seconds: 195, cores: 1 },
  'test/web 1/2': { seconds: 190, cores: 0.7 },
  'test/api 1/4': { seconds: 190, cores: 1 },
  'test/api 2/4': { seconds: 185, cores: 1 },
  'test/api 3/4': { seconds: 175, cores: 1 },
  'test/redis': { seconds: 160, cores: 0.7 },
  'test/agent': { seconds: 145, cores: 0.3 },
  'test/ingest': { seconds: 130, cores: 1 },
  'test/samples/over HTTP': { seconds: 110, cores: 0.8 },
  'test/samples/on a cluster': { seconds: 45, cores: 0.8 },
  'test/web 2/2': { seconds: 105, cores: 0.7 },
  'test/web/jobs 1/2': { seconds: 115, cores: 0.6 },
  'test/web/jobs 2/2': { seconds: 115, cores: 0.6 },
  'test/system/first-alert': { seconds: 105, cores: 0.3 },
  'test/worker/alerts': { seconds: 80, cores: 0.4 },
  'test/worker/servers': { seconds: 57, cores: 0.4 },
  'test/matcher/vulndb': { seconds: 52, cores: 0.8 },
  'test/contract': { seconds: 50, cores: 0.2 },
  'test/agent/scan': { seconds: 47, cores: 1 },
  'test/system/matcher': { seconds: 44, cores: 0.8 },
  'test/system/separate': { seconds: 45, cores: 0.8 },
  'test/system/security': { seconds: 32, cores: 0.9 },
  'test/system/kill-matcher': { seconds: 32, cores: 0.9 },
  'test/system/kill': { seconds: 30, cores: 1.2 },
  'test/worker': { seconds: 26, cores: 0.7 },
  'test/matcher/state': { seconds: 25, cores: 1 },
  // The hub, its database and the worker move 33 MB between them, within the seconds that a change may take.
  'test/worker/tenants': { seconds: 60, cores: 2.2 },
  'test/system/faults': { seconds: 18, cores: 0.9 },
  'test/samples/retention-walk': { seconds: 17, cores: 1 },
  'test/samples/rollups': { seconds: 17, cores: 1 },
  'test/samples/retention-sweep': { seconds: 15, cores: 1 },
  'test/matcher': { seconds: 15, cores: 0.6 },
  'test/fuzz': { seconds: 14, cores: 1 },
  'test/sim': { seconds: 14, cores: 1 },
  'test/samples/cell-stream': { seconds: 14, cores: 1 },
  'test/matcher/with-hub': { seconds: 12, cores: 0.6 },
  'test/system/first-password': { seconds: 10, cores: 0.8 },
  'test/system/reload': { seconds: 10, cores: 0.8 },
  'test/system/embedded-postgres': { seconds: 10, cores: 0.7 },
  'test/samples/closing': { seconds: 9, cores: 1 },
}
const smallLoad: Load = { seconds: 5, cores: 1 }
const loadOf = ({ name }: Step): Load => (name in commands ? firstLoad : (loads[name] ?? smallLoad))
/** Types, format and lint: their word is wanted first. */
const firstLoad: Load = { seconds: 1000, cores: 1 }

/**
 * One checker sees each type once, where several see many of them again; and memory is collected only where it would
 * come to more than this, twice what is needed. Both together take nearly half less of the processor.
 */
const goSettings = ['env', 'GOGC=off', 'GOMEMLIMIT=3GiB']
const compiler = [...goSettings, 'bun', 'x', '--no-install', 'tsc', '--noEmit', '--checkers', '1']

/** A step that is one command: passed or failed as a whole. */
const commands: Readonly<Record<string, readonly string[]>> = {
  types: compiler,
  'types-browser': [...compiler, '-p', 'apps/hub/web/browser'],
  lint: ['bun', 'x', '--no-install', 'biome', 'check', '--error-on-warnings', '.'],
  'proto-lint': ['bun', 'x', '--no-install', 'buf', 'lint', 'proto'],
  'proto-breaking': ['bun', 'x', '--no-install', 'buf', 'breaking', 'proto', '--against', 'proto/image.binpb'],
}

/** Folders with tests of their own; every folder is a process. */
function testFolders(): string[] {
  const folders: string[] = []
  const walk = (folder: string): void => {
    const entries = readdirSync(join(root, folder), { withFileTypes: true })
    if (entries.some(entry => entry.isFile() && entry.name.endsWith('.test.ts'))) folders.push(folder)
    for (const entry of entries) if (entry.isDirectory() && entry.name !== 'support') walk(join(folder, entry.name))
  }
  walk('test')
  return folders
}

/** By Ctrl-C, or by whoever runs the check: nothing more begins. */
let isBrokenOff = false
let passed = 0
let failed = 0
const failures: string[] = []

let folderCount = 0
/** What a command runs in; names of one length, so that none begins with another. */
const childOptions = (environment: Readonly<Record<string, string>> = {}): ChildOptions => ({
  cwd: root,
  folder: join(scratch, String(++folderCount).padStart(3, '0')),
  // What looks for memory to give back takes a thirteenth of what a process of tests does.
  environment: { [allocatorSetting.name]: allocatorSetting.value, ...environment },
})

const outputOf = ({ code, output }: Ended): string =>
  code === null ? `${output}\nended after ${LIMIT_MS / 1000} s without an end` : output

async function runCommand(command: readonly string[]): Promise<Outcome> {
  const ended = await runChild(command, childOptions(), LIMIT_MS)
  const passed = ended.code === 0 ? 1 : 0
  return { ...ended, passed, failed: 1 - passed, output: outputOf(ended) }
}

/** Folders whose tests make databases in PostgreSQL: one server for all of them. */
const usesPostgres: ReadonlySet<string> = new Set([
  'test/api',
  'test/web',
  'test/web/jobs',
  'test/system',
  'test/worker/tenants',
  'test/matcher/with-hub',
])
let postgres: Promise<Front> | null = null

async function postgresOf(folder: string): Promise<Record<string, string>> {
  if (!usesPostgres.has(folder)) return {}
  postgres ??= startFront(['bun', 'test/support/postgres-front.ts'], childOptions())
  return { TEST_POSTGRES: (await postgres).url }
}

/** Folders whose tests start sites: the database of a site is made once, and copied for each. */
const startsSites = /^test\/(system|web)(\/|$)/
let siteData: Promise<string> | null = null

async function makeSiteData(): Promise<string> {
  const folder = join(scratch, 'site-data')
  const ended = await runChild(['bun', 'test/support/site-data.ts', folder], childOptions(), LIMIT_MS)
  if (ended.code !== 0) throw new Error(`cannot prepare the database of sites: ${outputOf(ended)}`)
  return folder
}

async function siteDataOf(folder: string): Promise<Record<string, string>> {
  if (!startsSites.test(folder)) return {}
  siteData ??= makeSiteData()
  return { CHECK_SITE_DATA: await siteData }
}

/** Folders whose files are steps of their own: each has the engine to itself; and what waits long. */
const isFileAStep: ReadonlySet<string> = new Set(['test/samples', 'test/system'])

/** Folders with so many tests that several processes share their files. */
const partsOfFolder: Readonly<Record<string, number>> = {
  'test/api': 4,
  'test/web': 2,
  'test/web/jobs': 2,
}

/** The files of a folder dealt out by size, the largest first, each to the part that has least yet. */
function filesOfParts(files: readonly string[], parts: number): string[][] {
  const dealt = Array.from({ length: parts }, () => ({ bytes: 0, files: [] as string[] }))
  const sized = files.map(file => ({ file, bytes: statSync(join(root, file)).size }))
  for (const { file, bytes } of sized.sort((a, b) => b.bytes - a.bytes || a.file.localeCompare(b.file))) {
    const least = dealt.reduce((best, part) => (part.bytes < best.bytes ? part : best))
    least.bytes += bytes
    least.files.push(file)
  }
  return dealt.map(part => part.files)
}

const testFilesOf = (folder: string): string[] =>
  readdirSync(join(root, folder))
    .filter(name => name.endsWith('.test.ts'))
    .map(name => `./${join(folder, name)}`)

/** Test files of a folder, in one process. */
async function runTests(
  folder: string,
  files: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  const environment = { ...(await postgresOf(folder)), ...(await siteDataOf(folder)), ...more }
  // Pages as they were bundled for the executables, not by each process anew.
  const runner = more.CHECK_COMPILED === '1' ? ['bun', '--conditions=bundled', 'test'] : ['bun', 'test']
  const ended = await runChild([...runner, '--timeout', '60000', ...files], childOptions(environment), LIMIT_MS)
  const count = (word: string): number =>
    Number([...ended.output.matchAll(new RegExp(`^\\s*(\\d+) ${word}$`, 'gm'))].at(-1)?.[1] ?? 0)
  const [passed, failed] = [count('pass'), count('fail')]
  // A process that dies before its summary, or that runs no test, has failed.
  const isBroken = (ended.code !== 0 && failed === 0) || passed + failed === 0
  return { ...ended, passed, failed: failed + (isBroken ? 1 : 0), output: outputOf(ended) }
}

/**
 * Files of the samples store that prove no more over HTTP: how cells and rollups come to be and how they are let go is
 * decided by the engine, by statements that the other files send in either way.
 */
const sameOverHttp: ReadonlySet<string> = new Set(
  ['block-file', 'closing', 'cluster', 'retention-sweep', 'retention-walk', 'rollups'].map(
    name => `./test/samples/${name}.test.ts`,
  ),
)

/**
 * The other tests of the samples store once more, over HTTP: the engine in another process, behind the interface of a
 * server.
 */
function runSamplesOverHttp(): Promise<Outcome> {
  const command = ['bun', '--max-http-header-size=1000000', 'test/support/clickhouse-front.ts']
  return runBehindFront(
    command,
    testFilesOf('test/samples').filter(each => !sameOverHttp.has(each)),
    {},
  )
}

async function runBehindFront(
  command: readonly string[],
  files: readonly string[],
  more: Record<string, string>,
): Promise<Outcome> {
  const front = await startFront(command, childOptions())
  const total = { passed: 0, failed: 0, seconds: 0, cpuSeconds: 0, output: '' }
  try {
    for (const file of files) {
      if (isBrokenOff) break
      const outcome = await runTests('test/samples', [file], { CLICKHOUSE_URL: front.url, ...more })
      for (const sum of ['passed', 'failed', 'seconds', 'cpuSeconds'] as const) total[sum] += outcome[sum]
      total.output += outcome.failed > 0 ? outcome.output : ''
    }
    return total
  } finally {
    total.cpuSeconds += await front.stop()
  }
}

/** Files of the samples store whose statements differ on a cluster, or are put to every table. */
const ofClusters = ['held', 'metrics-query', 'purge', 'retention-sweep', 'sample-writer', 'samples-thread']

/** These once more, over tables that are distributed. */
async function runSamplesOnCluster(): Promise<Outcome> {
  const command = ['bun', '--max-http-header-size=1000000', 'test/support/clickhouse-front.ts', '--cluster']
  return runBehindFront(
    command,
    ofClusters.map(name => `./test/samples/${name}.test.ts`),
    { CLICKHOUSE_CLUSTER: 'own' },
  )
}

/** Folders whose tests start executables: as they are built, which start in a fraction of the time of the sources. */
const startsExecutables = /^test\/(agent|api|ingest|matcher\/with-hub|redis|system|web|worker)(\/|$)/

/**
 * Folders whose tests run the programs for a minute, inside or beside them: what the last tier of the compiler makes of
 * them takes up to a tenth of the processor, and would pay after that.
 */
const runsBriefly = /^test\/(agent|api|ingest|redis|system|web(\/jobs)?|worker\/(admin|alerts|servers))$/

/** The tests of a folder as steps. */
function stepsOfFolder(folder: string): Step[] {
  const files = testFilesOf(folder)
  const isAfterBuild = startsExecutables.test(folder)
  const more: Record<string, string> = {
    ...(isAfterBuild ? { CHECK_COMPILED: '1' } : {}),
    ...(runsBriefly.test(folder) ? { BUN_JSC_useFTLJIT: '0' } : {}),
  }
  const after = isAfterBuild ? { after: 'build' } : {}
  const parts = partsOfFolder[folder] ?? 1
  if (parts > 1)
    return filesOfParts(files, parts).map((ofPart, part) => ({
      name: `${folder} ${part + 1}/${parts}`,
      ...after,
      run: () => runTests(folder, ofPart, more),
    }))
  if (!isFileAStep.has(folder)) return [{ name: folder, ...after, run: () => runTests(folder, files, more) }]
  return files.map(file => ({
    name: join(folder, basename(file, '.test.ts')),
    ...after,
    run: () => runTests(folder, [file], more),
  }))
}

/** Every step that was asked for, and what it needs. */
function stepsOf(wanted: readonly string[]): Step[] {
  const isWanted = ({ name }: Step): boolean =>
    wanted.length === 0 ||
    wanted.some(word => name === word || name.startsWith(`${word}/`) || name.startsWith(`${word} `))
  const steps: Step[] = Object.entries(commands).map(([name, command]) => ({ name, run: () => runCommand(command) }))
  steps.push(...testFolders().flatMap(stepsOfFolder))
  if (process.env.CLICKHOUSE_URL === undefined)
    steps.push(
      { name: 'test/samples/over HTTP', run: runSamplesOverHttp },
      { name: 'test/samples/on a cluster', run: runSamplesOnCluster },
    )
  const chosen = steps.filter(isWanted)
  if (chosen.some(step => step.after === 'build'))
    chosen.push({ name: 'build', run: () => runCommand(['bun', 'apps/standalone/build.ts']) })
  return chosen
}

/** Failed beside others: they run once more when all others have ended. */
const again: { readonly step: Step; readonly first: Outcome }[] = []
/** Failed beside others and passed alone: the check holds, and says their names, for the fault has a cause. */
const unsteady: string[] = []

function report(name: string, result: Outcome): void {
  cpuSeconds.steps += result.cpuSeconds
  const counts = `${result.passed} passed${result.failed ? `, ${result.failed} FAILED` : ''}`
  console.log(
    `${result.failed ? '✗' : '✓'} ${name.padEnd(28)} ${counts.padEnd(24)} ${result.seconds.toFixed(1).padStart(5)} s${result.cpuSeconds.toFixed(1).padStart(8)} s CPU`,
  )
  if (result.failed > 0) console.log(result.output)
}

/** Of all steps, second tries too, and of the database server that they share. Of a browser hardly anything. */
const cpuSeconds = { steps: 0, postgres: 0 }

function count(name: string, result: Outcome): void {
  passed += result.passed
  failed += result.failed
  if (result.failed > 0) failures.push(name)
}

/** Nothing in these waits for another process: a fault there is a fault, with the seed that it prints. */
const waitsForNothing = /^test(\/(core|fuzz|proto|scenarios|files)(\/|$)|$)/

/**
 * What failed, once more and alone: processes that wait for one another may miss a deadline on a host that others keep
 * busy. A fault that shows twice, or more than a few at once, is none of the host's.
 */
async function runAgain(): Promise<void> {
  const mayPass = again.length <= 3
  for (const { step, first } of again) {
    const isOfTheHost = !(step.name in commands) && step.name !== 'build' && !waitsForNothing.test(step.name)
    const canRun = mayPass && !isBrokenOff && isOfTheHost
    const second = canRun ? await step.run() : first
    if (canRun) report(`${step.name} again`, second)
    if (second.failed === 0) unsteady.push(step.name)
    count(step.name, second)
  }
}

/** What the cores have spent in all, and how much of it with nothing to do. */
function spentByCores(): { readonly total: number; readonly idle: number } {
  const times = cpus().map(cpu => cpu.times)
  const idle = times.reduce((sum, each) => sum + each.idle, 0)
  return { idle, total: times.reduce((sum, { user, nice, sys, irq }) => sum + user + nice + sys + irq, idle) }
}

/** Watches for WATCH_MS. Resolves to whether the cores had nothing to do for the share that is worth another step. */
async function sawIdleCores(): Promise<boolean> {
  const before = spentByCores()
  await Bun.sleep(WATCH_MS)
  const { total, idle } = spentByCores()
  return idle - before.idle > IDLE_SHARE * (total - before.total)
}

const brokenStep = (error: unknown): Outcome => ({
  passed: 0,
  failed: 1,
  seconds: 0,
  cpuSeconds: 0,
  output: String(error),
})

/**
 * Runs the steps, each as soon as there is room for it: those that take long first. Many mostly wait, and some only
 * on a fast host: another one begins whenever the cores are seen to wait with them.
 */
async function runSteps(steps: readonly Step[], cores: number): Promise<void> {
  const waiting = [...steps].sort((a, b) => loadOf(b).seconds - loadOf(a).seconds)
  const running = new Map<Step, Promise<void>>()
  const mayStart = (step: Step): boolean => [...waiting, ...running.keys()].every(other => other.name !== step.after)
  const hasRoom = (step: Step): boolean => {
    const busy = [...running.keys()].reduce((sum, other) => sum + loadOf(other).cores, 0)
    return mayStart(step) && (running.size === 0 || busy + loadOf(step).cores <= cores)
  }
  const begin = (step: Step): void => {
    waiting.splice(waiting.indexOf(step), 1)
    const ended = step.run().catch(brokenStep)
    running.set(
      step,
      ended.then(outcome => {
        running.delete(step)
        if (isBrokenOff) return
        report(step.name, outcome)
        if (outcome.failed > 0) again.push({ step, first: outcome })
        else count(step.name, outcome)
      }),
    )
  }
  while (waiting.length + running.size > 0) {
    if (isBrokenOff) waiting.length = 0
    const next = waiting.find(hasRoom)
    if (next) {
      begin(next)
      continue
    }
    const oneEnds = Promise.race(running.values())
    const mayFill = cores > 0 && running.size < MOST_PER_CORE * availableParallelism() && waiting.some(mayStart)
    if (!mayFill) await oneEnds
    else if (await Promise.race([oneEnds.then(() => false), sawIdleCores()])) {
      const filling = waiting.find(mayStart)
      if (filling && !isBrokenOff) begin(filling)
    }
  }
}

/** Leaves nothing behind, also when it is broken off. */
async function cleanUp(): Promise<void> {
  cpuSeconds.postgres = (await (await postgres?.catch(() => null))?.stop()) ?? 0
  await endProcessesOf(scratch)
  rmSync(scratch, { recursive: true, force: true })
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => {
    isBrokenOff = true
    void endProcessesOf(scratch)
  })

const { values, positionals } = parseArgs({ options: { cores: { type: 'string' } }, allowPositionals: true })
if (!existsSync(join(root, 'node_modules')))
  throw new Error('the dependencies are not installed: run `bun install` first')
const before = spentByCores()
await runSteps(stepsOf(positionals), Number(values.cores ?? availableParallelism() * FILL))
await runAgain()
await cleanUp()
if (isBrokenOff) process.exit(130)
const { total, idle } = spentByCores()
const ofHost = (total - before.total - (idle - before.idle)) / 1000
console.log(
  `CPU: ${cpuSeconds.steps.toFixed(0)} s in the steps, ${cpuSeconds.postgres.toFixed(0)} s in their PostgreSQL; ` +
    `${ofHost.toFixed(0)} s on this host in all, browsers included`,
)
if (unsteady.length) console.log(`unsteady, failed beside others and passed alone: ${unsteady.join(', ')}`)
if (failures.length) console.log(`failed: ${failures.join(', ')}`)
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed === 0 ? 0 : 1)

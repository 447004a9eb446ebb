// The whole check: generated code, types, format and lint, then every test, each file group in a process of its own (one embedded
// engine a process). Prints one line a step and closes with `N passed, M failed`. Options: names of groups to run only those.
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dir, '..')
/** Everything that a test lays down is below this; a process that was killed in mid-test cannot clean up after itself. */
const scratch = mkdtempSync(join(tmpdir(), 'check-'))
// PostgreSQL runs as another user where the check runs as root, and reads its first password from here.
chmodSync(scratch, 0o711)

type Outcome = { readonly passed: number; readonly failed: number; readonly seconds: number; readonly output: string }

/** A step that is one command: passed or failed as a whole. */
const commands: Readonly<Record<string, readonly string[]>> = {
  types: ['bun', 'x', '--no-install', 'tsc', '--noEmit'],
  'types-browser': ['bun', 'x', '--no-install', 'tsc', '--noEmit', '-p', 'apps/hub/web/browser'],
  lint: ['bun', 'x', '--no-install', 'biome', 'check', '--error-on-warnings', '.'],
  'proto-lint': ['bun', 'x', '--no-install', 'buf', 'lint', 'proto'],
  'proto-breaking': ['bun', 'x', '--no-install', 'buf', 'breaking', 'proto', '--against', 'proto/image.binpb'],
}

/** Folders of tests; every folder is one process. The slow ones come last. */
function testGroups(): string[] {
  const folders: string[] = []
  const walk = (folder: string): void => {
    const entries = readdirSync(join(root, folder), { withFileTypes: true })
    if (entries.some(entry => entry.isFile() && entry.name.endsWith('.test.ts'))) folders.push(folder)
    for (const entry of entries) if (entry.isDirectory() && entry.name !== 'support') walk(join(folder, entry.name))
  }
  walk('test')
  const weight = (folder: string): number =>
    folder.startsWith('test/system') ? 2 : folder.startsWith('test/core') || folder === 'test' ? 0 : 1
  return folders.sort((a, b) => weight(a) - weight(b) || a.localeCompare(b))
}

async function run(
  command: readonly string[],
  environment: Record<string, string> = {},
): Promise<{ code: number; output: string; seconds: number }> {
  const startedAt = performance.now()
  const child = Bun.spawn([...command], {
    cwd: root,
    stdout: 'pipe',
    stderr: 'pipe',
    env: { ...process.env, FORCE_COLOR: '0', TMPDIR: scratch, ...environment },
  })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { code, output: out + err, seconds: (performance.now() - startedAt) / 1000 }
}

async function runCommand(command: readonly string[]): Promise<Outcome> {
  const { code, output, seconds } = await run(command)
  return { passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1, seconds, output }
}

/** Folders whose files each get a process: the embedded engine opens about ten times in one, and then no more. */
const aFileAProcess: ReadonlySet<string> = new Set(['test/samples'])

/** Tests of one folder, not of the folders below it. */
async function runFolder(folder: string, more: Record<string, string> = {}): Promise<Outcome> {
  const files = readdirSync(join(root, folder))
    .filter(name => name.endsWith('.test.ts'))
    .map(name => `./${join(folder, name)}`)
  const total = { passed: 0, failed: 0, seconds: 0, output: '' }
  for (const group of aFileAProcess.has(folder) ? files.map(file => [file]) : [files]) {
    const { passed, failed, seconds, output } = await runTests(folder, group, more)
    total.passed += passed
    total.failed += failed
    total.seconds += seconds
    total.output += failed > 0 ? output : ''
  }
  return total
}

async function runTests(folder: string, files: readonly string[], more: Record<string, string>): Promise<Outcome> {
  // The executables were built a step before: the walk of a newcomer runs against them too.
  const isCompiled = folder === 'test/system' && existsSync(join(root, 'dist/standalone'))
  const environment: Record<string, string> = { ...(isCompiled ? { CHECK_COMPILED: '1' } : {}), ...more }
  const { code, output, seconds } = await run(['bun', 'test', '--timeout', '60000', ...files], environment)
  const passed = Number(/(?:^|\n)\s*(\d+) pass\b/.exec(output)?.[1] ?? 0)
  const failed = Number(/(?:^|\n)\s*(\d+) fail\b/.exec(output)?.[1] ?? 0)
  // A process that dies before its summary, or that runs no test, has failed.
  const isBroken = (code !== 0 && failed === 0) || passed + failed === 0
  return { passed, failed: failed + (isBroken ? 1 : 0), seconds, output }
}

/** The tests of the samples store once more, over HTTP: the engine in another process, behind the interface of a server. */
async function runSamplesOverHttp(): Promise<Outcome> {
  const front = Bun.spawn(['bun', '--max-http-header-size=1000000', 'test/support/clickhouse-front.ts'], {
    cwd: root,
    stdout: 'pipe',
    stderr: 'inherit',
    env: { ...process.env, TMPDIR: scratch },
  })
  const { value } = await front.stdout.getReader().read()
  try {
    return await runFolder('test/samples', { CLICKHOUSE_URL: new TextDecoder().decode(value).trim() })
  } finally {
    front.kill('SIGTERM')
    await front.exited
  }
}

const wanted = process.argv.slice(2)
const isWanted = (name: string): boolean =>
  wanted.length === 0 || wanted.some(word => name === word || name.startsWith(`${word}/`))
if (!existsSync(join(root, 'node_modules')))
  throw new Error('the dependencies are not installed: run `bun install` first')

let passed = 0
let failed = 0
const failures: string[] = []
async function step(name: string, outcome: Promise<Outcome>): Promise<void> {
  const result = await outcome
  passed += result.passed
  failed += result.failed
  const counts = `${result.passed} passed${result.failed ? `, ${result.failed} FAILED` : ''}`
  console.log(`${result.failed ? '✗' : '✓'} ${name.padEnd(28)} ${counts.padEnd(24)} ${result.seconds.toFixed(1)} s`)
  if (result.failed === 0) return
  failures.push(name)
  console.log(result.output)
}

for (const [name, command] of Object.entries(commands)) if (isWanted(name)) await step(name, runCommand(command))
for (const folder of testGroups()) {
  if (!isWanted(folder)) continue
  if (folder === 'test/system') await step('build', runCommand(['bun', 'apps/standalone/build.ts']))
  await step(folder, runFolder(folder))
  if (folder === 'test/samples' && process.env.CLICKHOUSE_URL === undefined)
    await step('test/samples over HTTP', runSamplesOverHttp())
}
rmSync(scratch, { recursive: true, force: true })
if (failures.length) console.log(`failed: ${failures.join(', ')}`)
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed === 0 ? 0 : 1)

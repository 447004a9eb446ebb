// Commands of the check, each with a folder for everything that it and its children lay down. What they start is found
// by that folder, so that nothing is left running, whatever became of the command.
import { chmodSync, closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'

export type ChildOptions = {
  readonly cwd: string
  /** Made for the command and removed after it; no other command's folder may begin with its path. */
  readonly folder: string
  readonly environment: Readonly<Record<string, string>>
}

export type Ended = {
  /** null: it was ended at its limit. */
  readonly code: number | null
  /** Standard output and error, in the order in which they came. */
  readonly output: string
  readonly seconds: number
  /** Of the command and of whatever it waited for. */
  readonly cpuSeconds: number
}

const TERM_MS = 5_000
const KILL_MS = 10_000
const START_MS = 120_000

const textOf = (path: string): string => {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    // The process has ended, or is another user's.
    return ''
  }
}

/** Processes that were given the folder for their temporary files, or were told of a path in it. Only Linux tells. */
function processesOf(folder: string): number[] {
  if (process.platform !== 'linux') return []
  const isOfFolder = (pid: string): boolean =>
    textOf(`/proc/${pid}/environ`).includes(`TMPDIR=${folder}`) || textOf(`/proc/${pid}/cmdline`).includes(`${folder}/`)
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && isOfFolder(name))
    .map(Number)
}

function send(signal: 'SIGTERM' | 'SIGKILL', pid: number): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended.
  }
}

/** Ends every process of the folder: asked once, and made to after some seconds. */
export async function endProcessesOf(folder: string): Promise<void> {
  const startedAt = performance.now()
  const asked = new Set<number>()
  for (let pids = processesOf(folder); pids.length > 0; pids = processesOf(folder)) {
    const passedMs = performance.now() - startedAt
    if (passedMs > KILL_MS) return
    for (const pid of pids) {
      if (passedMs > TERM_MS) send('SIGKILL', pid)
      else if (!asked.has(pid)) send('SIGTERM', pid)
      asked.add(pid)
    }
    await Bun.sleep(50)
  }
}

function makeFolder(folder: string): void {
  mkdirSync(folder)
  // PostgreSQL runs as another user where the check runs as root, and must be able to pass.
  chmodSync(folder, 0o711)
}

const environmentOf = ({ folder, environment }: ChildOptions): Record<string, string | undefined> => ({
  ...process.env,
  FORCE_COLOR: '0',
  TMPDIR: folder,
  ...environment,
})

/**
 * Runs a command to its end, or to the limit. Its output goes by a file: a child that it leaves behind holds nothing
 * up.
 */
export async function runChild(command: readonly string[], around: ChildOptions, limitMs: number): Promise<Ended> {
  const { cwd, folder } = around
  makeFolder(folder)
  const outputFile = `${folder}.output`
  const output = openSync(outputFile, 'a')
  const startedAt = performance.now()
  const child = Bun.spawn([...command], {
    cwd,
    stdin: 'ignore',
    stdout: output,
    stderr: output,
    env: environmentOf(around),
  })
  closeSync(output)
  const limit = Promise.withResolvers<null>()
  const timer = setTimeout(() => limit.resolve(null), limitMs)
  const code = await Promise.race([child.exited, limit.promise])
  clearTimeout(timer)
  const seconds = (performance.now() - startedAt) / 1000
  await endProcessesOf(folder)
  child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
  return { code, output: readFileSync(outputFile, 'utf8'), seconds, cpuSeconds: cpuSecondsOf(child) }
}

/** `stop` resolves to the CPU seconds that it and its processes took. */
export type Front = { readonly url: string; stop(): Promise<number> }

/** Of a process that has ended, and of whatever it waited for. */
const cpuSecondsOf = (child: Bun.Subprocess): number => Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6

/**
 * Starts a server for several tests, which prints its URL when it is ready and ends on SIGTERM. Throws when it does not
 * start.
 */
export async function startFront(command: readonly string[], around: ChildOptions): Promise<Front> {
  const { cwd, folder } = around
  makeFolder(folder)
  const child = Bun.spawn([...command], {
    cwd,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
    env: environmentOf(around),
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), START_MS)
  const { value } = await child.stdout.getReader().read()
  clearTimeout(timer)
  if (value === undefined) throw new Error(`cannot start ${command.join(' ')}: it ended with ${await child.exited}`)
  return {
    url: new TextDecoder().decode(value).trim(),
    stop: async () => {
      child.kill('SIGTERM')
      await endProcessesOf(folder)
      await child.exited
      rmSync(folder, { recursive: true, force: true })
      return cpuSecondsOf(child)
    },
  }
}

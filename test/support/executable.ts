// The executables of the product as processes of their own: what starts one, a command run to its end, and one that
// runs with its ready file and its log.
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { allocatorSetting } from '../../apps/process/allocator-setting.ts'
import { until } from './until.ts'

const root = resolve(import.meta.dir, '../..')
const mains = {
  hub: 'apps/hub/main.ts',
  'collector-ingest': 'apps/collector/ingest/main.ts',
  'collector-worker': 'apps/collector/worker/main.ts',
  agent: 'apps/agent/main.ts',
  matcher: 'apps/matcher/main.ts',
  standalone: 'apps/standalone/main.ts',
}
export type ExecutableName = keyof typeof mains

/** What starts an executable as it is built into dist/: it gives itself the setting that the check gives to tests. */
export const compiledCommand = (name: ExecutableName): readonly string[] => [
  'env',
  `--unset=${allocatorSetting.name}`,
  join(root, 'dist', name),
]
/** What starts an executable from source: it reads each of its modules, and a hub bundles its pages, at every start. */
export const sourceCommand = (name: ExecutableName): readonly string[] => [
  'env',
  `${allocatorSetting.name}=${allocatorSetting.value}`,
  process.execPath,
  join(root, mains[name]),
]
/** What starts an executable: as it is built where the check has built it, or from source. */
export const commandOf = process.env.CHECK_COMPILED === '1' ? compiledCommand : sourceCommand

/** What a process was started with: `NAME=VALUE` each. */
export const environmentOf = (pid: number): string[] => readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')

/** Runs a command of an executable to its end. `input` goes to standard input. */
export async function runCommand(
  name: ExecutableName,
  words: readonly string[],
  input = '',
): Promise<{ code: number; out: string; err: string }> {
  const child = Bun.spawn([...commandOf(name), ...words], {
    stdin: new TextEncoder().encode(input),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { code, out, err }
}

export class Executable {
  private child: Bun.Subprocess<'ignore', 'pipe', 'pipe'> | null = null
  output = ''

  constructor(
    readonly name: ExecutableName,
    private readonly words: readonly string[],
    private readonly readyFile: string,
  ) {}

  get pid(): number {
    return this.child?.pid ?? 0
  }

  /** Starts it and waits for the ready file. Throws with its output when it ends before. Returns what the file says. */
  async start(readyMs = 60_000): Promise<Record<string, unknown>> {
    rmSync(this.readyFile, { force: true })
    const child = Bun.spawn([...commandOf(this.name), ...this.words, '--ready-file', this.readyFile], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    this.child = child
    const collected = Promise.all([this.collect(child.stdout), this.collect(child.stderr)])
    await until(
      `${this.name} to be ready`,
      async () => {
        if (child.exitCode !== null) {
          await collected
          throw new Error(`${this.name} ended with ${child.exitCode}:\n${this.output}`)
        }
        return existsSync(this.readyFile)
      },
      readyMs,
    )
    return JSON.parse(readFileSync(this.readyFile, 'utf8'))
  }

  private async collect(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder()
    for await (const chunk of stream) this.output += decoder.decode(chunk, { stream: true })
  }

  /** SIGTERM; resolves to the exit code. */
  async stop(): Promise<number> {
    return this.end('SIGTERM')
  }

  async kill(): Promise<void> {
    await this.end('SIGKILL')
  }

  private async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number> {
    const { child } = this
    this.child = null
    child?.kill(signal)
    return (await child?.exited) ?? 0
  }
}

// The executable `matcher` on a folder of its own, beside a scripted hub.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hubToken, ScriptedHub } from '../matcher/scripted-hub.ts'
import { until } from '../support/until.ts'

/** A folder with a configuration, and the executable on it. */
export class Place {
  readonly dir = mkdtempSync(join(tmpdir(), 'svc-matcher-exe-'))
  readonly hub = new ScriptedHub()
  readonly config: string
  private child: Bun.Subprocess<'ignore', 'pipe', 'pipe'> | null = null
  output = ''

  /** `wrapped` becomes the command that runs it, from its own one and its data directory. */
  constructor(
    private readonly command: readonly string[],
    private readonly wrapped: (command: readonly string[], dataDir: string) => readonly string[] = given => given,
  ) {
    this.hub.codes.set('code', '5f0c3c52-7c1e-4a63-9b5e-2f3f6d2c9a11')
    this.config = this.write('matcher.yaml', this.yaml('admin-secret'))
    this.write('hub.token', `${hubToken}\n`)
  }

  yaml(adminToken: string): string {
    return JSON.stringify({
      listen: '127.0.0.1:0',
      admin: { listen: '127.0.0.1:0', token: adminToken },
      ops: { listen: '127.0.0.1:0' },
      hub: { url: this.hub.url, token_file: join(this.dir, 'hub.token') },
      data_dir: join(this.dir, 'data'),
      db: { update_interval: 'off' },
      hosts: { sync_interval: '200ms' },
    })
  }

  write(name: string, text: string): string {
    const path = join(this.dir, name)
    writeFileSync(path, text, { mode: 0o600 })
    return path
  }

  /** A command to its end. */
  run(...words: string[]) {
    return this.ran([...this.command, ...words])
  }

  private async ran(words: readonly string[]): Promise<{ code: number; out: string; err: string }> {
    const child = Bun.spawn([...words], { stdout: 'pipe', stderr: 'pipe', cwd: this.dir })
    const [out, err, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ])
    return { code, out, err }
  }

  /** A command with the configuration, where a process sees its file systems that nobody else does. */
  within(pid: number, ...words: string[]) {
    const enter = ['nsenter', '--preserve-credentials', '--user', '--mount', '--target', String(pid)]
    return this.ran([...enter, ...this.command, ...words, '--config', this.config])
  }

  on(...words: string[]) {
    return this.run(...words, '--config', this.config)
  }

  async start(): Promise<Record<string, string | number>> {
    const ready = join(this.dir, 'ready.json')
    rmSync(ready, { force: true })
    const command = this.wrapped(this.command, join(this.dir, 'data'))
    const child = Bun.spawn([...command, 'run', '--config', this.config, '--ready-file', ready], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    this.child = child
    for (const stream of [child.stdout, child.stderr]) void this.collect(stream)
    await until('the ready file', () => {
      if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode}: ${this.output}`)
      return existsSync(ready)
    })
    return JSON.parse(readFileSync(ready, 'utf8'))
  }

  private async collect(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder()
    for await (const chunk of stream) this.output += decoder.decode(chunk, { stream: true })
  }

  signal(name: 'SIGTERM' | 'SIGKILL' | 'SIGHUP'): void {
    this.child?.kill(name)
  }

  async end(name: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<number> {
    this.signal(name)
    return (await this.child?.exited) ?? 0
  }

  remove(): void {
    rmSync(this.dir, { recursive: true, force: true })
  }
}

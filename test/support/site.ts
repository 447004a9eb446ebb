// The all-in-one as its user starts it: a process of its own on free ports, in a temporary directory.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commandOf } from './executable.ts'
import { until } from './until.ts'

type SiteInfo = {
  readonly hub_url: string
  readonly agent_url: string
  readonly admin_url: string
  readonly ops_url: string
  readonly database_url: string
  readonly company_id: string
  readonly user_email: string
  readonly user_password: string | null
  readonly api_token: string
  readonly admin_token: string
  readonly collector_token: string
  readonly matcher_token: string
  readonly license: string
  readonly matcher_url: string | null
  readonly matcher_admin_url: string | null
  readonly matcher_admin_token: string | null
  readonly scan_host_id: string | null
  readonly data_dir: string
  readonly pid: number
}

export type SiteProcess = {
  readonly facts: SiteInfo
  /** Of the process that was started. */
  readonly pid: number
  readonly dataDir: string
  readonly output: () => string
  /** Calls the hub's API with the administrator's token; `body` makes it a JSON request. */
  readonly api: (method: string, path: string, body?: unknown) => Promise<{ status: number; body: Json }>
  /** SIGTERM; resolves to the exit code. */
  readonly stop: () => Promise<number>
  /** SIGKILL. */
  readonly kill: () => Promise<void>
}

/** JSON as a test reads it: every member may be missing, and the expectation says which. */
// biome-ignore lint/suspicious/noExplicitAny: answers of another process, checked by the expectations of the test
export type Json = any

type SiteOptions = {
  readonly dataDir?: string
  /** It makes its database itself, also where the check has one prepared. */
  readonly isFirstStart?: boolean
  readonly config?: string
  readonly args?: readonly string[]
  /** The command before the options; the compiled executable for one. */
  readonly command?: readonly string[]
  readonly readyMs?: number
}

export const newTempDir = (): string => mkdtempSync(join(tmpdir(), 'site-'))

/**
 * A new data directory. Where the check has prepared a database (site-data.ts), that is in it: with its owners and
 * modes, for its files are those of its own user.
 */
function newDataDir(dataDir: string, isFirstStart: boolean): void {
  const prepared = process.env.CHECK_SITE_DATA
  if (prepared === undefined || isFirstStart) return
  const { exitCode, stderr } = Bun.spawnSync(['cp', '-a', prepared, dataDir])
  if (exitCode !== 0) throw new Error(`cannot copy ${prepared}: ${stderr.toString()}`)
}

/** Starts a site and waits until its ready file is there. Throws with its output when it ends before. */
export async function startSiteProcess(options: SiteOptions = {}): Promise<SiteProcess> {
  const dir = newTempDir()
  const dataDir = options.dataDir ?? join(dir, 'data')
  if (options.dataDir === undefined) newDataDir(dataDir, options.isFirstStart ?? false)
  const readyFile = join(dir, 'ready.json')
  const configFile = join(dir, 'config.yaml')
  if (options.config) writeFileSync(configFile, options.config)
  const command = options.command ?? commandOf('standalone')
  const listen = ['hub', 'agent', 'admin', 'ops'].flatMap(name => [`--${name}-listen`, '127.0.0.1:0'])
  const child = Bun.spawn(
    [
      ...command,
      '--data-dir',
      dataDir,
      ...listen,
      '--ready-file',
      readyFile,
      ...(options.config ? ['--config', configFile] : []),
      // No test asks other hosts for advisories.
      ...(options.args?.includes('--security-db') ? [] : ['--security-db', 'off']),
      ...(options.args ?? []),
    ],
    { cwd: dir, stdout: 'pipe', stderr: 'pipe', stdin: 'ignore' },
  )
  let output = ''
  const collect = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder()
    for await (const chunk of stream) output += decoder.decode(chunk, { stream: true })
  }
  void collect(child.stdout)
  void collect(child.stderr)
  await until(
    'the ready file',
    () => {
      if (child.exitCode !== null) throw new Error(`the site ended with ${child.exitCode}:\n${output}`)
      return existsSync(readyFile)
    },
    options.readyMs ?? 60_000,
  ).catch(error => {
    child.kill('SIGKILL')
    throw error
  })
  const facts: SiteInfo = JSON.parse(readFileSync(readyFile, 'utf8'))
  const cleanUp = () => {
    if (!options.dataDir) rmSync(dir, { recursive: true, force: true })
  }
  return {
    facts,
    pid: child.pid,
    dataDir,
    output: () => output,
    api: async (method, path, body) => {
      const response = await fetch(`${facts.hub_url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${facts.api_token}`,
          accept: 'application/json',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      return { status: response.status, body: text === '' ? null : JSON.parse(text) }
    },
    stop: async () => {
      child.kill('SIGTERM')
      const code = await child.exited
      cleanUp()
      return code
    },
    kill: async () => {
      child.kill('SIGKILL')
      await child.exited
      cleanUp()
    },
  }
}

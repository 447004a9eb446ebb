// `hub iac`: manifests of a folder over the REST API, as a pipeline needs it. Works without a database or
// configuration:
// an address and a token are enough.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import type { Command } from 'commander'
import { parseRetryAfter } from '../../../core/agent/response-action.ts'
import { isPlainBeyondHost } from '../../../core/config/plain-http.ts'
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import { MANIFESTS_MAX } from '../iac/run-limits.ts'
import { type Print, printer } from './output.ts'

const TIMEOUT_MS = 60_000
const POLL_MS = 1_000
/** How often a call is sent again that the hub had too many of, and how long a command waits for it in all. */
const AGAIN_MAX = 2
const WAIT_MAX_MS = 120_000
/** As `diff` and others say it: everything went well, and there are changes. */
const HAS_CHANGES = 2

type IacEnvironment = { readonly url: string | undefined; readonly token: string | undefined }
type Options = { url?: string; tokenFile?: string; json?: boolean; title?: string; run?: string; kind?: string[] }
type SentFile = { readonly path: string; readonly contents: string }

/** The command ends with this code; what there is to say has been printed. */
export class ExitCode extends Error {
  constructor(
    readonly code: number,
    /** What the command was about, which `--json` prints whatever the code is. */
    readonly result: Unchecked,
  ) {
    super(`exit code ${code}`)
  }
}

class Api {
  private waitedMs = 0

  constructor(
    private readonly url: string,
    private readonly token: string,
  ) {}

  private send(method: string, path: string, body: unknown): Promise<Response> {
    return fetch(`${this.url}/api/v1${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${this.token}`,
        Accept: 'application/json',
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }).catch((error: unknown) => {
      // What the runtime says names no address.
      const reason = error instanceof Error ? error.message : String(error)
      throw new Error(`the hub cannot be reached at ${this.url}: ${reason}`, { cause: error })
    })
  }

  /** Waits as a hub asks that had too many calls. False where it does not, or where that would be too long. */
  private async hasWaited({ status, headers }: Response): Promise<boolean> {
    const asked = status === 429 ? headers.get('retry-after') : null
    const waitMs = parseRetryAfter(asked, headers.get('date'), Date.now())
    if (waitMs === null || this.waitedMs + waitMs > WAIT_MAX_MS) return false
    this.waitedMs += waitMs
    process.stderr.write(`hub: too many requests (429): trying again in ${Math.ceil(waitMs / 1000)} s\n`)
    await new Promise(done => setTimeout(done, waitMs))
    return true
  }

  async call(method: string, path: string, body?: unknown): Promise<Unchecked> {
    let response = await this.send(method, path, body)
    for (let again = 0; again < AGAIN_MAX && (await this.hasWaited(response)); again++)
      response = await this.send(method, path, body)
    const answer: unknown = await response.json().catch(() => null)
    if (response.ok && isObject(answer)) return answer
    const told = isObject(answer) ? answer : {}
    const fields = isObject(told.errors)
      ? Object.entries(told.errors).map(([field, texts]) => `\n  ${field}: ${String(texts)}`)
      : []
    throw new Error(`${method} ${path} answered ${response.status}: ${String(told.message ?? '')}${fields.join('')}`)
  }
}

function tokenIn(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new Error(`cannot read --token-file: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function apiOf(options: Options, environment: IacEnvironment): Api {
  const url = options.url ?? environment.url
  const token = options.tokenFile === undefined ? environment.token : tokenIn(options.tokenFile)
  if (!url) throw new Error('give the address of the hub: --url, or HUB_URL')
  if (!token) throw new Error('give a token: --token-file, or HUB_TOKEN')
  // As an agent has no permission for it, so the token of a pipeline has none.
  if (URL.canParse(url) && isPlainBeyondHost(new URL(url)))
    throw new Error(`${url} is plain http to another host, which would show the token on the way; use https`)
  return new Api(url.replace(/\/+$/, ''), token)
}

/** Names that begin with a dot belong to other tools, such as .github/workflows/ci.yml. */
const isHidden = (path: string): boolean => path.split(sep).some(name => name.startsWith('.'))

/** The manifests below a folder, by their paths there. */
function manifestsIn(folder: string): SentFile[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && /\.ya?ml$/.test(entry.name))
    .map(entry => join(entry.parentPath, entry.name))
    .filter(file => !isHidden(relative(folder, file)))
    .sort()
  if (files.length === 0) throw new Error(`${folder} holds no .yml file`)
  if (files.length > MANIFESTS_MAX)
    throw new Error(
      `${folder} holds ${files.length} manifests, a run has at most ${MANIFESTS_MAX}: name a folder in it`,
    )
  return files.map(file => ({ path: relative(folder, file), contents: readFileSync(file, 'utf8') }))
}

/** The manifests that were judged only: a run has too many parts to try all of them. */
function printUntried({ untried }: Unchecked, print: (line: string) => void): void {
  for (const path of Array.isArray(untried) ? untried : []) print(`not tried beforehand: ${String(path)}`)
}

const objectsOf = (value: unknown): Unchecked[] => (Array.isArray(value) ? value.filter(isObject) : [])
const dataOf = (answer: Unchecked): Unchecked => (isObject(answer.data) ? answer.data : {})

const SIGNS: Readonly<Record<string, string>> = { create: '+', update: '~', delete: '-', none: ' ' }

/** What a run would do, or did, for people. */
function printRun(run: Unchecked, print: (line: string) => void): void {
  for (const { path, line, message } of objectsOf(run.errors))
    print(`${String(path)}${line === null ? '' : `:${String(line)}`}: ${String(message)}`)
  for (const item of objectsOf(run.items)) {
    const state =
      item.status === 'planned' ? '' : `  ${String(item.status)}${item.error ? `: ${String(item.error)}` : ''}`
    print(`${SIGNS[String(item.action)] ?? '?'} ${String(item.kind)} ${String(item.name)}${state}`)
    for (const { field, old, new: fresh } of item.action === 'update' ? objectsOf(item.diff) : [])
      print(`    ${String(field)}: ${JSON.stringify(old)} -> ${JSON.stringify(fresh)}`)
  }
}

const countChanges = (run: Unchecked): number => objectsOf(run.items).filter(item => item.action !== 'none').length

type Work = (api: Api, folder: string, options: Options, say: (line: string) => void) => Promise<Unchecked>

async function plan(api: Api, folder: string): Promise<Unchecked> {
  return dataOf(await api.call('POST', '/iac/validate', { manifests: manifestsIn(folder) }))
}

const showPlan: Work = async (api, folder, _options, say) => {
  const run = await plan(api, folder)
  printRun(run, say)
  if (run.status === 'invalid') throw new ExitCode(1, run)
  printUntried(run, say)
  say(String(run.title))
  if (countChanges(run) > 0) throw new ExitCode(HAS_CHANGES, run)
  return run
}

const validate: Work = async (api, folder, _options, say) => {
  const run = await plan(api, folder)
  if (run.status === 'invalid') {
    printRun({ errors: run.errors }, say)
    throw new ExitCode(1, run)
  }
  printUntried(run, say)
  say('valid')
  return run
}

/**
 * Applies and waits until the hub has done what it can. Exit code 2: something still waits, for example for approval;
 * 1: something failed, or nothing waits and something was skipped, as what an approver rejected.
 */
const apply: Work = async (api, folder, options, say) => {
  const submitted = options.run
    ? dataOf(await api.call('GET', `/iac/runs/${encodeURIComponent(options.run)}`))
    : dataOf(await api.call('POST', '/iac/runs', { manifests: manifestsIn(folder), title: options.title ?? null }))
  if (submitted.status === 'invalid') {
    printRun(submitted, say)
    throw new ExitCode(1, submitted)
  }
  const path = `/iac/runs/${String(submitted.id)}`
  await api.call('POST', `${path}/apply`)
  for (;;) {
    const run = dataOf(await api.call('GET', path))
    if (run.queued_at === null) {
      printRun(run, say)
      say(`run ${String(run.id)}: ${String(run.status)}`)
      const states = new Set(objectsOf(run.items).map(item => item.status))
      // Of items that failed or were skipped it says what their lines have said.
      if (typeof run.apply_error === 'string' && !states.has('failed') && !states.has('skipped')) say(run.apply_error)
      if (states.has('failed') || (states.has('skipped') && !states.has('planned'))) throw new ExitCode(1, run)
      if (run.status !== 'applied') throw new ExitCode(HAS_CHANGES, run)
      return run
    }
    await new Promise(done => setTimeout(done, POLL_MS))
  }
}

const write: Work = async (api, folder, options, say) => {
  const all = objectsOf((await api.call('GET', '/iac/kinds')).data).map(kind => String(kind.kind))
  const unknown = options.kind?.find(kind => !all.includes(kind))
  if (unknown !== undefined) throw new Error(`there is no kind ${unknown}: kinds are ${all.join(', ')}`)
  const root = resolve(folder)
  let count = 0
  for (const kind of options.kind ?? all)
    for (let page = 1, last = 1; page <= last; page++) {
      const answer = await api.call('GET', `/iac/export/${encodeURIComponent(kind)}?page=${page}`)
      last = isObject(answer.meta) ? Number(answer.meta.last_page) : 1
      for (const { path, contents } of objectsOf(answer.data)) {
        const file = resolve(root, String(path))
        if (!file.startsWith(`${root}/`)) throw new Error(`the hub names a file outside ${folder}: ${String(path)}`)
        mkdirSync(dirname(file), { recursive: true })
        writeFileSync(file, String(contents))
        count++
      }
    }
  say(`${count} manifests written to ${folder}`)
  return { count }
}

/** What `--json` prints of a command that does not end with 0. */
function objectOf(error: unknown, lines: readonly string[]): Unchecked {
  if (error instanceof ExitCode) return { ...error.result, exit_code: error.code, lines }
  return { exit_code: 1, error: error instanceof Error ? error.message : String(error) }
}

export function addIacCommands(program: Command, environment: IacEnvironment): void {
  const iac = program.command('iac').description('manifests of a folder, over the API (HUB_URL, HUB_TOKEN)')
  const add = (name: string, description: string, work: Work) =>
    iac
      .command(`${name} <dir>`)
      .description(description)
      .option('--url <url>', 'the address of the hub')
      .option('--token-file <file>', 'a file with an API token')
      .action(async (folder: string, _options: unknown, command: Command) => {
        const options = command.optsWithGlobals<Options>()
        const print: Print = printer(options.json ?? false)
        const lines: string[] = []
        const say = (line: string) => {
          lines.push(line)
          if (!options.json) process.stdout.write(`${line}\n`)
        }
        try {
          const result = await work(apiOf(options, environment), folder, options, say)
          if (options.json) print({ ...result, exit_code: 0, lines })
        } catch (error) {
          if (options.json) print(objectOf(error, lines))
          throw error
        }
      })
  add('validate', 'say every fault of the manifests; nothing is stored', validate)
  add('plan', 'what applying would do; exit code 2: there are changes', showPlan)
  add('apply', 'submit, apply and wait; exit code 2: something waits for approval', apply)
    .option('--run <id>', 'apply this run instead of a new one')
    .option('--title <text>', 'the title of the run')
  add('export', 'write what exists as manifests', write).option('--kind <kind...>', 'only these kinds')
}

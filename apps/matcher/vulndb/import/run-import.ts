// Starts the process of an import and waits for what it answers.
import { isObject } from '../sources/source.ts'
import { type BuildOutcome, type ImportJob, type UnpackOutcome, WORKER_COMMAND, type WorkerMessage } from './job.ts'

/** No import of any size takes this long; one that does hangs. */
const IMPORT_MS_MAX = 60 * 60_000
const LINE_CHARS_MAX = 1024 * 1024

type Outcome = BuildOutcome | UnpackOutcome

/** How this executable is started again: compiled it is itself, from source it is Bun with the main file. */
export const importCommand = (): readonly string[] =>
  Bun.main.startsWith('/$bunfs/') ? [process.execPath, WORKER_COMMAND] : [process.execPath, Bun.main, WORKER_COMMAND]

const isMessage = (value: unknown): value is WorkerMessage =>
  isObject(value) && ('progress' in value || 'outcome' in value || 'failure' in value)

/** Throws with the reason when nothing came of the import. `signal` ends it. */
export async function runImport(
  job: ImportJob,
  options: {
    readonly command: readonly string[]
    readonly onProgress?: (source: string, records: number) => void
    readonly signal?: AbortSignal
  },
): Promise<Outcome> {
  const child = Bun.spawn([...options.command], { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' })
  const kill = (): void => child.kill('SIGKILL')
  const timer = setTimeout(kill, IMPORT_MS_MAX)
  options.signal?.addEventListener('abort', kill)
  let outcome: Outcome | null = null
  let failure: string | null = null
  try {
    child.stdin.write(`${JSON.stringify(job)}\n`)
    child.stdin.flush()
    for await (const message of messages(child.stdout)) {
      if ('progress' in message) options.onProgress?.(message.progress.source, message.progress.records)
      else if ('failure' in message) failure = message.failure
      else outcome = message.outcome
    }
    await child.exited
  } finally {
    clearTimeout(timer)
    options.signal?.removeEventListener('abort', kill)
    kill()
  }
  if (failure !== null) throw new Error(failure)
  if (outcome === null)
    throw new Error(`the process of the import ended before it was done (${child.signalCode ?? child.exitCode})`)
  return outcome
}

async function* messages(stdout: ReadableStream<Uint8Array>): AsyncGenerator<WorkerMessage> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stdout) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = (lines.pop() ?? '').slice(0, LINE_CHARS_MAX)
    for (const line of lines) {
      const message: unknown = JSON.parse(line)
      if (isMessage(message)) yield message
    }
  }
}

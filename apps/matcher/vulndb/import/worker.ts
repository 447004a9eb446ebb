// The process of an import (MAT-073, MAT-239): the same executable started again with a hidden command, at low
// priority. It reads its job from stdin, answers by lines on stdout, and ends with whoever started it.
import { setPriority } from 'node:os'
import { unpackBundle } from '../bundle.ts'
import { checkFile } from '../check-file.ts'
import { SourceRefused } from '../source-refused.ts'
import { build } from './build.ts'
import type { ImportJob, UnpackJob, UnpackOutcome, WorkerMessage } from './job.ts'

const LOWEST_PRIORITY = 19

async function unpack(job: UnpackJob): Promise<UnpackOutcome> {
  const header = await unpackBundle(job.bundleFile, job.outFile, job)
  const version = checkFile(job.outFile)
  if (version !== header.db_version)
    throw new SourceRefused('the header of the bundle names another version than its content')
  return { kind: 'unpack', version, keyId: header.key_id }
}

const send = (message: WorkerMessage): void => void process.stdout.write(`${JSON.stringify(message)}\n`)

/** Runs the one job that stdin holds. The job comes from the parent process, never from outside. */
export async function runImportWorker(): Promise<void> {
  try {
    setPriority(0, LOWEST_PRIORITY)
  } catch {
    // A container may forbid it: the import then runs at the priority it has.
  }
  const lines = process.stdin[Symbol.asyncIterator]()
  let text = ''
  while (!text.includes('\n')) {
    const next = await lines.next()
    if (next.done) return
    text += String(next.value)
  }
  // Stdin ends when the parent does: an import that nobody waits for stops.
  void lines.next().then(() => process.exit(1))
  const job: ImportJob = JSON.parse(text)
  try {
    const onProgress = (source: string, records: number): void => send({ progress: { source, records } })
    send({ outcome: job.kind === 'build' ? await build(job, onProgress) : await unpack(job) })
  } catch (error) {
    send({ failure: failureText(error) })
  }
  process.stdout.end(() => process.exit(0))
}

/** SQLite's and the system's messages name paths: only their code is told. */
function failureText(error: unknown): string {
  if (error instanceof SourceRefused) return error.message
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return code === ''
    ? `the import failed: ${error instanceof Error ? error.constructor.name : 'unknown'}`
    : `the import failed: ${code}`
}

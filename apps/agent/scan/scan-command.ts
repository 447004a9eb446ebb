// `agent scan`: one report, printed or sent (MAT-001).
import { accessSync, constants, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Report } from '../../../core/matching/report-schema.ts'
import { printable } from '../../../core/printable.ts'
import { type AgentOptions, agentVersion } from '../config.ts'
import { StateDir } from '../state/state-dir.ts'
import { SCAN_LOCK, StateLock } from '../state/state-lock.ts'
import { collectReport } from './collect-report.ts'
import { summarize } from './report-summary.ts'
import { ScanRound } from './scan-round.ts'

export type ScanCommand = { readonly json?: boolean; readonly root?: string; readonly send?: boolean }

type Output = {
  readonly say: (line: string) => void
  readonly complain: (line: string) => void
  readonly log: Logger
}

/** Runs the command. Answers whether it did what was asked. */
export async function runScanCommand(options: AgentOptions, command: ScanCommand, output: Output): Promise<boolean> {
  const { say, complain } = output
  const show = (report: Report) => say(command.json ? JSON.stringify(report) : summarize(report))
  if (!command.send) {
    show(await collectOnly(options, command.root ?? '/'))
    return true
  }
  try {
    return await send(options, command.root ?? '/', output, show)
  } catch (error) {
    complain(`cannot send: ${error instanceof Error ? error.message : String(error)}`)
    return false
  }
}

/** Reads, and leaves nothing behind. */
function collectOnly({ stateDir }: AgentOptions, root: string): Promise<Report> {
  return collectReport({
    root,
    stateDir: isWritable(stateDir) ? stateDir : null,
    scannerVersion: agentVersion,
    nowMs: Date.now(),
    madeMachineId: () => (root === '/' ? readText(join(stateDir, 'machine-id')) : ''),
  })
}

/** Below another root it is that system which reports: the matcher refuses one with another machine-id (MAT-036). */
async function send(
  options: AgentOptions,
  root: string,
  output: Output,
  show: (report: Report) => void,
): Promise<boolean> {
  const { complain, log } = output
  const dir = new StateDir(options.stateDir)
  const { signal } = new AbortController()
  const round = new ScanRound({ options, dir, log, now: () => Date.now(), random: Math.random, signal, root })
  const target = round.target()
  if (target === null) {
    complain('scan.matcher_url is not set: in the file of --config, or as SVC_SCAN_MATCHER_URL')
    return false
  }
  const lock = new StateLock(dir, SCAN_LOCK)
  try {
    const { report, isTaken } = await round.scanAndDeliver(target)
    show(report)
    const { reason, lastError, matchStatus, openFindings } = round.store.state()
    if (!isTaken)
      complain(printable(`not taken: ${[reason, lastError].filter(Boolean).join(', ') || 'refused before'}`))
    // Beside a report nothing else goes to the standard output.
    else complain(printable(`taken: ${matchStatus ?? 'ok'}, ${openFindings ?? 0} open findings`))
    return isTaken
  } finally {
    lock.release()
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return ''
  }
}

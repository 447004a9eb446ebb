// One agent a state directory: two would take each other's batches and sequence numbers. The lock names a process, so that
// what a killed agent left behind holds nobody up.
import { readFileSync } from 'node:fs'
import type { StateDir } from './state-dir.ts'

const FILE = 'lock'

/** Fields of /proc/PID/stat from the state on; none where the system does not say. */
function statOf(pid: number): readonly string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name before them, in parentheses, may hold spaces.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}

/** When a process started, in ticks since the boot; '' where the system does not say. Tells a process from a later one of the same id. */
const startTicks = (pid: number): string => statOf(pid)[19] ?? ''

/** A killed process that nobody has collected (a container without an init) does not run. */
function isRunning(pid: number): boolean {
  if (statOf(pid)[0] === 'Z') return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: it runs, as another user.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/** Takes the directory for this process. Throws when another running agent has it. */
export function lockStateDir(dir: StateDir): void {
  const holder = /^(\d+) (\d*)$/.exec(dir.read(FILE)?.trim() ?? '')
  const pid = Number(holder?.[1] ?? 0)
  const isHeld = pid > 0 && pid !== process.pid && isRunning(pid) && startTicks(pid) === holder?.[2]
  if (isHeld) throw new Error(`another agent (process ${pid}) uses this state directory: stop it first`)
  dir.write(FILE, `${process.pid} ${startTicks(process.pid)}\n`)
}

/** Gives the directory back. */
export function unlockStateDir(dir: StateDir): void {
  dir.remove(FILE)
}

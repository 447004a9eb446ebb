// CPU time and wake-ups of a process by thread, and its memory, from /proc.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

const TICKS_PER_SECOND = 100

/** User and system seconds that a process has used, all threads, those that have ended too. */
export function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** Resident memory of a process, MB. */
export const rssMb = (pid: number): number =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024)

/** Resets the high-water mark of resident memory of this process. */
export const resetPeak = (): void => writeFileSync('/proc/self/clear_refs', '5')
/** Resident memory of this process, now and at its highest since the reset, in MB. */
export function residentMb(): { readonly now: number; readonly peak: number } {
  const status = readFileSync('/proc/self/status', 'utf8')
  const of = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0) / 1024
  return { now: of('VmRSS'), peak: of('VmHWM') }
}

/**
 * What of the memory of a process is its own share (mappings that others have too are divided by their number), what is
 * not of a file, MB, and so cannot be had back from a disk.
 */
export function memoryMb(pid: number): { readonly pss_mb: number; readonly anonymous_mb: number } {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  const of = (name: string): number => Math.round(Number(new RegExp(`^${name}: +(\\d+)`, 'm').exec(text)![1]) / 1024)
  return { pss_mb: of('Pss'), anonymous_mb: of('Anonymous') }
}

type ThreadUse = { readonly name: string; readonly cpuNs: number; readonly wakeUps: number }

/** The threads of a process by number; none of one that has ended. */
function tasksOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}

/** What each living thread has used so far, by its number. A thread that ends while it is read is left out. */
export function threadUse(pid: number): Map<number, ThreadUse> {
  const use = new Map<number, ThreadUse>()
  for (const task of tasksOf(pid)) {
    const read = (file: string): string => readFileSync(`/proc/${pid}/task/${task}/${file}`, 'utf8')
    try {
      const name = Number(task) === pid ? 'main' : read('comm').trim()
      const wakeUps = Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(read('status'))![1])
      use.set(Number(task), { name, cpuNs: Number(read('schedstat').split(' ')[0]), wakeUps })
    } catch {}
  }
  return use
}

/**
 * CPU ns and wake-ups between two looks at the threads of a process. Threads of one name count together, except the
 * JavaScript threads, which are numbered in the order of their start.
 */
export function usedBetween(before: Map<number, ThreadUse>, after: Map<number, ThreadUse>): Map<string, ThreadUse> {
  const used = new Map<string, ThreadUse>()
  let workers = 0
  for (const [task, { name: comm, cpuNs, wakeUps }] of [...after].sort(([a], [b]) => a - b)) {
    const name = comm === 'Worker' ? `${comm} ${++workers}` : comm
    const then = before.get(task)
    const sum = used.get(name)
    used.set(name, {
      name,
      cpuNs: (sum?.cpuNs ?? 0) + cpuNs - (then?.cpuNs ?? 0),
      wakeUps: (sum?.wakeUps ?? 0) + wakeUps - (then?.wakeUps ?? 0),
    })
  }
  return used
}

/** Threads that take less are not shown. */
const SHOWN_US = 1

/** What threads used, in us of CPU a batch, the largest first; `total` counts those too that are not shown. */
export function usABatch(
  used: Map<string, ThreadUse>,
  batches: number,
): { readonly total: number; readonly byThread: Readonly<Record<string, number>> } {
  const threads = [...used.values()]
  const us = (ns: number): number => Math.round(ns / 100 / batches) / 10
  const shown = threads
    .map(({ name, cpuNs }): [string, number] => [name, us(cpuNs)])
    .filter(([, value]) => value >= SHOWN_US)
    .sort((a, b) => b[1] - a[1])
  return { total: us(threads.reduce((sum, { cpuNs }) => sum + cpuNs, 0)), byThread: Object.fromEntries(shown) }
}

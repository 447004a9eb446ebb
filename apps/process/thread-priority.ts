// A thread that may be late steps back: where processors are few, whoever answers agents or judges samples goes first.
import { cLibrary } from './c-library.ts'

/** PRIO_PROCESS of <sys/resource.h>; on Linux a thread has a priority of its own, and 0 is the one that calls. */
const OF_PROCESS = 0
/** A third of the processor's time beside a thread that does not step back, and all that is left. */
const STEPS = 5
const LOWEST = 19

/** Lowers the priority of this thread and of those that it starts from now on. It cannot be raised again. */
export function stepBack(): void {
  if (process.platform !== 'linux') return
  const library = cLibrary({
    getpriority: { args: ['i32', 'u32'], returns: 'i32' },
    setpriority: { args: ['i32', 'u32', 'i32'], returns: 'i32' },
  })
  if (library === null) return
  const { getpriority, setpriority } = library.symbols
  setpriority(OF_PROCESS, 0, Math.min(LOWEST, getpriority(OF_PROCESS, 0) + STEPS))
  library.close()
}

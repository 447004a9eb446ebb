// A thread that may be late steps back: where processors are few, whoever answers agents or judges samples goes first.
import { constants, getPriority, setPriority } from 'node:os'

/**
 * "This process" for POSIX; on Linux a thread has a priority of its own, and it is the thread that calls
 * (setpriority(2)).
 */
const THIS_THREAD = 0
/** A third of the processor's time beside a thread that does not step back, and all that is left. */
const STEPS = 5

/** Lowers the priority of this thread and of those that it starts from now on. It cannot be raised again. */
export function stepBack(): void {
  if (process.platform !== 'linux') return
  setPriority(THIS_THREAD, Math.min(constants.priority.PRIORITY_LOW, getPriority(THIS_THREAD) + STEPS))
}

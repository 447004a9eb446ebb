// How a process ends: what SIGTERM and Ctrl-C do, how long a stop may take, what a second signal does, and what happens
// when a part dies. The all-in-one, which says on the terminal how far its stop is, has its own (standalone/main.ts).
import type { Logger } from 'pino'

/** The exit code of a process of which a part died (sysexits.h EX_SOFTWARE). */
const EXIT_FAILED = 70
const STOP_DEADLINE_MS = 14_000
const FLUSH_LIMIT_MS = 500

/**
 * Stops on SIGTERM and Ctrl-C; a second signal, or too long a stop, ends at once and loses nothing that was
 * acknowledged.
 */
export function stopOnSignals(log: Logger, stop: () => Promise<void>, deadlineMs = STOP_DEADLINE_MS): void {
  let isStopping = false
  const onSignal = (): void => {
    if (isStopping) process.exit(130)
    isStopping = true
    log.info('stopping')
    setTimeout(() => process.exit(1), deadlineMs).unref()
    void stop().then(() => process.exit(0))
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
}

/** The end of a process of which a part died: systemd starts it again, and what was acknowledged is on the bus. */
export function failureExit(log: Logger): (error: Error) => void {
  return error => {
    log.fatal({ err: error }, 'a part has failed; start again, nothing acknowledged is lost')
    log.flush(() => process.exit(EXIT_FAILED))
    setTimeout(() => process.exit(EXIT_FAILED), FLUSH_LIMIT_MS)
  }
}

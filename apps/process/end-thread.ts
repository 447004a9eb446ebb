// How a thread is ended by the one that started it.
import pTimeout from 'p-timeout'

const END_LIMIT_MS = 1_000

/**
 * Ends a thread and waits until it is gone: a process that exits while the runtime still takes a thread down may crash.
 * A thread that ended before by itself is waited for in vain, for one second.
 */
export async function endThread(worker: Worker): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  worker.addEventListener('close', () => resolve(), { once: true })
  worker.terminate()
  await pTimeout(promise, { milliseconds: END_LIMIT_MS, fallback: () => {} })
}

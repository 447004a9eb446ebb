// The runtime's pool of threads with nobody free in it, as names that nobody resolves and dead file systems leave it.
import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'

/** Runs `work` while each thread of the pool opens a pipe that nobody writes to, with more such calls in the queue. */
export async function withHeldPool(work: () => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'held-pool-'))
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  const readers = Array.from({ length: 2 * availableParallelism() + 64 }, () => open(pipe, 'r'))
  try {
    await work()
  } finally {
    const writer = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK)
    for (const reader of await Promise.all(readers)) await reader.close()
    closeSync(writer)
    rmSync(folder, { recursive: true })
  }
}

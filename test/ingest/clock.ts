// The clock of a rig: a fixed instant, or the real one at 0. Listener threads of the process follow it by a small
// mapped file named after the process, since a thread is given nothing but its file.
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const clockFile: string = join(tmpdir(), `ingest-test-clock-${process.pid}`)

/** The instant that the threads of this process take for now; 0 = the real one. */
function sharedInstant(): Float64Array {
  if (!existsSync(clockFile)) {
    writeFileSync(clockFile, new Uint8Array(4096))
    process.on('exit', () => rmSync(clockFile, { force: true }))
  }
  return new Float64Array(Bun.mmap(clockFile).buffer)
}

/** What ingest takes for now; moved by a test. */
export class RigClock {
  private ownMs = 0
  private readonly shared = sharedInstant()

  get nowMs(): number {
    return this.ownMs
  }

  set nowMs(atMs: number) {
    this.ownMs = atMs
    this.shared[0] = atMs
  }
}

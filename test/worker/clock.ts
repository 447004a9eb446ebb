// The clock of a test process: what Date.now says is moved by an offset that all its threads share, so that minutes of
// silence cost no waiting. The offset lies in a small mapped file named after the process, since a thread is given
// nothing but its file.
import { rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const clockFile: string = join(tmpdir(), `worker-test-clock-${process.pid}`)

const realNow = Date.now
let offset: Float64Array | null = null

/** Makes the clock of this process; its threads follow it. */
export function ownClock(): { readonly advance: (ms: number) => void } {
  if (offset === null) {
    writeFileSync(clockFile, new Uint8Array(4096))
    process.on('exit', () => rmSync(clockFile, { force: true }))
    offset = new Float64Array(Bun.mmap(clockFile).buffer)
    const shared = offset
    Date.now = () => realNow() + shared[0]!
  }
  const shared = offset
  return {
    advance: ms => {
      shared[0] = shared[0]! + ms
    },
  }
}

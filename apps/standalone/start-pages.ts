// Pages of program files that only the start needed. The embedded engine and the runtime are 650 MB of program; their
// start touches 280 MB of it, and an idle site needs a quarter of that again. They stay in the memory of the process
// until the host runs short, so an operator sees them as its own. Given back they cost nothing: who needs one again
// gets it from the page cache.

import type { Pointer } from 'bun:ffi'
import { readFileSync } from 'node:fs'
import { cLibrary } from '../process/c-library.ts'

/** From asm-generic/mman-common.h; the same number on every architecture that Linux runs on here. */
const MADV_DONTNEED = 4
/** Smaller mappings are not worth a call. */
const MAPPING_BYTES_MIN = 1024 * 1024
const HEAD = /^([0-9a-f]+)-([0-9a-f]+) (r-xp|r--p) [0-9a-f]+ \S+ \d+ +\//

type Mapping = { readonly address: number; readonly byteCount: number }

/**
 * The mappings of /proc/PID/smaps that stand on disk as they are in memory: read-only, of a file, and without a page of
 * the process's own, as relocation leaves them. Others would lose what they hold.
 */
export function cleanMappings(smaps: string): Mapping[] {
  const clean: Mapping[] = []
  for (const block of smaps.split(/\n(?=[0-9a-f]+-[0-9a-f]+ )/)) {
    const [, from = '', to = ''] = HEAD.exec(block) ?? []
    if (from === '' || !/^Anonymous: +0 kB$/m.test(block)) continue
    const address = Number.parseInt(from, 16)
    const byteCount = Number.parseInt(to, 16) - address
    if (byteCount >= MAPPING_BYTES_MIN) clean.push({ address, byteCount })
  }
  return clean
}

/** Collects the garbage of the start and gives its pages back; where the system has no such call, nothing happens. */
export function giveBackStartPages(): void {
  Bun.gc(true)
  if (process.platform !== 'linux') return
  const library = cLibrary({ madvise: { args: ['ptr', 'usize', 'i32'], returns: 'i32' } })
  if (library === null) return
  // A pointer of bun:ffi is the number of an address.
  for (const { address, byteCount } of cleanMappings(readFileSync('/proc/self/smaps', 'utf8')))
    library.symbols.madvise(address as Pointer, byteCount, MADV_DONTNEED)
  library.close()
}

// Pages of program files. The embedded engine and the runtime are 650 MB of program; their start touches 280 MB of it,
// and what a site does each minute a fifth of that. What was touched once stays in the memory of the process until the
// host runs short, so an operator sees it as its own. Given back it costs nothing, and who needs a page again gets it
// and its neighbours from the page cache: a thousand times a minute, which takes 3 ms in all.

import type { Pointer } from 'bun:ffi'
import { readFileSync } from 'node:fs'
import { cLibrary } from '../process/c-library.ts'

/** From asm-generic/mman-common.h; the same number on every architecture that Linux runs on here. */
const MADV_DONTNEED = 4
const MADVISE = { args: ['ptr', 'usize', 'i32'], returns: 'i32' } as const
/** Smaller mappings are not worth a call. */
const MAPPING_BYTES_MIN = 1024 * 1024
const HEAD = /^([0-9a-f]+)-([0-9a-f]+) (r-xp|r--p) [0-9a-f]+ \S+ \d+ +\//

/** `line`: as /proc/PID/maps has it. */
type Mapping = { readonly line: string; readonly address: number; readonly byteCount: number }

/**
 * The mappings of /proc/PID/smaps that stand on disk as they are in memory: read-only, of a file, and without a page of
 * the process's own, as relocation leaves them. Others would lose what they hold.
 */
export function cleanMappings(smaps: string): Mapping[] {
  const clean: Mapping[] = []
  for (const block of smaps.split(/\n(?=[0-9a-f]+-[0-9a-f]+ )/)) {
    const [line = ''] = block.split('\n', 1)
    const [, from = '', to = ''] = HEAD.exec(line) ?? []
    if (from === '' || !/^Anonymous: +0 kB$/m.test(block)) continue
    const address = Number.parseInt(from, 16)
    const byteCount = Number.parseInt(to, 16) - address
    if (byteCount >= MAPPING_BYTES_MIN) clean.push({ line, address, byteCount })
  }
  return clean
}

/**
 * Collects the garbage of the start, and gives back the pages of program files, then and every `everyMs`. Returns what
 * ends it. Where the system has no such call, nothing happens.
 */
export function giveBackPages(everyMs: number): () => void {
  Bun.gc(true)
  const library = process.platform === 'linux' ? cLibrary({ madvise: MADVISE }) : null
  if (library === null) return () => {}
  const mappings = cleanMappings(readFileSync('/proc/self/smaps', 'utf8'))
  const giveBack = (): void => {
    // A mapping that ended since then may have left its place to another one.
    const standing = new Set(readFileSync('/proc/self/maps', 'utf8').split('\n'))
    // A pointer of bun:ffi is the number of an address.
    for (const { line, address, byteCount } of mappings)
      if (standing.has(line)) library.symbols.madvise(address as Pointer, byteCount, MADV_DONTNEED)
  }
  giveBack()
  const timer = setInterval(giveBack, everyMs)
  return () => {
    clearInterval(timer)
    library.close()
  }
}

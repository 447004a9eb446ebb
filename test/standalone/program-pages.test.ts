// What is given back of the memory of a start.
import { type Pointer, toArrayBuffer } from 'bun:ffi'
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { cleanMappings, giveBackPages } from '../../apps/standalone/program-pages.ts'
import { until } from '../support/until.ts'

const mapping = (head: string, anonymousKb: number): string =>
  `${head}\nSize:               2048 kB\nRss:                1024 kB\nAnonymous:             ${anonymousKb} kB\nVmFlags: rd mr\n`

test('only what stands on disk as it is in memory is given back', () => {
  const smaps = [
    mapping('7f0000000000-7f0000200000 r-xp 00001000 fe:00 4711                       /usr/lib/engine.so', 0),
    mapping('7f0000200000-7f0000400000 r--p 00201000 fe:00 4711                       /usr/lib/engine.so', 12),
    mapping('7f0000400000-7f0000600000 rw-p 00401000 fe:00 4711                       /usr/lib/engine.so', 0),
    mapping('7f0000600000-7f0000800000 r--s 00000000 fe:00 4712                       /var/lib/site/bus.sqlite-shm', 0),
    mapping('7f0000800000-7f0000801000 r-xp 00601000 fe:00 4711                       /usr/lib/engine.so', 0),
    mapping('7f0000a00000-7f0000c00000 rw-p 00000000 00:00 0 ', 1024),
    mapping('7f0000c00000-7f0000e00000 r-xp 00000000 00:00 0                          [vdso]', 0),
    mapping('00200000-00400000 r--p 00000000 fe:00 4713                               /usr/bin/standalone', 0),
  ]
  const lineOf = (at: number): string => smaps[at]?.split('\n')[0] ?? ''
  expect(cleanMappings(smaps.join(''))).toEqual([
    { line: lineOf(0), address: 0x7f0000000000, byteCount: 0x200000 },
    { line: lineOf(7), address: 0x200000, byteCount: 0x200000 },
  ])
})

const fileKb = (): number => Number(/^RssFile:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))![1])

/** Reads of each page of these mappings. */
function touch(mappings: ReturnType<typeof cleanMappings>): void {
  for (const { address, byteCount } of mappings) {
    const bytes = new Uint8Array(toArrayBuffer(address as Pointer, 0, byteCount))
    for (let at = 0; at < bytes.length; at += 4096) bytes.at(at)
  }
}

test('a process is smaller each time that it has given back, and goes on', async () => {
  const before = fileKb()
  const end = giveBackPages(10)
  try {
    expect(fileKb()).toBeLessThan(before)
    const program = cleanMappings(readFileSync('/proc/self/smaps', 'utf8'))
    expect(program.length).toBeGreaterThan(0)
    // Each page of it is touched anew, as by work that it was not for a while.
    touch(program)
    const touched = fileKb()
    expect(touched).toBeGreaterThan(before)
    await until('they are given back again', () => fileKb() < touched / 2)
  } finally {
    end()
  }
})

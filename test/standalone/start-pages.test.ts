// What is given back of the memory of a start.
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { cleanMappings, giveBackStartPages } from '../../apps/standalone/start-pages.ts'

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
  expect(cleanMappings(smaps.join(''))).toEqual([
    { address: 0x7f0000000000, byteCount: 0x200000 },
    { address: 0x200000, byteCount: 0x200000 },
  ])
})

test('a process is smaller when it has given back, and goes on', () => {
  const fileKb = (): number => Number(/^RssFile:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))![1])
  const before = fileKb()
  giveBackStartPages()
  expect(fileKb()).toBeLessThan(before)
  expect(cleanMappings(readFileSync('/proc/self/smaps', 'utf8')).length).toBeGreaterThan(0)
})

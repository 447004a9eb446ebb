// A disk that is full: a file system of its own that is small, in a name space of its own (`unshare`).
import { closeSync, openSync, writeSync } from 'node:fs'

export const HAS_NAME_SPACES =
  Bun.which('unshare') !== null && Bun.spawnSync(['unshare', '-rm', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']).success

/** The command on a file system of so many MiB at `dir`, which nobody else sees. */
export const onSmallDisk = (dir: string, mib: number, command: readonly string[]): string[] => [
  'unshare',
  '-rm',
  'sh',
  '-c',
  `mkdir -p "$0" && mount -t tmpfs -o size=${mib}m tmpfs "$0" && exec "$@"`,
  dir,
  ...command,
]

/** Writes a file until there is no room. */
export function fillDisk(path: string): void {
  const file = openSync(path, 'w')
  try {
    for (const size of [1 << 20, 4096, 1]) {
      const bytes = Buffer.alloc(size)
      try {
        for (;;) writeSync(file, bytes)
      } catch (error) {
        if (!String(error).includes('ENOSPC')) throw error
      }
    }
  } finally {
    closeSync(file)
  }
}

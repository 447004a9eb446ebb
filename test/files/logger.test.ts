import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HAS_NAME_SPACES, onSmallDisk } from '../support/full-disk.ts'

test.skipIf(!HAS_NAME_SPACES)(
  'a log on a full disk ends no process: its lines wait, and are written with room',
  async () => {
    const directory = mkdtempSync(join(tmpdir(), 'svc-log-'))
    try {
      const child = Bun.spawn(
        onSmallDisk(directory, 4, [process.execPath, join(import.meta.dir, 'full-disk-log.ts')]),
        {
          env: { ...process.env, TMPDIR: directory },
          stdout: 'pipe',
          stderr: 'pipe',
        },
      )
      const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
      expect([await child.exited, err]).toEqual([0, ''])
      expect(JSON.parse(out)).toBe(100)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  },
)

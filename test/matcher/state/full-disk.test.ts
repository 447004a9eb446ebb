import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HAS_NAME_SPACES, onSmallDisk } from '../../support/full-disk.ts'

test.skipIf(!HAS_NAME_SPACES)(
  '[MAT-160] [MAT-183] [MAT-184] the disk is full within a re-match: what was holds and is told, reports are refused; with room it goes on, and tells each host once',
  async () => {
    const dir = mkdtempSync(join(tmpdir(), 'matcher-full-'))
    try {
      const script = [process.execPath, join(import.meta.dir, 'full-disk-state.ts')]
      const child = Bun.spawn(onSmallDisk(dir, 24, script), {
        env: { ...process.env, TMPDIR: dir },
        stdout: 'pipe',
        stderr: 'pipe',
      })
      const [out, err, code] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
        child.exited,
      ])
      expect([code, err]).toEqual([0, ''])
      expect(JSON.parse(out)).toEqual({
        delivered: 400,
        full: {
          errors: ['SQLiteError: database or disk is full'],
          refused: expect.stringContaining('database or disk is full'),
          packages: ['bash', 'curl', 'zlib'],
          summary: 200,
          waiting: 0,
          rematch: 'running',
        },
        hostsTold: 200,
        toldOfAHost: ['finding.opened,finding.updated'],
        seqs: 0,
        summary: 400,
        report: 'kept',
        rematch: 'idle',
      })
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  },
  60_000,
)

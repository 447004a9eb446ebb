import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FileBusWriter } from '../../apps/collector/bus/file-bus-writer.ts'
import { newTurns } from '../../apps/collector/store/write-turns.ts'
import { ShardPool } from '../../apps/collector/worker/evaluation/shard-pool.ts'
import { FLAP_DEFAULTS } from '../../core/alerting/evaluate/flapping.ts'
import { limits } from '../../core/limits.ts'

test('an evaluation thread that dies is told to its process, and to whoever waits for it or asks it later', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-shard-pool-'))
  const busPath = join(directory, 'bus.sqlite')
  const writer = new FileBusWriter({
    path: busPath,
    bytesMax: 1024 * 1024,
    ageMaxMs: 3_600_000,
    groupWaitMs: 1,
    nowMs: Date.now,
    onPublished: () => {},
    onError: error => {
      throw error
    },
  })
  const failures: string[] = []
  const pool = await ShardPool.start({
    threadUrl: new URL('./dying-shard-thread.ts', import.meta.url),
    threads: 2,
    config: {
      storage: {
        kind: 'file',
        busPath,
        dataDir: directory,
        snapshotDir: join(directory, 'snapshots'),
        turns: newTurns(),
      },
      settings: {
        noDataAfterMs: limits.noDataAfterMs,
        flapping: FLAP_DEFAULTS,
      },
      snapshotIntervalMs: 30_000,
      sweepIntervalMs: 10_000,
      presenceGraceMinMs: 60_000,
    },
    rules: [],
    rulesSince: 0,
    silences: [],
    attributes: [],
    tombstones: [],
    onMessage: () => {},
    onFailure: error => void failures.push(error.message),
  })
  try {
    expect((await pool.status()).length).toBe(2)
    const errors = await Promise.all(
      [pool.setSilences([]), pool.status()].map(asked =>
        asked.then(
          () => null,
          (error: Error) => error.message,
        ),
      ),
    )
    for (const error of errors) expect(error).toMatch(/^evaluation thread \d failed: out of order$/)
    expect(failures.length).toBeGreaterThan(0)
    await expect(pool.online('11111111-1111-4111-8111-111111111111')).rejects.toThrow(
      /^evaluation thread \d failed: out of order$/,
    )
    // Not without a word: the shards of that thread are not saved.
    await expect(pool.stop()).rejects.toThrow(/^evaluation thread \d failed: out of order$/)
  } finally {
    await writer.close()
    rmSync(directory, { recursive: true, force: true })
  }
})

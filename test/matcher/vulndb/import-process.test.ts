// The process of an import (MAT-073): its priority, its end, and what a tracker becomes on the disk.
import { expect, test } from 'bun:test'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BuildJob, WorkerMessage } from '../../../apps/matcher/vulndb/import/job.ts'
import { debianTracker } from '../../../bench/security/feeds.ts'
import { until } from '../../support/until.ts'
import { importCommandOfTests, scratchFolder } from './support.ts'

/** A tenth of what Debian's tracker has; the shares of the whole file and of memory that it may take follow. */
const VULNERABILITIES = 4_500
const SHARE = VULNERABILITIES / 45_000
const FILE_BYTES_MAX = 60e6 * SHARE
const MEMORY_BYTES_MAX = 600e6

/** Field 19 of /proc/PID/stat. */
const niceOf = (pid: number): number => Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[16])

test('[MAT-073] an import is a process of its own, at the lowest priority, whose memory is gone with it', async () => {
  using scratch = scratchFolder()
  const path = (name: string): string => join(scratch.path, name)
  writeFileSync(path('tracker.json'), debianTracker(VULNERABILITIES))
  const part = {
    part: '',
    url: '',
    path: path('tracker.json'),
    fileName: 'tracker.json',
    etag: '',
    lastModified: '',
    sha256: '',
  }
  const job: BuildJob = {
    kind: 'build',
    inputs: [{ source: 'debian', parts: [part], replaces: 'all' }],
    outFile: path('built.sqlite'),
    stagingFile: path('staging.sqlite'),
    previousFile: null,
    version: 2026112201,
    nowMs: Date.UTC(2026, 10, 22, 12),
    acceptShrink: false,
  }
  const child = Bun.spawn([...importCommandOfTests], { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' })
  await until('its priority', () => niceOf(child.pid) === 19)
  child.stdin.write(`${JSON.stringify(job)}\n`)
  child.stdin.flush()
  const lines = (await new Response(child.stdout).text()).trim().split('\n')
  expect(await child.exited).toBe(0)
  const messages = lines.map(line => JSON.parse(line) as WorkerMessage)
  expect(messages.at(-1)).toMatchObject({ outcome: { kind: 'build', sources: [{ source: 'debian', fault: null }] } })
  expect(statSync(job.outFile).size).toBeLessThan(FILE_BYTES_MAX)
  expect(child.resourceUsage()?.maxRSS).toBeLessThan(MEMORY_BYTES_MAX)
})

test('[MAT-073] an import that nobody waits for ends', async () => {
  const child = Bun.spawn([...importCommandOfTests], { stdin: 'pipe', stdout: 'ignore', stderr: 'inherit' })
  await until('its priority', () => niceOf(child.pid) === 19)
  child.stdin.end()
  await child.exited
})

// A worker whose Redis comes after it: what it says meanwhile, and what a reload does then.
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../apps/standalone/ports.ts'
import { commandOf } from '../support/executable.ts'
import { startTestRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(90_000)
const directory = mkdtempSync(join(tmpdir(), 'svc-late-redis-'))
const redis = await startTestRedis()
afterAll(async () => {
  await redis.close()
  rmSync(directory, { recursive: true, force: true })
})

test('[OPS-020] a worker that waits for Redis answers /healthz, names redis at /readyz, and a SIGHUP meanwhile is a reload later', async () => {
  await redis.kill()
  const ops = `http://127.0.0.1:${freePort()}`
  const child = Bun.spawn([...commandOf('collector-worker')], {
    env: {
      ...process.env,
      SVC_DATA_DIR: join(directory, 'data'),
      SVC_OPS_LISTEN: new URL(ops).host,
      SVC_ADMIN_LISTEN: '127.0.0.1:0',
      SVC_ADMIN_TOKEN: 'admin-token',
      SVC_BUS_KIND: 'redis',
      SVC_REDIS_URL: redis.url,
    },
    stdout: 'pipe',
    stderr: 'inherit',
  })
  let log = ''
  const reading = (async () => {
    const decoder = new TextDecoder()
    for await (const chunk of child.stdout) log += decoder.decode(chunk, { stream: true })
  })()
  try {
    await until('the worker to wait', () => log.includes('cannot reach Redis') || child.exitCode !== null)
    expect((await fetch(`${ops}/healthz`)).status).toBe(200)
    const readiness = await fetch(`${ops}/readyz`)
    expect(readiness.status).toBe(503)
    expect(((await readiness.json()) as { failing: string[] }).failing).toContain('redis')
    expect((await fetch(`${ops}/metrics`)).status).toBe(200)
    child.kill('SIGHUP')
    await redis.start()
    await until('the reload', () => log.includes('are read again') || child.exitCode !== null)
    expect(child.exitCode).toBeNull()
    expect(log.indexOf('"msg":"ready"')).toBeLessThan(log.indexOf('are read again'))
  } finally {
    child.kill('SIGTERM')
  }
  expect(await child.exited).toBe(0)
  await reading
})

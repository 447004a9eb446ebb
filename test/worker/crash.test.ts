// The executable collector-worker, killed with -9 in the middle of its work: what the hub hears is what it hears
// without a kill.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FileBusWriter } from '../../apps/collector/bus/file-bus-writer.ts'
import { collectorPaths } from '../../apps/collector/config.ts'
import { hubToken, id, ScriptedHub } from '../ingest/scripted-hub.ts'
import { entryOf } from '../support/clickhouse.ts'
import { commandOf } from '../support/executable.ts'
import { until } from '../support/until.ts'
import { adminToken, type Json, ruleRecord, serverOf } from './rig.ts'

setDefaultTimeout(120_000)
const company = id('crash company')
const hub = new ScriptedHub()
const directories: string[] = []
const children: Worker[] = []

beforeAll(() => {
  hub.feeds.rules!.push(ruleRecord(company))
})
afterAll(async () => {
  for (const child of children) await child.kill()
  await hub.stop()
  for (const directory of directories) rmSync(directory, { recursive: true, force: true })
})

class Worker {
  output = ''
  private constructor(
    private readonly child: Bun.Subprocess<'ignore', 'pipe', 'pipe'>,
    readonly adminUrl: string,
    readonly opsUrl: string,
  ) {}

  static async start(dataDir: string, keys: Record<string, string> = {}): Promise<Worker> {
    mkdirSync(dataDir, { recursive: true })
    const [config, readyFile] = [join(dataDir, 'worker.yaml'), join(dataDir, 'ready.json')]
    rmSync(readyFile, { force: true })
    writeFileSync(
      config,
      [
        `data_dir: ${dataDir}`,
        `hub: { url: "${hub.url}", token: "${hubToken}" }`,
        `admin: { listen: 127.0.0.1:0, token: ${adminToken} }`,
        'ops: { listen: 127.0.0.1:0 }',
        `alerting: { flap_transitions: 0, rules_state_interval: ${keys.rules_state_interval ?? '200ms'} }`,
      ].join('\n'),
    )
    const child = Bun.spawn([...commandOf('collector-worker'), '--config', config, '--ready-file', readyFile], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    let output = ''
    const collect = async (stream: ReadableStream<Uint8Array>) => {
      const decoder = new TextDecoder()
      for await (const chunk of stream) output += decoder.decode(chunk, { stream: true })
    }
    const collected = Promise.all([collect(child.stdout), collect(child.stderr)])
    await until(
      'the worker',
      async () => {
        if (child.exitCode !== null) {
          await collected
          throw new Error(`the worker ended with ${child.exitCode}:\n${output}`)
        }
        return existsSync(readyFile)
      },
      60_000,
    )
    const ready = JSON.parse(readFileSync(readyFile, 'utf8')) as { admin_url: string; ops_url: string }
    const worker = new Worker(child, ready.admin_url, ready.ops_url)
    Object.defineProperty(worker, 'output', { get: () => output })
    children.push(worker)
    return worker
  }

  async status(): Promise<Json> {
    const response = await fetch(`${this.adminUrl}/internal/v1/status`, {
      headers: { authorization: `Bearer ${adminToken}` },
    })
    return ((await response.json()) as Json).data
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL')
    await this.child.exited
  }

  /** SIGTERM; resolves to the exit code. */
  stop(): Promise<number> {
    this.child.kill('SIGTERM')
    return this.child.exited
  }
}

function newSite() {
  const directory = mkdtempSync(join(tmpdir(), 'svc-crash-'))
  directories.push(directory)
  mkdirSync(join(directory, 'data'))
  const dataDir = join(directory, 'data')
  const bus = new FileBusWriter({
    path: collectorPaths(dataDir).bus,
    bytesMax: 1024 ** 3,
    ageMaxMs: 3_600_000,
    groupWaitMs: 1,
    nowMs: Date.now,
    onPublished: () => {},
    onError: error => {
      throw error
    },
  })
  return { dataDir, bus }
}

/** What the hub keeps: each event_id once, and of a series only what is newer. */
function heard(serverId: string): string[] {
  const kept: string[] = []
  let seq = 0
  for (const event of hub.taken)
    if (event.server_id === serverId && String(event.type).startsWith('alert.') && Number(event.seq) > seq) {
      seq = Number(event.seq)
      kept.push(String(event.type))
    }
  return kept
}

test('[SNAP-008] [EVT-005] killed again and again under load, the worker tells every opening and every end once, in order', async () => {
  const { dataDir, bus } = newSite()
  const servers = Array.from({ length: 12 }, (_, index) => serverOf(company, `crash ${index}`))
  const rounds = 5
  const startMs = Date.now() - 600_000
  let step = 0
  for (let round = 0; round < rounds; round++) {
    const worker = await Worker.start(dataDir)
    const killAt = 20 + round * 13
    let isDead = false
    for (let count = 0; count < 100; count++, step++) {
      const tsMs = startMs + step * 1000
      await Promise.all(
        servers.map(({ serverId }) =>
          bus.publish(
            serverId,
            entryOf(company, serverId, [{ metric: 'swap_used_percent', points: [[tsMs, step % 2 === 0 ? 90 : 10]] }]),
          ),
        ),
      )
      if (count === killAt) {
        await worker.kill()
        isDead = true
      }
    }
    expect(isDead).toBe(true)
  }
  const worker = await Worker.start(dataDir)
  const total = rounds * 100
  await until(
    'all events',
    async () => {
      const { bus_lag, outbox_depth } = await worker.status()
      return bus_lag === 0 && outbox_depth === 0
    },
    60_000,
  )
  const expected = Array.from({ length: total }, (_, index) => (index % 2 === 0 ? 'alert.opened' : 'alert.resolved'))
  for (const { serverId } of servers) expect(heard(serverId)).toEqual(expected)
  // What was sent twice had the id it had before.
  const ids = new Map<string, string>()
  for (const event of hub.taken) {
    const key = `${event.server_id} ${event.series_key} ${event.seq}`
    expect(ids.get(key) ?? event.event_id).toBe(String(event.event_id))
    ids.set(key, String(event.event_id))
  }
  expect(await worker.stop()).toBe(0)
  await bus.close()
})

test('a snapshot that cannot be read after a crash: the journal gives the open alerts, and a line of the log says so', async () => {
  const { dataDir, bus } = newSite()
  const server = serverOf(company, 'damaged')
  const send = (value: number) => {
    const entry = entryOf(company, server.serverId, [{ metric: 'swap_used_percent', points: [[Date.now(), value]] }])
    return bus.publish(server.serverId, entry)
  }
  const first = await Worker.start(dataDir, { rules_state_interval: '1h' })
  await send(90)
  await until('the alert', () => heard(server.serverId).length === 1)
  await first.kill()
  const snapshots = join(dataDir, 'alerting', 'snapshots')
  for (let shard = 0; shard < 64; shard++)
    writeFileSync(join(snapshots, `shard-${String(shard).padStart(2, '0')}.snapshot`), 'damaged')
  const second = await Worker.start(dataDir)
  expect(second.output).toContain('a snapshot cannot be used; the journal gives the open alerts')
  const text = await (await fetch(`${second.opsUrl}/metrics`)).text()
  expect(text).toContain('svc_snapshot_errors_total 64')
  await until('the alert to be open', async () => (await second.status()).rules.firing === 1)
  await send(91)
  await send(10)
  await until('its end', () => heard(server.serverId).length >= 2)
  expect(heard(server.serverId)).toEqual(['alert.opened', 'alert.resolved'])
  expect(await second.stop()).toBe(0)
  await bus.close()
})

test('[SYNC-013] [SYNC-012] killed, and started while the hub is away: the last rules run, and the alerts come when it is back', async () => {
  const { dataDir, bus } = newSite()
  const server = serverOf(company, 'hub away')
  const first = await Worker.start(dataDir)
  await until('the rules to be kept', async () => existsSync(join(dataDir, 'feeds', 'rules.json')))
  await first.kill()
  await hub.stop()
  const second = await Worker.start(dataDir)
  expect((await second.status()).rules.loaded).toBe(1)
  const entry = entryOf(company, server.serverId, [{ metric: 'swap_used_percent', points: [[Date.now(), 90]] }])
  await bus.publish(server.serverId, entry)
  await until('the event in the outbox', async () => (await second.status()).outbox_depth === 1)
  hub.restart()
  await until('the alert', () => heard(server.serverId).length === 1, 30_000)
  expect(await second.stop()).toBe(0)
  await bus.close()
})

test('a second worker on the same directory is refused in words, and the first goes on', async () => {
  const { dataDir, bus } = newSite()
  const first = await Worker.start(dataDir)
  await expect(Worker.start(dataDir)).rejects.toThrow(
    /ended with 1:\ncannot lock .*worker\.lock: another collector-worker runs on this directory/,
  )
  expect((await first.status()).role).toBe('worker')
  await first.kill()
  const next = await Worker.start(dataDir)
  expect(await next.stop()).toBe(0)
  await bus.close()
})

test('without a hub of any time and without rules on disk the worker runs, and is not ready', async () => {
  const { dataDir, bus } = newSite()
  await hub.stop()
  const worker = await Worker.start(dataDir)
  const response = await fetch(`${worker.opsUrl}/readyz`)
  expect([response.status, await response.json()]).toEqual([503, { ready: false, failing: ['rules'] }])
  hub.restart()
  await worker.kill()
  await bus.close()
})

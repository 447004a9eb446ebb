// SIGKILL at random instants of ingest, database switch, re-match and delivery: what the hub holds in the end is what
// it holds after a run that nobody disturbed.
import { expect, test } from 'bun:test'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SecurityEvent } from '../../../core/matching/finding-event.ts'
import { randomFrom } from '../../support/random.ts'

const KILLS = Number(process.env.SVC_KILLS ?? 25)
/** More than the processes that are killed get done. */
const STEPS = KILLS * 40
/** A process is killed at most this long after it is ready. */
const LIFE_MS = 40

type Finding = { readonly state: string; readonly seq: number }

/** Takes events as the hub does: each once, in the order of seq by host, findings by the table of document 3. */
class ScriptedHub {
  readonly findings = new Map<string, Finding>()
  readonly faults: string[] = []
  readonly #contents = new Map<string, string>()
  readonly #seqs = new Map<string, number>()
  readonly #server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: async request => {
      const events = (await request.json()) as readonly SecurityEvent[]
      for (const event of events) this.#apply(event)
      return new Response('{}')
    },
  })

  get url(): string {
    return this.#server.url.href
  }

  stop(): Promise<void> {
    return this.#server.stop(true)
  }

  #apply(event: SecurityEvent): void {
    const content = JSON.stringify(event)
    const known = this.#contents.get(event.event_id)
    if (known !== undefined) {
      if (known !== content) this.faults.push(`two contents of ${event.event_id}: ${known} and ${content}`)
      return
    }
    this.#contents.set(event.event_id, content)
    const last = this.#seqs.get(event.host_id) ?? 0
    if (event.seq <= last) this.faults.push(`seq ${event.seq} of ${event.host_id} after ${last}`)
    this.#seqs.set(event.host_id, event.seq)
    if (event.type === 'server.scanned') return
    const key = event.payload.finding_key
    const isOpen = this.findings.get(key)?.state.startsWith('open') ?? false
    if (event.type === 'finding.resolved') {
      if (!isOpen) this.faults.push(`${key} was resolved and not open`)
      this.findings.set(key, { state: 'resolved', seq: event.seq })
      return
    }
    if (isOpen !== (event.type === 'finding.updated')) this.faults.push(`${event.type} of ${key}, open: ${isOpen}`)
    const { first_seen_at: _seen, db_version: _version, ...columns } = event.payload
    this.findings.set(key, { state: `open ${JSON.stringify(columns)}`, seq: event.seq })
  }

  /** Key and state of every finding that was ever told of. */
  held(): string[] {
    return [...this.findings].map(([key, { state }]) => `${key} ${state}`).sort()
  }
}

/** Runs the steps, killed as often as `lives` has lengths, and then to the end. Returns what the hub holds. */
async function run(
  seed: number,
  lives: readonly number[],
): Promise<{ held: string[]; deaths: number; faults: string[] }> {
  const dir = mkdtempSync(join(tmpdir(), 'matcher-kills-'))
  const hub = new ScriptedHub()
  let next = 0
  let deaths = 0
  const live = async (lifeMs: number | null): Promise<boolean> => {
    const script = join(import.meta.dir, 'killed-state.ts')
    const child = Bun.spawn(['bun', script, dir, hub.url, String(seed), String(next), String(STEPS)], {
      stdout: 'pipe',
      stderr: 'inherit',
    })
    let isEnded = false
    let rest = ''
    for await (const chunk of child.stdout) {
      const lines = (rest + new TextDecoder().decode(chunk)).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        if (line === 'ready' && lifeMs !== null) setTimeout(() => child.kill('SIGKILL'), lifeMs)
        if (line.startsWith('done ')) next = Number(line.slice(5)) + 1
        if (line === 'end') isEnded = true
      }
    }
    const code = await child.exited
    if (!isEnded && child.signalCode !== 'SIGKILL') throw new Error(`the matcher ended by itself with ${code}`)
    if (!isEnded) deaths++
    return isEnded
  }
  for (const lifeMs of lives) if (await live(lifeMs)) break
  while (!(await live(null)));
  await hub.stop()
  return { held: hub.held(), deaths, faults: hub.faults }
}

test('[MAT-172] [MAT-160] [MAT-183] killed at any point, the hub ends with the same findings, and nothing is told twice', async () => {
  const seed = Number(process.env.SVC_FUZZ_SEED ?? Date.now() % 1_000_000)
  console.log(`seed ${seed}`)
  const random = randomFrom(seed)
  const quiet = await run(seed, [])
  const lives = Array.from({ length: KILLS }, () => random() * LIFE_MS)
  const killed = await run(seed, lives)
  expect(quiet.faults).toEqual([])
  expect(killed.faults).toEqual([])
  expect(quiet.held.length).toBeGreaterThan(100)
  expect(killed.held.filter(text => text.includes(' open '))).toEqual(
    quiet.held.filter(text => text.includes(' open ')),
  )
  expect(killed.deaths).toBeGreaterThan(KILLS / 2)
}, 300_000)

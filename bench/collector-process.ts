// The collector of collector-site.ts as a process of its own, with its agents' tokens, for benchmarks of the whole
// path.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { allocatorSetting } from '../apps/process/allocator-setting.ts'
import { fleetProcess } from './fleet.ts'

type Ready = { readonly agent_url: string; readonly admin_url: string; readonly pid: number }

/**
 * Starts a collector with so many agents and these settings beside its own; resolves once it answers. `stop` drains it
 * and removes what it kept.
 */
export async function startCollectorProcess(agents: number, settings: Readonly<Record<string, string>> = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'svc-bench-site-'))
  const [readyPath, answersPath] = [join(dir, 'ready.json'), join(dir, 'answers')]
  const command = ['bun', join(import.meta.dir, 'collector-site.ts'), dir, String(agents), JSON.stringify(settings)]
  const open = async () => {
    const openedAt = performance.now()
    let answersSeconds = 0
    for (const path of [readyPath, answersPath]) rmSync(path, { force: true })
    const child = Bun.spawn(command, {
      env: { [allocatorSetting.name]: allocatorSetting.value, ...process.env },
      stdout: 'inherit',
      stderr: 'inherit',
    })
    while (!(await Bun.file(readyPath).exists())) {
      if (answersSeconds === 0 && (await Bun.file(answersPath).exists()))
        answersSeconds = (performance.now() - openedAt) / 1000
      await Bun.sleep(50)
    }
    const ready: Ready = await Bun.file(readyPath).json()
    return { child, ready, answersSeconds }
  }
  let { child, ready, answersSeconds } = await open()
  const status = async (): Promise<{ bus_lag: number }> => {
    const answer = await fetch(`${ready.admin_url}/internal/v1/status`, { headers: { authorization: 'Bearer bench' } })
    const read: { data: { bus_lag: number } } = JSON.parse(await answer.text())
    return read.data
  }
  return {
    get pid(): number {
      return ready.pid
    },
    get agentUrl(): string {
      return ready.agent_url
    },
    /** The tokens of the agents that `load` sends for. */
    tokensPath: join(dir, 'tokens.json'),
    /** Sends what these options of fleet.ts say; resolves to what the fleet counted. */
    load: (...options: readonly string[]) => fleetProcess(ready.agent_url, join(dir, 'tokens.json'), ...options),
    /** Resolves once everything acknowledged is evaluated, and stored or held where queries see it. */
    untilDrained: async (): Promise<void> => {
      while ((await status()).bus_lag > 0) await Bun.sleep(100)
    },
    /** How long the last start took until agents were answered. */
    get answersSeconds(): number {
      return answersSeconds
    },
    /** Kills it as a crash does, and starts it again on what it kept; resolves once all of it has started. */
    restart: async (): Promise<void> => {
      child.kill('SIGKILL')
      await child.exited
      ;({ child, ready, answersSeconds } = await open())
    },
    stop: async (): Promise<void> => {
      child.kill('SIGTERM')
      await child.exited
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

// The collector of collector-site.ts as a process of its own, with its agents' tokens, for benchmarks of the whole
// path.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { allocatorSetting } from '../apps/process/allocator-setting.ts'
import { fleetProcess } from './fleet.ts'

/** Starts a collector with so many agents; resolves once it answers. `stop` drains it and removes what it kept. */
export async function startCollectorProcess(agents: number) {
  const dir = mkdtempSync(join(tmpdir(), 'svc-bench-site-'))
  const child = Bun.spawn(['bun', join(import.meta.dir, 'collector-site.ts'), dir, String(agents)], {
    env: { [allocatorSetting.name]: allocatorSetting.value, ...process.env },
    stdout: 'inherit',
    stderr: 'inherit',
  })
  const readyPath = join(dir, 'ready.json')
  while (!(await Bun.file(readyPath).exists())) await Bun.sleep(50)
  const ready: { agent_url: string; admin_url: string; pid: number } = await Bun.file(readyPath).json()
  const lag = async (): Promise<number> => {
    const answer = await fetch(`${ready.admin_url}/internal/v1/status`, { headers: { authorization: 'Bearer bench' } })
    const status: { data: { bus_lag: number } } = JSON.parse(await answer.text())
    return status.data.bus_lag
  }
  return {
    pid: ready.pid,
    /** Sends what these options of fleet.ts say; resolves to what the fleet counted. */
    load: (...options: readonly string[]) => fleetProcess(ready.agent_url, join(dir, 'tokens.json'), ...options),
    /** Resolves once everything acknowledged is evaluated, and stored or held where queries see it. */
    untilDrained: async (): Promise<void> => {
      while ((await lag()) > 0) await Bun.sleep(100)
    },
    stop: async (): Promise<void> => {
      child.kill('SIGTERM')
      await child.exited
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

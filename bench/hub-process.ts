// A hub as a process of its own, as benches measure it.
import { existsSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'

type HubOptions = {
  readonly databaseUrl: string
  /** Where the hub writes its address when it is ready. */
  readonly readyFile: string
  /** Settings besides. */
  readonly env?: Readonly<Record<string, string>>
  /** The checkout whose hub is started, when that is not this one. */
  readonly checkout?: string
}

export type HubProcess = { readonly pid: number; readonly url: string; stop(): Promise<void> }

/** Starts a hub and waits until it is ready. It may still be at what its clock starts first (`untilCalm`). */
export async function startHubProcess({ databaseUrl, readyFile, env, checkout }: HubOptions): Promise<HubProcess> {
  rmSync(readyFile, { force: true })
  const main = join(resolve(checkout ?? join(import.meta.dir, '..')), 'apps/hub/main.ts')
  const child = Bun.spawn(['bun', main, 'serve', '--listen', '127.0.0.1:0', '--ready-file', readyFile], {
    env: { ...process.env, SVC_DATABASE_URL: databaseUrl, SVC_LOG_LEVEL: 'warn', ...env },
    stdout: 'ignore',
    stderr: 'inherit',
  })
  while (!existsSync(readyFile)) {
    if (child.exitCode !== null) throw new Error('the hub does not start')
    await Bun.sleep(20)
  }
  const { hub_url: url }: { hub_url: string } = await Bun.file(readyFile).json()
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    await child.exited
  }
  return { pid: child.pid, url, stop }
}

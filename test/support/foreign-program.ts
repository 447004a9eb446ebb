// Programs that are not ours, as tests drive them.
import { until } from './until.ts'

const withSystemPrograms = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` }

export type ForeignProgram = { readonly port: number; stop(): Promise<void> }

/** Starts a program that listens at `port` of 127.0.0.1, and waits until it does. */
export async function startProgram(command: readonly string[], port: number): Promise<ForeignProgram> {
  const child = Bun.spawn([...command], { stdout: 'ignore', stderr: 'ignore', env: withSystemPrograms })
  await until(`${command[0]}`, () =>
    Bun.connect({ hostname: '127.0.0.1', port, socket: { data: () => {} } }).then(
      socket => {
        socket.end()
        return true
      },
      () => false,
    ),
  )
  return {
    port,
    async stop() {
      child.kill('SIGTERM')
      await child.exited
    },
  }
}

/** What a program says when it has run: its exit code and what it wrote. */
export function runProgram(command: readonly string[]): { readonly code: number; readonly output: string } {
  const ran = Bun.spawnSync([...command], { stdout: 'pipe', stderr: 'pipe', env: withSystemPrograms })
  return { code: ran.exitCode, output: `${ran.stdout}${ran.stderr}` }
}

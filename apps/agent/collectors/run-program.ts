// Programs of the system that the agent asks: killed when they take too long, and one that is not there is no fault.

type Ran = {
  readonly text: string
  /** Its exit status. */
  readonly status: number
}

/** What a program printed; `late` where it was killed after `timeoutMs`, null where it could not be started. */
export async function runProgram(command: readonly string[], timeoutMs: number): Promise<Ran | 'late' | null> {
  try {
    const child = Bun.spawn([...command], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'ignore',
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
    })
    const [text, status] = await Promise.all([new Response(child.stdout).text(), child.exited])
    return child.signalCode === null ? { text, status } : 'late'
  } catch {
    return null
  }
}

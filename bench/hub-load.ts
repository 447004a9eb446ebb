// Requests to a hub at a steady pace, and the CPU time that hub and database take for them.
import { readdirSync, readFileSync } from 'node:fs'
import postgres from 'postgres'
import { until } from '../test/support/until.ts'

const TICKS_PER_SECOND = 100

/** The fields of /proc/PID/stat from the third on. */
const statOf = (pid: number): string[] => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []

/** Seconds of CPU that a process has used, and those of its children, living and gone. */
export function cpuSeconds(pid: number): number {
  const seconds = (fields: readonly string[], indices: readonly number[]) =>
    indices.reduce((sum, index) => sum + Number(fields[index] ?? 0), 0) / TICKS_PER_SECOND
  let total = seconds(statOf(pid), [11, 12, 13, 14])
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    try {
      const fields = statOf(Number(entry))
      if (Number(fields[1]) === pid) total += seconds(fields, [11, 12])
    } catch {
      // It ended between the listing and the reading.
    }
  }
  return total
}

export const residentMb = (pid: number): number =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024)

export const quantile = (sorted: readonly number[], q: number): number =>
  Math.round((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0) * 10) / 10

const CALM_MAX_MS = 120_000

/** The clock of a hub looks every five seconds for what is due. */
const FIRST_LOOKS_MS = 11_000

/** Waits until a hub that has just become ready has run all that its clock starts first. */
export async function untilCalm(databaseUrl: string): Promise<void> {
  await Bun.sleep(FIRST_LOOKS_MS)
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} })
  const hasRun = async () => {
    const waiting = await sql`
      select 1 from pgboss.job where name = 'schedule' and state in ('created', 'retry', 'active') limit 1`
    return waiting.length === 0
  }
  await until('the first tasks of the hub to be over', hasRun, CALM_MAX_MS)
  await sql.end()
}

type Call = (method: string, path: string, body?: unknown) => Promise<unknown>

/** Calls with a token, for the company of its user or another; throws for every answer that is no success. */
export const caller =
  (url: string, token: string, companyId?: string): Call =>
  async (method, path, body) => {
    const response = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        ...(companyId === undefined ? {} : { 'x-company-id': companyId }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path} answers ${response.status}: ${text.slice(0, 200)}`)
    return JSON.parse(text)
  }

/**
 * Calls `paths` in turn, `perSecond` of them, for as long as `isOver` says no. A latency counts from the moment at
 * which the request was due, so that a hub that stalls is charged for what piled up. Returns them sorted, in ms.
 */
export async function atPace(
  call: Call,
  paths: readonly string[],
  perSecond: number,
  isOver: (sent: number) => boolean,
): Promise<number[]> {
  const startedMs = performance.now()
  const latenciesMs: number[] = []
  const open: Promise<void>[] = []
  for (let sent = 0; !isOver(sent); sent++) {
    const dueMs = startedMs + (sent * 1000) / perSecond
    const waitMs = dueMs - performance.now()
    if (waitMs > 0) await Bun.sleep(waitMs)
    const path = paths[sent % paths.length] ?? ''
    open.push(call('GET', path).then(() => void latenciesMs.push(performance.now() - Math.max(dueMs, startedMs))))
  }
  await Promise.all(open)
  return latenciesMs.sort((a, b) => a - b)
}

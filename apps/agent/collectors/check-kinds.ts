// The five kinds of check, each one attempt within its timeout (decision G-62). What cannot be done counts as failed.
import { connect as connectTcp, isIP } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { type Check, parseTarget } from '../../../core/agent/check.ts'
import { isPortOpen } from '../../../core/agent/proc-net.ts'
import type { Sample } from '../../../core/agent/requests-of-cycles.ts'
import { DAY_MS } from '../../../core/limits.ts'
import { targetLabel } from '../../../core/series/labels.ts'
import { proxyOf } from '../transport/collector-address.ts'
import type { HostFiles } from './host-files.ts'
import { type AskAddresses, lookupWithin } from './resolve-name.ts'
import { runProgram } from './run-program.ts'

export type ProbeContext = {
  readonly files: HostFiles
  readonly now: () => number
  /** Whether a unit of the service manager is active. */
  readonly isServiceActive: (name: string, timeoutMs: number) => Promise<boolean>
  /** What the hosts that checks name stand for. */
  readonly askAddresses: AskAddresses
}

type CheckOfType<T extends Check['type']> = Extract<Check, { type: T }>

/** Runs a program of the system; what it printed, or null when it failed, took too long or is not there. */
async function printed(command: readonly string[], timeoutMs: number): Promise<string | null> {
  const ran = await runProgram(command, timeoutMs)
  return ran !== null && ran !== 'late' && ran.status === 0 ? ran.text : null
}

/** Whether what `sc query` prints describes a running service; state 4 is the same in every language. */
export const isScRunning = (text: string): boolean => /^\s*\S+\s*:\s*4\s/m.test(text)

/** Whether systemd calls a unit active, or Windows a service running. Without a service manager nothing is. */
export async function isServiceActive(name: string, timeoutMs: number): Promise<boolean> {
  if (process.platform === 'win32') return isScRunning((await printed(['sc.exe', 'query', name], timeoutMs)) ?? '')
  return (await printed(['systemctl', 'is-active', '--quiet', '--', name], timeoutMs)) !== null
}

async function probeService(check: CheckOfType<'service'>, context: ProbeContext): Promise<Sample[]> {
  const isActive = await context.isServiceActive(check.name, check.timeoutMs)
  return [{ name: 'service_up', labels: { name: check.name }, value: isActive ? 1 : 0 }]
}

function probePort(check: CheckOfType<'port'>, { files }: ProbeContext): Sample[] {
  const tables = [check.proto, `${check.proto}6`].map(name => files.text('proc', `net/${name}`) ?? '')
  const labels = { port: String(check.port), proto: check.proto }
  return [{ name: 'port_up', labels, value: isPortOpen(tables, check.port, check.proto) ? 1 : 0 }]
}

/** Whether a TCP connection comes about in time. */
function canConnect(target: string, timeoutMs: number, ask: AskAddresses): Promise<boolean> {
  const address = parseTarget(target)
  if (!address) return Promise.resolve(false)
  return new Promise(resolve => {
    const socket = connectTcp({ ...address, lookup: lookupWithin(ask, timeoutMs) })
    const finish = (isConnected: boolean) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(isConnected)
    }
    const timer = setTimeout(() => finish(false), timeoutMs)
    socket.once('connect', () => finish(true))
    socket.once('error', () => finish(false))
  })
}

async function probeTcp(check: CheckOfType<'tcp'>, { askAddresses }: ProbeContext): Promise<Sample[]> {
  const startedAt = performance.now()
  const isConnected = await canConnect(check.target, check.timeoutMs, askAddresses)
  const labels = { target: targetLabel(check.target) }
  return [
    { name: 'tcp_connect_up', labels, value: isConnected ? 1 : 0 },
    { name: 'tcp_connect_seconds', labels, value: (performance.now() - startedAt) / 1000 },
  ]
}

/**
 * Whether the name of a URL is answered in time. fetch takes no addresses and resolves in the runtime's pool, so that a
 * name nobody answers for must not get there: it would keep the agent's own requests and other checks waiting.
 */
async function isNameAnswered(url: string, timeoutMs: number, ask: AskAddresses): Promise<boolean> {
  const host = URL.parse(url)?.hostname.replace(/^\[|\]$/g, '') ?? ''
  return host === '' || isIP(host) !== 0 || (await ask(host, timeoutMs)).outcome !== 'late'
}

/** One GET, no redirect followed, certificates verified: the status, or null without an answer. */
async function httpStatus(url: string, timeoutMs: number, ask: AskAddresses): Promise<number | null> {
  const endsAt = performance.now() + timeoutMs
  if (!(await isNameAnswered(url, timeoutMs, ask))) return null
  try {
    const response = await fetch(url, {
      redirect: 'manual',
      keepalive: false,
      ...proxyOf(url),
      tls: { rejectUnauthorized: true },
      headers: { 'User-Agent': 'svc-agent-check' },
      signal: AbortSignal.timeout(Math.max(1, Math.ceil(endsAt - performance.now()))),
    })
    await response.body?.cancel()
    return response.status
  } catch {
    return null
  }
}

async function probeHttp(check: CheckOfType<'http'>, { askAddresses }: ProbeContext): Promise<Sample[]> {
  const startedAt = performance.now()
  const status = await httpStatus(check.url, check.timeoutMs, askAddresses)
  const labels = { target: targetLabel(check.url) }
  const samples: Sample[] = [
    { name: 'http_up', labels, value: status === check.expectStatus ? 1 : 0 },
    { name: 'http_duration_seconds', labels, value: (performance.now() - startedAt) / 1000 },
  ]
  if (status !== null) samples.push({ name: 'http_status_code', labels, value: status })
  return samples
}

/**
 * The end of validity of the certificate that a server shows; null when none comes. A server that asks for one of ours
 * may break the handshake off, after it has shown its own.
 */
function certificateEndMs(target: string, timeoutMs: number, ask: AskAddresses): Promise<number | null> {
  const address = parseTarget(target)
  if (!address) return Promise.resolve(null)
  return new Promise(resolve => {
    const { host, port } = address
    // Not verified on purpose: the days left of an expired or self-signed certificate are what is asked for.
    const servername = isIP(host) === 0 ? { servername: host } : {}
    const lookup = lookupWithin(ask, timeoutMs)
    const socket = connectTls({ host, port, lookup, rejectUnauthorized: false, ...servername })
    const finish = (endMs: number | null) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(endMs)
    }
    const timer = setTimeout(() => finish(null), timeoutMs)
    const finishWithShown = () => {
      const endMs = Date.parse(socket.getPeerCertificate()?.valid_to ?? '')
      finish(Number.isNaN(endMs) ? null : endMs)
    }
    socket.once('secureConnect', finishWithShown)
    socket.once('error', finishWithShown)
  })
}

async function probeCert(check: CheckOfType<'cert'>, { now, askAddresses }: ProbeContext): Promise<Sample[]> {
  const endMs = await certificateEndMs(check.target, check.timeoutMs, askAddresses)
  const labels = { target: targetLabel(check.target) }
  return [{ name: 'cert_days_left', labels, value: endMs === null ? 0 : (endMs - now()) / DAY_MS }]
}

/** Runs one check. It resolves within about its timeout, and never rejects. */
export async function probe(check: Check, context: ProbeContext): Promise<Sample[]> {
  switch (check.type) {
    case 'service':
      return probeService(check, context)
    case 'port':
      return probePort(check, context)
    case 'tcp':
      return probeTcp(check, context)
    case 'http':
      return probeHttp(check, context)
    case 'cert':
      return probeCert(check, context)
  }
}

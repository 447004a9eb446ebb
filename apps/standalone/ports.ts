// Ports of this host: which is free, and whether an address can be served, asked before anything starts.
import { createServer } from 'node:net'
import { splitAddress } from '../../core/config/address.ts'
import { reason, StartFault } from './data-dir.ts'

/**
 * Below the ports that systems give to outgoing connections (32,768 and up on Linux), and above those of common
 * services.
 */
const FIRST = 15_000
const COUNT = 15_000
/** How many ports a process tries before it reaches those of the process with the next pid. */
const PLACES = 16

/**
 * Each process begins at a different place: two that start at the same moment would otherwise choose the same free
 * port.
 */
let asked = process.pid * PLACES

function canListen(port: number): boolean {
  try {
    Bun.listen({ hostname: '127.0.0.1', port, socket: { data: () => {} } }).stop(true)
    return true
  } catch {
    return false
  }
}

/** The runtime closes a listener that nobody refers to any more. */
const reservations: object[] = []

/**
 * Seconds go by until whoever asked for a port listens on it. Meanwhile the process has a socket of its name, outside
 * the file system, which ends with the process: another one that looks for a port passes this one over.
 */
function reserve(port: number): boolean {
  if (process.platform !== 'linux') return true
  try {
    const listener = Bun.listen({
      unix: `\0svc-port-${port}`,
      socket: { open: socket => void socket.end(), data: () => {} },
    })
    listener.unref()
    reservations.push(listener)
    return true
  } catch {
    return false
  }
}

/**
 * A port that is free now and that the system gives to no outgoing connection, for a listener that starts later or
 * again. No other process is given it while this one lives.
 */
export function freePort(): number {
  for (let tries = 0; tries < COUNT; tries++) {
    const port = FIRST + (asked++ % COUNT)
    if (canListen(port) && reserve(port)) return port
  }
  throw new StartFault(`no port from ${FIRST} to ${FIRST + COUNT - 1} is free`)
}

/** Throws, naming the option, when an address cannot be served. */
export async function checkAddress(option: string, address: string): Promise<void> {
  const { hostname: host, port } = splitAddress(address)
  if (port === 0) return
  await new Promise<void>((resolve, reject) => {
    const server = createServer()
    server.once('error', error => reject(new StartFault(`${option} ${address} cannot be served: ${told(error)}`)))
    server.listen({ host, port }, () => server.close(() => resolve()))
  })
}

/** The address, or a free port of loopback where another process has it: for a default that nobody asked for. */
export async function freeAddress(address: string): Promise<string> {
  const isFree = await checkAddress('', address).then(
    () => true,
    () => false,
  )
  return isFree ? address : '127.0.0.1:0'
}

function told(error: Error): string {
  const code = 'code' in error ? error.code : ''
  if (code === 'EADDRINUSE') return 'another process has it; stop that one, or give this one another port'
  if (code === 'EADDRNOTAVAIL') return 'this host has no such address'
  if (code === 'EACCES') return 'this user may not serve it; ports below 1024 need root'
  return reason(error)
}

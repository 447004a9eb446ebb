// Ports of this machine: which is free, and whether an address can be served, asked before anything starts.
import { createServer } from 'node:net'
import { splitAddress } from '../../core/config/address.ts'
import { reason, StartFault } from './data-dir.ts'

/** A port that is free now. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
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

function told(error: Error): string {
  const code = 'code' in error ? error.code : ''
  if (code === 'EADDRINUSE') return 'another process has it; stop that one, or give this one another port'
  if (code === 'EADDRNOTAVAIL') return 'this machine has no such address'
  if (code === 'EACCES') return 'this user may not serve it; ports below 1024 need root'
  return reason(error)
}

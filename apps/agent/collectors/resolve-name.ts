// Addresses of the hosts that checks name, asked of the system by a child process: getent knows /etc/hosts, search
// domains and whatever else the host resolves by, as it is now. The runtime would ask in its pool, which has a thread a
// core, and a DNS server that does not answer holds each of them for 5 s and longer, whatever the timeout of the check.
import { type LookupAddress, lookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { runProgram } from './run-program.ts'

/** Of getent: no such name. Any other failure is one of getent itself. */
const NOT_FOUND = 2

type Addresses =
  | { readonly outcome: 'found'; readonly addresses: readonly string[] }
  /** `unknown`: this system has no getent that could be asked. */
  | { readonly outcome: 'not_found' | 'late' | 'unknown' }

/** The addresses in what `getent ahosts` prints: each has a line for each kind of socket. */
export function parseAhosts(text: string): string[] {
  const first = text.split('\n').map(line => line.split(' ', 1)[0] ?? '')
  return [...new Set(first.filter(address => isIP(address) !== 0))]
}

/** What a host name stands for. Never rejects, and is `late` after `timeoutMs`. */
export type AskAddresses = (host: string, timeoutMs: number) => Promise<Addresses>

/** Asks the system, by its getent. */
export async function askAddresses(host: string, timeoutMs: number, getent = 'getent'): Promise<Addresses> {
  // It would be read as an option, and no host is called so.
  if (host.startsWith('-')) return { outcome: 'not_found' }
  const ran = await runProgram([getent, 'ahosts', host], timeoutMs)
  if (ran === 'late') return { outcome: 'late' }
  if (ran === null) return { outcome: 'unknown' }
  if (ran.status === NOT_FOUND) return { outcome: 'not_found' }
  const addresses = parseAhosts(ran.text)
  return ran.status === 0 && addresses.length > 0 ? { outcome: 'found', addresses } : { outcome: 'unknown' }
}

/** How a socket of a check finds the addresses of its host. Where the system cannot be asked, the runtime is. */
export const lookupWithin =
  (ask: AskAddresses, timeoutMs: number): LookupFunction =>
  (host, options, callback) => {
    void ask(host, timeoutMs).then(found => {
      if (found.outcome === 'unknown') return lookup(host, options, callback)
      const addresses = found.outcome === 'found' ? found.addresses : []
      const entries = addresses.map((address): LookupAddress => ({ address, family: isIP(address) }))
      const [first] = entries
      if (!first) callback(new Error(`cannot resolve ${host}`), '')
      else if (options.all) callback(null, entries)
      else callback(null, first.address, first.family)
    })
  }

// How often this hub asks a name server: twenty times a second, whatever it asks for, of all zones and
// companies together. Several hubs on one database keep to it each by itself.
import { LRUCache } from 'lru-cache'
import type { NameServer } from './name-server-query.ts'

const QUERIES_PER_SECOND = 20
/** A server that was not asked for longer than this many others were has no turn to wait for. */
const SERVERS_MAX = 1_000

/** When the next question may go to a server, on the monotonic clock. */
const nextAtMs = new LRUCache<string, number>({ max: SERVERS_MAX })

/**
 * Waits for the next turn at a server. Who comes first goes first, so that a large zone does not hold up a small one.
 */
export async function turnAt({ address, port }: Pick<NameServer, 'address' | 'port'>): Promise<void> {
  const server = `${address} ${port}`
  const nowMs = performance.now()
  const atMs = Math.max(nextAtMs.get(server) ?? 0, nowMs)
  nextAtMs.set(server, atMs + 1000 / QUERIES_PER_SECOND)
  if (atMs > nowMs) await Bun.sleep(atMs - nowMs)
}

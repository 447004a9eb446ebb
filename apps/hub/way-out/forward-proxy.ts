// A company's way out: the enabled forward proxy that carries its deliveries or its probes. What the hub
// connects to through it is resolved and checked before, as ever.
import { sql } from 'drizzle-orm'
import { isDirectTarget, parseProxyUrl } from '../../../core/proxies/site-fields.ts'
import type { Hub } from '../hub-context.ts'
import { type ForwardProxy, NoConnection } from '../platform/open-connection.ts'
import { resolveTarget } from '../platform/outbound-guard.ts'

type Stored = {
  readonly url: string | null
  readonly username: string | null
  readonly password_sealed: string | null
}

/** A forward proxy as it stands in its row, with an address that may be connected to. Rejects with NoConnection. */
export async function reachedProxy(hub: Hub, stored: Stored): Promise<ForwardProxy> {
  const endpoint = parseProxyUrl(stored.url ?? '')
  if (endpoint === null) throw new NoConnection('dns', true)
  const resolved = await resolveTarget(hub.config, endpoint.host)
  if ('fault' in resolved) throw new NoConnection(resolved.fault, true)
  const password = stored.password_sealed === null ? null : hub.sealer.open(stored.password_sealed)
  // A password that was sealed with a key that is gone is not left out: the proxy would be asked as somebody else.
  if (stored.password_sealed !== null && password === null) throw new NoConnection('proxy_auth', true)
  return {
    scheme: endpoint.scheme as ForwardProxy['scheme'],
    host: endpoint.host,
    port: endpoint.port,
    address: resolved.addresses[0] ?? '',
    username: stored.username,
    password,
  }
}

/**
 * The forward proxy by which the hub reaches a host, which has these addresses, for a company; null for none. A proxy
 * that cannot be reached rejects with NoConnection: the hub never goes around it.
 */
export async function wayOutOf(
  hub: Hub,
  companyId: string,
  use: 'webhooks' | 'probes',
  host: string,
  addresses: readonly string[],
): Promise<ForwardProxy | null> {
  const [stored] = await hub.database.db.execute<Stored & { no_proxy: string[] }>(sql`
    select url, username, password_sealed, no_proxy from proxies
    where company_id = ${companyId} and deleted_at is null and enabled and ${use} = any (use_for)`)
  return !stored || isDirectTarget(stored.no_proxy, host, addresses) ? null : reachedProxy(hub, stored)
}

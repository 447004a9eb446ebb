// What the hub intends for a load balancer, as a configuration for people, and for programs that pull it (resources.md
// What a format cannot say stands in warnings; keys are never in it: certificates are named by files.
import { parseHostName } from '../dns/domain-name.ts'
import { isSitePath, parseHost } from '../proxies/site-fields.ts'

export type ConfigMember = {
  readonly name: string
  readonly address: string | null
  readonly port: number
  readonly weight: number
  readonly backup: boolean
  readonly max_connections: number | null
  readonly admin_state: 'enabled' | 'draining' | 'disabled'
}
export type HealthCheck = {
  readonly type: 'none' | 'tcp' | 'http' | 'https'
  readonly path: string
  readonly expect_status: number
  readonly interval_seconds: number
  readonly timeout_seconds: number
}
export type ConfigPool = {
  readonly id: string
  readonly name: string
  readonly protocol: 'http' | 'https' | 'tcp' | 'udp'
  readonly algorithm: 'round_robin' | 'least_connections' | 'source_hash' | 'random'
  readonly persistence: 'none' | 'source_ip' | 'cookie'
  readonly health_check: HealthCheck
  readonly members: readonly ConfigMember[]
}
export type ConfigRule = { readonly host: string | null; readonly path_prefix: string | null; readonly pool_id: string }
export type ConfigVirtualServer = {
  readonly name: string
  readonly address: string
  readonly port: number
  readonly protocol: 'http' | 'https' | 'tcp' | 'udp'
  readonly pool_id: string | null
  readonly rules: readonly ConfigRule[]
  /** Names of certificates. */
  readonly certificates: readonly string[]
}
/** Enabled virtual servers, and every pool. */
export type ConfigIntent = {
  readonly pools: readonly ConfigPool[]
  readonly virtualServers: readonly ConfigVirtualServer[]
}
export type ConfigText = { readonly text: string; readonly warnings: readonly string[] }

/** Whether requests are read, or bytes passed on. */
export const isHttp = ({ protocol }: { readonly protocol: string }): boolean =>
  protocol === 'http' || protocol === 'https'

type Layer = 'http' | 'tcp' | 'udp'
const layerOf = ({ protocol }: { readonly protocol: ConfigPool['protocol'] }): Layer =>
  protocol === 'https' ? 'http' : protocol

/** The host of a rule in the form in which requests are compared with it, `*.` before it or not; null for none. */
export function parseRuleHost(text: string): string | null {
  const name = parseHostName(text.replace(/^\*\./, ''))
  return name === null ? null : text.startsWith('*.') ? `*.${name}` : name
}

/** What a health check may ask for: nothing in it ends a word or a line of a configuration. */
export const isCheckPath = (text: string): boolean => /^\/[\x21\x24-\x26\x28-\x5b\x5d-\x7e]*$/.test(text)

/** The second look: of what is stored nothing becomes text that has not the form which is asked for at a request. */
function withSafeRules(server: ConfigVirtualServer, warnings: string[]): ConfigVirtualServer {
  const rules = server.rules.flatMap((rule, index) => {
    const host = rule.host === null ? null : parseRuleHost(rule.host)
    const isSafe = (rule.host === null || host !== null) && (rule.path_prefix === null || isSitePath(rule.path_prefix))
    if (isSafe) return [{ ...rule, host }]
    warnings.push(`${server.name}: rule ${index + 1} is left out, for a value of it cannot stand in a configuration`)
    return []
  })
  return { ...server, rules }
}

/** A health check whose path may become text: `/` where that which is stored may not. */
export function safeCheck(check: HealthCheck, name: string, warnings: string[]): HealthCheck {
  if (isCheckPath(check.path)) return check
  warnings.push(`${name}: its health check asks for /, for its path cannot stand here`)
  return { ...check, path: '/' }
}

function withSafeValues(pool: ConfigPool, warnings: string[]): ConfigPool {
  const { name } = pool
  const health_check = safeCheck(pool.health_check, name, warnings)
  const members = pool.members.map(member => {
    const address = member.address === null ? null : parseHost(member.address)
    if (address === null) warnings.push(`${name}: ${member.name} has no address`)
    return { ...member, address }
  })
  return { ...pool, members, health_check }
}

/**
 * Pools as what leads to them needs them: requests travel over tcp, so that a pool of tcp takes them too. A virtual
 * server that needs a pool otherwise than another one does is left out, and so is what may not become text.
 */
export function settled({ pools, virtualServers }: ConfigIntent): ConfigIntent & { readonly warnings: string[] } {
  const warnings: string[] = []
  const poolsOf = (server: ConfigVirtualServer) =>
    [server.pool_id, ...server.rules.map(rule => rule.pool_id)].filter(id => id !== null)
  const layers = new Map<string, Layer>()
  const kept = [...virtualServers]
    .sort((a, b) => Number(isHttp(b)) - Number(isHttp(a)))
    .filter(server => {
      const layer = layerOf(server)
      const isOther = poolsOf(server).some(id => (layers.get(id) ?? layer) !== layer)
      if (isOther)
        warnings.push(
          `${server.name}: another virtual server needs its pool as ${isHttp(server) ? 'tcp' : 'http'}; left out`,
        )
      else for (const id of poolsOf(server)) layers.set(id, layer)
      return !isOther
    })
  const fitted = pools.map(pool => {
    const layer = layers.get(pool.id) ?? layerOf(pool)
    return withSafeValues(layer === layerOf(pool) ? pool : { ...pool, protocol: layer }, warnings)
  })
  const settledServers = virtualServers
    .filter(server => kept.includes(server))
    .map(server => withSafeRules(server, warnings))
  return { pools: fitted, virtualServers: settledServers, warnings }
}

export const hostPort = (address: string, port: number): string =>
  address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`

/** A name of which nothing but letters, digits, `_`, `.` and `-` is left. */
export const plainName = (name: string): string => name.replace(/[^A-Za-z0-9_.-]/g, '_')

/** Names for things that the format tells apart by name: two that come to the same are numbered. */
export class Names {
  readonly #taken = new Set<string>()

  of(name: string): string {
    const plain = plainName(name)
    for (let count = 1; ; count++) {
      const own = count === 1 ? plain : `${plain}_${count}`
      if (this.#taken.has(own)) continue
      this.#taken.add(own)
      return own
    }
  }
}

/** The names of pools in a configuration, by their ids. */
export function poolNames(pools: readonly ConfigPool[]): ReadonlyMap<string, string> {
  const names = new Names()
  return new Map(pools.map(pool => [pool.id, names.of(pool.name)]))
}

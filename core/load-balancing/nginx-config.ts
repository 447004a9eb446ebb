// A load balancer as a configuration of NGINX (https://nginx.org/en/docs/http/ngx_http_upstream_module.html).
import { parseAddress } from '../network/ip-address.ts'
import {
  type ConfigIntent,
  type ConfigMember,
  type ConfigPool,
  type ConfigText,
  type ConfigVirtualServer,
  hostPort,
  isHttp,
  plainName,
  poolNames,
  settled,
} from './config-text.ts'

const CERTIFICATES = '/etc/nginx/certs'
/** Names over this do not fit into the buckets that nginx has by default. */
const NAME_OF_BUCKET = 40
const BUCKET_BYTES = 512
type PoolNames = ReadonlyMap<string, string>

function balanceLine({ algorithm, persistence, protocol }: ConfigPool): string | null {
  if (algorithm === 'source_hash' || persistence === 'source_ip')
    return isHttp({ protocol }) ? 'ip_hash' : 'hash $remote_addr consistent'
  return algorithm === 'least_connections' ? 'least_conn' : algorithm === 'random' ? 'random' : null
}

function memberLine({ address, port, weight, backup, max_connections, admin_state }: ConfigMember, mayBackUp: boolean) {
  const parts = [`server ${hostPort(address ?? '', port)} weight=${Math.max(weight, 1)}`]
  if (max_connections !== null) parts.push(`max_conns=${max_connections}`)
  if (backup && mayBackUp) parts.push('backup')
  if (admin_state !== 'enabled' || weight === 0) parts.push('down')
  return parts.join(' ')
}

/** The methods beside which the word `backup` is refused. */
const takesNoBackups = (method: string): boolean => method === 'random' || method.includes('hash')

/** What open-source NGINX cannot do for a pool. */
function poolWarnings(pool: ConfigPool, method: string): string[] {
  const { members, name } = pool
  return [
    ...(pool.persistence === 'cookie' ? [`${name}: persistence by cookie needs NGINX Plus`] : []),
    ...(pool.health_check.type === 'none' ? [] : [`${name}: health checks need NGINX Plus`]),
    ...(members.some(member => member.admin_state === 'draining') ? [`${name}: draining needs NGINX Plus; down`] : []),
    ...(takesNoBackups(method) && members.some(member => member.backup)
      ? [`${name}: ${method === 'random' ? 'random' : 'a hash by source'} takes no backups`]
      : []),
    ...members
      .filter(({ address }) => address !== null && parseAddress(address) === null)
      .map(({ address }) => `${name}: NGINX does not start while ${address} does not resolve`),
  ]
}

function upstreamLines(pool: ConfigPool, name: string, warnings: string[]): string[] {
  const balance = balanceLine(pool)
  warnings.push(...poolWarnings(pool, balance ?? ''))
  const members = pool.members.filter(member => member.address !== null)
  const mayBackUp = !takesNoBackups(balance ?? '') && members.some(member => !member.backup)
  // An upstream without servers is refused, and so is one of backups alone.
  const servers =
    members.length > 0 ? members.map(member => memberLine(member, mayBackUp)) : ['server 127.0.0.1:1 down']
  const lines = [...(balance === null ? [] : [balance]), ...servers]
  return [`  upstream ${name} {`, ...lines.map(line => `    ${line};`), '  }']
}

function listenLines({ name, address, port, protocol, certificates }: ConfigVirtualServer, more: string): string[] {
  const transport = protocol === 'udp' ? ' udp' : protocol === 'https' ? ' ssl' : ''
  const file = `${CERTIFICATES}/${plainName(certificates[0] ?? name)}`
  return [
    `    listen ${hostPort(address, port)}${transport}${more};`,
    ...(protocol === 'https' ? [`    ssl_certificate ${file}.pem;`, `    ssl_certificate_key ${file}.key;`] : []),
  ]
}

type Place = { readonly path: string; readonly poolId: string | null }

/** Where requests for a host lead, the first rule of a path first. */
function placesOf({ rules, pool_id }: ConfigVirtualServer, host: string | null): Place[] {
  const places = new Map<string, Place>()
  for (const rule of rules) {
    if (rule.host !== null && rule.host !== host) continue
    const path = rule.path_prefix ?? '/'
    if (!places.has(path)) places.set(path, { path, poolId: rule.pool_id })
    // What comes after one that matches everything is never reached.
    if (path === '/') return [...places.values()]
  }
  return [...places.values(), { path: '/', poolId: pool_id }]
}

function httpServerLines(
  server: ConfigVirtualServer,
  host: string | null,
  pools: ReadonlyMap<string, ConfigPool>,
  names: PoolNames,
): string[] {
  const places = placesOf(server, host).map(({ path, poolId }) => {
    const pool = pools.get(poolId ?? '')
    const scheme = pool?.protocol === 'https' ? 'https' : 'http'
    return `    location "${path}" { ${pool ? `proxy_pass ${scheme}://${names.get(pool.id)}` : 'return 503'}; }`
  })
  const listen = listenLines(server, host === null ? ' default_server' : '')
  return ['  server {', ...listen, `    server_name ${host ?? '_'};`, ...places, '  }']
}

/** NGINX takes the longest path that matches, and rules the first. */
function orderWarnings({ name, rules }: ConfigVirtualServer): string[] {
  const isHidden = rules.some((rule, index) =>
    rules
      .slice(0, index)
      .some(
        first =>
          first.host === rule.host &&
          (rule.path_prefix ?? '/').startsWith(first.path_prefix ?? '/') &&
          first.path_prefix !== rule.path_prefix,
      ),
  )
  return isHidden ? [`${name}: NGINX takes the longest path, not the first rule`] : []
}

function block(name: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`${name} {`, ...lines, '}']
}

export function nginxConfig(intent: ConfigIntent): ConfigText {
  const { pools, virtualServers, warnings } = settled(intent)
  const names = poolNames(pools)
  const byId = new Map(pools.map(pool => [pool.id, pool]))
  const upstreams = (isWeb: boolean) =>
    pools
      .filter(pool => isHttp(pool) === isWeb)
      .flatMap(pool => upstreamLines(pool, names.get(pool.id) ?? '', warnings))
  const isLong = virtualServers.some(({ rules }) => rules.some(({ host }) => (host ?? '').length > NAME_OF_BUCKET))
  const http = [...(isLong ? [`  server_names_hash_bucket_size ${BUCKET_BYTES};`] : []), ...upstreams(true)]
  const stream = upstreams(false)
  for (const server of virtualServers) {
    if (server.protocol === 'https' && server.certificates.length !== 1)
      warnings.push(`${server.name}: NGINX takes one certificate`)
    if (isHttp(server)) {
      warnings.push(...orderWarnings(server))
      for (const host of [null, ...new Set(server.rules.flatMap(rule => rule.host ?? []))])
        http.push(...httpServerLines(server, host, byId, names))
      continue
    }
    if (server.rules.length > 0) warnings.push(`${server.name}: rules are read of http only`)
    const pool = names.get(server.pool_id ?? '')
    if (pool === undefined) warnings.push(`${server.name}: leads to no pool; left out`)
    else stream.push('  server {', ...listenLines(server, ''), `    proxy_pass ${pool};`, '  }')
  }
  const text = [...block('http', http), ...block('stream', stream)]
  return { text: `events {}\n${text.join('\n')}\n`, warnings }
}

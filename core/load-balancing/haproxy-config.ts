// A load balancer as a configuration of HAProxy 2.6 (https://docs.haproxy.org/2.6/configuration.html).
import { parseAddress } from '../network/ip-address.ts'
import {
  type ConfigIntent,
  type ConfigMember,
  type ConfigPool,
  type ConfigRule,
  type ConfigText,
  type ConfigVirtualServer,
  hostPort,
  isHttp,
  Names,
  plainName,
  poolNames,
  settled,
} from './config-text.ts'
import { checkLines, checkWords } from './haproxy-check.ts'

const WEIGHT_MAX = 256
const CERTIFICATES = '/etc/haproxy/certs'
const ALGORITHMS = {
  round_robin: 'roundrobin',
  least_connections: 'leastconn',
  source_hash: 'source',
  random: 'random',
} as const
const HEAD = ['global', '  log stdout format raw local0', '', 'defaults', '  log global']
const TIMEOUTS = ['  timeout connect 5s', '  timeout client 1m', '  timeout server 1m']

function ruleLine({ host, path_prefix }: ConfigRule, pool: string): string {
  const name = 'req.hdr(host),field(1,:)'
  const wanted = host?.startsWith('*.') ? `{ ${name} -i -m end ${host.slice(1)} }` : host && `{ ${name} -i ${host} }`
  const conditions = [wanted, path_prefix && `{ path_beg ${path_prefix} }`].filter(Boolean)
  return `  use_backend ${pool}${conditions.length > 0 ? ` if ${conditions.join(' ')}` : ''}`
}

/** Where TLS ends: the file of each certificate is to be laid there. */
function bindLine({ name, address, port, protocol, certificates }: ConfigVirtualServer): string {
  const files = (certificates.length > 0 ? certificates : [name]).map(
    each => `crt ${CERTIFICATES}/${plainName(each)}.pem`,
  )
  return `  bind ${hostPort(address, port)}${protocol === 'https' ? ` ssl ${files.join(' ')}` : ''}`
}

function frontendLines(
  server: ConfigVirtualServer,
  name: string,
  pools: ReadonlyMap<string, string>,
  warnings: string[],
): string[] {
  const lines = ['', `frontend ${name}`, `  mode ${isHttp(server) ? 'http' : 'tcp'}`, bindLine(server)]
  if (server.rules.length > 0 && !isHttp(server)) warnings.push(`${server.name}: rules are read of http only`)
  if (server.protocol === 'https' && server.certificates.length === 0)
    warnings.push(`${server.name}: no certificate is bound; a file of its name is expected`)
  if (isHttp(server)) for (const rule of server.rules) lines.push(ruleLine(rule, pools.get(rule.pool_id) ?? ''))
  const pool = pools.get(server.pool_id ?? '')
  if (pool !== undefined) lines.push(`  default_backend ${pool}`)
  return lines
}

function memberLine(
  { address, port, weight, backup, max_connections, admin_state }: ConfigMember & { readonly address: string },
  name: string,
  { health_check: check, protocol, persistence }: ConfigPool,
): string {
  const isWeb = isHttp({ protocol })
  const parts = [`  server ${name} ${hostPort(address, port)}`]
  parts.push(`weight ${admin_state === 'draining' ? 0 : Math.min(weight, WEIGHT_MAX)}`)
  parts.push(...checkWords(check))
  if (protocol === 'https') parts.push('ssl')
  if (check.type === 'https' || protocol === 'https') parts.push('verify required ca-file @system-ca')
  if (max_connections !== null) parts.push(`maxconn ${max_connections}`)
  if (persistence === 'cookie' && isWeb) parts.push(`cookie ${name}`)
  if (backup) parts.push('backup')
  if (admin_state === 'disabled') parts.push('disabled')
  // A name that does not resolve is no reason not to start.
  if (parseAddress(address) === null) parts.push('init-addr last,libc,none')
  return parts.join(' ')
}

function optionLines({ health_check: check, persistence, algorithm, protocol }: ConfigPool): string[] {
  const isWeb = isHttp({ protocol })
  return [
    `  mode ${isWeb ? 'http' : 'tcp'}`,
    `  balance ${ALGORITHMS[algorithm]}`,
    ...checkLines(check),
    ...(persistence === 'source_ip' ? ['  stick-table type ipv6 size 100k expire 30m', '  stick on src'] : []),
    ...(persistence === 'cookie' && isWeb ? ['  cookie SERVER insert indirect nocache'] : []),
  ]
}

function backendLines(pool: ConfigPool, name: string, warnings: string[]): string[] {
  const names = new Names()
  const lines = ['', `backend ${name}`, ...optionLines(pool)]
  if (pool.persistence === 'cookie' && !isHttp(pool)) warnings.push(`${pool.name}: cookies are of http only`)
  for (const member of pool.members) {
    const { address } = member
    if (address === null) continue
    if (member.weight > WEIGHT_MAX) warnings.push(`${pool.name}: ${member.name} has a weight over ${WEIGHT_MAX}`)
    lines.push(memberLine({ ...member, address }, names.of(member.name), pool))
  }
  return lines
}

export function haproxyConfig(intent: ConfigIntent): ConfigText {
  const { pools, virtualServers, warnings } = settled(intent)
  const names = poolNames(pools)
  const frontends = new Names()
  const lines = [...HEAD, ...TIMEOUTS]
  for (const server of virtualServers) {
    if (server.protocol === 'udp') warnings.push(`${server.name}: HAProxy passes no udp on`)
    else lines.push(...frontendLines(server, frontends.of(server.name), names, warnings))
  }
  for (const pool of pools) {
    if (pool.protocol === 'udp') warnings.push(`${pool.name}: HAProxy passes no udp on`)
    else lines.push(...backendLines(pool, names.get(pool.id) ?? '', warnings))
  }
  return { text: `${lines.join('\n')}\n`, warnings }
}

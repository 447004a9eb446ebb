// The configuration of a reverse proxy for HAProxy: a frontend for each port, a backend for each site. Host names stand
// in lines of their own, since a line of HAProxy has at most 64 words.
import { checkLines, checkWords } from '../load-balancing/haproxy-check.ts'
import { parseAddress } from '../network/ip-address.ts'
import {
  type ConfigTarget,
  type ConfigUpstream,
  certificateOf,
  certificatesOf,
  hostGroups,
  type Listener,
  type NamedSite,
  namedSites,
  type ProxyConfig,
  portSuffix,
  type RenderedConfig,
  safeName,
  textOfConfig,
  tlsPortOf,
  unboundWarning,
} from './proxy-config.ts'
import { hostInUrl } from './site-fields.ts'

const CERTIFICATES = '/etc/haproxy/certificates/'
const WEIGHT_MAX = 256
const HOST = 'hdr(host),field(1,:),lower'

/** One way to a site: the condition on the host, and how exact it is. */
type Way = {
  readonly site: NamedSite
  readonly rank: number
  readonly acl: string
  readonly names: readonly string[]
  /** Whether these names are served with TLS: a certificate is that of a host, whichever of its sites has it. */
  readonly hasTls: boolean
}

/** Exact names come before wildcards, longer wildcards before shorter ones, then longer paths before shorter ones. */
function waysOf(sites: readonly NamedSite[], withTls: ReadonlySet<string>): Way[] {
  const ways: Way[] = []
  for (const site of sites) {
    const exact = Map.groupBy(
      site.hostnames.filter(name => !name.startsWith('*')),
      name => withTls.has(name),
    )
    for (const [hasTls, names] of exact)
      ways.push({ site, rank: Infinity, acl: `${site.id}_${hasTls ? 'host' : 'plain'}`, names, hasTls })
    for (const [index, name] of site.hostnames.filter(each => each.startsWith('*')).entries()) {
      const hasTls = withTls.has(name)
      ways.push({ site, rank: name.length, acl: `${site.id}_wild_${index + 1}`, names: [name], hasTls })
    }
  }
  const byRank = (a: Way, b: Way): number => (a.rank === b.rank ? 0 : b.rank > a.rank ? 1 : -1)
  return ways.toSorted((a, b) => byRank(a, b) || b.site.path.length - a.site.path.length)
}

const aclLines = ({ acl, names }: Way): string[] =>
  names.map(name =>
    name.startsWith('*') ? `  acl ${acl} ${HOST} -m end ${name.slice(1)}` : `  acl ${acl} ${HOST} -m str ${name}`,
  )

const conditionOf = ({ acl, site }: Way): string => (site.path === '/' ? acl : `${acl} { path_beg ${site.path} }`)

/** What passes requests on to https; a backend, for redirects of a frontend come before all that leads to sites. */
const redirectOf = (name: string): string => `${name}_to_https`

const isRedirected = ({ site, hasTls }: Way): boolean => site.redirectsToHttps && hasTls

function redirectLines(name: string, port: number): string[] {
  const to = port === 443 ? 'scheme https' : `location https://%[${HOST}]${portSuffix(port)}%[pathq]`
  return [`backend ${redirectOf(name)}`, '  mode http', `  http-request redirect ${to} code 301`, '']
}

function frontendLines(name: string, listener: Listener, ways: readonly Way[], redirectPort: number | null): string[] {
  const served = listener.tls ? ways.filter(({ hasTls }) => hasTls) : ways
  const backendOf = (way: Way): string =>
    !listener.tls && redirectPort !== null && isRedirected(way) ? redirectOf(name) : way.site.id
  return [
    `frontend ${name}_${listener.port}`,
    '  mode http',
    listener.tls ? `  bind :${listener.port} ssl crt ${CERTIFICATES}` : `  bind :${listener.port}`,
    '  timeout client 60s',
    '  option forwardfor',
    ...(listener.tls ? ['  http-request set-header X-Forwarded-Proto https'] : []),
    ...served.flatMap(aclLines),
    ...served.map(way => `  use_backend ${backendOf(way)} if ${conditionOf(way)}`),
    '',
  ]
}

/** Without a check HAProxy takes every server for up and never turns to a backup: where it has a choice, it looks. */
function checkOf({ check, targets }: ConfigUpstream): readonly string[] {
  return check.type === 'none' && targets.length > 1 ? ['check'] : checkWords(check)
}

/** The name that a check asks for where TLS needs one: a check has no request whose host it could be. */
function checkName({ hostnames }: NamedSite): readonly string[] {
  const name = hostnames.find(each => !each.startsWith('*'))
  return name === undefined ? [] : [`check-sni ${name}`]
}

function serverLine(target: ConfigTarget, index: number, site: NamedSite, upstream: ConfigUpstream): string {
  const { host, port, weight, isBackup } = target
  const { isTls, check } = upstream
  const checks = checkOf(upstream)
  const words = [
    `  server s${index + 1} ${hostInUrl(host)}:${port}`,
    `weight ${Math.min(weight, WEIGHT_MAX)}`,
    ...checks,
    ...(isTls && checks.length > 0 ? checkName(site) : []),
    ...(isBackup ? ['backup'] : []),
    ...(isTls ? [`ssl verify none sni ${HOST.replace('hdr', 'req.hdr')}`] : []),
    ...(!isTls && check.type === 'https' ? ['verify none'] : []),
    // A name that does not resolve is no reason not to start.
    ...(parseAddress(host) === null ? ['init-addr last,libc,none'] : []),
  ]
  return words.join(' ')
}

function backendLines(site: NamedSite): string[] {
  const { id, upstream } = site
  const lines = [`backend ${id}`, '  mode http', '  timeout connect 5s', '  timeout server 60s']
  if (upstream === null) return [...lines, '  http-request deny deny_status 503', '']
  // The next try goes to another server at once.
  if (upstream.targets.length > 1) lines.push('  option redispatch 1')
  lines.push(...checkLines(upstream.check))
  if (upstream.path !== '') lines.push(`  http-request set-path ${upstream.path}%[path]`)
  return [...lines, ...upstream.targets.map((target, index) => serverLine(target, index, site, upstream)), '']
}

export function renderHaproxy(config: ProxyConfig): RenderedConfig {
  const { sites, warnings } = namedSites(config)
  const [bound = [], unbound = []] = [true, false].map(isBound =>
    hostGroups(sites).filter(group => (certificateOf(group) !== null) === isBound),
  )
  const ways = waysOf(sites, new Set(bound.flatMap(({ hostnames }) => hostnames)))
  const name = safeName(config.name)
  const certificates = certificatesOf(sites)
  const listen = config.listen.filter(({ tls }) => !tls || certificates.length > 0)
  const redirectPort = tlsPortOf(listen)
  if (tlsPortOf(config.listen) !== null)
    for (const { hostnames } of unbound) warnings.push(unboundWarning(hostnames, 'it is not served with TLS'))
  for (const certificate of certificates) warnings.push(`put ${certificate}.pem (chain, then key) into ${CERTIFICATES}`)
  const lines = [
    '',
    ...listen.flatMap(listener => frontendLines(name, listener, ways, redirectPort)),
    ...(redirectPort !== null && ways.some(isRedirected) ? redirectLines(name, redirectPort) : []),
    ...sites.flatMap(backendLines),
  ]
  return { text: textOfConfig(config, '.', lines), warnings }
}

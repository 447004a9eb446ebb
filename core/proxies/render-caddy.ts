// The configuration of a reverse proxy for Caddy: a Caddyfile to be included. Caddy gets certificates by itself where
// none is bound.
import {
  type ConfigTarget,
  type ConfigUpstream,
  certificateOf,
  certificatesOf,
  type HostGroup,
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
import { hostInUrl, splitWildcards } from './site-fields.ts'

const CERTIFICATES = '/etc/caddy/certificates'
/** How long a request looks for a member that answers, and how long one that did not is passed over. */
const TRY_SECONDS = 5
const FAIL_SECONDS = 10

const usedTargets = ({ targets }: ConfigUpstream): ConfigTarget[] => targets.filter(({ weight }) => weight > 0)

/** Why the health check of an upstream cannot be said; null when it can, or when there is none. */
function checkFault({ check: { type, path }, isTls }: ConfigUpstream): string | null {
  if (type === 'none') return null
  if (type === 'tcp') return 'Caddy checks by http only'
  if (type === 'https' && !isTls) return 'Caddy checks as it passes requests on, which is without TLS'
  return /[`{}]/.test(path) ? 'its path cannot stand in a Caddyfile' : null
}

function healthLines(upstream: ConfigUpstream): string[] {
  const { type, path, expect_status, interval_seconds, timeout_seconds } = upstream.check
  if (type === 'none' || checkFault(upstream) !== null) return []
  return [
    `  health_uri ${path}`,
    `  health_status ${expect_status}`,
    `  health_interval ${interval_seconds}s`,
    `  health_timeout ${timeout_seconds}s`,
  ]
}

/** What Caddy cannot say of where a site's requests go. */
function upstreamWarnings({ name, upstream }: NamedSite): string[] {
  if (upstream === null) return []
  const used = usedTargets(upstream)
  const fault = checkFault(upstream)
  const hasBackup = used.some(({ isBackup }) => isBackup)
  const said = [
    ...(new Set(used.map(({ weight }) => weight)).size > 1 ? ['the weights of its members are left out'] : []),
    ...(fault === null ? [] : [`its health check is left out, for ${fault}`]),
    ...(hasBackup && used.filter(({ isBackup }) => !isBackup).length > 1
      ? ['beside a backup Caddy does not balance: the first member that is up gets every request']
      : []),
  ]
  return said.map(text => `${safeName(name)}: ${text}`)
}

function passLines({ upstream }: NamedSite): string[] {
  if (upstream === null) return ['respond 503']
  const targets = usedTargets(upstream)
  if (targets.length === 0) return ['respond 503']
  const ordered = targets.toSorted((a, b) => Number(a.isBackup) - Number(b.isBackup))
  const addresses = ordered.map(({ host, port }) => `${upstream.isTls ? 'https://' : ''}${hostInUrl(host)}:${port}`)
  const options = [
    ...(targets.some(({ isBackup }) => isBackup) ? ['  lb_policy first'] : []),
    ...(targets.length > 1 ? [`  lb_try_duration ${TRY_SECONDS}s`, `  fail_duration ${FAIL_SECONDS}s`] : []),
    ...healthLines(upstream),
    ...(upstream.isTls ? ['  transport http {', '    tls_insecure_skip_verify', '  }'] : []),
  ]
  const pass = `reverse_proxy ${addresses.join(' ')}`
  return [
    ...(upstream.path === '' ? [] : [`rewrite * ${upstream.path}{uri}`]),
    ...(options.length === 0 ? [pass] : [`${pass} {`, ...options, '}']),
  ]
}

function handleLines(site: NamedSite, redirectPort: number | null): string[] {
  const inner = redirectPort === null ? passLines(site) : [`redir https://{host}${portSuffix(redirectPort)}{uri} 301`]
  const open = site.path === '/' ? 'handle {' : `handle ${site.path}* {`
  return [`  ${open}`, ...inner.map(line => `    ${line}`), '  }']
}

function siteLines(group: HostGroup, { port, tls }: Listener, redirectPort: number | null): string[] {
  const certificate = certificateOf(group)
  const addresses = group.hostnames.map(name => `${tls ? 'https' : 'http'}://${name}:${port}`)
  const tlsLine =
    tls && certificate !== null ? [`  tls ${CERTIFICATES}/${certificate}.crt ${CERTIFICATES}/${certificate}.key`] : []
  const handles = group.sites.flatMap(site =>
    handleLines(site, !tls && site.redirectsToHttps && redirectPort !== null ? redirectPort : null),
  )
  const rest = group.sites.some(({ path }) => path === '/') ? [] : ['  handle {', '    respond 404', '  }']
  return [`${addresses.join(', ')} {`, ...tlsLine, ...handles, ...rest, '}', '']
}

/** Caddy proves that a name is its own by answering there; below a wildcard only an entry in the DNS proves it. */
function unboundWarnings(hostnames: readonly string[]): string[] {
  const { wild, exact } = splitWildcards(hostnames)
  return [
    ...(exact.length === 0 ? [] : [unboundWarning(exact, 'Caddy asks for one itself')]),
    ...(wild.length === 0
      ? []
      : [unboundWarning(wild, 'Caddy needs a DNS challenge to ask for one: set up acme_dns, or bind a certificate')]),
  ]
}

export function renderCaddy(config: ProxyConfig): RenderedConfig {
  const { sites, warnings } = namedSites(config)
  const groups = hostGroups(sites)
  const redirectPort = tlsPortOf(config.listen)
  warnings.push(...sites.flatMap(upstreamWarnings))
  if (redirectPort !== null)
    for (const group of groups) if (certificateOf(group) === null) warnings.push(...unboundWarnings(group.hostnames))
  for (const certificate of certificatesOf(sites))
    warnings.push(`put ${certificate}.crt and ${certificate}.key into ${CERTIFICATES}`)
  const blocks = config.listen.flatMap(listener => groups.flatMap(group => siteLines(group, listener, redirectPort)))
  return { text: textOfConfig(config, ': a Caddyfile to import.', ['', ...blocks]), warnings }
}

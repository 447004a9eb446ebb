// The configuration of a reverse proxy for Caddy: a Caddyfile to be included. Caddy gets certificates by itself where
// none is bound.
import {
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
import { hostInUrl } from './site-fields.ts'

const CERTIFICATES = '/etc/caddy/certificates'

function passLines({ upstream }: NamedSite): string[] {
  if (upstream === null) return ['respond 503']
  const targets = upstream.targets.filter(({ weight }) => weight > 0)
  if (targets.length === 0) return ['respond 503']
  const ordered = targets.toSorted((a, b) => Number(a.isBackup) - Number(b.isBackup))
  const addresses = ordered.map(({ host, port }) => `${upstream.isTls ? 'https://' : ''}${hostInUrl(host)}:${port}`)
  const options = [
    ...(targets.some(({ isBackup }) => isBackup) ? ['  lb_policy first'] : []),
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

export function renderCaddy(config: ProxyConfig): RenderedConfig {
  const { sites, warnings } = namedSites(config)
  const groups = hostGroups(sites)
  const redirectPort = tlsPortOf(config.listen)
  for (const { name, upstream } of sites) {
    const weights = new Set(upstream?.targets.flatMap(({ weight }) => (weight === 0 ? [] : [weight])))
    if (weights.size > 1) warnings.push(`${safeName(name)}: the weights of its members are left out`)
  }
  if (redirectPort !== null)
    for (const group of groups)
      if (certificateOf(group) === null) warnings.push(unboundWarning(group.hostnames, 'Caddy asks for one itself'))
  for (const certificate of certificatesOf(sites))
    warnings.push(`put ${certificate}.crt and ${certificate}.key into ${CERTIFICATES}`)
  const blocks = config.listen.flatMap(listener => groups.flatMap(group => siteLines(group, listener, redirectPort)))
  return { text: textOfConfig(config, ': a Caddyfile to import.', ['', ...blocks]), warnings }
}

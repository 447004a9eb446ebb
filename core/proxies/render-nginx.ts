// The configuration of a reverse proxy for nginx: a file of the http context, such as those of conf.d.
import {
  type ConfigTarget,
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

const CERTIFICATES = '/etc/nginx/certificates'
/** Names over this do not fit into the buckets that nginx has by default. */
const NAME_OF_BUCKET = 40
const BUCKET_BYTES = 512

const targetLine = ({ host, port, weight, isBackup }: ConfigTarget): string =>
  `  server ${hostInUrl(host)}:${port}${weight === 0 ? ' down' : weight === 1 ? '' : ` weight=${weight}`}${isBackup ? ' backup' : ''};`

const upstreamLines = ({ id, upstream }: NamedSite): string[] =>
  upstream === null ? [] : [`upstream ${id} {`, ...upstream.targets.map(targetLine), '}', '']

function passLines({ id, upstream }: NamedSite): string[] {
  if (upstream === null) return ['return 503;']
  const scheme = upstream.isTls ? 'https' : 'http'
  return [
    ...(upstream.path === '' ? [] : [`rewrite ^(.*)$ "${upstream.path}$1" break;`]),
    `proxy_pass ${scheme}://${id};`,
    'proxy_http_version 1.1;',
    'proxy_set_header Host $host;',
    'proxy_set_header X-Real-IP $remote_addr;',
    'proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;',
    'proxy_set_header X-Forwarded-Proto $scheme;',
    ...(upstream.isTls ? ['proxy_ssl_server_name on;', 'proxy_ssl_name $host;'] : []),
  ]
}

function locationLines(site: NamedSite, redirectPort: number | null): string[] {
  const inner =
    redirectPort === null ? passLines(site) : [`return 301 https://$host${portSuffix(redirectPort)}$request_uri;`]
  return [`  location "${site.path}" {`, ...inner.map(line => `    ${line}`), '  }']
}

const certificateLines = (certificate: string): readonly string[] => [
  `  ssl_certificate ${CERTIFICATES}/${certificate}.crt;`,
  `  ssl_certificate_key ${CERTIFICATES}/${certificate}.key;`,
]

/** One server block: the host names of a group at one port. */
function serverLines(group: HostGroup, { port, tls }: Listener, redirectPort: number | null): string[] {
  const certificate = certificateOf(group)
  const lines = [`  listen ${port}${tls ? ' ssl' : ''};`, `  server_name ${group.hostnames.join(' ')};`]
  if (tls && certificate !== null) lines.push(...certificateLines(certificate))
  for (const site of group.sites)
    lines.push(...locationLines(site, !tls && site.redirectsToHttps && certificate !== null ? redirectPort : null))
  if (group.sites.every(({ path }) => path !== '/')) lines.push('  location / {', '    return 404;', '  }')
  return ['server {', ...lines, '}', '']
}

/** What answers for hosts that no site has: the first of its port, so the default where no other file has one. */
function otherHostsLines({ port, tls }: Listener, groups: readonly HostGroup[]): string[] {
  const certificate = groups.map(certificateOf).find(each => each !== null)
  if (!tls) return ['server {', `  listen ${port};`, '  return 503;', '}', '']
  return certificate === undefined
    ? []
    : ['server {', `  listen ${port} ssl;`, ...certificateLines(certificate), '  return 503;', '}', '']
}

export function renderNginx(config: ProxyConfig): RenderedConfig {
  const { sites, warnings } = namedSites(config)
  const groups = hostGroups(sites)
  const redirectPort = tlsPortOf(config.listen)
  const blocks: string[] = []
  for (const listener of config.listen) {
    blocks.push(...otherHostsLines(listener, groups))
    for (const group of groups)
      if (!listener.tls || certificateOf(group) !== null) blocks.push(...serverLines(group, listener, redirectPort))
  }
  if (redirectPort !== null)
    for (const group of groups)
      if (certificateOf(group) === null) warnings.push(unboundWarning(group.hostnames, 'it is not served with TLS'))
  for (const certificate of certificatesOf(sites))
    warnings.push(`put ${certificate}.crt and ${certificate}.key into ${CERTIFICATES}`)
  for (const { name, upstream } of sites)
    if (upstream !== null && upstream.check.type !== 'none')
      warnings.push(`${safeName(name)}: health checks need NGINX Plus`)
  const isLong = sites.some(({ hostnames }) => hostnames.some(name => name.length > NAME_OF_BUCKET))
  if (isLong) warnings.push('server_names_hash_bucket_size is set here; it may stand nowhere else')
  const lines = [
    ...(isLong ? [`server_names_hash_bucket_size ${BUCKET_BYTES};`] : []),
    '',
    ...sites.flatMap(upstreamLines),
    ...blocks,
  ]
  return { text: textOfConfig(config, ': a file of the http context.', lines), warnings }
}

// What the configuration of a reverse proxy says, whatever its format (R-025, R-027), and what the renderers share.
import { type HealthCheck, safeCheck } from '../load-balancing/config-text.ts'
import { isSitePath, parseHost, parseSiteName } from './site-fields.ts'

export const configFormats = ['nginx', 'caddy', 'haproxy'] as const
export type ConfigFormat = (typeof configFormats)[number]

export type ConfigTarget = {
  /** An address or a host name. */
  readonly host: string
  readonly port: number
  /** 0: gets no requests. */
  readonly weight: number
  readonly isBackup: boolean
}
export type ConfigUpstream = {
  readonly isTls: boolean
  /** Put before the path of each request; empty for nothing. */
  readonly path: string
  readonly targets: readonly ConfigTarget[]
  /** Of the pool that requests go to. */
  readonly check: HealthCheck
}
export type ConfigSite = {
  readonly name: string
  readonly hostnames: readonly string[]
  readonly path: string
  /** What the files of its certificate are called, without their ending. */
  readonly certificate: string | null
  readonly redirectsToHttps: boolean
  /** Null: there is nowhere to pass requests to. */
  readonly upstream: ConfigUpstream | null
}
export type Listener = { readonly port: number; readonly tls: boolean }
export type ProxyConfig = {
  readonly name: string
  readonly listen: readonly Listener[]
  readonly sites: readonly ConfigSite[]
}
export type RenderedConfig = {
  readonly text: string
  /** What the format cannot say, or what a person must do. */
  readonly warnings: readonly string[]
}

/** A site with the name that its sections have in the file. */
export type NamedSite = ConfigSite & { readonly id: string }
/** Host names that have the same sites, those with the longest path first. */
export type HostGroup = { readonly hostnames: readonly string[]; readonly sites: readonly NamedSite[] }

const NAME_MAX = 60

/** What is not a pool, and a pool that is not looked at. */
export const noCheck: HealthCheck = {
  type: 'none',
  path: '/',
  expect_status: 200,
  interval_seconds: 10,
  timeout_seconds: 5,
}

/** A name as it may stand anywhere in a configuration. */
export const safeName = (name: string): string => name.replace(/[^A-Za-z0-9_.-]/g, '_').slice(0, NAME_MAX) || '_'

/** The second look: what has not the form that was asked for at the request never becomes text. */
const isSafe = (site: ConfigSite): boolean =>
  site.hostnames.every(name => parseSiteName(name) === name) &&
  isSitePath(site.path) &&
  (site.certificate === null || safeName(site.certificate) === site.certificate) &&
  (site.upstream === null || site.upstream.path === '' || isSitePath(site.upstream.path)) &&
  (site.upstream?.targets.every(({ host, port }) => parseHost(host) === host && Number.isInteger(port)) ?? true)

/** The sites in the order of their names, each with the name of its sections, and warnings of those left out. */
export function namedSites({ name, sites }: ProxyConfig): { readonly sites: NamedSite[]; readonly warnings: string[] } {
  const ordered = sites.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
  const warnings: string[] = []
  const named: NamedSite[] = []
  for (const site of ordered) {
    const label = safeName(site.name)
    if (!isSafe(site)) {
      warnings.push(`${label}: left out, for a value of it cannot stand in a configuration`)
      continue
    }
    if (site.upstream === null) warnings.push(`${label}: has no upstream that is known, so it answers 503`)
    else if (site.upstream.targets.length === 0) warnings.push(`${label}: its pool has no members, so it answers 503`)
    if (site.upstream?.isTls) warnings.push(`${label}: the certificate of its upstream is not checked`)
    const upstream = usable(site.upstream)
    const safe = upstream && { ...upstream, check: safeCheck(upstream.check, label, warnings) }
    named.push({ ...site, upstream: safe, id: `${safeName(name)}_${label}_${named.length + 1}` })
  }
  return { sites: named, warnings }
}

/** An upstream without targets is none; targets that are all backups are none of them. */
function usable(upstream: ConfigUpstream | null): ConfigUpstream | null {
  if (upstream === null || upstream.targets.length === 0) return null
  if (upstream.targets.some(({ isBackup }) => !isBackup)) return upstream
  return { ...upstream, targets: upstream.targets.map(target => ({ ...target, isBackup: false })) }
}

/** Host names by the sites that they have. */
export function hostGroups(sites: readonly NamedSite[]): HostGroup[] {
  const sitesOf = new Map<string, NamedSite[]>()
  for (const site of sites)
    for (const name of site.hostnames) {
      const known = sitesOf.get(name)
      if (known) known.push(site)
      else sitesOf.set(name, [site])
    }
  const groups = new Map<string, { hostnames: string[]; sites: readonly NamedSite[] }>()
  for (const [name, own] of sitesOf) {
    const ordered = own.toSorted((a, b) => b.path.length - a.path.length || (a.path < b.path ? -1 : 1))
    const key = ordered.map(({ id }) => id).join(' ')
    const group = groups.get(key)
    if (group) group.hostnames.push(name)
    else groups.set(key, { hostnames: [name], sites: ordered })
  }
  return [...groups.values()]
}

/** The certificate of host names: that of the first site which has one. */
export const certificateOf = ({ sites }: HostGroup): string | null =>
  sites.find(({ certificate }) => certificate !== null)?.certificate ?? null

/** The port that a redirect to https leads to; null where none listens with TLS. */
export const tlsPortOf = (listen: readonly Listener[]): number | null =>
  (listen.find(({ tls, port }) => tls && port === 443) ?? listen.find(({ tls }) => tls))?.port ?? null

/** `:8443`; nothing for 443. */
export const portSuffix = (port: number): string => (port === 443 ? '' : `:${port}`)

/** The certificates that sites are bound to, each once. */
export const certificatesOf = (sites: readonly NamedSite[]): readonly string[] => [
  ...new Set(sites.flatMap(site => site.certificate ?? [])),
]

/** What is said of host names that are to be served with TLS and have no certificate. */
export const unboundWarning = (hostnames: readonly string[], consequence: string): string =>
  `${hostnames.join(', ')}: no certificate is bound, so ${consequence}`

/** A configuration whole: a line that says what it is, then its lines. */
export const textOfConfig = ({ name }: ProxyConfig, what: string, lines: readonly string[]): string =>
  `${[`# The reverse proxy ${safeName(name)}${what}`, ...lines].join('\n').trimEnd()}\n`

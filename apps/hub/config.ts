// The hub's configuration: the only file of the hub that reads the environment and configuration files.
import { readFileSync } from 'node:fs'
import {
  address,
  boolean,
  type Config,
  type ConfigFault,
  decimal,
  duration,
  integer,
  list,
  secret,
  text,
} from '../../core/config/keys.ts'
import { plainFaults } from '../../core/config/plain-http.ts'
import { resolveConfig } from '../../core/config/resolve.ts'
import { DAY_MS, limits } from '../../core/limits.ts'
import { isAddressOrRange } from '../../core/network/ip-address.ts'
import { trustedProxyFaults } from '../../core/network/trusted-proxies.ts'

const SECOND_MS = 1000

export const hubKeys = {
  listen: address('127.0.0.1:8080', 'where the REST API and the web interface are served'),
  'listen.insecure': boolean(false, 'serve plain HTTP on addresses that are not loopback'),
  connections_max: integer(10_000, 'connections of clients at once; further ones get 503, or are closed over TLS', {
    min: 1,
  }),
  'ops.listen': address(null, 'where /healthz, /readyz and /metrics are served; empty: not at all'),
  'ops.allowed_hosts': list([], 'names that ops.listen answers to on loopback, beside addresses and localhost'),
  'tls.cert_file': text(null, 'certificate chain, PEM; read again on SIGHUP'),
  'tls.key_file': text(null, 'private key, PEM; read again on SIGHUP'),
  'tls.hsts_max_age': duration(
    365 * DAY_MS,
    'how long a browser that came over https keeps to https (Strict-Transport-Security); 0s: it is not told to',
  ),
  'log.level': text('info', 'how much is logged', ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']),
  data_dir: text(null, 'keeps the key that seals stored secrets; empty: it is kept in the database'),
  'secret.key': secret('seals stored secrets (collector admin tokens, webhook secrets)'),
  'database.url': secret('postgres://user:password@host:port/name'),
  'database.connections': integer(10, 'connections to the database', { min: 1, max: 200 }),
  'collector.admin_url': text(null, "the collector's admin API, for collectors registered without an address"),
  'collector.admin_token': secret('the admin token that belongs to collector.admin_url'),
  'collector.timeout': duration(3 * SECOND_MS, 'how long a query of the collector may take', { min: 100 }),
  'collector.purge_timeout': duration(30 * SECOND_MS, 'how long the collector may take to purge', { min: 100 }),
  'matcher.url': text(null, "the matcher's internal API; empty: there is no matcher"),
  'matcher.scan_url': text(
    null,
    'where agents report their packages to, https; empty: collectors do not tell agents to scan',
  ),
  'matcher.token': secret(
    'what the hub shows to the matcher; several values, while they change, are divided by spaces',
  ),
  public_url: text(null, 'the address of the hub in links'),
  allowed_hosts: list([], 'names of the hub that links may have, beside those it listens on'),
  'rate.default_per_minute': integer(60, 'requests of an API token, unless the token says otherwise', { min: 1 }),
  'rate.token_max_per_minute': integer(
    1200,
    'the most that a token issued on the screen may be given; a company may have a bound of its own',
    { min: 1 },
  ),
  'rate.mail_per_minute': integer(30, 'messages a minute that the people of a company may cause by asking', { min: 1 }),
  'rate.collector_per_minute': integer(1200, 'requests of a collector', { min: 1 }),
  'rate.web_per_minute': integer(600, 'requests of the pages of a session for their data', { min: 1 }),
  'rate.session_per_minute': integer(30, 'requests of a session, by address', { min: 1 }),
  'rate.matcher_per_minute': integer(600, 'requests of a security matcher', { min: 1 }),
  'rate.enroll_per_minute': integer(30, 'enrollments of an address', { min: 1 }),
  'rate.enroll_failures': integer(10, 'failed enrollments of an address in 10 minutes', { min: 1 }),
  'rate.rotations_per_hour': integer(3, 'token rotations of an agent', { min: 1 }),
  'limits.servers_per_company': integer(limits.serversPerCompany, 'servers of a company', {
    min: 1,
    max: limits.serversPerCompanyMax,
  }),
  'limits.rules_per_company': integer(limits.rulesPerCompany, 'alert rules of a company', { min: 1, max: 100_000 }),
  'limits.silences_per_company': integer(limits.silencesPerCompany, 'silences of a company that are not over', {
    min: 1,
    max: 100_000,
  }),
  'limits.checks_per_company': integer(limits.checksPerCompany, 'checks of a company', { min: 1, max: 100_000 }),
  'limits.companies_per_company': integer(
    limits.companiesPerCompany,
    'companies that the users of a company may have below it',
    { min: 0, max: 100_000 },
  ),
  'limits.scope_ids_per_company': integer(
    limits.scopeIdsPerCompany,
    'servers that all rules, silences and checks of a company name in total, those found by tag and the like included',
    { min: 1, max: 100_000_000 },
  ),
  'streams.heartbeat': duration(
    25 * SECOND_MS,
    'how often an open event stream says that it lives, and whether its caller may still listen is looked at',
    { min: 50, max: 50 * SECOND_MS },
  ),
  'streams.per_token': integer(10, 'event streams that a token or session may have open', { min: 1 }),
  'streams.per_company': integer(1000, 'event streams that a company may have open', { min: 1 }),
  trusted_proxies: list([], 'addresses and ranges whose X-Forwarded-For is believed'),
  'iac.yaml_upload_enabled': boolean(true, 'whether manifests may be sent'),
  'events.retention_days': integer(90, 'how long alert events are kept, unless a company says otherwise', {
    min: 1,
    max: 3650,
  }),
  'agents.online_threshold': duration(300 * SECOND_MS, 'an agent seen within it is online', { min: 1000 }),
  'agents.token_rotation': boolean(true, 'whether agents can renew their tokens'),
  'notifications.group_wait': duration(
    30 * SECOND_MS,
    'how long the loss of a server in a subnet or datacenter waits for a wide-area incident before it is told; 0s: not at all',
    { min: 0, max: 600 * SECOND_MS },
  ),
  'webhooks.allow_private': boolean(false, 'webhooks may go to private addresses and plain http'),
  'outbound.allowed_ranges': list(
    [],
    'private addresses and ranges that the hub may connect to for a company: probes, name servers, devices, webhooks',
  ),
  'webhooks.timeout': duration(10 * SECOND_MS, 'how long a webhook may take', { min: 100 }),
  'push.fcm_url': text('https://fcm.googleapis.com', 'where Firebase Cloud Messaging is reached'),
  'push.apns_url': text('https://api.push.apple.com', 'where the Apple Push Notification service is reached'),
  'smtp.url': secret('smtp://user:password@host:port; empty: no e-mail is sent'),
  'mail.from': text(null, 'sender of e-mail'),
  'mail.unconfirmed_max': integer(
    100,
    'messages to a group address, or to a person whose address somebody else wrote down, before they must be confirmed by the link in them',
    { min: 0 },
  ),
  'jobs.poll': duration(5 * SECOND_MS, 'how often jobs are looked for that no notification told of', { min: 50 }),
  'jobs.backoff_scale': decimal(1, 'factor on every wait between tries of a job', { min: 0.0001, max: 1 }),
} as const

export type HubConfig = Config<typeof hubKeys>

/** Names that the environment had before the `SVC_` ones; the `SVC_` name wins. */
const ENVIRONMENT_ALIASES: Readonly<Record<string, string>> = {
  SVC_RATE_COLLECTOR_PER_MINUTE: 'MONITORING_COLLECTOR_RATE_LIMIT',
  SVC_RATE_SESSION_PER_MINUTE: 'MONITORING_SESSION_RATE_LIMIT',
  SVC_AGENTS_TOKEN_ROTATION: 'MONITORING_TOKEN_ROTATION',
  SVC_WEBHOOKS_ALLOW_PRIVATE: 'WEBHOOK_ALLOW_PRIVATE',
  SVC_DATABASE_URL: 'DATABASE_URL',
  SVC_TRUSTED_PROXIES: 'TRUSTED_PROXIES',
}

function environmentWithAliases(): Record<string, string | undefined> {
  const environment: Record<string, string | undefined> = { ...process.env }
  for (const [name, alias] of Object.entries(ENVIRONMENT_ALIASES)) environment[name] ??= environment[alias]
  // The threshold's older name holds seconds.
  const threshold = environment.MONITORING_ONLINE_THRESHOLD
  if (threshold) environment.SVC_AGENTS_ONLINE_THRESHOLD ??= /^\d+$/.test(threshold) ? `${threshold}s` : threshold
  return environment
}

/** Resolves the hub's configuration from defaults, `file` (a parsed document), environment and `options`. */
export function loadHubConfig(
  file: unknown,
  options: Readonly<Record<string, unknown>>,
): { config: HubConfig; faults: ConfigFault[] } {
  const { config, faults } = resolveConfig(hubKeys, {
    file: withNestedKeys(file),
    environment: environmentWithAliases(),
    options,
    readSecretFile: path => readFileSync(path, 'utf8'),
  })
  if ((config['tls.cert_file'] === null) !== (config['tls.key_file'] === null))
    faults.push({ key: 'tls.cert_file', value: '', message: 'and tls.key_file are given together or not at all' })
  faults.push(...plainFaults(config), ...domainFaults(config))
  return { config, faults }
}

/** Addresses of other parts: an empty one says that there is no such part. */
const PART_URL_KEYS = ['collector.admin_url', 'matcher.url'] as const
const WEB_URL_KEYS = ['public_url', 'push.fcm_url', 'push.apns_url'] as const

/** What is wrong with values that their kind alone says nothing about. */
export function domainFaults(config: Omit<HubConfig, 'listen'>): ConfigFault[] {
  const faults = trustedProxyFaults(config.trusted_proxies)
  const databaseUrl = config['database.url']
  if (databaseUrl && !isDatabaseUrl(databaseUrl))
    faults.push({
      key: 'database.url',
      value: '',
      message:
        'must be postgres://user:password@host:port/name, with a port up to 65535 and %2F and the like for other characters of the password',
    })
  for (const key of [...PART_URL_KEYS.filter(part => config[part] !== ''), ...WEB_URL_KEYS]) {
    const value = config[key]
    if (value !== null && !isWebUrl(value))
      faults.push({ key, value, message: 'must be an http:// or https:// address' })
  }
  for (const value of config['outbound.allowed_ranges'])
    if (!isAddressOrRange(value.trim()))
      faults.push({
        key: 'outbound.allowed_ranges',
        value,
        message: 'is no address and no range such as 10.0.0.0/8',
      })
  const scanUrl = config['matcher.scan_url']
  if (scanUrl !== null && URL.parse(scanUrl)?.protocol !== 'https:')
    faults.push({ key: 'matcher.scan_url', value: scanUrl, message: 'must be an https address' })
  const smtpUrl = config['smtp.url']
  if (smtpUrl !== null && !isSmtpUrl(smtpUrl))
    faults.push({ key: 'smtp.url', value: '', message: 'must be smtp://user:password@host:port, or smtps://…' })
  return faults
}

/** One with several hosts, each perhaps with a port, is no URL to anybody but the driver, which takes them apart so. */
function isDatabaseUrl(text: string): boolean {
  const authority = /^postgres(?:ql)?:\/\/([^/?]*)/.exec(text)?.[1]
  if (authority === undefined) return false
  const hosts = authority.slice(authority.indexOf('@') + 1)
  return hosts.split(',').every(host => {
    const url = URL.parse(text.replace(hosts, host))
    return url !== null && isDecodable(url.username) && isDecodable(url.password)
  })
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

export const isWebUrl = (text: string): boolean => /^https?:$/.test(URL.parse(text)?.protocol ?? '')

export function isSmtpUrl(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && (url.protocol === 'smtp:' || url.protocol === 'smtps:') && url.hostname !== ''
}

/** `listen` is an address, and `listen.insecure` a key beside it: YAML can write the first as `listen.address`. */
function withNestedKeys(file: unknown): unknown {
  if (typeof file !== 'object' || file === null || Array.isArray(file)) return file
  const { listen, ...rest } = file as Record<string, unknown>
  if (typeof listen !== 'object' || listen === null) return file
  const { address: where, ...nested } = listen as Record<string, unknown>
  return { ...rest, ...(where === undefined ? {} : { listen: where }), 'listen.insecure': nested.insecure }
}

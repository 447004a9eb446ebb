// The matcher's configuration (MAT-231): the only file of the matcher that reads the environment and configuration
// files.
import { readFileSync } from 'node:fs'
import type { Logger } from 'pino'
import {
  address,
  boolean,
  type Config,
  type ConfigFault,
  duration,
  integer,
  type Keys,
  list,
  secret,
  size,
  text,
} from '../../core/config/keys.ts'
import { isPlainBeyondHost, plainFaults } from '../../core/config/plain-http.ts'
import { parseDuration, resolveConfig } from '../../core/config/resolve.ts'
import { DAY_MS, limits } from '../../core/limits.ts'
import { trustedProxyFaults } from '../../core/network/trusted-proxies.ts'
import { isUuid } from '../../core/series/uuid.ts'
import { certificateFaults } from '../process/certificate-files.ts'
import { describeFault, fileFaults, readConfigFile, withNestedListen } from '../process/config-file.ts'
import type { StateOptions } from './state/state-types.ts'
import { SOURCE_NAMES, sourceNamed } from './vulndb/sources/catalogue.ts'

const SECOND_MS = 1000
const HOUR_MS = 3_600_000
const MIB = 1024 ** 2
const GIB = 1024 ** 3

export const matcherKeys = {
  listen: address('127.0.0.1:8084', 'where the scan API is served'),
  'admin.listen': address('127.0.0.1:8085', 'where the internal API for the hub is served'),
  'admin.token': secret('token of the hub for the internal API'),
  'admin.token_previous': secret('the admin token before; valid too, so that it can be changed without a gap'),
  'ops.listen': address(null, 'where /healthz, /readyz and /metrics are served; empty: not at all'),
  'ops.allowed_hosts': list([], 'names that ops.listen answers to on loopback, beside addresses and localhost'),
  'listen.insecure': boolean(false, 'serve and use plain HTTP on addresses that are not loopback'),
  'tls.cert_file': text(null, 'certificate chain, PEM; read again on SIGHUP'),
  'tls.key_file': text(null, 'private key, PEM; read again on SIGHUP'),
  data_dir: text('./data', 'keeps the state and the vulnerability databases'),
  'hub.url': text(null, 'base address of the hub, for example https://hub.example.net'),
  'hub.token': secret('token of the service account that holds security.matcher'),
  matcher_id: text(null, 'the id that the hub gave this matcher'),
  trusted_proxies: list([], 'addresses and ranges whose X-Forwarded-For is believed'),
  'db.sources': list(['auto'], 'sources that are fetched; auto: those of the distributions that have reported'),
  'db.update_interval': text('6h', 'how often sources are asked for something new; off: never'),
  'db.public_key_file': text(null, 'Ed25519 public key that signs bundles, PEM; without it unsigned ones are taken'),
  'db.mirror': text(null, 'base address that takes the place of the addresses of all sources'),
  'db.source_max_bytes': size(2 * GIB, 'of one download', { min: MIB }),
  'match.centos_as_redhat': boolean(true, 'CentOS is matched with the rows of Red Hat'),
  'match.undetermined': boolean(false, 'findings of vulnerabilities that the distribution has not judged yet'),
  'match.rebuilds_unfixed': boolean(false, 'AlmaLinux and Rocky also take what Red Hat has not fixed'),
  'outbox.max_bytes': size(4 * GIB, 'events that may wait for the hub; at 90 % reports are answered 503', { min: MIB }),
  'hosts.forget_after': duration(90 * DAY_MS, 'a host without a report for so long loses its inventory', {
    min: HOUR_MS,
  }),
  'hosts.sync_interval': duration(30 * SECOND_MS, 'how often changed scan hosts are pulled', { min: 100 }),
  'limits.max_body_bytes': size(limits.bodyBytesMax, 'of a body as it is sent', { min: 1024 }),
  'limits.max_inflated_bytes': size(limits.inflatedBytesMax, 'of a body once inflated', { min: 1024 }),
  'limits.enroll_per_minute': integer(30, 'enrollments of an address', { min: 1 }),
  'limits.enroll_failures': integer(10, 'wrong codes of an address in 10 minutes', { min: 1 }),
  'limits.host_per_minute': integer(6, 'requests of a scan host', { min: 1 }),
  'log.level': text('info', 'how much is logged', ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']),
} as const satisfies Keys

export type MatcherConfig = Config<typeof matcherKeys>

const UPDATE_INTERVAL_MIN_MS = SECOND_MS

/** How often a running matcher updates its database; null: never. The configuration has been checked. */
export const updateIntervalMs = (config: Pick<MatcherConfig, 'db.update_interval'>): number | null =>
  config['db.update_interval'] === 'off' ? null : parseDuration(config['db.update_interval'])

function databaseFaults(config: Readonly<Record<string, unknown>>): ConfigFault[] {
  const faults: ConfigFault[] = []
  const interval = config['db.update_interval']
  if (typeof interval === 'string' && interval !== 'off' && (parseDuration(interval) ?? 0) < UPDATE_INTERVAL_MIN_MS)
    faults.push({
      key: 'db.update_interval',
      value: interval,
      message: 'must be off, or a duration such as 6h, 1s at least',
    })
  const sources = Array.isArray(config['db.sources']) ? config['db.sources'].map(String) : []
  const unknown = sources.find(source => source !== 'auto' && sourceNamed(source) === undefined)
  if (unknown !== undefined)
    faults.push({ key: 'db.sources', value: unknown, message: `is no source; there are ${SOURCE_NAMES.join(', ')}` })
  else if (sources.includes('auto') && sources.length > 1)
    faults.push({ key: 'db.sources', value: sources.join(', '), message: 'auto stands alone, or sources are named' })
  const mirror = config['db.mirror']
  const mirrorUrl = typeof mirror === 'string' ? URL.parse(mirror) : null
  if (typeof mirror === 'string' && !/^(https?|file):$/.test(mirrorUrl?.protocol ?? ''))
    faults.push({ key: 'db.mirror', value: mirror, message: 'must be an https:// address, or a file:// one' })
  else if (typeof mirror === 'string' && mirrorUrl !== null && isPlainBeyondHost(mirrorUrl))
    faults.push({ key: 'db.mirror', value: mirror, message: 'is plain http to another host; use https' })
  return faults
}

function crossFaults(config: Readonly<Record<string, unknown>>): ConfigFault[] {
  const faults: ConfigFault[] = []
  if ((config['tls.cert_file'] === null) !== (config['tls.key_file'] === null))
    faults.push({ key: 'tls.cert_file', value: '', message: 'and tls.key_file are given together or not at all' })
  faults.push(...plainFaults(config), ...certificateFaults(config), ...fileFaults(config, ['db.public_key_file']))
  const matcherId = config.matcher_id
  if (typeof matcherId === 'string' && !isUuid(matcherId))
    faults.push({
      key: 'matcher_id',
      value: matcherId,
      message: 'must be the id that the hub gave this matcher, a UUID in lower case',
    })
  if (config['hub.url'] !== null && !config['hub.token'])
    faults.push({ key: 'hub.token', value: '', message: 'is needed with hub.url' })
  const proxies = config.trusted_proxies
  faults.push(...trustedProxyFaults(Array.isArray(proxies) ? proxies.map(String) : []), ...databaseFaults(config))
  return faults
}

/** Resolves the keys from defaults, `file` (a parsed document), environment and `options`. */
export function resolveMatcherConfig(
  file: unknown,
  options: Readonly<Record<string, unknown>> = {},
): { config: MatcherConfig; faults: ConfigFault[] } {
  const { config, faults } = resolveConfig(matcherKeys, {
    file: withNestedListen(file),
    environment: process.env,
    options,
    readSecretFile: path => readFileSync(path, 'utf8'),
  })
  return { config, faults: [...faults, ...crossFaults(config)] }
}

function checked(
  file: string | undefined,
  options: Readonly<Record<string, unknown>>,
  more: (config: MatcherConfig) => readonly ConfigFault[],
): MatcherConfig {
  const { config, faults } = resolveMatcherConfig(file === undefined ? undefined : readConfigFile(file), options)
  const all = [...faults, ...more(config)]
  if (all.length > 0) throw new Error(all.map(describeFault).join('\n'))
  return config
}

/** For commands on the data directory, which need no token. Throws with every fault, a line each. */
export const loadConfig = (file: string | undefined, options: Readonly<Record<string, unknown>> = {}): MatcherConfig =>
  checked(file, options, () => [])

/**
 * For a matcher that serves. A configuration without a token, as of a file that was cut, opens nothing: it must not
 * take the place of a whole one.
 */
export const loadServingConfig = (
  file: string | undefined,
  options: Readonly<Record<string, unknown>> = {},
): MatcherConfig =>
  checked(file, options, config =>
    config['admin.token'] ? [] : [{ key: 'admin.token', value: '', message: 'is needed: the hub calls with it' }],
  )

/** What the state needs of the configuration. */
export const stateOptionsOf = (config: MatcherConfig, now: () => number, log?: Logger): StateOptions => ({
  match: {
    centosAsRedhat: config['match.centos_as_redhat'],
    undetermined: config['match.undetermined'],
    rebuildsUnfixed: config['match.rebuilds_unfixed'],
  },
  outboxBytesMax: config['outbox.max_bytes'],
  forgetAfterMs: config['hosts.forget_after'],
  now,
  ...(log ? { onError: (what: string, error: unknown) => log.error({ err: error }, what) } : {}),
})

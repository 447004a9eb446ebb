// The collector's configuration: the only file of the collector that reads the environment and configuration files. Two
// tables, `ingestKeys` and `workerKeys`, which share `collectorKeys`; an executable takes its own, the all-in-one takes
// the union.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSignedAddress } from '../../core/agent/signed-address.ts'
import { isVersion } from '../../core/agent/version.ts'
import { FLAP_DEFAULTS } from '../../core/alerting/evaluate/flapping.ts'
import { GROUP_DEFAULTS } from '../../core/alerting/evaluate/group-parameters.ts'
import {
  address,
  boolean,
  type Config,
  type ConfigFault,
  decimal,
  duration,
  integer,
  type Keys,
  list,
  map,
  secret,
  size,
  text,
} from '../../core/config/keys.ts'
import { plainFaults } from '../../core/config/plain-http.ts'
import { resolveConfig } from '../../core/config/resolve.ts'
import { DAY_MS, limits } from '../../core/limits.ts'
import { trustedProxyFaults } from '../../core/network/trusted-proxies.ts'
import { isUuid } from '../../core/series/uuid.ts'
import { authorityFaults, certificateFaults } from '../process/certificate-files.ts'
import { isMapping, withNestedListen } from '../process/config-file.ts'
import { isClusterName, isDatabaseName } from './store/clickhouse/database-name.ts'
import { parseRedisUrl, type RedisAddress } from './store/redis/redis-address.ts'

const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const GIB = 1024 ** 3

/** What ingest and worker both need. */
const collectorKeys = {
  'ops.listen': address(null, 'where /healthz, /readyz and /metrics are served; empty: not at all'),
  'ops.allowed_hosts': list([], 'names that ops.listen answers to on loopback, beside addresses and localhost'),
  'listen.insecure': boolean(false, 'serve and use plain HTTP on addresses that are not loopback'),
  'tls.cert_file': text(null, 'certificate chain, PEM; read again on SIGHUP'),
  'tls.key_file': text(null, 'private key, PEM; read again on SIGHUP'),
  'log.level': text('info', 'how much is logged', ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']),
  data_dir: text('./data', 'keeps the bus, the registry, feeds and snapshots'),
  'hub.url': text(null, 'base address of the hub, for example https://hub.example.net'),
  'hub.token': secret('token of the service account that holds monitoring.collector'),
  collector_id: text(null, 'the id that the hub gave this collector'),
  'bus.kind': text('sqlite', 'between ingest and worker', ['sqlite', 'redis']),
  'bus.max_bytes': size(4 * GIB, 'bytes that may wait on the bus; beyond it ingest answers 503', { min: 1024 * 1024 }),
  'bus.max_age': duration(DAY_MS, 'age of the oldest waiting batch; beyond it ingest answers 503', { min: SECOND_MS }),
  'redis.url': secret(
    'for bus.kind redis: redis://user:password@host:port/db; rediss:// for TLS; by Sentinels redis+sentinel://user:password@host:port,host:port/NAME/db, or rediss+sentinel://',
  ),
  'redis.sentinel_password': secret('of the Sentinels, where they ask for one'),
  'redis.tls.ca_file': text(null, 'authority that vouches for Redis and Sentinels, PEM; empty: those of the system'),
  'redis.tls.cert_file': text(null, 'certificate that is shown to Redis and Sentinels, PEM'),
  'redis.tls.key_file': text(null, 'its private key, PEM'),
  'redis.wait_replicas': integer(
    0,
    'replicas that must have a batch before it is acknowledged, and an event before the hub is told; 0: a fail-over may lose the newest of both',
    { max: 16 },
  ),
  'redis.prefix': text('svc:', 'of every shared key'),
  'redis.cache_ttl': duration(15 * SECOND_MS, 'how long an ingest node may keep a registry record of a shared store'),
  'registry.sync_interval': duration(30 * SECOND_MS, 'how often changed agents are pulled', { min: 100 }),
  'registry.negative_ttl': duration(60 * SECOND_MS, 'how long an unknown token is remembered'),
  'checks.sync_interval': duration(MINUTE_MS, 'how often checks are pulled', { min: 100 }),
  'heartbeat.interval': duration(limits.heartbeatIntervalMs, 'how often the collector reports to the hub', {
    min: 100,
  }),
} as const satisfies Keys

export const ingestKeys = {
  ...collectorKeys,
  listen: address('127.0.0.1:8081', 'where the agent API is served'),
  connections_max: integer(
    50_000,
    'connections of agents at once, of each thread that listens; further ones get 503, or are closed over TLS',
    { min: 1 },
  ),
  collector_url: text(null, 'the address that agents are told; empty: the one that is served'),
  trusted_proxies: list([], 'addresses and ranges whose X-Forwarded-For is believed'),
  'ingest.threads': integer(
    0,
    'threads that take batches; 1: none besides the main thread; 0: one a core, and none besides the main thread in the all-in-one',
    { max: 64 },
  ),
  'debug.accept_json': boolean(false, 'take JSON bodies from agents'),
  'ingest.limits.max_body_bytes': size(limits.bodyBytesMax, 'of a body as it is sent', { min: 1024 }),
  'ingest.limits.max_inflated_bytes': size(limits.inflatedBytesMax, 'of a body once inflated', { min: 1024 }),
  'ingest.limits.max_series_per_agent': integer(limits.seriesPerAgentMax, 'active within an hour', {
    min: 1,
    max: 60_000,
  }),
  'ingest.limits.max_series_per_company': integer(0, 'active within an hour on this node; 0: no limit'),
  'ingest.limits.max_points': integer(limits.pointsPerRequestMax, 'points of a request', { min: 1, max: 1_000_000 }),
  'ingest.limits.max_point_age': duration(limits.pointAgeMaxMs, 'older points are dropped', {
    min: SECOND_MS,
    // Raw samples are kept as long: who brings history along from another system raises it for that time.
    max: limits.rawRetentionDays * DAY_MS,
  }),
  'ingest.limits.max_point_ahead': duration(limits.pointAheadMaxMs, 'points further ahead are dropped'),
  'ingest.limits.metrics_per_minute': integer(limits.metricsPerMinute, 'batches of an agent', { min: 1 }),
  'ingest.limits.metrics_burst': integer(limits.metricsBurst, 'batches of an agent at once', { min: 1 }),
  'ingest.limits.config_per_minute': integer(limits.configPerMinute, 'config calls of an agent', { min: 1 }),
  'seen.interval': duration(limits.seenIntervalMs, 'how often the hub hears which agents were seen', {
    min: 100,
    max: limits.hubOnlineThresholdMs / 3,
  }),
  'agents.min_version': text('', 'agents below it are told to upgrade; empty: none'),
  'update.manifest_file': text(null, 'signed update manifest, JSON; read again on SIGHUP'),
  'update.public_key_file': text(null, 'Ed25519 public key that signs manifests, PEM'),
  'update.stop': boolean(false, 'emergency stop: no agent is offered an update'),
} as const satisfies Keys

export const workerKeys = {
  ...collectorKeys,
  'admin.listen': address('127.0.0.1:8082', 'where the admin API is served'),
  'admin.token': secret('token of the hub for the admin API'),
  'admin.token_previous': secret('the admin token before; valid too, so that it can be changed without a gap'),
  'clickhouse.url': text(null, 'http(s)://user:password@host:port, or embedded:DIR; empty: embedded in data_dir'),
  'clickhouse.database': text('svc', 'the database that holds samples'),
  'clickhouse.cluster': text(null, 'a cluster of that server: tables are replicated and distributed over its nodes'),
  'alerting.no_data_after': duration(limits.noDataAfterMs, 'silence after which a series has no data', {
    min: SECOND_MS,
  }),
  'alerting.rules_sync_interval': duration(MINUTE_MS, 'how often rules are pulled', { min: 100 }),
  'alerting.silences_sync_interval': duration(MINUTE_MS, 'how often silences are pulled', { min: 100 }),
  'alerting.rules_state_interval': duration(limits.rulesStateIntervalMs, 'how often state is snapshotted', {
    min: 100,
  }),
  'alerting.rules_dir': text(null, 'where snapshots and the outbox are kept; empty: in data_dir'),
  'alerting.flap_window': duration(FLAP_DEFAULTS.windowMs, 'transitions are counted within it', { min: SECOND_MS }),
  'alerting.flap_transitions': integer(FLAP_DEFAULTS.transitions, 'transitions that make a series flap; 0: never'),
  'alerting.flap_stable': duration(FLAP_DEFAULTS.stableMs, 'a series without transitions for so long flaps no more', {
    min: SECOND_MS,
  }),
  'alerting.presence_sweep': duration(limits.presenceSweepMs, 'how often silent agents are looked for', { min: 100 }),
  'alerting.sweep_interval': duration(10 * SECOND_MS, 'how often no-data and reminders are looked at', { min: 100 }),
  'alerting.startup_grace_min': duration(0, 'no agent.down for so long after a start, at least'),
  'alerting.group_down.enabled': boolean(true, 'many silent servers of a group are one incident'),
  'alerting.group_down.window': duration(GROUP_DEFAULTS.windowMs, 'servers silent since at most so long count', {
    min: SECOND_MS,
  }),
  'alerting.group_down.min': integer(GROUP_DEFAULTS.min, 'silent servers that make an incident', { min: 1 }),
  'alerting.group_down.ratio': decimal(GROUP_DEFAULTS.ratio, 'share of the group that is silent', { min: 0, max: 1 }),
  'alerting.group_down.companies': map('window, min and ratio by company id'),
  'settings.cache': duration(5 * MINUTE_MS, 'how long settings of a company are kept'),
  'retention.sweep': duration(HOUR_MS, 'how often old days are deleted', { min: SECOND_MS }),
  'retention.new_company_wait': duration(DAY_MS, 'nothing of a company new to this collector is deleted before'),
  'retention.dry_run': boolean(false, 'count what would be deleted, delete nothing'),
  'purge.second_delete_after': duration(limits.purgeSecondDeleteMs, 'until the second deletion of a purge'),
  'purge.tombstone_ttl': duration(limits.purgeTombstoneMs, 'how long batches of a purged tenant are dropped', {
    min: SECOND_MS,
  }),
} as const satisfies Keys

/** Everything, for the all-in-one. */
export const allCollectorKeys = { ...workerKeys, ...ingestKeys } as const satisfies Keys

type CollectorConfig = Config<typeof collectorKeys>
export type IngestConfig = Config<typeof ingestKeys>
export type WorkerConfig = Config<typeof workerKeys>
export type AllCollectorConfig = Config<typeof allCollectorKeys>

/**
 * How often a process looks for what the others of its collector wrote into the files they share: it costs
 * microseconds.
 */
export const DISK_POLL_MS = 50

/** Where the processes of one collector keep what they share, below data_dir. */
export const collectorPaths = (dataDir: string) => ({
  bus: join(dataDir, 'bus.sqlite'),
  registry: join(dataDir, 'registry.sqlite'),
  feeds: join(dataDir, 'feeds'),
  /** What the processes tell each other of themselves. */
  heartbeats: join(dataDir, 'facts'),
})

/** A share of nothing would make an incident of any silence. */
const ratioFaults = (ratio: unknown, key: string): ConfigFault[] =>
  ratio === 0 ? [{ key, value: '0', message: 'must be a number above 0 and at most 1' }] : []

/** The companies of group_down override window, min and ratio, each in the domain of the key itself. */
function companyFaults(companies: Readonly<Record<string, unknown>>): ConfigFault[] {
  const faults: ConfigFault[] = []
  const keys = {
    window: workerKeys['alerting.group_down.window'],
    min: workerKeys['alerting.group_down.min'],
    ratio: workerKeys['alerting.group_down.ratio'],
  }
  for (const [companyId, values] of Object.entries(companies)) {
    const under = `alerting.group_down.companies.${companyId}`
    if (!isUuid(companyId))
      faults.push({ key: under, value: '', message: 'must be under the id of a company, a UUID in lower case' })
    const sources = { file: values, environment: {}, options: {}, readSecretFile: String }
    const { config: own, faults: ownFaults } = resolveConfig(keys, sources)
    for (const fault of ownFaults) faults.push({ ...fault, key: `${under}.${fault.key}` })
    faults.push(...ratioFaults(own.ratio, `${under}.ratio`))
  }
  return faults
}

/** The address may hold a password: its value is not repeated. */
function samplesStoreFaults(config: Readonly<Record<string, unknown>>): ConfigFault[] {
  const faults: ConfigFault[] = []
  const url = config['clickhouse.url']
  const isServer = typeof url === 'string' && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
  if (typeof url === 'string' && !isServer && !/^embedded:./.test(url))
    faults.push({ key: 'clickhouse.url', value: '', message: 'must be http(s)://host:port, or embedded:DIR' })
  const database = config['clickhouse.database']
  if (typeof database === 'string' && !isDatabaseName(database))
    faults.push({
      key: 'clickhouse.database',
      value: database,
      message: 'must be a letter or underscore, then at most 62 letters, digits and underscores',
    })
  const cluster = config['clickhouse.cluster']
  if (typeof cluster !== 'string') return faults
  if (!isClusterName(cluster))
    faults.push({
      key: 'clickhouse.cluster',
      value: cluster,
      message: 'must be a name of letters, digits, underscores, dots and dashes, of at most 63 characters',
    })
  else if (!isServer)
    faults.push({ key: 'clickhouse.cluster', value: cluster, message: 'needs clickhouse.url of a server' })
  return faults
}

/** The overrides of group_down by company, as the worker uses them. The configuration has been checked. */
export function groupOverrides(config: WorkerConfig): Map<string, { windowMs?: number; min?: number; ratio?: number }> {
  const keys = {
    window: workerKeys['alerting.group_down.window'],
    min: workerKeys['alerting.group_down.min'],
    ratio: workerKeys['alerting.group_down.ratio'],
  }
  return new Map(
    Object.entries(config['alerting.group_down.companies']).map(([companyId, file]) => {
      const given = isMapping(file) ? file : {}
      const { config: own } = resolveConfig(keys, { file, environment: {}, options: {}, readSecretFile: String })
      return [
        companyId,
        {
          ...('window' in given ? { windowMs: own.window } : {}),
          ...('min' in given ? { min: own.min } : {}),
          ...('ratio' in given ? { ratio: own.ratio } : {}),
        },
      ]
    }),
  )
}

/** What agents are told, and whose word about the address of an agent is believed. */
function agentApiFaults(config: Readonly<Record<string, unknown>>): ConfigFault[] {
  const faults: ConfigFault[] = []
  const url = config.collector_url
  if (typeof url === 'string') {
    const signed = parseSignedAddress(url)
    if (!/^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : ''))
      faults.push({ key: 'collector_url', value: url, message: 'must be an http:// or https:// address' })
    else if (signed && 'fault' in signed) faults.push({ key: 'collector_url', value: url, message: signed.fault })
  }
  const proxies = config.trusted_proxies
  faults.push(...trustedProxyFaults(Array.isArray(proxies) ? proxies.map(String) : []))
  return faults
}

/** The address is a secret: its value is not repeated. */
function redisFaults(config: Readonly<Record<string, unknown>>): ConfigFault[] {
  const files = ['redis.tls.ca_file', 'redis.tls.cert_file', 'redis.tls.key_file']
  const faults = [
    ...authorityFaults(config, 'redis.tls.ca_file'),
    ...certificateFaults(config, 'redis.tls.cert_file', 'redis.tls.key_file'),
  ]
  const url = config['redis.url']
  const told = (message: string) => faults.push({ key: 'redis.url', value: '', message })
  if (config['bus.kind'] === 'redis' && url === null) told('is needed with bus.kind redis')
  if (typeof url !== 'string') return faults
  const parsed = parseRedisUrl(url)
  if (!parsed)
    told(
      'must be redis://host:port, rediss://host:port, or redis+sentinel://host:port,host:port/NAME with the name of the primary',
    )
  else if (!parsed.isTls && files.some(key => config[key] !== null)) told('must begin with rediss for redis.tls')
  return faults
}

/** Where Redis is; null without `redis.url`. The files were read when the configuration was checked. */
export function redisAddressOf(config: CollectorConfig): RedisAddress | null {
  const url = config['redis.url']
  const pem = (path: string | null): string | null => path && readFileSync(path, 'utf8')
  if (url === null) return null
  return {
    url,
    sentinelPassword: config['redis.sentinel_password'],
    ca: pem(config['redis.tls.ca_file']),
    certificate: pem(config['redis.tls.cert_file']),
    key: pem(config['redis.tls.key_file']),
  }
}

function crossFaults(config: Readonly<Record<string, unknown>>): ConfigFault[] {
  const faults: ConfigFault[] = []
  const both = (first: string, second: string) => {
    if ((config[first] === null) !== (config[second] === null))
      faults.push({ key: first, value: '', message: `and ${second} are given together or not at all` })
  }
  both('tls.cert_file', 'tls.key_file')
  if ('update.manifest_file' in config) both('update.manifest_file', 'update.public_key_file')
  faults.push(...plainFaults(config), ...certificateFaults(config), ...agentApiFaults(config))
  const hubUrl = config['hub.url']
  const collectorId = config.collector_id
  if (typeof collectorId === 'string' && !isUuid(collectorId))
    faults.push({
      key: 'collector_id',
      value: collectorId,
      message: 'must be the id that the hub gave this collector, a UUID in lower case',
    })
  const minVersion = config['agents.min_version']
  if (typeof minVersion === 'string' && minVersion !== '' && !isVersion(minVersion))
    faults.push({ key: 'agents.min_version', value: minVersion, message: 'must be a semantic version such as 1.2.3' })
  if (hubUrl !== null && !config['hub.token'])
    faults.push({ key: 'hub.token', value: '', message: 'is needed with hub.url' })
  both('redis.tls.cert_file', 'redis.tls.key_file')
  faults.push(...redisFaults(config))
  const companies = config['alerting.group_down.companies']
  if (isMapping(companies)) faults.push(...companyFaults(companies))
  faults.push(...ratioFaults(config['alerting.group_down.ratio'], 'alerting.group_down.ratio'))
  faults.push(...samplesStoreFaults(config))
  return faults
}

/** Resolves the keys of an executable from defaults, `file` (a parsed document), environment and `options`. */
export function loadCollectorConfig<T extends Keys>(
  keys: T,
  file: unknown,
  options: Readonly<Record<string, unknown>>,
): { config: Config<T>; faults: ConfigFault[] } {
  const { config, faults } = resolveConfig(keys, {
    file: withNestedListen(file),
    environment: process.env,
    options,
    readSecretFile: path => readFileSync(path, 'utf8'),
  })
  return { config, faults: [...faults, ...crossFaults(config)] }
}

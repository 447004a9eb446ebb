// The agent's configuration: its keys, and what of files and environment becomes the options of a run. The only file of
// the agent that reads them.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Check, parseCheck, type RawCheck } from '../../core/agent/check.ts'
import { filterFault } from '../../core/agent/filters.ts'
import { type AgentSettings, settingsFault } from '../../core/agent/remote-config.ts'
import { UPDATE_TRIAL_MS } from '../../core/agent/update-trial.ts'
import {
  boolean,
  type Config,
  type ConfigFault,
  duration,
  list,
  map,
  secret,
  size,
  text,
} from '../../core/config/keys.ts'
import { type ConfigSources, resolveConfig } from '../../core/config/resolve.ts'
import { DAY_MS, limits } from '../../core/limits.ts'
import packageFile from '../../package.json' with { type: 'json' }
import { authorityFaults } from '../process/certificate-files.ts'
import { parseConfig } from '../process/config-file.ts'
import { collectorUrlFault } from './transport/collector-address.ts'
import { isReleaseKey, RELEASE_KEY_WANTED } from './update/signature.ts'

/** Set by the build of a release; absent when run from source. */
declare const SVC_BUILD_VERSION: string | undefined
export const agentVersion: string = typeof SVC_BUILD_VERSION === 'string' ? SVC_BUILD_VERSION : packageFile.version
/** In the state directory, once the host is enrolled. */
export const IDENTITY_FILE = 'token'
/** There too, once the host is a scan host. */
export const SCAN_HOST_FILE = 'scan-host'
export const DEFAULT_CONFIG_FILE = '/etc/svc-agent/agent.yaml'

export const agentKeys = {
  collector_url: text(null, 'Address of the collector, https; plain http only on this host'),
  license: secret('Licence that enrolls this host; needed once'),
  interval: duration(limits.intervalSecondsDefault * 1000, 'How often the host is sampled', {
    min: limits.intervalSecondsMin * 1000,
    max: limits.intervalSecondsMax * 1000,
  }),
  state_dir: text('/var/lib/svc-agent', 'Where token, config, buffer and status are kept'),
  'buffer.max_bytes': size(limits.agentBufferBytes, 'Most that unsent batches may take on disk', {
    min: limits.bodyBytesMax,
  }),
  allow_remote_config: boolean(true, 'Whether the collector may change interval, switches, filters and checks'),
  'collectors.cpu': boolean(true, 'CPU and load'),
  'collectors.cpu_per_core': boolean(false, 'A series for every core'),
  'collectors.memory': boolean(true, 'Memory and swap'),
  'collectors.disk': boolean(true, 'File systems and block devices'),
  'collectors.disk_include': list([], 'Mount points to report, instead of the defaults (RE2, whole name)'),
  'collectors.disk_exclude': list([], 'Mount points or devices to leave out'),
  'collectors.net': boolean(true, 'Network interfaces'),
  'collectors.net_include': list([], 'Interfaces to report, instead of the defaults'),
  'collectors.net_exclude': list([], 'Interfaces to leave out'),
  'collectors.uptime': boolean(true, 'Uptime'),
  checks: map('Checks of this host by id: type, and name, port and proto, target, or url and expect_status'),
  'scan.matcher_url': text(
    null,
    'Address of the matcher that packages are reported to, https; nothing is scanned without',
  ),
  'scan.enrol_code': secret('Code that makes this host a scan host; needed once'),
  'scan.interval': duration(DAY_MS, 'How often packages are reported; the matcher may want them less often', {
    min: 3_600_000,
  }),
  'tls.ca_file': text(null, 'PEM file of the authority that signs the certificates of collector and matcher'),
  'log.level': text('info', 'How much is logged', ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
  renew_period: duration(limits.renewPeriodMs, 'Age at which the token is renewed', { min: 60_000 }),
  'update.channel': text('stable', 'Release channel that is looked at for updates'),
  'update.public_key_file': text(
    null,
    'PEM file of the Ed25519 key that signs releases and moves to another collector',
  ),
  'update.hosts': list([], 'Hosts that may serve releases; the collector itself when empty'),
  'update.install': boolean(true, 'Whether a release that verifies is installed; off: only reported'),
  'update.check_period': duration(limits.inventoryPeriodMs, 'How often the collector is asked for a release', {
    min: 1_000,
  }),
  'update.trial_period': duration(UPDATE_TRIAL_MS, 'How long a new version has for its first accepted batch', {
    min: 1_000,
  }),
} as const

/** What a run needs, ready to use. */
export type AgentOptions = {
  readonly collectorUrl: string | null
  readonly license: string | null
  readonly stateDir: string
  readonly settings: AgentSettings
  readonly isCpuPerCore: boolean
  readonly allowRemoteConfig: boolean
  readonly caPem: string | null
  readonly renewPeriodMs: number
  readonly logLevel: string
  readonly scan: {
    /** Null: nothing is scanned, unless the collector names a matcher. */
    readonly matcherUrl: string | null
    readonly enrolCode: string | null
    readonly intervalMs: number
  }
  readonly update: {
    readonly channel: string
    readonly publicKeyPem: string | null
    readonly hosts: readonly string[]
    readonly isInstalled: boolean
    readonly checkPeriodMs: number
    readonly trialMs: number
  }
}

export const collectorUrlUnset = 'is not set: in the file of --config, as SVC_COLLECTOR_URL, or by --collector-url'

/**
 * An agent that runs needs a collector, by its configuration or from its enrollment, or a matcher. `faults`: what is
 * said of the configuration already.
 */
export function runFaults(options: AgentOptions, faults: readonly ConfigFault[]): ConfigFault[] {
  const { collectorUrl, scan, stateDir } = options
  const isNamed = collectorUrl !== null || scan.matcherUrl !== null || existsSync(join(stateDir, IDENTITY_FILE))
  const isSaid = faults.some(({ key }) => key === '(file)' || key === 'collector_url')
  return isNamed || isSaid ? [] : [{ key: 'collector_url', value: '', message: collectorUrlUnset }]
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const CHECK_KEYS: ReadonlySet<string> = new Set([
  'type',
  'name',
  'target',
  'port',
  'proto',
  'url',
  'expect_status',
  'timeout_seconds',
])

function localChecks(config: Config<typeof agentKeys>, faults: ConfigFault[]): Check[] {
  const checks: Check[] = []
  for (const [id, given] of Object.entries(config.checks)) {
    const fields = new Map<string, unknown>(typeof given === 'object' && given !== null ? Object.entries(given) : [])
    for (const name of fields.keys())
      if (!CHECK_KEYS.has(name)) faults.push({ key: `checks.${id}.${name}`, value: '', message: 'is not a known key' })
    const asText = (name: string) => String(fields.get(name) ?? '')
    const asNumber = (name: string) => Number(fields.get(name) ?? 0)
    const raw: RawCheck = {
      id,
      type: asText('type'),
      name: asText('name'),
      target: asText('target'),
      port: asNumber('port'),
      proto: asText('proto'),
      url: asText('url'),
      expectStatus: asNumber('expect_status'),
      timeoutSeconds: asNumber('timeout_seconds'),
    }
    const check = parseCheck(raw)
    if ('fault' in check) faults.push({ key: `checks.${id}`, value: raw.type, message: check.fault })
    else checks.push(check)
  }
  if (checks.length > limits.checksPerServerMax)
    faults.push({
      key: 'checks',
      value: String(checks.length),
      message: `must be at most ${limits.checksPerServerMax}`,
    })
  return checks
}

function readPem(key: string, path: string | null, faults: ConfigFault[]): string | null {
  if (path === null) return null
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    faults.push({ key, value: path, message: messageOf(error) })
    return null
  }
}

/** The authority that collector and matcher are verified by; null without one. */
function readAuthority(config: { readonly 'tls.ca_file': string | null }, faults: ConfigFault[]): string | null {
  const found = authorityFaults(config, 'tls.ca_file')
  faults.push(...found)
  const path = config['tls.ca_file']
  return path === null || found.length > 0 ? null : readFileSync(path, 'utf8')
}

/** The public key of releases; a fault when the file holds anything but an Ed25519 key. */
function readReleaseKey(path: string | null, faults: ConfigFault[]): string | null {
  const pem = readPem('update.public_key_file', path, faults)
  if (pem === null || isReleaseKey(pem)) return pem
  // Without what the file holds.
  faults.push({ key: 'update.public_key_file', value: path ?? '', message: RELEASE_KEY_WANTED })
  return null
}

/** Hosts as an address has them: with the port where it is not 443. */
function releaseHosts(hosts: readonly string[], faults: ConfigFault[]): readonly string[] {
  for (const host of hosts) {
    const isHost = URL.canParse(`https://${host}`) && new URL(`https://${host}`).host === host.toLowerCase()
    if (!isHost)
      faults.push({ key: 'update.hosts', value: host, message: 'must be HOST or HOST:PORT, without https://' })
  }
  return hosts.map(host => host.toLowerCase())
}

function settingsOf(config: Config<typeof agentKeys>, faults: ConfigFault[]): AgentSettings {
  const filterKeys = ['disk_include', 'disk_exclude', 'net_include', 'net_exclude'] as const
  for (const name of filterKeys) {
    const key = `collectors.${name}` as const
    for (const source of config[key]) {
      const fault = filterFault(source)
      if (fault !== null) faults.push({ key, value: source, message: fault })
    }
  }
  const settings: AgentSettings = {
    intervalMs: config.interval,
    switches: {
      cpu: config['collectors.cpu'],
      memory: config['collectors.memory'],
      disk: config['collectors.disk'],
      net: config['collectors.net'],
      uptime: config['collectors.uptime'],
    },
    diskInclude: config['collectors.disk_include'],
    diskExclude: config['collectors.disk_exclude'],
    netInclude: config['collectors.net_include'],
    netExclude: config['collectors.net_exclude'],
    checks: localChecks(config, faults),
    seriesMax: limits.seriesPerAgentMax,
    batchBytesMax: limits.bodyBytesMax,
    bufferBytesMax: config['buffer.max_bytes'],
  }
  const fault = settingsFault(settings)
  if (fault !== null) faults.push({ key: '(whole)', value: '', message: fault })
  return settings
}

/** Up to the last @: what is no address, as `https:user:word@host`, may carry a password too. */
const withoutCredentials = (url: string): string => url.replace(/^(https?:)?([/\\]*).*@/is, '$1$2')

/** The options of a run out of file, environment and command line, and every fault in them. */
export function resolveAgentOptions(sources: ConfigSources): { options: AgentOptions; faults: ConfigFault[] } {
  const { config, faults } = resolveConfig(agentKeys, sources)
  const url = config.collector_url
  if (url !== null) {
    const fault = collectorUrlFault(url)
    if (fault !== null) faults.push({ key: 'collector_url', value: withoutCredentials(url), message: fault })
  }
  const matcherUrl = config['scan.matcher_url']
  const matcherFault = matcherUrl === null ? null : collectorUrlFault(matcherUrl)
  if (matcherUrl !== null && matcherFault !== null)
    faults.push({ key: 'scan.matcher_url', value: withoutCredentials(matcherUrl), message: matcherFault })
  const options: AgentOptions = {
    collectorUrl: url,
    license: config.license,
    stateDir: config.state_dir,
    settings: settingsOf(config, faults),
    isCpuPerCore: config['collectors.cpu_per_core'],
    allowRemoteConfig: config.allow_remote_config,
    caPem: readAuthority(config, faults),
    renewPeriodMs: config.renew_period,
    logLevel: config['log.level'],
    scan: { matcherUrl, enrolCode: config['scan.enrol_code'], intervalMs: config['scan.interval'] },
    update: {
      channel: config['update.channel'],
      publicKeyPem: readReleaseKey(config['update.public_key_file'], faults),
      hosts: releaseHosts(config['update.hosts'], faults),
      isInstalled: config['update.install'],
      checkPeriodMs: config['update.check_period'],
      trialMs: config['update.trial_period'],
    },
  }
  return { options, faults }
}

/** Reads the configuration of this host. A missing default file is no fault; a named one that is missing is. */
export function loadAgentOptions(
  file: string | null,
  options: Readonly<Record<string, unknown>>,
): { options: AgentOptions; faults: ConfigFault[] } {
  const path = file ?? DEFAULT_CONFIG_FILE
  let document: unknown
  const fileFaults: ConfigFault[] = []
  try {
    document = parseConfig(readFileSync(path, 'utf8'))
  } catch (error) {
    const isAbsentDefault = file === null && error instanceof Error && 'code' in error && error.code === 'ENOENT'
    if (!isAbsentDefault) fileFaults.push({ key: '(file)', value: path, message: messageOf(error) })
  }
  const missing = new Set<string>()
  const resolved = resolveAgentOptions({
    file: document,
    environment: process.env,
    options,
    readSecretFile: secretPath => {
      if (!existsSync(secretPath)) missing.add(secretPath)
      return readFileSync(secretPath, 'utf8')
    },
  })
  // Licence and code are needed once: an operator may remove their files from a host that is enrolled.
  const isKept = (name: string) => existsSync(join(resolved.options.stateDir, name))
  const isNeedless = ({ key, value }: ConfigFault) =>
    missing.has(value) &&
    ((key === 'license_file' && isKept(IDENTITY_FILE)) || (key === 'scan.enrol_code_file' && isKept(SCAN_HOST_FILE)))
  return { options: resolved.options, faults: [...fileFaults, ...resolved.faults.filter(fault => !isNeedless(fault))] }
}

// The configuration of the all-in-one: the keys of hub, collector and agent together, in one file; addresses and
// folders are its options.
import { readFileSync } from 'node:fs'
import { address, type ConfigFault } from '../../core/config/keys.ts'
import { plainFaults } from '../../core/config/plain-http.ts'
import { resolveConfig } from '../../core/config/resolve.ts'
import { type AgentOptions, agentKeys, resolveAgentOptions } from '../agent/config.ts'
import { type AllCollectorConfig, allCollectorKeys } from '../collector/config.ts'
import { domainFaults, type HubConfig, hubKeys } from '../hub/config.ts'
import { type MatcherConfig, matcherKeys } from '../matcher/config.ts'
import { certificateFaults } from '../process/certificate-files.ts'
import { fileFaults, readConfigFile } from '../process/config-file.ts'

/** Addresses of the three listeners come from the command line; a `listen` in the file would be ambiguous. */
const { listen: _hubListen, ...hubOwn } = hubKeys
const { listen: _ingestListen, ...collectorOwn } = allCollectorKeys
const { listen: _scanListen, 'admin.listen': _matcherAdminListen, ...matcherOwn } = matcherKeys
const siteKeys = { ...agentKeys, ...matcherOwn, ...hubOwn, ...collectorOwn } as const

/** Addresses that only the command line gives: no key of the file is named like them. */
const listenKeys = {
  '--hub-listen': address('127.0.0.1:0', 'REST API and web interface'),
  '--agent-listen': address('127.0.0.1:0', 'agent API'),
  '--matcher-listen': address('127.0.0.1:0', 'scan API of the security matcher'),
  '--matcher-admin-listen': address('127.0.0.1:0', 'internal API of the security matcher'),
} as const

export type SiteOptions = {
  readonly configFile: string | null
  readonly dataDir: string
  readonly hubListen: string
  readonly agentListen: string
  readonly adminListen: string
  readonly opsListen: string
  readonly matcherListen: string
  readonly matcherAdminListen: string
  readonly matcher: boolean
  /** `auto`, `off`, or the path of a bundle (MAT-253). */
  readonly securityDb: string
}

/** Values that are known only while the site starts: secrets, addresses, the database. */
type SiteInfo = Readonly<Record<string, string>>

export type SiteConfig = {
  readonly hub: (facts: SiteInfo) => HubConfig
  readonly collector: (facts: SiteInfo) => AllCollectorConfig
  readonly agent: (facts: SiteInfo) => AgentOptions
  readonly matcher: (facts: SiteInfo) => MatcherConfig
  readonly logLevel: string
  /** Of all listeners but that of health. */
  readonly scheme: 'http' | 'https'
}

const isMapping = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The part of a document with keys that the agent knows; nested mappings are reduced to them too. */
function agentDocument(node: unknown, prefix = ''): unknown {
  if (!isMapping(node)) return node
  return Object.fromEntries(
    Object.entries(node).flatMap(([name, value]) => {
      const key = prefix ? `${prefix}.${name}` : name
      if (key in agentKeys || (key.endsWith('_file') && key.slice(0, -5) in agentKeys)) return [[name, value]]
      const isBranch = isMapping(value) && Object.keys(agentKeys).some(known => known.startsWith(`${key}.`))
      return isBranch ? [[name, agentDocument(value, key)]] : []
    }),
  )
}

/** What is wrong with the addresses of all listeners; those of `admin.listen` and `ops.listen` were parsed. */
function listenFaults(options: SiteOptions, config: Readonly<Record<string, unknown>>): ConfigFault[] {
  const given = resolveConfig(listenKeys, {
    file: undefined,
    environment: {},
    options: {
      '--hub-listen': options.hubListen,
      '--agent-listen': options.agentListen,
      '--matcher-listen': options.matcherListen,
      '--matcher-admin-listen': options.matcherAdminListen,
    },
    readSecretFile: () => '',
  })
  // The site calls its own parts, whatever these keys say; without a matcher of its own, the one that is named.
  const others = { 'hub.url': null, 'collector.admin_url': null, ...(options.matcher ? { 'matcher.url': null } : {}) }
  const own = { ...config, ...others }
  const beside = { ...own, 'matcher.url': null, 'admin.listen': null, 'ops.listen': null }
  const plain = Object.entries(given.config).flatMap(([key, listen]) =>
    plainFaults({ ...beside, listen }).map(fault => ({ ...fault, key })),
  )
  return [...given.faults, ...plain, ...plainFaults(own)]
}

/** Files that a start needs. A reload does without them: each part goes on with what it read before. */
export const startFaults = (site: SiteConfig, options: SiteOptions): ConfigFault[] => [
  ...certificateFaults(site.hub({})),
  ...fileFaults(site.collector({}), ['update.manifest_file', 'update.public_key_file']),
  ...(options.matcher ? fileFaults(site.matcher({}), ['db.public_key_file']) : []),
]

/** Reads file and environment once. The three parts are completed when the site knows its addresses and secrets. */
export function loadSiteConfig(options: SiteOptions): { site: SiteConfig; faults: ConfigFault[] } {
  const document = options.configFile === null ? undefined : (readConfigFile(options.configFile) ?? undefined)
  const sources = {
    file: document,
    environment: process.env,
    options: { data_dir: options.dataDir, 'admin.listen': options.adminListen, 'ops.listen': options.opsListen },
    readSecretFile: (path: string) => readFileSync(path, 'utf8'),
  }
  const { config, faults } = resolveConfig(siteKeys, sources)
  faults.push(...domainFaults(config), ...listenFaults(options, config))
  if (config['bus.kind'] !== 'sqlite')
    faults.push({
      key: 'bus.kind',
      value: config['bus.kind'],
      message: 'must be sqlite: the all-in-one is one server',
    })
  const site: SiteConfig = {
    hub: facts => ({ ...config, listen: options.hubListen, 'ops.listen': null, ...facts }),
    collector: facts => ({
      ...config,
      data_dir: config.data_dir ?? options.dataDir,
      listen: options.agentListen,
      ...facts,
    }),
    agent: facts => {
      const file = agentDocument(document)
      return resolveAgentOptions({ ...sources, file, options: { ...facts } }).options
    },
    matcher: facts => ({
      ...config,
      data_dir: options.dataDir,
      listen: options.matcherListen,
      'admin.listen': options.matcherAdminListen,
      // The site has one listener for health and metrics.
      'ops.listen': null,
      'db.update_interval': options.securityDb === 'auto' ? config['db.update_interval'] : 'off',
      ...facts,
    }),
    logLevel: config['log.level'],
    scheme: config['tls.cert_file'] === null ? 'http' : 'https',
  }
  return { site, faults }
}

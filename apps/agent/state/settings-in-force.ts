// The settings in force: local configuration, with the last valid remote configuration over it, which is kept on disk
// and holds from the start, before any read from the collector (document 3 "Agent to collector", "Agent config
// semantics").
import type { Logger } from 'pino'
import { type AgentSettings, mergeRemoteConfig } from '../../../core/agent/remote-config.ts'
import type { AgentConfig } from '../../../proto/gen/svc/agent/v1/agent_pb.ts'
import { type AgentOptions, agentVersion } from '../config.ts'
import { configFromText, configToText, remoteConfigOf } from '../transport/wire.ts'
import type { StateDir } from './state-dir.ts'
import type { StatusReport } from './status.ts'

const FILE = 'config'

export class SettingsInForce {
  readonly #options: AgentOptions
  readonly #dir: StateDir
  readonly #status: StatusReport
  readonly #log: Logger
  readonly #listeners: ((settings: AgentSettings) => void)[] = []
  #current: AgentSettings
  /** The etag of the config that is applied, '' without one. */
  appliedEtag = ''
  /** The etag of the config that was last read, applied or not: what the next read is compared with. */
  heldEtag = ''
  /**
   * collector_url as the collector sent it; '' when it sent none, and for an agent that locks remote configuration out.
   */
  offeredCollectorUrl = ''
  /** Where the collector has packages reported to, under the same rule; null when it says nothing of it. */
  offeredScan: { readonly matcherUrl: string; readonly enrolCode: string } | null = null

  constructor(options: AgentOptions, dir: StateDir, status: StatusReport, log: Logger) {
    this.#options = options
    this.#dir = dir
    this.#status = status
    this.#log = log
    this.#current = options.settings
    const saved = dir.read(FILE)
    const config = saved === null ? null : configFromText(saved)
    if (config) this.#merge(config)
    this.#publish()
  }

  get current(): AgentSettings {
    return this.#current
  }

  /** Calls back with the settings after each change. */
  onChange(listener: (settings: AgentSettings) => void): void {
    this.#listeners.push(listener)
  }

  /** Takes over a config that the collector sent, and saves it when it is valid. */
  take(config: AgentConfig): void {
    if (this.#merge(config)) {
      try {
        this.#dir.write(FILE, configToText(config), true)
      } catch (error) {
        this.#log.error(
          { error: error instanceof Error ? error.message : String(error) },
          'cannot save the remote config',
        )
      }
    }
    this.#publish()
    for (const listener of this.#listeners) listener(this.#current)
  }

  /** Drops the remote configuration of an earlier agent identity. */
  forget(): void {
    this.#current = this.#options.settings
    this.appliedEtag = ''
    this.heldEtag = ''
    this.offeredCollectorUrl = ''
    this.offeredScan = null
    this.#publish()
    this.#dir.remove(FILE)
  }

  #merge(config: AgentConfig): boolean {
    const { allowRemoteConfig, settings } = this.#options
    const merged = mergeRemoteConfig(settings, remoteConfigOf(config), { allowRemoteConfig, version: agentVersion })
    this.#status.warn('config', merged.warnings)
    this.heldEtag = config.etag
    this.offeredCollectorUrl = allowRemoteConfig ? config.collectorUrl : ''
    this.offeredScan = allowRemoteConfig && config.scan ? config.scan : null
    this.#current = merged.settings
    this.appliedEtag = merged.isApplied ? config.etag : ''
    return merged.isApplied
  }

  #publish(): void {
    this.#status.update({ intervalSeconds: this.#current.intervalMs / 1000, configEtag: this.appliedEtag })
  }
}

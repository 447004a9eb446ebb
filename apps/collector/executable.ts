// What the collector's executables share around their wiring: the configuration, log and metrics.
import type { Logger } from 'pino'
import type { ConfigFault } from '../../core/config/keys.ts'
import { makeDataDirectory } from '../files/data-directory.ts'
import { describeFault, readConfigFile } from '../process/config-file.ts'
import { type AllCollectorConfig, allCollectorKeys, loadCollectorConfig } from './config.ts'
import { type CollectorMetrics, type CollectorRole, createCollectorMetrics, createLogger } from './telemetry.ts'
import { productVersion } from './version.ts'

type Loaded = { readonly config: AllCollectorConfig; readonly faults: readonly ConfigFault[] }

/** Every process knows the keys of all: they can share a file. */
export const readConfig = (file: string | undefined): Loaded =>
  loadCollectorConfig(allCollectorKeys, file ? readConfigFile(file) : undefined, {})

/** The configuration; throws with every fault in it, a line each. `check`: what else this process needs. */
export function loadConfig(
  file: string | undefined,
  check: (config: AllCollectorConfig) => readonly ConfigFault[] = () => [],
): AllCollectorConfig {
  const { config, faults } = readConfig(file)
  const all = [...faults, ...check(config)]
  if (all.length > 0) throw new Error(all.map(describeFault).join('\n'))
  return config
}

/** The log, the metrics and the data directory of a process. */
export function openProcess(
  config: AllCollectorConfig,
  role: CollectorRole,
): { readonly log: Logger; readonly metrics: CollectorMetrics } {
  const log = createLogger(config['log.level'], role)
  const metrics = createCollectorMetrics(productVersion, role)
  makeDataDirectory(config.data_dir)
  return { log, metrics }
}

/**
 * Calls `poll` every `intervalMs`, one call at a time. What keeps it from working is logged once until it changes, and
 * that it works again.
 */
export function pollRegistry(intervalMs: number, poll: () => Promise<void>, log: Logger): { stop(): Promise<void> } {
  let polling: Promise<void> | null = null
  let told: string | null = null
  const pollOnce = async (): Promise<void> => {
    try {
      await poll()
      if (told !== null) log.info('the registry that the processes share can be read again')
      told = null
    } catch (error) {
      const cause = error instanceof Error ? error.message : String(error)
      if (cause !== told)
        log.error({ err: error }, 'cannot read the registry that the processes share; it is tried again')
      told = cause
    }
    polling = null
  }
  const timer = setInterval(() => {
    polling ??= pollOnce()
  }, intervalMs)
  return {
    stop: async () => {
      clearInterval(timer)
      await polling
    },
  }
}

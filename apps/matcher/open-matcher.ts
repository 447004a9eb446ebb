// A matcher on its data directory, from opening the files to serving: the executable and the all-in-one start the same.
import type { Logger } from 'pino'
import { makeDataDirectory } from '../files/data-directory.ts'
import { type MatcherConfig, stateOptionsOf } from './config.ts'
import { startControl } from './control/control-server.ts'
import { DatabaseLink } from './database-link.ts'
import { type RunningMatcher, startMatcher } from './matcher.ts'
import { openState } from './state/open-state.ts'
import { createMatcherMetrics, type MatcherMetrics } from './telemetry.ts'
import { productVersion } from './version.ts'

export type OpenMatcher = RunningMatcher & {
  readonly metrics: MatcherMetrics
  readonly database: DatabaseLink
  /** The version of the vulnerability database in use; 0 without one. */
  dbVersion(): number
}

type Opening = {
  readonly config: MatcherConfig
  readonly log: Logger
  /** Sources of the vulnerability database could not be taken; with the version in use, 0 without one. */
  readonly onFaults?: (dbVersion: number) => void
}

/** Throws when the data directory cannot be used, or an address cannot be served. */
export async function openMatcher({ config, log, onFaults = () => {} }: Opening): Promise<OpenMatcher> {
  makeDataDirectory(config.data_dir)
  const metrics = createMatcherMetrics(productVersion)
  const state = openState(config.data_dir, stateOptionsOf(config, Date.now, log))
  const shared = { config, state, metrics, log, nowMs: Date.now }
  const database: DatabaseLink = new DatabaseLink({ ...shared, onFaults: () => onFaults(database.version) })
  if (await state.takeRestored())
    log.warn('the state was restored from a backup: a resync of each company tells the hub again what is open')
  const matcher = startMatcher({ ...shared, database })
  const control = startControl(config.data_dir, state, log)
  return {
    ...matcher,
    metrics,
    database,
    dbVersion: () => database.version,
    stop: async () => {
      await control.stop()
      await matcher.stop()
    },
  }
}

// What the commands `db …` take from the configuration. They work on a data directory whether a matcher runs on it or
// not: one that runs notices the version that they leave.
import { readFileSync } from 'node:fs'
import { osOf } from '../../../core/matching/os-release.ts'
import { releaseOf } from '../../../core/matching/whose-advisories.ts'
import { loadConfig, type MatcherConfig } from '../config.ts'
import { databaseFolder } from '../database-link.ts'
import { DatabaseVersions } from '../vulndb/database-versions.ts'
import { sourceOfDistro } from '../vulndb/sources/catalogue.ts'
import { databaseStatus } from '../vulndb/status.ts'

/** The distribution whose rows concern this host; empty where it does not say. */
function ownDistro(config: MatcherConfig): string {
  try {
    const os = osOf(readFileSync('/etc/os-release', 'utf8'))
    const options = { centosAsRedhat: config['match.centos_as_redhat'] }
    return (os && releaseOf(os, options)?.databaseDistro) ?? ''
  } catch {
    return ''
  }
}

/** What an update without names fetches: what is there already, else the source of this host's distribution. */
function sourcesOfFolder(folder: string, config: MatcherConfig): readonly string[] {
  const { sources } = databaseStatus(new DatabaseVersions(folder), Date.now())
  if (sources.length > 0) return sources.map(({ name }) => name)
  return [sourceOfDistro(ownDistro(config)) ?? []].flat()
}

export function dbSettings(flags: { config?: string; dataDir?: string }) {
  const config = loadConfig(flags.config, { data_dir: flags.dataDir })
  const folder = databaseFolder(config.data_dir)
  const named = config['db.sources'].filter(source => source !== 'auto')
  return {
    folder,
    sources: named.length > 0 ? named : sourcesOfFolder(folder, config),
    mirror: config['db.mirror'],
    publicKeyFile: config['db.public_key_file'],
    sourceBytesMax: config['db.source_max_bytes'],
  }
}

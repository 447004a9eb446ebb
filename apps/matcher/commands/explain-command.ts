// The command `explain` (MAT-232): which rules were looked at for the packages of a host, and why each hits or not.
import type { Command } from 'commander'
import type { AdvisoryReader } from '../../../core/matching/advisory.ts'
import { explainReport, explanationLines } from '../../../core/matching/explain.ts'
import type { Report } from '../../../core/matching/report-schema.ts'
import { printable } from '../../../core/printable.ts'
import { isUuid } from '../../../core/series/uuid.ts'
import { guarded } from '../../process/executable.ts'
import { loadConfig, stateOptionsOf } from '../config.ts'
import { databaseFolder } from '../database-link.ts'
import { noDatabase } from '../no-database.ts'
import type { StoredHost } from '../state/state-types.ts'
import { DatabaseVersions } from '../vulndb/database-versions.ts'
import { openAdvisories } from '../vulndb/reader.ts'
import { nowOf } from './match-command.ts'
import { callState } from './state-commands.ts'

type ExplainFlags = {
  readonly host: string
  readonly package?: string
  readonly vuln?: string
  readonly json?: boolean
  readonly now?: string
  readonly config?: string
  readonly dataDir?: string
}

/** The database that the matcher of this directory uses. */
function readerOf(dataDir: string): AdvisoryReader & { close?(): void } {
  const current = new DatabaseVersions(databaseFolder(dataDir)).current()
  return current === null ? noDatabase : openAdvisories(current.file)
}

/** What is kept of a host in the form of a report; what matching does not look at is not kept. */
const reportOf = ({ host, instances }: StoredHost): Report => ({
  ...host,
  schema: 1,
  collected_at_ms: 0,
  scanner_version: '',
  machine_id_hash: '',
  kernel: { running: host.kernel.running, build: '', booted_at_ms: 0 },
  reboot_required: false,
  livepatch_active: false,
  modules: {},
  system: instances[0]?.system ?? '',
  packages: {
    name: instances.map(({ name }) => name),
    version: instances.map(({ version }) => version),
    arch: instances.map(({ arch }) => arch),
    source: instances.map(({ source }) => source),
    source_version: instances.map(({ sourceVersion }) => sourceVersion),
    module: instances.map(({ module }) => module),
    vendor: instances.map(({ vendor }) => vendor),
  },
})

async function explain(flags: ExplainFlags): Promise<void> {
  const hostId = flags.host.toLowerCase()
  if (!isUuid(hostId)) throw new Error(`--host ${flags.host} is no id of a scan host`)
  const nowMs = nowOf(flags.now)
  const config = loadConfig(flags.config, { data_dir: flags.dataDir })
  const { stored } = await callState(config, { kind: 'stored_host', hostId })
  if (stored === null || stored === undefined) throw new Error(`no report of the scan host ${hostId} is kept here`)
  const reader = readerOf(config.data_dir)
  const { match: options } = stateOptionsOf(config, Date.now)
  const filter = {
    ...(flags.package === undefined ? {} : { package: flags.package }),
    ...(flags.vuln === undefined ? {} : { vuln: flags.vuln }),
  }
  // As this program's own state has kept it.
  const explanation = explainReport(reportOf(stored as StoredHost), reader, nowMs, options, filter)
  reader.close?.()
  if (flags.json) console.log(JSON.stringify(explanation))
  else for (const line of explanationLines(explanation)) console.log(printable(line))
}

export function registerExplainCommand(program: Command): void {
  program
    .command('explain')
    .description('which rules were looked at for the packages of a host, and why each hits or not')
    .requiredOption('--host <id>', 'the scan host')
    .option('--package <name>', 'a binary or source package; all when left out')
    .option('--vuln <id>', 'a vulnerability; all when left out')
    .option('--json', 'print one JSON object')
    .option('--now <day>', 'the day for ends of support')
    .option('--config <file>', 'configuration, YAML')
    .option('--data-dir <dir>', 'data directory of the matcher')
    .action((_: unknown, command: Command) => guarded(() => explain(command.optsWithGlobals<ExplainFlags>())))
}

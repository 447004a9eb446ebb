// What the parts of a running agent share.
import type { Logger } from 'pino'
import type { Clock } from './clock.ts'
import type { HostFiles } from './collectors/host-files.ts'
import type { StatFsAsker } from './collectors/stat-fs.ts'
import type { AgentOptions } from './config.ts'
import type { SettingsInForce } from './state/settings-in-force.ts'
import type { StateDir } from './state/state-dir.ts'
import type { StatusReport } from './state/status.ts'
import type { Installation } from './update/installation.ts'

export type AgentParts = {
  readonly options: AgentOptions
  readonly log: Logger
  readonly clock: Clock
  readonly random: () => number
  readonly platform: string
  readonly files: HostFiles
  /** A new asker for each user: two must not take each other's open questions for a silent disk. */
  readonly makeAsker: () => StatFsAsker
  readonly dir: StateDir
  readonly status: StatusReport
  readonly settings: SettingsInForce
  /** The first cycle comes at once, and not at its place in the interval. */
  readonly isImpatient: boolean
  /** The executable that updates replace; null for an agent that cannot replace itself. */
  readonly installation: Installation | null
  /** True while this version has yet to prove itself. */
  readonly isOnTrial: () => boolean
}

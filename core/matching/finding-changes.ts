// What became of a server's findings between two looks at it (MAT-150, MAT-151): which were opened, updated and
// resolved, and for which reason.

import type { FindingColumns, ResolvedReason } from './finding-event.ts'
import { distroOf } from './findings-of-host.ts'
import { isKernelImage, isRunning } from './kernel-names.ts'
import type { HostInfo, HostMatch } from './match-status.ts'
import type { PackageInstance } from './package-instance.ts'
import { packageKeyOf } from './rows-of-instance.ts'
import { isThirdParty } from './third-party.ts'

/** The columns whose change is told; scores, aliases and the database's version are not among them. */
const TOLD_COLUMNS = [
  'installed_version',
  'fixed_version',
  'fix_status',
  'fix_channel',
  'severity_label',
  'reboot_required',
  'minor',
] as const

/** What must be kept of an open finding to tell its changes. */
type OpenFinding = Pick<
  FindingColumns,
  | 'kind'
  | 'vuln_id'
  | 'ecosystem'
  | 'package_key'
  | 'packages'
  | 'advisory_ids'
  | 'kernel'
  | (typeof TOLD_COLUMNS)[number]
>

/** The server as it was matched now; of it only what explains why a finding is gone. */
type ChangeCause = {
  readonly match: HostMatch
  readonly host: Pick<HostInfo, 'kernel'>
  readonly instances: readonly PackageInstance[]
  /** Scanning was switched off by the company's settings (MAT-221). */
  readonly isSwitchedOff?: boolean
}

type FindingChanges<Open extends OpenFinding> = {
  readonly opened: readonly FindingColumns[]
  readonly updated: readonly { readonly before: Open; readonly now: FindingColumns }[]
  /** Open before and now, without a change that is told. */
  readonly unchanged: readonly { readonly before: Open; readonly now: FindingColumns }[]
  readonly resolved: readonly { readonly before: Open; readonly reason: ResolvedReason }[]
}

const identityOf = (finding: Pick<FindingColumns, 'kind' | 'ecosystem' | 'package_key' | 'vuln_id'>): string =>
  `${finding.kind}\n${distroOf(finding)}\n${finding.package_key}\n${finding.vuln_id}`

/**
 * Compares the open findings of a server with those found now. Where only some sources were matched again, `open` has
 * theirs only. Not to be called for a report that is not conclusive (`isConclusive`).
 */
export function findingChanges<Open extends OpenFinding>(
  open: readonly Open[],
  found: readonly FindingColumns[],
  cause: ChangeCause,
): FindingChanges<Open> {
  const before = new Map(open.map(finding => [identityOf(finding), finding]))
  const opened: FindingColumns[] = []
  const updated: { before: Open; now: FindingColumns }[] = []
  const unchanged: { before: Open; now: FindingColumns }[] = []
  for (const now of found) {
    const identity = identityOf(now)
    const held = before.get(identity)
    if (!held) {
      opened.push(now)
      continue
    }
    before.delete(identity)
    const pair = { before: held, now }
    if (isToldChange(held, now)) updated.push(pair)
    else unchanged.push(pair)
  }
  const gone = [...before.values()]
  const installed = gone.length > 0 ? new InstalledSources(cause) : undefined
  const resolved = gone.map(finding => ({ before: finding, reason: reasonOf(finding, cause, installed!) }))
  return { opened, updated, unchanged, resolved }
}

/** Whether finding.updated is sent for the difference (MAT-150). */
export function isToldChange(before: OpenFinding, now: OpenFinding): boolean {
  if (TOLD_COLUMNS.some(column => before[column] !== now[column])) return true
  if (before.advisory_ids.length !== now.advisory_ids.length || before.packages.length !== now.packages.length)
    return true
  return (
    now.advisory_ids.some((id, index) => id !== before.advisory_ids[index]) ||
    now.packages.some((each, index) => {
      const held = before.packages[index]!
      return each.name !== held.name || each.version !== held.version || each.arch !== held.arch
    })
  )
}

/** (MAT-151) The first that holds. */
function reasonOf(finding: OpenFinding, cause: ChangeCause, installed: InstalledSources): ResolvedReason {
  const { release, status, isExtended } = cause.match
  if (!release || cause.isSwitchedOff) return 'out_of_scope'
  if (finding.ecosystem !== release.ecosystem) return 'release_upgraded'
  // The same release lives longer: by an extension that was attached, or by what is known of its end.
  if (finding.kind === 'release_eol') return isExtended ? 'out_of_scope' : 'advisory_changed'
  const instances = installed.of(finding)
  if (instances.length === 0) return 'package_removed'
  const isSame = finding.packages.every(({ name, version, arch }) =>
    instances.some(
      each =>
        each.name === name &&
        each.version === version &&
        each.arch === arch &&
        (!finding.kernel || isRunning(each, cause.host.kernel.running)),
    ),
  )
  if (!isSame) return 'package_updated'
  return status === 'unsupported_release' || instances.every(isThirdParty) ? 'out_of_scope' : 'advisory_changed'
}

/** The instances of each source, of kernels the images only; whether they can be matched or not. */
class InstalledSources {
  private readonly bySource = new Map<string, PackageInstance[]>()

  constructor(cause: ChangeCause) {
    for (const instance of cause.instances) {
      const key = packageKeyOf(instance)
      const known = this.bySource.get(key)
      if (known) known.push(instance)
      else this.bySource.set(key, [instance])
    }
  }

  of(finding: OpenFinding): readonly PackageInstance[] {
    const instances = this.bySource.get(finding.package_key) ?? []
    return finding.kernel ? instances.filter(isKernelImage) : instances
  }
}

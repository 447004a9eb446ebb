// The open findings of a host and those found now → what is open, and what is told of it (MAT-149 to MAT-151).

import { findingChanges } from '../../../core/matching/finding-changes.ts'
import type { FindingColumns } from '../../../core/matching/finding-event.ts'
import type { HostMatch } from '../../../core/matching/match-status.ts'
import type { FindingContents } from './finding-contents.ts'
import type { InstanceRows } from './instance-rows.ts'
import type { OpenFindings } from './open-findings.ts'
import type { WaitingEvent } from './waiting-event.ts'

type HostChange = {
  /** Null when nothing of it changed. */
  readonly open: OpenFindings | null
  readonly events: readonly WaitingEvent[]
}

type FoundNow = {
  readonly ids: ReadonlySet<number>
  /** The groups that were matched; all when null. */
  readonly onlyGroups: ReadonlySet<number> | null
  readonly match: HostMatch
  readonly kernelRunning: string
  /** The host's instances as they are now; of the matched groups all. */
  readonly list: Int32Array
  readonly isSwitchedOff: boolean
}

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** In the order package_key, vuln_id, so that equal changes are told alike. */
const inOrder = (a: FindingColumns, b: FindingColumns): number =>
  byText(a.package_key, b.package_key) || byText(a.vuln_id, b.vuln_id)

export class HostChanges {
  readonly #contents: FindingContents
  readonly #instances: InstanceRows

  constructor(contents: FindingContents, instances: InstanceRows) {
    this.#contents = contents
    this.#instances = instances
  }

  /** `atMs` is when findings that open now were first seen. */
  compare(open: OpenFindings, now: FoundNow, atMs: number): HostChange {
    const gone: number[] = []
    for (const id of open.keys()) {
      const isMatched = now.onlyGroups === null || now.onlyGroups.has(this.#contents.groupOf(id))
      if (isMatched && !now.ids.has(id)) gone.push(id)
    }
    const came = [...now.ids].filter(id => !open.has(id))
    if (gone.length === 0 && came.length === 0) return { open: null, events: [] }
    const numberOf = new Map([...gone, ...came].map(id => [this.#contents.columns(id), id]))
    const columns = (ids: readonly number[]) => ids.map(id => this.#contents.columns(id)).sort(inOrder)
    const changes = findingChanges(columns(gone), columns(came), {
      match: now.match,
      host: { kernel: { running: now.kernelRunning } },
      instances: gone.length > 0 ? this.#instancesOf(gone, now.list) : [],
      isSwitchedOff: now.isSwitchedOff,
    })
    const after: OpenFindings = new Map(open)
    const events: WaitingEvent[] = []
    const replace = (before: FindingColumns, columnsNow: FindingColumns): { finding: number; firstSeenMs: number } => {
      const [old, finding] = [numberOf.get(before)!, numberOf.get(columnsNow)!]
      const firstSeenMs = open.get(old)!
      after.delete(old)
      after.set(finding, firstSeenMs)
      return { finding, firstSeenMs }
    }
    for (const { before, reason } of changes.resolved) {
      const finding = numberOf.get(before)!
      after.delete(finding)
      events.push({ type: 'finding.resolved', finding, reason })
    }
    for (const pair of changes.unchanged) replace(pair.before, pair.now)
    for (const pair of changes.updated) events.push({ type: 'finding.updated', ...replace(pair.before, pair.now) })
    for (const opened of changes.opened) {
      const finding = numberOf.get(opened)!
      after.set(finding, atMs)
      events.push({ type: 'finding.opened', finding, firstSeenMs: atMs })
    }
    return { open: after, events }
  }

  /** The installed packages of the sources whose findings are gone: they explain why. */
  #instancesOf(findings: readonly number[], list: Int32Array) {
    const groups = new Set(findings.map(id => this.#contents.groupOf(id)))
    const instances = []
    for (let at = 0; at < list.length; at++)
      if (groups.has(this.#instances.groupOf(list[at]!))) instances.push(this.#instances.get(list[at]!))
    return instances
  }
}

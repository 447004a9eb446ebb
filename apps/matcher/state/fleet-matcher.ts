// Findings of hosts from what the database says of instances, each thing made once for the fleet (MAT-180): verdicts by
// instance, findings by the instances of one source. A host is then put together from numbers (MAT-181, MAT-182).
import type { AdvisoryReader } from '../../../core/matching/advisory.ts'
import { dayOf } from '../../../core/matching/end-of-life.ts'
import { findingsOfHost } from '../../../core/matching/findings-of-host.ts'
import { isKernelSource } from '../../../core/matching/kernel-names.ts'
import { type HostInfo, type HostMatch, hostMatch, releaseEndFinding } from '../../../core/matching/match-status.ts'
import type { PackageInstance } from '../../../core/matching/package-instance.ts'
import type { ScanErrorCode } from '../../../core/matching/report-schema.ts'
import { lookUpOf, packageKeyOf, rowKeysOf } from '../../../core/matching/rows-of-instance.ts'
import { evaluateInstance, type Verdict } from '../../../core/matching/verdict.ts'
import type { ContextRows, HostContext } from './context-rows.ts'
import { digestOf } from './digest.ts'
import type { FindingContents } from './finding-contents.ts'
import type { InstanceKeys, InstanceRows } from './instance-rows.ts'
import { NumberColumn, RecentMap } from './recent-map.ts'
import type { StateOptions } from './state-types.ts'
import type { StateWriter } from './state-writer.ts'

/** The group of all kernels: a newer image of another source counts for the running one too (MAT-124). */
const KERNEL_GROUP = '\nkernel'
/** The group of the one finding of a release past its end. */
const RELEASE_GROUP = '\nrelease'

const GROUPS_KEPT = 300_000
const VERDICTS_KEPT = 300_000
const RULE_COUNTS_KEPT = 100_000

/** What holds of all hosts of a context with the database and on the day in use. */
type ContextMatch = {
  readonly match: HostMatch
  /** Findings depend on the context through this only (and the running kernel): another key, other findings. */
  readonly key: string
  /** False without a database: nothing is opened or resolved then (MAT-153). */
  readonly isMatched: boolean
}

type FoundOfHost = {
  /** Numbers of finding contents. */
  readonly ids: Set<number>
  readonly errorCodes: ReadonlySet<ScanErrorCode>
}

type GroupFindings = {
  readonly ids: readonly number[]
  readonly isModuleUnknown: boolean
  readonly hasNoKernel: boolean
}

/**
 * Rules that one report may have looked at: the largest honest servers need some hundred thousand. A list that was made
 * of thousands of versions of the source with most rules would hold up the reports of everybody.
 */
const RULES_MAX = 4_000_000
/** Lists of so many packages cannot have more: no source has more than some thousand rules. */
const PACKAGES_UNCOUNTED = 500

/** What the database says of an instance: not asked yet, nothing, something. */
const UNKNOWN = 0
const NO_HITS = 1
const HITS = 2

/** What an instance says by itself, whatever the database. */
const THIRD_PARTY = 2
const VERSION_INVALID = 3

export function instanceKeys(instance: PackageInstance): InstanceKeys {
  const packageKey = packageKeyOf(instance)
  const matched = lookUpOf(instance)
  if (typeof matched === 'string')
    return { packageKey: isKernelSource(instance.system, packageKey) ? KERNEL_GROUP : packageKey, lookups: [] }
  return { packageKey: matched.isKernel ? KERNEL_GROUP : packageKey, lookups: rowKeysOf(matched) }
}

export class FleetMatcher {
  readonly #instances: InstanceRows
  readonly #contexts: ContextRows
  readonly #contents: FindingContents
  readonly #options: StateOptions
  #reader: AdvisoryReader
  #day = ''
  /** By number of the instance. */
  readonly #hits = new NumberColumn()
  readonly #kinds = new NumberColumn()
  readonly #counts = new NumberColumn()
  readonly #verdicts = new RecentMap<number, readonly Verdict[]>(VERDICTS_KEPT)
  readonly #groups = new RecentMap<string, GroupFindings>(GROUPS_KEPT)
  /** By package: how many rules of the database may speak of it. */
  readonly #ruleCounts = new RecentMap<string, number>(RULE_COUNTS_KEPT)
  readonly #matches = new RecentMap<number, ContextMatch>(20_000)
  /** Support keys are long: groups are remembered under a number for each. */
  readonly #keyNumbers = new Map<string, number>()

  constructor(parts: {
    readonly instances: InstanceRows
    readonly contexts: ContextRows
    readonly contents: FindingContents
    readonly options: StateOptions
    readonly writer: StateWriter
    readonly reader: AdvisoryReader
  }) {
    this.#instances = parts.instances
    this.#contexts = parts.contexts
    this.#contents = parts.contents
    this.#options = parts.options
    this.#reader = parts.reader
    parts.writer.onRollback(() => this.forget())
  }

  get reader(): AdvisoryReader {
    return this.#reader
  }

  /** Matches with another database from now on. */
  use(reader: AdvisoryReader): void {
    this.#reader = reader
    this.forget()
  }

  /** Forgets all that was made: the database or the day is another, or numbers were rolled back. */
  forget(): void {
    this.#hits.clear()
    this.#kinds.clear()
    this.#counts.clear()
    this.#verdicts.clear()
    this.#groups.clear()
    this.#ruleCounts.clear()
    this.#matches.clear()
    this.#keyNumbers.clear()
  }

  /** The row of a context was deleted: its number may be given to another. */
  forgetContext(id: number): void {
    this.#matches.delete(id)
  }

  /** To be called before hosts are matched: a day that has passed may have ended the support of a release. */
  keepDay(nowMs: number): void {
    const day = dayOf(nowMs)
    if (day === this.#day) return
    this.#day = day
    this.#matches.clear()
  }

  /** Whether more rules would have to be looked at for a list than one host may ask for. */
  isTooMuch(list: Int32Array): boolean {
    if (list.length <= PACKAGES_UNCOUNTED) return false
    let rules = 0
    for (let at = 0; at < list.length; at++) {
      // One more than the count, so that 0 stands for what was not counted yet.
      let counted = this.#counts.get(list[at]!)
      if (counted === 0) {
        counted = this.#countRules(this.#instances.get(list[at]!)) + 1
        this.#counts.set(list[at]!, counted)
      }
      rules += counted - 1
      if (rules > RULES_MAX) return true
    }
    return false
  }

  /** Counted once for all versions of a package, of which some may be another vendor's and have no rules at all. */
  #countRules(instance: PackageInstance): number {
    const { system, release, source, name, module } = instance
    const text = `${system}\n${release}\n${source}\n${name}\n${module}`
    const known = this.#ruleCounts.get(text)
    if (known !== undefined) return known
    const matched = lookUpOf(instance)
    // Another version of it may be the distribution's, or valid.
    if (matched === 'third_party' || matched === 'version_invalid') return 0
    const keys = typeof matched === 'string' ? [] : rowKeysOf(matched)
    const rules = keys.reduce(
      (sum, key) => sum + (this.#reader.affected(key.release, key.package, key.by)?.rules.length ?? 0),
      0,
    )
    this.#ruleCounts.set(text, rules)
    return rules
  }

  matchOf(context: number): ContextMatch {
    const known = this.#matches.get(context)
    if (known !== undefined) return known
    const made = this.matchOfContext(this.#contexts.get(context))
    this.#matches.set(context, made)
    return made
  }

  matchOfContext(context: HostContext): ContextMatch {
    const match = hostMatch(context, this.#reader, Date.parse(this.#day), this.#options.match)
    const { status, release, endedOn, isExtended, upgradeTo } = match
    const { undetermined, rebuildsUnfixed } = this.#options.match
    const parts = [status, release, endedOn, isExtended, upgradeTo, undetermined, rebuildsUnfixed]
    return { match, key: JSON.stringify(parts), isMatched: status !== 'no_db' }
  }

  verdicts(instance: number): readonly Verdict[] {
    const known = this.#verdicts.get(instance)
    if (known !== undefined) return known
    const made = evaluateInstance(this.#instances.get(instance), this.#reader, this.#options.match)
    this.#verdicts.set(instance, made)
    this.#hits.set(instance, made.length > 0 ? HITS : NO_HITS)
    return made
  }

  /** What another database says of an instance; nothing of it is kept. */
  verdictsOf(instance: number, reader: AdvisoryReader): readonly Verdict[] {
    return evaluateInstance(this.#instances.get(instance), reader, this.#options.match)
  }

  /**
   * The findings of a host with these instances (sorted numbers); of some groups only, when they are given. Interns
   * contents: within a work of the writer only.
   */
  find(contextId: number, list: Int32Array, onlyGroups: ReadonlySet<number> | null): FoundOfHost {
    const context = this.#contexts.get(contextId)
    const { match, key, isMatched } = this.matchOf(contextId)
    const errorCodes = new Set<ScanErrorCode>()
    const ids = new Set<number>()
    const kernelGroup = this.#instances.internGroup(KERNEL_GROUP)
    const members = this.#membersWithHits(list, onlyGroups, kernelGroup, isMatched, errorCodes)
    if (match.release === undefined) return { ids, errorCodes }
    const keyNumber = this.#keyNumbers.get(key) ?? this.#keyNumbers.size
    this.#keyNumbers.set(key, keyNumber)
    if (onlyGroups === null && !members.has(kernelGroup)) members.set(kernelGroup, [])
    for (const [group, instances] of members) {
      const isKernel = group === kernelGroup
      const found = this.#groupFindings(context, keyNumber, group, isKernel, instances)
      for (const id of found.ids) ids.add(id)
      if (found.isModuleUnknown) errorCodes.add('module_unknown')
      if (isKernel && found.hasNoKernel && list.length > 0) errorCodes.add('kernel_unpackaged')
    }
    const end = onlyGroups === null ? releaseEndFinding(match) : undefined
    if (end) ids.add(this.#contents.intern(end, this.#instances.internGroup(RELEASE_GROUP)))
    return { ids, errorCodes }
  }

  /** The instances of each group of which the database says anything, and of all kernels. */
  #membersWithHits(
    list: Int32Array,
    onlyGroups: ReadonlySet<number> | null,
    kernelGroup: number,
    isMatched: boolean,
    errorCodes: Set<ScanErrorCode>,
  ): Map<number, number[]> {
    const members = new Map<number, number[]>()
    const looked: number[] = []
    for (let at = 0; at < list.length; at++) {
      const instance = list[at]!
      const group = this.#instances.groupOf(instance)
      if (onlyGroups === null) {
        const kind = this.#kindOf(instance)
        if (kind === THIRD_PARTY) errorCodes.add('third_party_packages')
        else if (kind === VERSION_INVALID) errorCodes.add('version_invalid')
      } else if (!onlyGroups.has(group)) continue
      looked.push(instance)
      if (group === kernelGroup || (isMatched && !members.has(group) && this.#hasHits(instance))) members.set(group, [])
    }
    for (const instance of looked) members.get(this.#instances.groupOf(instance))?.push(instance)
    return members
  }

  #hasHits(instance: number): boolean {
    let hits = this.#hits.get(instance)
    if (hits === UNKNOWN) hits = this.verdicts(instance).length > 0 ? HITS : NO_HITS
    return hits === HITS
  }

  #kindOf(instance: number): number {
    let kind = this.#kinds.get(instance)
    if (kind === UNKNOWN) {
      const matched = lookUpOf(this.#instances.get(instance))
      kind = matched === 'third_party' ? THIRD_PARTY : matched === 'version_invalid' ? VERSION_INVALID : 1
      this.#kinds.set(instance, kind)
    }
    return kind
  }

  #groupFindings(
    context: HostContext,
    keyNumber: number,
    group: number,
    isKernel: boolean,
    instances: readonly number[],
  ): GroupFindings {
    const kernel = isKernel ? `${context.kernel.running}\n${context.is_contained}` : ''
    const name = groupName(`${keyNumber}\n${instances.join()}\n${kernel}`)
    const known = this.#groups.get(name)
    if (known?.ids.every(id => this.#contents.isKept(id))) return known
    const numberOf = new Map(instances.map(id => [this.#instances.get(id), id]))
    const found = findingsOfHost({
      host: hostInfo(context),
      instances: [...numberOf.keys()],
      verdictsOf: instance => this.verdicts(numberOf.get(instance)!),
      reader: this.#reader,
      nowMs: Date.parse(this.#day),
      options: this.#options.match,
    })
    const ids = found.findings
      .filter(({ kind }) => kind === 'vulnerability')
      .map(columns => this.#contents.intern(columns, group))
    const made = {
      ids,
      isModuleUnknown: found.error_codes.includes('module_unknown'),
      hasNoKernel:
        context.kernel.running !== '' && (instances.length === 0 || found.error_codes.includes('kernel_unpackaged')),
    }
    this.#groups.set(name, made)
    return made
  }
}

/** Of a group with a great many members its digest: the memory of groups is counted in groups. */
const groupName = (text: string): string =>
  text.length <= 1024 ? text : Buffer.from(digestOf(text)).toString('latin1')

export function hostInfo(context: HostContext): HostInfo {
  const { os, esm, elts, kernel } = context
  return { os, esm, elts, kernel, error_codes: context.is_contained ? ['kernel_unpackaged'] : [] }
}

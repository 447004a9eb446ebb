// Brings the hosts of the fleet to a new database, or to a day on which the support of a release ended (MAT-128,
// MAT-182 to MAT-184). Only hosts with a package of a changed key, or of a changed context, are read. It runs in slices
// between reports, and goes on where it was after a kill.
import type { AdvisoryReader } from '../../../core/matching/advisory.ts'
import { SWITCHED_OFF } from './host-rows.ts'
import { advisoryKeyText } from './instance-rows.ts'
import { NumberSet } from './recent-map.ts'
import { type RematchHead, RematchJournal } from './rematch-journal.ts'
import type { StateParts } from './state-parts.ts'
import type { AdvisoryKey, RematchProgress } from './state-types.ts'
import { TimeSlice } from './time-slice.ts'

const KEYS_AT_ONCE = 2_000
/** How often a re-match that is paused looks whether the outbox has room again. */
const PAUSE_MS = 100
/** How long a re-match that failed waits. */
const RETRY_MS = 10_000

const PARTLY = 1
const WHOLLY = 2

type Plan = {
  /** Ascending, behind the last one that is done. */
  readonly hosts: Int32Array
  /** By host: PARTLY or WHOLLY. */
  readonly marks: Uint8Array
  /** Instances of which the databases say different things. */
  readonly changed: NumberSet
}

export class Rematch {
  readonly #parts: StateParts
  readonly #journal: RematchJournal
  readonly #whenLoaded: Promise<void>
  readonly #onError: (what: string, error: unknown) => void
  readonly #hostsOfContext
  readonly #lastHost
  #previous: AdvisoryReader | null = null
  /** Another switch or another day makes another plan. */
  #generation = 0
  #isRunning = false
  #isClosed = false
  #idle = Promise.withResolvers<void>()
  #progress: RematchProgress = {
    state: 'idle',
    dbVersion: 0,
    startedAtMs: null,
    keys: 0,
    hostsRead: 0,
    hostsChanged: 0,
    hostsLeft: 0,
    lastSeconds: null,
  }

  constructor(parts: StateParts, whenLoaded: Promise<void>, onError: (what: string, error: unknown) => void) {
    this.#parts = parts
    this.#onError = onError
    this.#whenLoaded = whenLoaded
    this.#journal = new RematchJournal(parts.database, parts)
    this.#hostsOfContext = parts.database.prepare<{ readonly id: number }, [number]>(
      'SELECT id FROM host WHERE context = ? AND list IS NOT NULL',
    )
    this.#lastHost = parts.database.prepare<{ readonly id: number | null }, []>('SELECT max(id) AS id FROM host')
  }

  get progress(): RematchProgress {
    const { state } = this.#progress
    // One that is written down goes on, or is about to.
    const isWaiting = state === 'idle' && !this.#isClosed && this.#journal.head() !== null
    const dbVersion = this.#parts.matcher.reader.version
    return { ...this.#progress, state: isWaiting ? 'running' : state, dbVersion }
  }

  /** Resolves when nothing is left to do. */
  finished(): Promise<void> {
    return this.#isRunning ? this.#idle.promise : Promise.resolve()
  }

  async startWith(reader: AdvisoryReader, previous: AdvisoryReader | null): Promise<void> {
    this.#parts.matcher.keepDay(this.#parts.options.now())
    this.#parts.matcher.use(reader)
    await this.#parts.writer.write(() => this.#journal.dropKeysAbove(Number(this.#parts.meta('current') ?? 0)))
    const head = this.#journal.head()
    this.#previous = head !== null && previous !== null && previous.version === head.from ? previous : null
    await this.#lookAtContexts()
    this.#start()
  }

  async switchTo(reader: AdvisoryReader, changed: Iterable<AdvisoryKey>): Promise<void> {
    const { writer, matcher, options } = this.#parts
    const version = reader.version
    for (const keys of inPortions(changed, KEYS_AT_ONCE)) await writer.write(() => this.#journal.addKeys(keys, version))
    const before = matcher.reader
    try {
      await writer.write(() => {
        const unfinished = this.#journal.head()
        const from = unfinished === null && before.version !== 0 ? before.version : null
        const nowMs = options.now()
        this.#parts.putMeta('current', String(version))
        this.#journal.putHead({ target: version, from, afterHost: 0, startedAtMs: nowMs })
        matcher.use(reader)
        matcher.keepDay(nowMs)
        this.#journal.markContexts()
        this.#previous = from === null ? null : before
        this.#generation++
      })
    } catch (error) {
      matcher.use(before)
      throw error
    }
    this.#start()
  }

  /** Looks whether the day has ended the support of a release. */
  async dayChanged(): Promise<void> {
    this.#parts.matcher.keepDay(this.#parts.options.now())
    await this.#lookAtContexts()
    this.#start()
  }

  /** Resolves when the slice that runs has ended. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.finished()
  }

  async #lookAtContexts(): Promise<void> {
    await this.#parts.writer.write(() => {
      if (!this.#journal.markContexts()) return
      const head = this.#journal.head()
      const target = this.#parts.matcher.reader.version
      const startedAtMs = head?.startedAtMs ?? this.#parts.options.now()
      this.#journal.putHead({ target, from: head?.from ?? null, afterHost: 0, startedAtMs })
      this.#generation++
    })
  }

  #start(): void {
    if (this.#isRunning || this.#isClosed || this.#journal.head() === null) return
    this.#isRunning = true
    this.#idle = Promise.withResolvers()
    void this.#runToEnd().finally(() => {
      this.#isRunning = false
      this.#progress = { ...this.#progress, state: 'idle' }
      this.#idle.resolve()
    })
  }

  /** What fails, as on a full disk, is tried again: the journal says where to go on. */
  async #runToEnd(): Promise<void> {
    await this.#whenLoaded
    while (!this.#isClosed) {
      try {
        return await this.#run()
      } catch (error) {
        this.#onError('cannot match hosts again; it is tried again', error)
        for (let waited = 0; waited < RETRY_MS && !this.#isClosed; waited += PAUSE_MS) await pause()
      }
    }
  }

  async #run(): Promise<void> {
    for (let head = this.#journal.head(); head !== null && !this.#isClosed; head = this.#journal.head()) {
      const beganMs = performance.now()
      const generation = this.#generation
      this.#progress = {
        ...this.#progress,
        state: 'running',
        startedAtMs: head.startedAtMs,
        hostsRead: 0,
        hostsChanged: 0,
        hostsLeft: 0,
      }
      const plan = await this.#plan(head, generation)
      if (plan !== null) await this.#matchHosts(plan, head, generation)
      if (this.#isClosed || generation !== this.#generation) continue
      const { target } = head
      await this.#parts.writer.write(() => {
        // A switch that came in the same transaction has its own journal.
        if (generation === this.#generation) this.#journal.finish(target)
      })
      this.#previous = null
      this.#progress = { ...this.#progress, lastSeconds: (performance.now() - beganMs) / 1000 }
    }
  }

  /** Null when it was overtaken. */
  async #plan(head: RematchHead, generation: number): Promise<Plan | null> {
    const { instances, inventory } = this.#parts
    const slice = new TimeSlice()
    const isOvertaken = (): boolean => this.#isClosed || generation !== this.#generation
    const keys = this.#journal.keys()
    this.#progress = { ...this.#progress, keys: keys.length }
    const changed = new Set<number>()
    for (const key of keys)
      for (const instance of instances.ofKey(key)) {
        if (!changed.has(instance) && instances.has(instance) && this.#isOther(instance)) changed.add(instance)
        await slice.yieldIfDue()
        if (isOvertaken()) return null
      }
    const marks = new Uint8Array((this.#lastHost.get()?.id ?? 0) + 1)
    const changedSet = new NumberSet()
    for (const instance of changed) {
      changedSet.add(instance)
      inventory.index.forEach(instance, slot => {
        const host = inventory.hostOf(slot)
        if (host < marks.length) marks[host] = PARTLY
      })
      await slice.yieldIfDue()
      if (isOvertaken()) return null
    }
    for (const context of this.#journal.contexts())
      for (const { id } of this.#hostsOfContext.all(context)) if (id < marks.length) marks[id] = WHOLLY
    // Number 0 stands for hosts that have lost their inventory.
    marks[0] = 0
    const hosts: number[] = []
    for (let host = head.afterHost + 1; host < marks.length; host++) if (marks[host] !== 0) hosts.push(host)
    this.#progress = { ...this.#progress, hostsLeft: hosts.length }
    return { hosts: Int32Array.from(hosts), marks, changed: changedSet }
  }

  /** Whether the databases say different things of an instance; yes when the one of before is not at hand. */
  #isOther(instance: number): boolean {
    if (this.#previous === null) return true
    const before = this.#parts.matcher.verdictsOf(instance, this.#previous)
    const now = this.#parts.matcher.verdicts(instance)
    if (before.length === 0 && now.length === 0) return false
    return before.length !== now.length || JSON.stringify(before) !== JSON.stringify(now)
  }

  async #matchHosts(plan: Plan, head: RematchHead, generation: number): Promise<void> {
    const { writer, outbox } = this.#parts
    let done = 0
    while (done < plan.hosts.length && !this.#isClosed && generation === this.#generation) {
      if (outbox.isFull) {
        this.#progress = { ...this.#progress, state: 'paused' }
        await pause()
        continue
      }
      const from = done
      const result = await writer.write(() => {
        // Since this was asked for, a switch may have come.
        if (generation !== this.#generation) return { to: from, changed: 0 }
        return this.#matchSome(plan, head, from)
      })
      done = result.to
      this.#progress = {
        ...this.#progress,
        state: 'running',
        hostsRead: done,
        hostsChanged: this.#progress.hostsChanged + result.changed,
        hostsLeft: plan.hosts.length - done,
      }
    }
  }

  #matchSome(plan: Plan, head: RematchHead, from: number): { readonly to: number; readonly changed: number } {
    const endsAt = performance.now() + this.#parts.writer.sliceMs
    let to = from
    let changed = 0
    do {
      const host = plan.hosts[to++]!
      if (this.#matchHost(host, plan.marks[host] === WHOLLY ? null : plan.changed)) changed++
    } while (to < plan.hosts.length && performance.now() < endsAt)
    this.#journal.putHead({ ...head, afterHost: plan.hosts[to - 1]! })
    return { to, changed }
  }

  /** True when anything was told of the host. All its packages are looked at when `changed` is null. */
  #matchHost(hostId: number, changed: NumberSet | null): boolean {
    const { hosts, matcher, changes, contexts, outbox, options } = this.#parts
    const host = hosts.byId.get(hostId)
    // Purged, revoked or forgotten since; or waiting for its next report, since scanning was switched off.
    if (host === null || host.context === null || host.is_stale === SWITCHED_OFF) return false
    const list = this.#parts.listOf(host)
    const { match, isMatched } = matcher.matchOf(host.context)
    if (list === null || !isMatched) return false
    const onlyGroups = changed === null || host.is_stale !== 0 ? null : this.#groupsOf(list, changed)
    if (onlyGroups?.size === 0) return false
    // What other packages the host has changes nothing of these groups.
    const looked = onlyGroups === null ? list : this.#membersOf(onlyGroups, list)
    const { ids } = matcher.find(host.context, looked, onlyGroups)
    const kernelRunning = contexts.get(host.context).kernel.running
    const open = this.#parts.openFindings(hostId)
    const nowMs = options.now()
    const now = { ids, onlyGroups, match, kernelRunning, list: looked, isSwitchedOff: false }
    const change = changes.compare(open, now, nowMs)
    if (change.open !== null) this.#parts.putFindings(hostId, change.open)
    if (change.open === null && host.is_stale === 0) return false
    const lastSeq = outbox.tell(host, change.events, nowMs, nowMs, matcher.reader.version)
    hosts.afterRematch.run(lastSeq, (change.open ?? open).size, 0, hostId)
    return change.events.length > 0
  }

  /** The groups of a host's packages that changed. */
  #groupsOf(list: Int32Array, changed: NumberSet): Set<number> {
    const groups = new Set<number>()
    for (let at = 0; at < list.length; at++)
      if (changed.has(list[at]!)) groups.add(this.#parts.instances.groupOf(list[at]!))
    return groups
  }

  #membersOf(groups: ReadonlySet<number>, list: Int32Array): Int32Array {
    const { instances } = this.#parts
    return list.filter(instance => groups.has(instances.groupOf(instance)))
  }
}

const pause = (): Promise<void> => new Promise(resolve => setTimeout(resolve, PAUSE_MS))

function* inPortions(keys: Iterable<AdvisoryKey>, count: number): Generator<string[]> {
  let portion: string[] = []
  for (const key of keys) {
    portion.push(advisoryKeyText(key))
    if (portion.length < count) continue
    yield portion
    portion = []
  }
  if (portion.length > 0) yield portion
}

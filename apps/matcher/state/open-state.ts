// The store of a matcher, opened: every act of MatcherState, and the jobs that go on beside them.
import type { Database } from 'bun:sqlite'
import type { MatchStatus } from '../../../core/matching/finding-event.ts'
import { ecosystemOf, releaseOf } from '../../../core/matching/whose-advisories.ts'
import { ReportIntake } from './apply-report.ts'
import { Sweep } from './clean-up.ts'
import { SettingsRows } from './company-settings.ts'
import { DeadLetters } from './dead-letters.ts'
import { Delivery } from './delivery.ts'
import { HostFeed } from './host-feed.ts'
import { PackageSearch } from './package-search.ts'
import { Purges } from './purge.ts'
import { References } from './references.ts'
import { Rematch } from './rematch.ts'
import { Resyncs } from './resync.ts'
import { Retellings } from './retelling.ts'
import { backupState } from './state-backup.ts'
import { ensureStateDir, lockState, openStateDatabase } from './state-database.ts'
import { StateParts } from './state-parts.ts'
import type { MatcherState, StateCounters, StateOptions } from './state-types.ts'
import { runSteps } from './time-slice.ts'
import { Tombstones } from './tombstones.ts'

/** Counts over all hosts are made anew when they are older: metrics and readiness ask for them all the time. */
const COUNTED_MS = 2_000

type CountRow = { readonly context: number | null; readonly hosts: number; readonly findings: number }

/** Opens the state of a data directory, which is made when there is none. Throws when another matcher has it. */
export function openState(dir: string, options: StateOptions): MatcherState {
  ensureStateDir(dir)
  const lock = lockState(dir)
  try {
    return stateOf(dir, openStateDatabase(dir), options, lock)
  } catch (error) {
    lock.release()
    throw error
  }
}

function stateOf(
  dir: string,
  database: Database,
  options: StateOptions,
  lock: { readonly release: () => void },
): MatcherState {
  const parts = new StateParts(database, options)
  keepCentos(database, parts)
  readVersionsAnew(database, parts)
  const tombstones = new Tombstones(database)
  const settings = new SettingsRows(database)
  const retellings = new Retellings(database, parts)
  let isClosed = false
  const isStopped = (): boolean => isClosed
  const whenLoaded = runSteps(parts.inventory.load(), isStopped)
  const sweep = new Sweep(database, parts, tombstones, settings)
  // One after the other, and not before the index is there.
  let sweeping = whenLoaded
  const hub = hubActs(database, parts, { tombstones, retellings }, isStopped)
  const jobs = databaseActs(database, parts, whenLoaded, isStopped)
  return {
    ...hostActs(database, parts, { tombstones, settings, retellings }),
    ...jobs.acts,
    ...hub.acts,
    settings: companyId => settings.get(companyId),
    putSettings: held => parts.writer.write(() => settings.put(held, options.now())),
    sweep: () => {
      const run = sweeping
        .catch(() => {})
        .then(() => {
          hub.purges.start()
          return hub.purges.finished().then(() => sweep.run(isStopped))
        })
      sweeping = run
      return run
    },
    loaded: () => whenLoaded,
    takeRestored: () => takeRestored(parts),
    backup: file => backupState(dir, file),
    close: async () => {
      isClosed = true
      await Promise.all([jobs.end(), whenLoaded, hub.purges.finished(), sweeping.catch(() => {})])
      parts.writer.close()
      database.close()
      lock.release()
    },
  }
}

/**
 * Packages of CentOS are held under Red Hat's release or under none, as `match.centos_as_redhat` says. When that has
 * changed, the next report of each such host is asked for whole, and its packages are held anew.
 */
function keepCentos(database: Database, parts: StateParts): void {
  const { match } = parts.options
  const held = parts.meta('centos_as_redhat')
  const now = String(match.centosAsRedhat)
  if (held === now) return
  const name = database.prepare<unknown, [string, number]>('UPDATE context SET ecosystem = ? WHERE id = ?')
  const ask = database.prepare<unknown, [number]>("UPDATE host SET content_hash = '' WHERE context = ?")
  database
    .transaction(() => {
      for (const { id, ecosystem } of held === null ? [] : parts.contexts.all()) {
        if (!ecosystem.startsWith('centos:')) continue
        name.run(ecosystemOf(parts.contexts.get(id).os, match), id)
        ask.run(id)
      }
      parts.putMeta('centos_as_redhat', now)
    })
    .immediate()
}

/**
 * A state from before versions of hosts were those of their records holds their places in the feed instead, against
 * which a record would be an old one: every record is read once more, and any of them is newer than nothing.
 */
function readVersionsAnew(database: Database, parts: StateParts): void {
  if (parts.meta('host_versions') === 'of_records') return
  database
    .transaction(() => {
      database.run('UPDATE host SET version = 0')
      database.run('UPDATE refused SET version = 0')
      parts.putMeta('feed_since', '0')
      parts.putMeta('host_versions', 'of_records')
    })
    .immediate()
}

async function takeRestored(parts: StateParts): Promise<boolean> {
  if (parts.meta('restored') !== '1') return false
  await parts.writer.write(() => parts.putMeta('restored', '0'))
  return true
}

/** What the scan API and the feed of hosts ask for. */
function hostActs(
  database: Database,
  parts: StateParts,
  {
    tombstones,
    settings,
    retellings,
  }: { readonly tombstones: Tombstones; readonly settings: SettingsRows; readonly retellings: Retellings },
) {
  const feed = new HostFeed(database, parts, tombstones, retellings)
  const intake = new ReportIntake(parts, tombstones, settings)
  return {
    feed: () => feed.cursor(),
    applyHostsPage: (...page) => feed.applyPage(...page),
    enrolled: (host, machineIdHash) => feed.enrolled(host, machineIdHash),
    host: hostId => feed.host(hostId),
    storedHost: hostId => feed.stored(hostId),
    seenTold: (hostId, atMs) => feed.seenTold(hostId, atMs),
    acceptReport: input => parts.writer.write(() => intake.accept(input)),
    distrosSeen: () => distrosOf(parts),
  } satisfies Partial<MatcherState>
}

/** What becomes of another database or another day, and the jobs that it starts. */
function databaseActs(database: Database, parts: StateParts, whenLoaded: Promise<void>, isStopped: () => boolean) {
  const onError = parts.options.onError ?? (() => {})
  const rematch = new Rematch(parts, whenLoaded, onError)
  const references = new References(database, parts)
  /** What was begun without being waited for. */
  let begun: Promise<void> = Promise.resolve()
  const begin = (what: string, work: () => Promise<void>): void => {
    begun = begun.then(work).catch(error => {
      if (!isStopped()) onError(what, error)
    })
  }
  const checkReferences = (): void => begin('cannot look for changed reference data', () => references.check(isStopped))
  const acts = {
    currentVersion: () => Number(parts.meta('current') ?? 0),
    startWith: (reader, previous) => {
      begin('cannot go on with a re-match', () => rematch.startWith(reader, previous))
      checkReferences()
    },
    switchTo: async (reader, changed) => {
      await rematch.switchTo(reader, changed)
      checkReferences()
    },
    dayChanged: () => begin('cannot look at ends of support', () => rematch.dayChanged()),
    rematch: () => rematch.progress,
    rematched: async () => {
      await begun
      await rematch.finished()
    },
    referencesToSend: limit => references.toSend(limit),
    referencesSent: sent => references.sent(sent),
  } satisfies Partial<MatcherState>
  return {
    acts,
    end: async () => {
      await begun
      await rematch.close()
    },
  }
}

/** What the link to the hub and the internal API ask for. */
function hubActs(
  database: Database,
  parts: StateParts,
  { tombstones, retellings }: { readonly tombstones: Tombstones; readonly retellings: Retellings },
  isStopped: () => boolean,
) {
  const resyncs = new Resyncs(database, parts)
  const deadLetters = new DeadLetters(database, parts)
  const delivery = new Delivery(database, parts, resyncs, retellings, deadLetters)
  const purges = new Purges(database, parts, { tombstones, resyncs }, isStopped)
  purges.start()
  const search = new PackageSearch(database, parts)
  const acts = {
    companiesWaiting: () => delivery.companiesWaiting(),
    nextBatch: companyId => delivery.nextBatch(companyId),
    isCurrent: batch => delivery.isCurrent(batch),
    settle: (batch, dead, unknownServer) => delivery.settle(batch, dead ?? [], unknownServer ?? []),
    onWaiting: listener => parts.outbox.onWaiting(listener),
    deadLetters: (after, limit) => deadLetters.list(after, limit),
    retryDeadLetters: ids => deadLetters.retry(ids),
    dropDeadLetters: ids => deadLetters.drop(ids),
    packages: (companyId, serverId, page) => search.packages(companyId, serverId, page),
    search: (companyId, query) => search.search(companyId, query),
    summary: companyId => search.summary(companyId),
    purge: (companyId, serverId) => purges.purge(companyId, serverId),
    resync: companyId => resyncs.ask(companyId),
    counters: countersOf(database, parts, deadLetters),
  } satisfies Partial<MatcherState>
  return { acts, purges }
}

function statusesOf(rows: readonly CountRow[], parts: StateParts): Record<MatchStatus, number> {
  const counts = { ok: 0, unsupported_os: 0, unsupported_release: 0, release_eol: 0, no_db: 0 }
  for (const { context, hosts } of rows)
    if (context !== null) counts[parts.matcher.matchOf(context).match.status] += hosts
  return counts
}

/**
 * As the rows are named that a host is matched with: those of SLES are `suse`, of a derivative its base's, and of the
 * rebuilds Red Hat's too when what is not fixed there counts (MAT-131).
 */
function distrosOf({ contexts, options }: StateParts): string[] {
  const releases = contexts.all().map(({ id }) => releaseOf(contexts.get(id).os, options.match))
  const distros = new Set(releases.flatMap(release => release?.databaseDistro ?? []))
  if (options.match.rebuildsUnfixed && (distros.has('almalinux') || distros.has('rocky'))) distros.add('rhel')
  return [...distros].sort()
}

function countersOf(database: Database, parts: StateParts, deadLetters: DeadLetters): () => StateCounters {
  const hosts = database.prepare<CountRow, []>(
    'SELECT context, count(*) AS hosts, sum(finding_count) AS findings FROM host GROUP BY context',
  )
  let counted = { atMs: -Infinity, byStatus: statusesOf([], parts), findingsOpen: 0 }
  return () => {
    const nowMs = performance.now()
    if (nowMs - counted.atMs > COUNTED_MS) {
      const rows = hosts.all()
      const findingsOpen = rows.reduce((sum, { findings }) => sum + findings, 0)
      counted = { atMs: nowMs, byStatus: statusesOf(rows, parts), findingsOpen }
    }
    return {
      instances: parts.instances.count,
      hosts: counted.byStatus,
      findingsOpen: counted.findingsOpen,
      outboxDepth: parts.outbox.depth,
      outboxBytes: parts.outbox.bytes,
      outboxOldestMs: parts.outbox.oldestAtMs,
      deadLetters: deadLetters.count,
      events: { ...parts.outbox.told },
      isOutboxFull: parts.outbox.isFull,
    }
  }
}

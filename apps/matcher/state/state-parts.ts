// What the acts of the state work with: rows, caches and the writer, made once when the state is opened.
import type { Database } from 'bun:sqlite'
import type { AdvisoryReader } from '../../../core/matching/advisory.ts'
import { ContextRows } from './context-rows.ts'
import { FindingContents } from './finding-contents.ts'
import { FleetInventory } from './fleet-inventory.ts'
import { FleetMatcher, instanceKeys } from './fleet-matcher.ts'
import { HostChanges } from './host-changes.ts'
import { type HostRow, HostRows } from './host-rows.ts'
import { InstanceRows } from './instance-rows.ts'
import { decodeSorted } from './number-list.ts'
import { decodeFindings, encodeFindings, type OpenFindings } from './open-findings.ts'
import { Outbox } from './outbox.ts'
import { PurgedCompanies } from './purged-companies.ts'
import { SharedRows } from './shared-rows.ts'
import type { StateOptions } from './state-types.ts'
import { StateWriter } from './state-writer.ts'
import { UseMarks } from './use-marks.ts'

/** Stands for the database before there is one. */
const NO_DATABASE: AdvisoryReader = {
  version: 0,
  release: () => undefined,
  releases: () => [],
  coversDistro: () => false,
  hasRows: () => false,
  affected: () => undefined,
  vulnerability: () => undefined,
}

export class StateParts {
  readonly database: Database
  readonly options: StateOptions
  readonly writer: StateWriter
  readonly purged: PurgedCompanies
  readonly hosts: HostRows
  readonly instances: InstanceRows
  readonly contexts: ContextRows
  readonly contents: FindingContents
  readonly scans: SharedRows<string>
  readonly lists: SharedRows<Uint8Array>
  readonly inventory: FleetInventory
  readonly outbox: Outbox
  readonly matcher: FleetMatcher
  readonly changes: HostChanges
  readonly marks = new UseMarks()
  /** By number of a company: how often waiting events of it were dropped, or were given another server. */
  readonly #revisions = new Map<number, number>()
  readonly #meta
  readonly #putMeta

  constructor(database: Database, options: StateOptions) {
    this.database = database
    this.options = options
    this.writer = new StateWriter(database)
    this.purged = new PurgedCompanies(database, this.writer)
    this.hosts = new HostRows(database, this.purged, host => this.dropData(host))
    this.instances = new InstanceRows(database, this.writer, instanceKeys, this.marks)
    this.contexts = new ContextRows(database, this.writer)
    this.contents = new FindingContents(database, this.writer)
    this.scans = new SharedRows(database, this.writer, 'scan')
    this.lists = new SharedRows(database, this.writer, 'package_list')
    this.inventory = new FleetInventory(database)
    this.outbox = new Outbox(database, this.writer, options.outboxBytesMax, this.marks, this.purged)
    const { instances, contexts, contents, writer } = this
    this.matcher = new FleetMatcher({ instances, contexts, contents, options, writer, reader: NO_DATABASE })
    this.matcher.keepDay(options.now())
    this.changes = new HostChanges(contents, instances)
    this.#meta = database.prepare<{ readonly value: string }, [string]>('SELECT value FROM meta WHERE key = ?')
    this.#putMeta = database.prepare<unknown, [string, string]>(
      'INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
    )
  }

  meta(key: string): string | null {
    return this.#meta.get(key)?.value ?? null
  }

  /** Within a work of the writer only. */
  putMeta(key: string, value: string): void {
    this.#putMeta.run(key, value)
  }

  /** The host's instances, sorted; null without an inventory. */
  listOf(host: HostRow): Int32Array | null {
    return host.list === null ? null : decodeSorted(this.lists.body(host.list))
  }

  openFindings(host: number): OpenFindings {
    const row = this.hosts.findings.get(host)
    return row === null ? new Map() : decodeFindings(row.body)
  }

  putFindings(host: number, open: OpenFindings): void {
    this.marks.addFindings(open.keys())
    if (open.size === 0) this.hosts.dropFindings.run(host)
    else this.hosts.putFindings.run(host, encodeFindings(open))
  }

  /**
   * A host loses what it reported, its findings and its waiting events; nothing is told (MAT-054, MAT-207). Within a
   * work of the writer only.
   */
  dropData(host: Pick<HostRow, 'id' | 'company' | 'list'>): void {
    this.hosts.dropInventory.run(host.id)
    if (host.list !== null) this.lists.dropUnused(host.list)
    this.hosts.dropFindings.run(host.id)
    this.hosts.countFindings.run(0, host.id)
    this.hosts.dropRefused.run(host.id)
    this.outbox.dropHost(host.id)
    this.writer.afterCommit(() => {
      this.inventory.drop(host.id)
      this.changedEvents(host.company)
    })
  }

  /** Batches of the company that were read before are not to be sent any more. */
  changedEvents(company: number): void {
    this.#revisions.set(company, this.eventsRevision(company) + 1)
  }

  eventsRevision(company: number): number {
    return this.#revisions.get(company) ?? 0
  }
}

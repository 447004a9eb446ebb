// A resync tells every open finding of a company again (MAT-171). The call leaves a marker and the count; events are
// made host by host when the ones that waited before are sent, so that a million findings do not fill the outbox.
import type { Database } from 'bun:sqlite'
import type { StateParts } from './state-parts.ts'
import type { WaitingEvent } from './waiting-event.ts'

/** Hosts that are looked at in one work. */
const HOSTS_AT_ONCE = 50

type ResyncRow = {
  readonly company: number
  /** The newest row of the outbox when it was asked for: those up to it are sent first. */
  readonly behind: number
  readonly after_host: number
  readonly until_host: number
  readonly event_count: number
}

export class Resyncs {
  readonly #parts: StateParts
  readonly #get
  readonly #all
  readonly #put
  readonly #advance
  readonly #drop
  readonly #counts
  readonly #hosts

  constructor(database: Database, parts: StateParts) {
    this.#parts = parts
    const columns = 'company, behind, after_host, until_host, event_count'
    this.#get = database.prepare<ResyncRow, [number]>(`SELECT ${columns} FROM resync WHERE company = ?`)
    this.#all = database.prepare<{ readonly company: number }, []>('SELECT company FROM resync')
    this.#put = database.prepare<unknown, [number, number, number, number]>(
      'INSERT INTO resync (company, behind, after_host, until_host, event_count) VALUES (?, ?, 0, ?, ?)',
    )
    this.#advance = database.prepare<unknown, [number, number]>('UPDATE resync SET after_host = ? WHERE company = ?')
    this.#drop = database.prepare<unknown, [number]>('DELETE FROM resync WHERE company = ?')
    this.#counts = database.prepare<{ readonly events: number | null; readonly last: number | null }, [number]>(
      'SELECT sum(finding_count) AS events, max(id) AS last FROM host WHERE company = ?',
    )
    this.#hosts = database.prepare<
      { readonly id: number; readonly last_seq: number },
      [number, number, number, number]
    >(
      `SELECT id, last_seq FROM host WHERE company = ? AND id > ? AND id <= ? AND finding_count > 0
       ORDER BY id LIMIT ?`,
    )
  }

  /** Commits the marker; the count of an unfinished one when there is one already. */
  ask(companyId: string): Promise<number> {
    return this.#parts.writer.write(() => {
      const company = this.#parts.hosts.company(companyId)
      if (company === undefined) return 0
      const held = this.#get.get(company)
      if (held !== null) return held.event_count
      const counts = this.#counts.get(company)
      const events = counts?.events ?? 0
      if (events > 0) {
        this.#put.run(company, this.#parts.outbox.lastId(), counts?.last ?? 0, events)
        this.#parts.writer.afterCommit(() => this.#parts.outbox.announce())
      }
      return events
    })
  }

  companies(): number[] {
    return this.#all.all().map(row => row.company)
  }

  /** Makes events of the company's resync when its turn has come, until this many wait or it is finished. */
  async makeNext(company: number, eventCount: number): Promise<void> {
    while (this.#isDue(company, eventCount)) await this.#parts.writer.write(() => this.#makeSome(company, eventCount))
  }

  /** Within a work of the writer only. */
  drop(company: number): void {
    this.#drop.run(company)
  }

  #isDue(company: number, eventCount: number): boolean {
    const resync = this.#get.get(company)
    if (resync === null || this.#parts.outbox.depthOf(company) >= eventCount) return false
    const first = this.#parts.outbox.firstIdOf(company)
    return first === null || first > resync.behind
  }

  #makeSome(company: number, eventCount: number): void {
    const resync = this.#get.get(company)
    if (resync === null) return
    const { outbox, options, hosts, matcher } = this.#parts
    const rows = this.#hosts.all(company, resync.after_host, resync.until_host, HOSTS_AT_ONCE)
    const nowMs = options.now()
    let made = 0
    for (const host of rows) {
      const events = [...this.#parts.openFindings(host.id)].map(
        ([finding, firstSeenMs]): WaitingEvent => ({ type: 'finding.opened', finding, firstSeenMs }),
      )
      const lastSeq = outbox.tell({ ...host, company }, events, nowMs, nowMs, matcher.reader.version)
      hosts.putSeq.run(lastSeq, host.id)
      this.#advance.run(host.id, company)
      made += events.length
      if (made >= eventCount) return
    }
    if (rows.length < HOSTS_AT_ONCE) this.#drop.run(company)
  }
}

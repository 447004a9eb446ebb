// What the hub rejected because it knew another server of the host by then: a host was attached or detached, and the
// feed had not told yet (MAT-053, decision G-156). A rejected event is done (MAT-164), so its finding would stay open
// or missing at the hub for ever: once the feed tells of the change, what the host has is told anew with new numbers,
// as a resync of that host. Each version of a host leads to one retelling at most, so that it never loops.
import type { Database } from 'bun:sqlite'
import { findingKeyOf } from './event-payload.ts'
import type { HostRow } from './host-rows.ts'
import type { StateParts } from './state-parts.ts'
import { decodeEvents, encodeEvents, type WaitingEvent } from './waiting-event.ts'

type RefusedRow = {
  readonly host: number
  /** The host's version with which the events were made. */
  readonly version: number
  readonly has_scan: number
  /** finding.resolved that were rejected: nothing else remembers them. */
  readonly body: Uint8Array
}

export class Retellings {
  readonly #parts: StateParts
  readonly #get
  readonly #put

  constructor(database: Database, parts: StateParts) {
    this.#parts = parts
    this.#get = database.prepare<RefusedRow, [number]>(
      'SELECT host, version, has_scan, body FROM refused WHERE host = ?',
    )
    this.#put = database.prepare<unknown, [number, number, number, Uint8Array]>(
      `INSERT INTO refused (host, version, has_scan, body) VALUES (?, ?, ?, ?) ON CONFLICT (host) DO UPDATE SET
       version = excluded.version, has_scan = excluded.has_scan, body = excluded.body`,
    )
  }

  /**
   * Notes events of a host that the hub rejected, made with this version of it; when the host is another by now they
   * are told anew at once. True when the host waits for a change and did not before. Within a work of the writer only.
   */
  refused(hostId: number, version: number, events: readonly WaitingEvent[]): boolean {
    const host = this.#parts.hosts.byId.get(hostId)
    if (host === null || host.is_revoked === 1) return false
    const held = this.#get.get(hostId)
    const resolved = new Map<number, WaitingEvent>()
    for (const event of [...(held === null ? [] : decodeEvents(held.body)), ...events])
      if (event.type === 'finding.resolved') resolved.set(event.finding, event)
    const hasScan = held?.has_scan === 1 || events.some(({ type }) => type === 'server.scanned')
    this.#parts.marks.addEvents([...resolved.values()])
    this.#put.run(hostId, version, hasScan ? 1 : 0, encodeEvents([...resolved.values()]))
    this.changed(hostId)
    return host.version <= version && (held === null || held.version < version)
  }

  /** The feed may have changed a host: tells anew what was rejected of it before. Within a work of the writer only. */
  changed(hostId: number): void {
    const refused = this.#get.get(hostId)
    if (refused === null) return
    const host = this.#parts.hosts.byId.get(hostId)
    if (host === null || host.is_revoked === 1 || host.version <= refused.version) return
    this.#parts.hosts.dropRefused.run(hostId)
    this.#tell(host, refused)
  }

  #tell(host: HostRow, refused: RefusedRow): void {
    const { outbox, options, hosts, matcher } = this.#parts
    const open = this.#parts.openFindings(host.id)
    const opened = [...open].map(
      ([finding, firstSeenMs]): WaitingEvent => ({ type: 'finding.opened', finding, firstSeenMs }),
    )
    const events = [...this.#stillResolved(host, refused, open.keys()), ...opened]
    const nowMs = options.now()
    const { version } = matcher.reader
    let lastSeq = outbox.tell(host, events, nowMs, nowMs, version)
    if (refused.has_scan === 1 && host.scan !== null && host.context !== null) {
      const { match } = matcher.matchOf(host.context)
      const scanned: WaitingEvent = {
        type: 'server.scanned',
        scan: host.scan,
        status: match.status,
        support: match.support,
        openFindings: open.size,
      }
      lastSeq = outbox.tell({ ...host, last_seq: lastSeq }, [scanned], host.reported_ms, nowMs, version)
    }
    hosts.putSeq.run(lastSeq, host.id)
  }

  /** Rejected resolutions of findings that are not open again, each finding once. */
  #stillResolved(host: HostRow, { body }: RefusedRow, open: Iterable<number>): WaitingEvent[] {
    const resolved = decodeEvents(body)
    if (resolved.length === 0) return []
    const keyOf = (finding: number): string => findingKeyOf(host, this.#parts.contents.columns(finding))
    const known = new Set([...open].map(keyOf))
    return resolved.filter(event => {
      const key = event.type === 'finding.resolved' ? keyOf(event.finding) : ''
      if (key === '' || known.has(key)) return false
      known.add(key)
      return true
    })
  }
}

// Which shared rows are referred to, while unused ones are looked for (unused-rows.ts). Whoever refers to a row notes
// it here in the same work, so that what comes into use behind the back of the search is not taken for unused.
import type { WaitingEvent } from './waiting-event.ts'

/** Numbers below a bound that was set at the beginning; those above are of rows that are newer than the search. */
class Marks {
  #marks: Uint8Array | null = null

  begin(bound: number): void {
    this.#marks = new Uint8Array(bound)
  }

  end(): void {
    this.#marks = null
  }

  add(id: number): void {
    // Beyond the bound nothing is stored.
    if (this.#marks !== null) this.#marks[id] = 1
  }

  /** Whether the row was there at the beginning and nobody has referred to it. */
  isUnused(id: number): boolean {
    return this.#marks !== null && this.#marks[id] === 0
  }
}

export class UseMarks {
  readonly instances = new Marks()
  readonly findings = new Marks()
  readonly scans = new Marks()
  readonly groups = new Marks()

  addFindings(ids: Iterable<number>): void {
    for (const id of ids) this.findings.add(id)
  }

  addList(list: Int32Array): void {
    for (let at = 0; at < list.length; at++) this.instances.add(list[at]!)
  }

  addEvents(events: readonly WaitingEvent[]): void {
    for (const event of events)
      if (event.type === 'server.scanned') this.scans.add(event.scan)
      else this.findings.add(event.finding)
  }

  end(): void {
    for (const marks of [this.instances, this.findings, this.scans, this.groups]) marks.end()
  }
}

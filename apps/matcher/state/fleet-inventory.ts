// Which hosts have which packages, in memory: made in slices after the start from the lists on the disk, and kept with
// every report (MAT section 9). A host with an inventory has a slot, the number under which the index knows it; a host
// that loses its inventory loses its slot, so what the index still says of that slot counts no more.
import type { Database } from 'bun:sqlite'
import { CHUNK_HOSTS, HostIndex } from './host-index.ts'
import { decodeSorted } from './number-list.ts'
import { NumberColumn } from './recent-map.ts'

/** Hosts that are added to the index together: fewer look each instance up more often, more take more memory. */
const BATCH_HOSTS = 8192
/** Hosts that are read at one go. */
const READ_HOSTS = 256

type ListRow = { readonly id: number; readonly body: Uint8Array }

export class FleetInventory {
  readonly index = new HostIndex()
  readonly #lists
  /** By slot: the host, 0 when it has none any more. By host: its slot + 1. */
  readonly #hosts = new NumberColumn()
  readonly #slots = new NumberColumn()
  #slotCount = 0
  #hostCount = 0
  /** Hosts up to this one are in the index, or in the batch that is being added. */
  #loadedTo = 0
  #isLoaded = false
  /** Changes of hosts of the batch that is being added wait until it is. */
  #waiting: (() => void)[] | null = null

  constructor(database: Database) {
    this.#lists = database.prepare<ListRow, [number, number]>(
      `SELECT host.id, body FROM host JOIN package_list ON package_list.id = host.list WHERE host.id > ?
       ORDER BY host.id LIMIT ?`,
    )
  }

  /** Whether the index knows all hosts. */
  get isLoaded(): boolean {
    return this.#isLoaded
  }

  /** Hosts with an inventory, of those loaded. */
  get hostCount(): number {
    return this.#hostCount
  }

  get slotCount(): number {
    return this.#slotCount
  }

  hostOf(slot: number): number {
    return this.#hosts.get(slot)
  }

  /** The slot of a host, or undefined when it has no inventory. */
  slotOf(host: number): number | undefined {
    const slot = this.#slots.get(host)
    return slot === 0 ? undefined : slot - 1
  }

  /** Loads the lists of all hosts, to be taken step by step. */
  *load(): Generator<void> {
    for (;;) {
      const room = Math.min(BATCH_HOSTS, CHUNK_HOSTS - (this.#slotCount % CHUNK_HOSTS))
      const firstSlot = this.#slotCount
      const lists: Int32Array[] = []
      this.#waiting = []
      while (lists.length < room) {
        const rows = this.#lists.all(this.#loadedTo, Math.min(READ_HOSTS, room - lists.length))
        for (const row of rows) {
          this.#giveSlot(row.id)
          lists.push(decodeSorted(row.body))
          this.#loadedTo = row.id
        }
        if (rows.length === 0) break
        yield
      }
      // None is left: from this very step on a host's first inventory is added by its report.
      if (lists.length === 0) break
      yield* this.index.addBatch(firstSlot, lists)
      const waiting = this.#waiting
      this.#waiting = null
      for (const change of waiting) change()
    }
    this.#waiting = null
    this.#isLoaded = true
  }

  /** A host has `after` instead of `before` (null: none so far). To be called once that is on the disk. */
  replace(host: number, before: Int32Array | null, after: Int32Array): void {
    // The load comes to it, and reads what is there by then.
    if (!this.#isLoaded && host > this.#loadedTo) return
    if (this.#waiting !== null) {
      this.#waiting.push(() => this.#replace(host, before, after))
      return
    }
    this.#replace(host, before, after)
  }

  /** The host has no inventory any more. */
  drop(host: number): void {
    if (this.#waiting !== null) this.#waiting.push(() => this.#drop(host))
    else this.#drop(host)
  }

  #replace(host: number, before: Int32Array | null, after: Int32Array): void {
    let slot = this.slotOf(host)
    const old = slot === undefined ? null : before
    slot ??= this.#giveSlot(host)
    let at = 0
    for (let place = 0; place < after.length; place++) {
      const instance = after[place]!
      while (old !== null && at < old.length && old[at]! < instance) this.index.remove(old[at++]!, slot)
      if (old !== null && at < old.length && old[at] === instance) at++
      else this.index.add(instance, slot)
    }
    while (old !== null && at < old.length) this.index.remove(old[at++]!, slot)
  }

  #drop(host: number): void {
    const slot = this.slotOf(host)
    if (slot === undefined) return
    this.#hosts.set(slot, 0)
    this.#slots.set(host, 0)
    this.#hostCount--
  }

  #giveSlot(host: number): number {
    const slot = this.#slotCount++
    this.#hosts.set(slot, host)
    this.#slots.set(host, slot + 1)
    this.#hostCount++
    return slot
  }
}

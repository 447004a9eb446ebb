// Which hosts have a package instance: per instance, the hosts in chunks of 65,536, each a sorted list of 16-bit
// numbers or, from 4,096 hosts on, a bitmap of 65,536 bits (MAT section 9). It lives in memory and is made at the start
// from the hosts' own lists, so it cannot disagree with them and a report need not write to 800 places of the disk.

import { assert } from '../../../core/assert.ts'

export const CHUNK_HOSTS = 65_536
/** What a step of a bulk load does before it lets others have their turn. */
const STEP_HOSTS = 128
const STEP_INSTANCES = 8192
/** As many 16-bit numbers as a bitmap of a chunk has words: from here on the bitmap is smaller. */
const ARRAY_MAX = CHUNK_HOSTS / 16

/** Of one chunk of hosts: by instance, what holds its hosts and how many they are. */
class Chunk {
  hosts: (Uint16Array | undefined)[] = []
  counts = new Uint32Array(1024)

  add(instance: number, low: number): void {
    if (instance >= this.counts.length) this.#growCounts(instance)
    const held = this.hosts[instance]
    const count = this.counts[instance]!
    if (held === undefined) {
      this.hosts[instance] = Uint16Array.of(low)
      this.counts[instance] = 1
    } else if (count > ARRAY_MAX) this.#addBit(instance, held, low)
    else this.#addNumber(instance, held, count, low)
  }

  remove(instance: number, low: number): void {
    const held = this.hosts[instance]
    if (held === undefined) return
    const count = this.counts[instance]!
    if (count > ARRAY_MAX) {
      const bit = 1 << (low & 15)
      if ((held[low >>> 4]! & bit) === 0) return
      held[low >>> 4]! &= ~bit
      this.counts[instance] = count - 1
      if (count - 1 === ARRAY_MAX) this.hosts[instance] = numbersOf(held, count - 1)
      return
    }
    const at = positionOf(held, count, low)
    if (at === count || held[at] !== low) return
    held.copyWithin(at, at + 1, count)
    this.counts[instance] = count - 1
    if (count === 1) this.hosts[instance] = undefined
  }

  /** Appends ascending hosts, all above those that are held; `numbers` from `from` to `to`. */
  append(instance: number, numbers: Uint16Array, from: number, to: number): void {
    const held = this.hosts[instance]
    const count = held === undefined ? 0 : this.counts[instance]!
    const total = count + to - from
    if (total > ARRAY_MAX) {
      for (let at = from; at < to; at++) this.add(instance, numbers[at]!)
      return
    }
    if (instance >= this.counts.length) this.#growCounts(instance)
    let room = held
    if (room === undefined || total > room.length) {
      room = new Uint16Array(count === 0 ? total : Math.min(ARRAY_MAX, total + (total >>> 2)))
      // Its unused room too, which is less than the new one.
      if (held !== undefined) room.set(held)
      this.hosts[instance] = room
    }
    for (let at = from; at < to; at++) room[count + at - from] = numbers[at]!
    this.counts[instance] = total
  }

  #addBit(instance: number, held: Uint16Array, low: number): void {
    const bit = 1 << (low & 15)
    if ((held[low >>> 4]! & bit) !== 0) return
    held[low >>> 4]! |= bit
    this.counts[instance]!++
  }

  #addNumber(instance: number, held: Uint16Array, count: number, low: number): void {
    // Hosts mostly come in ascending order.
    const at = held[count - 1]! < low ? count : positionOf(held, count, low)
    if (at < count && held[at] === low) return
    if (count === ARRAY_MAX) {
      const bitmap = new Uint16Array(ARRAY_MAX)
      for (let index = 0; index < count; index++) bitmap[held[index]! >>> 4]! |= 1 << (held[index]! & 15)
      bitmap[low >>> 4]! |= 1 << (low & 15)
      this.hosts[instance] = bitmap
      this.counts[instance] = count + 1
      return
    }
    let room = held
    if (count === held.length) {
      room = new Uint16Array(Math.min(ARRAY_MAX, Math.max(4, count + (count >>> 1))))
      room.set(held)
      this.hosts[instance] = room
    }
    if (at < count) room.copyWithin(at + 1, at, count)
    room[at] = low
    this.counts[instance] = count + 1
  }

  #growCounts(instance: number): void {
    const counts = new Uint32Array(Math.max(instance + 1, this.counts.length * 2))
    counts.set(this.counts)
    this.counts = counts
  }
}

/** Where `low` stands or would stand. */
function positionOf(sorted: Uint16Array, count: number, low: number): number {
  let from = 0
  let to = count
  while (from < to) {
    const middle = (from + to) >>> 1
    if (sorted[middle]! < low) from = middle + 1
    else to = middle
  }
  return from
}

function numbersOf(bitmap: Uint16Array, count: number): Uint16Array {
  const numbers = new Uint16Array(count)
  let at = 0
  for (let word = 0; word < ARRAY_MAX; word++)
    for (let bits = bitmap[word]!; bits !== 0; bits &= bits - 1)
      numbers[at++] = word * 16 + (31 - Math.clz32(bits & -bits))
  return numbers
}

// Loops of a bulk load: within its generator they made the whole of it a quarter dearer.

/** Counts each instance at the place behind its own. */
function countInto(ends: Uint32Array, list: Int32Array): void {
  for (let at = 0; at < list.length; at++) ends[list[at]! + 1]!++
}

/** Writes the host where the next one of each of its instances goes. */
function placeHost(low: number, list: Int32Array, ends: Uint32Array, hosts: Uint16Array): void {
  for (let at = 0; at < list.length; at++) hosts[ends[list[at]!]!++] = low
}

export class HostIndex {
  readonly #chunks: Chunk[] = []

  add(instance: number, slot: number): void {
    const chunk = slot >>> 16
    while (this.#chunks.length <= chunk) this.#chunks.push(new Chunk())
    this.#chunks[chunk]!.add(instance, slot & 0xffff)
  }

  /**
   * Adds hosts in bulk: lists[i] are the instances of slot firstSlot + i. All slots are of one chunk and above those
   * that the chunk holds. Sorted by instance first, each place of the index is looked up once; to be taken step by
   * step.
   */
  *addBatch(firstSlot: number, lists: readonly Int32Array[]): Generator<void> {
    const number = firstSlot >>> 16
    assert((firstSlot + lists.length - 1) >>> 16 === number || lists.length === 0, 'a batch of hosts is of one chunk')
    while (this.#chunks.length <= number) this.#chunks.push(new Chunk())
    const chunk = this.#chunks[number]!
    const top = lists.reduce((highest, list) => Math.max(highest, list[list.length - 1] ?? 0), 0)
    const ends = new Uint32Array(top + 2)
    for (const [index, list] of lists.entries()) {
      countInto(ends, list)
      if (index % STEP_HOSTS === 0) yield
    }
    for (let instance = 0; instance <= top; instance++) ends[instance + 1]! += ends[instance]!
    // From here on ends[instance] is where its next host goes: in the end, where its hosts end.
    const hosts = new Uint16Array(ends[top + 1]!)
    for (const [index, list] of lists.entries()) {
      const low = (firstSlot + index) & 0xffff
      placeHost(low, list, ends, hosts)
      if (index % STEP_HOSTS === 0) yield
    }
    for (let instance = 0, from = 0; instance <= top; instance++) {
      const to = ends[instance]!
      if (to > from) chunk.append(instance, hosts, from, to)
      from = to
      if (instance % STEP_INSTANCES === 0) yield
    }
  }

  /** Nobody has the instance any more, but hosts that have lost their inventory. */
  forget(instance: number): void {
    for (const chunk of this.#chunks) {
      chunk.hosts[instance] = undefined
      if (instance < chunk.counts.length) chunk.counts[instance] = 0
    }
  }

  remove(instance: number, slot: number): void {
    this.#chunks[slot >>> 16]?.remove(instance, slot & 0xffff)
  }

  /** Calls for each slot that has the instance, in ascending order. Nothing may be added or removed meanwhile. */
  forEach(instance: number, each: (slot: number) => void): void {
    for (const [number, chunk] of this.#chunks.entries()) {
      const held = chunk.hosts[instance]
      if (held === undefined) continue
      const base = number * CHUNK_HOSTS
      const count = chunk.counts[instance]!
      if (count <= ARRAY_MAX) for (let at = 0; at < count; at++) each(base + held[at]!)
      else
        for (let word = 0; word < ARRAY_MAX; word++)
          for (let bits = held[word]!; bits !== 0; bits &= bits - 1)
            each(base + word * 16 + (31 - Math.clz32(bits & -bits)))
    }
  }

  count(instance: number): number {
    let count = 0
    for (const chunk of this.#chunks) count += chunk.counts[instance] ?? 0
    return count
  }
}

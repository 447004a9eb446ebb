// Definitions of series between bus and store. They need not wait for their samples, and whoever reads a series must
// know its name: they are stored within a second. While the bus has more than was read yet, as when a whole fleet
// comes at once, reading goes first: to store them takes a third of what a first sight does, queries know those that
// wait, and the bus has them after a crash. Many are stored in blocks of bounded size.
import type { EntryReader } from '../../../../core/bus/entry.ts'
import { NativeWriter } from '../../../../core/samples/block/native-writer.ts'
import {
  type DefinitionList,
  definedBy,
  definitionList,
  type SeriesDefinition,
  type ServerDefinitions,
  writeSeriesBlock,
} from '../../../../core/samples/block/series-definitions.ts'
import { idOf } from '../../../../core/samples/latest/buffered-points.ts'
import { metricOf } from '../../../../core/series/series-key.ts'
import { BoundedMap } from '../../bounded-map.ts'

const WAIT_MS = 1_000
/** How long they wait for the bus to be read. */
const WAIT_BEHIND_MS = 60_000
/**
 * Where so many wait that no other server has, the bus is to be read no further: each takes some 200 bytes. Where
 * servers have the same series, as those of a fleet do, a further server counts as SERVER_COST of them. A third of it
 * is stored as one block.
 */
const OWN_MAX = 300_000
const SERVER_COST = 2

/** Keys that are remembered. */
const KEYS_MAX = 50_000
/** Lists that are remembered, one for each kind of host. A longer one is hardly that of a second host. */
const LISTS_MAX = 128
const LIST_BYTES_MAX = 64 * 1024

type DefinedServer = { readonly companyId: string; readonly serverId: string }
/** A list, and the bytes of the entry that it was read from. */
type ReadList = { readonly bytes: Uint8Array; readonly list: DefinitionList }

type PendingDefinitionsOptions = {
  /** Stores a block; tries again until it is stored, or until storing is given up. */
  readonly insert: (block: Uint8Array, token: string) => Promise<void>
  readonly isAborted: () => boolean
  /** Those that are not to be stored after all are dropped by `keep` until it resolves. */
  readonly beforeStored: () => Promise<void>
  readonly onStored: () => void
  /** Nothing is being stored any more. */
  readonly onRest: () => void
  readonly ownMax?: number | undefined
}

export class PendingDefinitions {
  private readonly writer = new NativeWriter()
  private readonly ownMax: number
  /** Those to be stored, how many they are, what they take of `ownMax`, and when the first of them came. */
  private waiting: ServerDefinitions[] = []
  private waitingCount = 0
  private own = 0
  private sinceMs = 0
  /** Those that are being stored. */
  private inserting: readonly ServerDefinitions[] = []
  private storing: Promise<void> | null = null
  /** Keys by the low word of their id, which is derived from them: the servers of a fleet have the same ones. */
  private readonly keys = new BoundedMap<number, SeriesDefinition>(KEYS_MAX)
  /** By the size of an entry's definitions, and the ids of its first and last series. */
  private readonly lists = new BoundedMap<string, ReadList>(LISTS_MAX)

  constructor(private readonly options: PendingDefinitionsOptions) {
    this.ownMax = options.ownMax ?? OWN_MAX
  }

  get isFull(): boolean {
    return this.own >= this.ownMax
  }

  /** Adds the definitions of the reader's entry. Adds those to `unseen` whose keys are new to this thread. */
  add(entries: EntryReader, owner: DefinedServer, nowMs: number, unseen: SeriesDefinition[]): void {
    if (!entries.hasDefinitions) return
    const { companyId, serverId } = owner
    const list = this.listOf(entries, unseen)
    const count = list.definitions.length
    if (this.waitingCount === 0) this.sinceMs = nowMs
    this.waitingCount += count
    this.own += SERVER_COST
    this.waiting.push(definedBy({ companyId, serverId }, list, entries.receivedAtMs))
  }

  private listOf(entries: EntryReader, unseen: SeriesDefinition[]): DefinitionList {
    const { u32, idsAt, seriesCount } = entries
    const bytes = entries.definitionBytes()
    const name = `${bytes.length} ${u32[idsAt]} ${u32[idsAt + seriesCount * 2 - 2]}`
    const known = this.lists.get(name)
    if (known && Buffer.compare(known.bytes, bytes) === 0) return known.list
    const list = definitionList(this.read(entries, unseen))
    this.own += list.definitions.length
    if (bytes.length <= LIST_BYTES_MAX) this.lists.set(name, { bytes: bytes.slice(), list })
    return list
  }

  private read(entries: EntryReader, unseen: SeriesDefinition[]): SeriesDefinition[] {
    const { u32, idsAt } = entries
    const { keys } = this
    const definitions: SeriesDefinition[] = []
    entries.eachDefinition(
      (seriesIndex, key) => {
        const definition = { idLo: u32[idsAt + seriesIndex * 2]!, idHi: u32[idsAt + seriesIndex * 2 + 1]!, key }
        keys.set(definition.idLo, definition)
        definitions.push(definition)
        unseen.push(definition)
      },
      seriesIndex => {
        const known = keys.get(u32[idsAt + seriesIndex * 2]!)
        if (!known || known.idHi !== u32[idsAt + seriesIndex * 2 + 1]) return false
        definitions.push(known)
        return true
      },
    )
    return definitions
  }

  /** The series of a server whose definitions are not stored yet. Some may become stored while they are read. */
  *of(companyId: string, serverId: string): Generator<{ readonly id: bigint; readonly key: string }> {
    for (const all of [this.inserting, this.waiting])
      for (const defined of all)
        if (defined.serverId === serverId && defined.companyId === companyId)
          for (const { idLo, idHi, key } of defined.list.definitions.slice(defined.begin, defined.end))
            yield { id: idOf({ lo: idLo, hi: idHi }), key }
  }

  /** Keys by id of the series of a metric whose definitions are not stored yet, on all servers of a company. */
  ofMetric(companyId: string, metric: string): Map<bigint, string> {
    const lists = new Set<DefinitionList>()
    for (const all of [this.inserting, this.waiting])
      for (const defined of all) if (defined.companyId === companyId) lists.add(defined.list)
    const keys = new Map<bigint, string>()
    for (const { definitions } of lists)
      for (const { idLo, idHi, key } of definitions)
        if (metricOf(key) === metric) keys.set(idOf({ lo: idLo, hi: idHi }), key)
    return keys
  }

  /** Drops all others. */
  keep(isKept: (defined: ServerDefinitions) => boolean): void {
    this.waiting = this.waiting.filter(isKept)
    this.waitingCount = this.waiting.reduce((sum, { begin, end }) => sum + end - begin, 0)
    this.boundOwn()
    this.inserting = this.inserting.filter(isKept)
  }

  /** Begins to store them once they have waited their time. `isBehind`: the bus has more than was read yet. */
  storeIfDue(nowMs: number, isBehind: boolean): void {
    if (this.waitingCount === 0 || this.storing) return
    const waitedMs = nowMs - this.sinceMs
    if (waitedMs < 0 || waitedMs >= (isBehind ? WAIT_BEHIND_MS : WAIT_MS) || this.isFull) void this.storeNow()
  }

  private storeNow(): Promise<void> {
    this.storing ??= this.store().finally(() => {
      this.storing = null
      this.options.onRest()
    })
    return this.storing
  }

  private async store(): Promise<void> {
    const { insert, isAborted, beforeStored, onStored } = this.options
    for (;;) {
      await beforeStored()
      if (this.waitingCount === 0 || isAborted()) return
      this.inserting = this.take(Math.ceil(this.ownMax / 3))
      writeSeriesBlock(this.writer, this.inserting)
      await insert(this.writer.finish(), `series-${crypto.randomUUID()}`)
      if (!isAborted()) onStored()
      this.inserting = []
    }
  }

  /** Takes so many of those that wait, the oldest first. */
  private take(countMax: number): ServerDefinitions[] {
    const taken: ServerDefinitions[] = []
    let whole = 0
    let left = countMax
    for (const defined of this.waiting) {
      const cut = Math.min(defined.end, defined.begin + left)
      taken.push({ ...defined, end: cut })
      left -= cut - defined.begin
      if (cut < defined.end) {
        this.waiting[whole] = { ...defined, begin: cut }
        break
      }
      whole++
      if (left === 0) break
    }
    this.waiting.splice(0, whole)
    this.waitingCount -= countMax - left
    this.own -= whole * SERVER_COST
    this.boundOwn()
    return taken
  }

  /** Which server was the last one with a list is not known: those that wait take no more than if none shared any. */
  private boundOwn(): void {
    this.own = Math.min(this.own, this.waitingCount + this.waiting.length * SERVER_COST)
  }

  /** Resolves when none is being stored. */
  async idle(): Promise<void> {
    await this.storing
  }

  /** Resolves when all are stored. */
  async stored(): Promise<void> {
    while (this.storing || (this.waitingCount > 0 && !this.options.isAborted())) await this.storeNow()
  }
}

// Definitions of series between bus and store. They need not wait for their samples, and whoever reads a series must
// know its name: they are stored within a second. Many are stored in blocks of bounded size.
import type { EntryReader } from '../../../../core/bus/entry.ts'
import { NativeWriter } from '../../../../core/samples/block/native-writer.ts'
import { type SeriesDefinition, writeSeriesBlock } from '../../../../core/samples/block/series-definitions.ts'
import { idOf } from '../../../../core/samples/latest/buffered-points.ts'
import { BoundedMap } from '../../bounded-map.ts'

const WAIT_MS = 1_000
/**
 * Where so many wait, the bus is to be read no further: a fleet that comes at once has millions. A third of them is
 * stored as one block.
 */
const COUNT_MAX = 300_000

/** Keys that are remembered. */
const KEYS_MAX = 50_000

type DefinedServer = { readonly companyId: string; readonly serverId: string }

type PendingDefinitionsOptions = {
  /** Stores a block; tries again until it is stored, or until storing is given up. */
  readonly insert: (block: Uint8Array, token: string) => Promise<void>
  readonly isAborted: () => boolean
  readonly onStored: (definitions: readonly SeriesDefinition[]) => void
  /** Nothing is being stored any more. */
  readonly onRest: () => void
  readonly countMax?: number | undefined
}

export class PendingDefinitions {
  private readonly writer = new NativeWriter()
  private readonly countMax: number
  /** Those to be stored, and when the first of them came. */
  private waiting: SeriesDefinition[] = []
  private sinceMs = 0
  /** Those that are being stored. */
  private inserting: readonly SeriesDefinition[] = []
  private storing: Promise<void> | null = null
  /** Keys by the low word of their id, which is derived from them: the servers of a fleet have the same ones. */
  private readonly keys = new BoundedMap<number, { readonly idHi: number; readonly key: string }>(KEYS_MAX)

  constructor(private readonly options: PendingDefinitionsOptions) {
    this.countMax = options.countMax ?? COUNT_MAX
  }

  get isFull(): boolean {
    return this.waiting.length >= this.countMax
  }

  /** Whether none waits and none is being stored. */
  get isEmpty(): boolean {
    return this.waiting.length === 0 && this.storing === null
  }

  /** Adds the definitions of the reader's entry. Adds those to `unseen` whose keys are new to this thread. */
  add(entries: EntryReader, owner: DefinedServer, nowMs: number, unseen: SeriesDefinition[]): void {
    const { u32, idsAt, receivedAtMs: seenAtMs } = entries
    const { companyId, serverId } = owner
    const { keys, waiting } = this
    const before = waiting.length
    const idAt = (seriesIndex: number): readonly [idLo: number, idHi: number] => [
      u32[idsAt + seriesIndex * 2]!,
      u32[idsAt + seriesIndex * 2 + 1]!,
    ]
    entries.eachDefinition(
      (seriesIndex, key) => {
        const [idLo, idHi] = idAt(seriesIndex)
        keys.set(idLo, { idHi, key })
        const definition = { companyId, serverId, idLo, idHi, key, seenAtMs }
        waiting.push(definition)
        unseen.push(definition)
      },
      seriesIndex => {
        const [idLo, idHi] = idAt(seriesIndex)
        const known = keys.get(idLo)
        if (known?.idHi !== idHi) return false
        waiting.push({ companyId, serverId, idLo, idHi, key: known.key, seenAtMs })
        return true
      },
    )
    if (before === 0 && waiting.length > 0) this.sinceMs = nowMs
  }

  /** The series of a server whose definitions are not stored yet. Some may become stored while they are read. */
  *of(companyId: string, serverId: string): Generator<{ readonly id: bigint; readonly key: string }> {
    for (const definitions of [this.inserting, this.waiting])
      for (const definition of definitions)
        if (definition.serverId === serverId && definition.companyId === companyId)
          yield { id: idOf({ lo: definition.idLo, hi: definition.idHi }), key: definition.key }
  }

  /** Drops the others. */
  keep(isKept: (definition: SeriesDefinition) => boolean): void {
    this.waiting = this.waiting.filter(isKept)
    this.inserting = this.inserting.filter(isKept)
  }

  /** Begins to store them once they have waited their time. */
  storeIfDue(nowMs: number): void {
    if (this.waiting.length === 0 || this.storing) return
    const waitedMs = nowMs - this.sinceMs
    if (waitedMs < 0 || waitedMs >= WAIT_MS || this.isFull) void this.storeNow()
  }

  private storeNow(): Promise<void> {
    this.storing ??= this.store().finally(() => {
      this.storing = null
      this.options.onRest()
    })
    return this.storing
  }

  private async store(): Promise<void> {
    const { insert, isAborted, onStored } = this.options
    const most = Math.ceil(this.countMax / 3)
    while (this.waiting.length > 0 && !isAborted()) {
      const definitions = this.waiting.slice(0, most)
      this.waiting = this.waiting.slice(most)
      this.inserting = definitions
      writeSeriesBlock(this.writer, definitions)
      await insert(this.writer.finish(), `series-${crypto.randomUUID()}`)
      if (!isAborted()) onStored(definitions)
      this.inserting = []
    }
  }

  /** Resolves when none is being stored. */
  async idle(): Promise<void> {
    await this.storing
  }

  /** Resolves when all are stored. */
  async stored(): Promise<void> {
    while (this.storing || (this.waiting.length > 0 && !this.options.isAborted())) await this.storeNow()
  }
}

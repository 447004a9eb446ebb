// The series of batches, kept once for all batches that have the same ones in the same order: an agent sends the same
// list for hours, and servers of one kind share it. So a held batch is little more than its values, and how a list is
// ordered by id is found out once.

/** The ids of a batch's series, in the order in which the agent sends them. */
export type SeriesList = {
  readonly idLo: Uint32Array
  readonly idHi: Uint32Array
  /** Indexes into the list in the order of the ids; null when a series is in it twice. */
  readonly byId: Uint32Array | null
  /** The turn in which it was last used. */
  turn: number
}

/** Lists that were not used for so many turns are forgotten. */
const TURNS_KEPT = 2

/** The lists of all blocks that share them. */
export class SeriesLists {
  private readonly byHash = new Map<number, SeriesList[]>()
  private turn = 0

  /** A block was emptied: lists that no later batch had are forgotten. */
  nextTurn(): void {
    this.turn++
    for (const [hash, lists] of this.byHash) {
      const kept = lists.filter(({ turn }) => turn >= this.turn - TURNS_KEPT)
      if (kept.length === 0) this.byHash.delete(hash)
      else if (kept.length < lists.length) this.byHash.set(hash, kept)
    }
  }

  /**
   * The list whose `count` ids are the words at `at`, low word first. `last` is tried before others: the list of the
   * batch before from the same server.
   */
  of(words: Uint32Array, at: number, count: number, last: SeriesList | null): SeriesList {
    const list = last && isList(last, words, at, count) ? last : this.find(words, at, count)
    list.turn = this.turn
    return list
  }

  private find(words: Uint32Array, at: number, count: number): SeriesList {
    let hash = count
    for (let word = at, end = at + count * 2; word < end; word++) hash = Math.imul(hash ^ words[word]!, 0x9e37_79b1)
    const lists = this.byHash.get(hash) ?? []
    const known = lists.find(list => isList(list, words, at, count))
    if (known) return known
    const list = listOf(words, at, count)
    lists.push(list)
    this.byHash.set(hash, lists)
    return list
  }
}

function isList({ idLo, idHi }: SeriesList, words: Uint32Array, at: number, count: number): boolean {
  if (idLo.length !== count) return false
  // Compared as signed words, which costs half as much.
  for (let index = 0, word = at; index < count; index++) {
    if ((idLo[index]! | 0) !== (words[word++]! | 0)) return false
    if ((idHi[index]! | 0) !== (words[word++]! | 0)) return false
  }
  return true
}

function listOf(words: Uint32Array, at: number, count: number): SeriesList {
  const idLo = new Uint32Array(count)
  const idHi = new Uint32Array(count)
  for (let index = 0, word = at; index < count; index++) {
    idLo[index] = words[word++]!
    idHi[index] = words[word++]!
  }
  const compare = (a: number, b: number): number => idHi[a]! - idHi[b]! || idLo[a]! - idLo[b]!
  const byId = Uint32Array.from({ length: count }, (_, index) => index).sort(compare)
  let isOnce = true
  for (let index = 1; index < count; index++) isOnce &&= compare(byId[index - 1]!, byId[index]!) !== 0
  return { idLo, idHi, byId: isOnce ? byId : null, turn: 0 }
}

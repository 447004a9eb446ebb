// The ids of a server's series in their order, kept once for all servers and cells that have the same ones: servers of
// one kind share them, and a server has the same ones for hours.

/** Ids in ascending order. */
export type IdList = {
  readonly lo: Uint32Array
  readonly hi: Uint32Array
  /** The turn in which it was last asked for. */
  turn: number
}

/** Lists that were not asked for in so many turns are forgotten here; cells that have one keep it. */
const TURNS_KEPT = 2

export const NO_IDS: IdList = { lo: new Uint32Array(0), hi: new Uint32Array(0), turn: 0 }

export class IdLists {
  private readonly byHash = new Map<number, IdList[]>()
  private turn = 0

  nextTurn(): void {
    this.turn++
    for (const [hash, lists] of this.byHash) {
      const kept = lists.filter(({ turn }) => turn >= this.turn - TURNS_KEPT)
      if (kept.length === 0) this.byHash.delete(hash)
      else if (kept.length < lists.length) this.byHash.set(hash, kept)
    }
  }

  /** The list of the first `count` ids. `likely` is tried before others. */
  of(lo: Uint32Array, hi: Uint32Array, count: number, likely: IdList): IdList {
    const list = isList(likely, lo, hi, count) ? likely : this.find(lo, hi, count)
    list.turn = this.turn
    return list
  }

  private find(lo: Uint32Array, hi: Uint32Array, count: number): IdList {
    let hash = count
    for (let at = 0; at < count; at++) hash = Math.imul(hash ^ lo[at]!, 0x9e37_79b1)
    const lists = this.byHash.get(hash) ?? []
    const known = lists.find(list => isList(list, lo, hi, count))
    if (known) return known
    const list = { lo: lo.slice(0, count), hi: hi.slice(0, count), turn: 0 }
    lists.push(list)
    this.byHash.set(hash, lists)
    return list
  }
}

function isList(list: IdList, lo: Uint32Array, hi: Uint32Array, count: number): boolean {
  if (list.lo.length !== count) return false
  // Compared as signed words, which costs half as much.
  for (let at = 0; at < count; at++)
    if ((list.lo[at]! | 0) !== (lo[at]! | 0) || (list.hi[at]! | 0) !== (hi[at]! | 0)) return false
  return true
}

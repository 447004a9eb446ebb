// The servers that a rule names, packed with 16 bytes for each id. A rule that lists 100,000 servers is 1.6 MB and not
// a set of strings; packed-rule.ts puts it into memory that all threads share.
import { isUuid } from '../../series/uuid.ts'

/** Four 32-bit words for each id, most significant first; ids ascend, and none stands twice. */
export type ServerIds = Uint32Array

const WORDS = 4

/** Packs the ids of all lists. A text that is not a UUID names no server and is skipped. */
export function packServerIds(lists: readonly (readonly string[])[]): ServerIds {
  const given = lists.flat()
  // The hub usually sends them sorted.
  const isAscending = given.every((id, index) => index === 0 || given[index - 1]! < id)
  const ids = (isAscending ? given : [...new Set(given)].sort()).filter(isUuid)
  const words = new Uint32Array(ids.length * WORDS)
  ids.forEach((id, index) => {
    for (let word = 0; word < WORDS; word++) words[index * WORDS + word] = wordOf(id, word)
  })
  return words
}

/** `serverId` in its canonical form. */
export function hasServerId(ids: ServerIds, serverId: string): boolean {
  let from = 0
  let to = ids.length / WORDS
  if (to === 0) return false
  const words = [wordOf(serverId, 0), wordOf(serverId, 1), wordOf(serverId, 2), wordOf(serverId, 3)]
  while (from < to) {
    const middle = (from + to) >>> 1
    let word = 0
    while (word < WORDS && ids[middle * WORDS + word] === words[word]) word++
    if (word === WORDS) return true
    if (ids[middle * WORDS + word]! < words[word]!) from = middle + 1
    else to = middle
  }
  return false
}

/** Offsets in the text of a UUID at which the 16-bit halves of each word begin. */
const HALVES = [0, 4, 9, 14, 19, 24, 28, 32]

const wordOf = (id: string, word: number): number =>
  ((halfOf(id, HALVES[word * 2]!) << 16) | halfOf(id, HALVES[word * 2 + 1]!)) >>> 0

/** The value of four hexadecimal digits; anything else gives a wrong number, so `id` must be a canonical UUID. */
function halfOf(id: string, at: number): number {
  let half = 0
  for (let index = at; index < at + 4; index++) {
    const code = id.charCodeAt(index)
    half = (half << 4) | (code >= 97 ? code - 87 : code - 48)
  }
  return half
}

/** What replaces the lists of servers in a rule that is passed between threads. */
export type PackedScope = {
  readonly serverIds: ServerIds
  /** The record with its lists, as JSON in UTF-8: what the journal and the store keep of the rule. */
  readonly record: Uint8Array
}

/**
 * The packed servers of a record; null when the record still has its lists. A record of the feed cannot imitate a
 * packed one, since JSON has no typed arrays.
 */
export function packedIds(raw: { readonly packed?: PackedScope }): ServerIds | null {
  const ids: unknown = raw.packed?.serverIds
  return ids instanceof Uint32Array ? ids : null
}

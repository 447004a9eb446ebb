// Encodes definitions of series for the store. Servers of a fleet define the same series: what they define is held and
// encoded once for all of them, and copied as bytes.
import { metricOf } from '../../series/series-key.ts'
import type { NativeWriter } from './native-writer.ts'
import { serverWords, WORDS_PER_SERVER } from './uuid-words.ts'

export type SeriesDefinition = {
  readonly idLo: number
  readonly idHi: number
  /** The full key: metric and labels. */
  readonly key: string
}

/** Values of a text column as their bytes in the block: [offsets[row], offsets[row + 1]) of `bytes`. */
type Texts = { readonly bytes: Uint8Array; readonly offsets: Uint32Array }

/** Series that are defined together, by one server or by many. */
export type DefinitionList = {
  readonly definitions: readonly SeriesDefinition[]
  /** Low word and high word of each id. */
  readonly ids: Uint32Array
  readonly metrics: Texts
  readonly keys: Texts
}

/** What a server has defined: the rows [begin, end) of a list. */
export type ServerDefinitions = {
  readonly companyId: string
  readonly serverId: string
  readonly seenAtMs: number
  readonly list: DefinitionList
  readonly begin: number
  readonly end: number
}

/** All of a list, as a server has defined it. */
export const definedBy = (
  { companyId, serverId }: { readonly companyId: string; readonly serverId: string },
  list: DefinitionList,
  seenAtMs: number,
): ServerDefinitions => ({ companyId, serverId, seenAtMs, list, begin: 0, end: list.definitions.length })

const WORD = 2 ** 32
const UUID_BYTES = 16
const encoder = new TextEncoder()

export function definitionList(definitions: readonly SeriesDefinition[]): DefinitionList {
  const ids = new Uint32Array(definitions.length * 2)
  definitions.forEach(({ idLo, idHi }, row) => {
    ids[row * 2] = idLo
    ids[row * 2 + 1] = idHi
  })
  const metrics = textsOf(definitions.map(({ key }) => metricOf(key)))
  return { definitions, ids, metrics, keys: textsOf(definitions.map(({ key }) => key)) }
}

/** Each text behind its length in bytes, which is written seven bits at a time, the lowest first. */
function textsOf(values: readonly string[]): Texts {
  const bytes: number[] = []
  const offsets = new Uint32Array(values.length + 1)
  values.forEach((value, row) => {
    const encoded = encoder.encode(value)
    let rest = encoded.length
    for (; rest >= 0x80; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80)
    bytes.push(rest)
    for (const byte of encoded) bytes.push(byte)
    offsets[row + 1] = bytes.length
  })
  return { bytes: new Uint8Array(bytes), offsets }
}

/** Writes definitions as a block of the table `series`, in the order given. */
export function writeSeriesBlock(writer: NativeWriter, defined: readonly ServerDefinitions[]): void {
  const rows = defined.reduce((sum, { begin, end }) => sum + end - begin, 0)
  writer.begin(7, rows)
  const words = serverWords(defined)
  for (const [name, word] of [
    ['company_id', 0],
    ['server_id', WORDS_PER_SERVER / 2],
  ] as const)
    writeSame(writer, { name, type: 'UUID', bytes: UUID_BYTES }, defined, index =>
      words.subarray(index * WORDS_PER_SERVER + word, index * WORDS_PER_SERVER + word + WORDS_PER_SERVER / 2),
    )
  writeTexts(writer, 'metric', defined, list => list.metrics)
  let at = writer.column({ name: 'series_id', type: 'UInt64', bytesPerRow: 8 }, rows)
  for (const { list, begin, end } of defined) {
    writer.put(at, list.ids.subarray(begin * 2, end * 2), (end - begin) * 2)
    at += (end - begin) * 8
  }
  writeTexts(writer, 'key', defined, list => list.keys)
  for (const name of ['first_seen', 'last_seen'])
    writeSame(writer, { name, type: "DateTime64(3, 'UTC')", bytes: 8 }, defined, index => {
      const { seenAtMs } = defined[index]!
      const high = Math.floor(seenAtMs / WORD)
      return new Uint32Array([Math.floor(seenAtMs) - high * WORD, high])
    })
}

/** A column of which all rows of a server have one value. */
function writeSame(
  writer: NativeWriter,
  column: { readonly name: string; readonly type: string; readonly bytes: number },
  defined: readonly ServerDefinitions[],
  wordsOf: (index: number) => Uint32Array,
): void {
  const { name, type, bytes } = column
  const rows = defined.reduce((sum, { begin, end }) => sum + end - begin, 0)
  let at = writer.column({ name, type, bytesPerRow: bytes }, rows)
  defined.forEach(({ begin, end }, index) => {
    if (begin === end) return
    const total = (end - begin) * bytes
    writer.put(at, wordsOf(index), bytes / 4)
    writer.repeat(at, bytes, total)
    at += total
  })
}

function writeTexts(
  writer: NativeWriter,
  name: string,
  defined: readonly ServerDefinitions[],
  textsIn: (list: DefinitionList) => Texts,
): void {
  writer.column({ name, type: 'String', bytesPerRow: 0 }, 0)
  for (const { list, begin, end } of defined) {
    const { bytes, offsets } = textsIn(list)
    writer.append(bytes.subarray(offsets[begin], offsets[end]))
  }
}

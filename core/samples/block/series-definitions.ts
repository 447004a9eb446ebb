// Encodes definitions of series for the store. They are rare in the steady state, so rows may be objects here.
import type { NativeWriter } from './native-writer.ts'
import { writeUuidColumn } from './uuid-words.ts'

export type SeriesDefinition = {
  readonly companyId: string
  readonly serverId: string
  readonly idLo: number
  readonly idHi: number
  /** The full key: metric and labels. */
  readonly key: string
  readonly seenAtMs: number
}

const WORD = 2 ** 32

const metricOf = (key: string): string => {
  const brace = key.indexOf('{')
  return brace < 0 ? key : key.slice(0, brace)
}

/** Writes definitions as a block of the table `series`, in the order given. */
export function writeSeriesBlock(writer: NativeWriter, definitions: readonly SeriesDefinition[]): void {
  const count = definitions.length
  writer.begin(7, count)
  writeUuidColumn(
    writer,
    'company_id',
    definitions.map(definition => definition.companyId),
  )
  writeUuidColumn(
    writer,
    'server_id',
    definitions.map(definition => definition.serverId),
  )
  writer.column({ name: 'metric', type: 'String', bytesPerRow: 0 }, count)
  for (const { key } of definitions) writer.text(metricOf(key))
  const ids = writer.column({ name: 'series_id', type: 'UInt64', bytesPerRow: 8 }, count)
  const view = writer.memory()
  definitions.forEach(({ idLo, idHi }, row) => {
    view.setUint32(ids + row * 8, idLo, true)
    view.setUint32(ids + row * 8 + 4, idHi, true)
  })
  writer.column({ name: 'key', type: 'String', bytesPerRow: 0 }, count)
  for (const { key } of definitions) writer.text(key)
  for (const name of ['first_seen', 'last_seen']) {
    const start = writer.column({ name, type: "DateTime64(3, 'UTC')", bytesPerRow: 8 }, count)
    const times = writer.memory()
    definitions.forEach(({ seenAtMs }, row) => {
      const high = Math.floor(seenAtMs / WORD)
      times.setUint32(start + row * 8, Math.floor(seenAtMs) - high * WORD, true)
      times.setInt32(start + row * 8 + 4, high, true)
    })
  }
}

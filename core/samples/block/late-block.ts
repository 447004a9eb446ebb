// Encodes late cells, which got samples after they may have been computed, for the store (sql/samples/0001_tables.sql,
// rollup_late).
import type { NativeWriter } from './native-writer.ts'
import { writeUuidColumn } from './uuid-words.ts'

/** A 5-minute cell of a server, by its start. */
export type LateCell = { readonly companyId: string; readonly serverId: string; readonly startMs: number }

/**
 * Writes cells as a block of the table `rollup_late`. `batch` names them: they are computed and then deleted together.
 */
export function writeLateBlock(writer: NativeWriter, batch: string, cells: readonly LateCell[]): void {
  writer.begin(4, cells.length)
  writer.column({ name: 'batch', type: 'String', bytesPerRow: 0 }, cells.length)
  for (let row = 0; row < cells.length; row++) writer.text(batch)
  writeUuidColumn(
    writer,
    'company_id',
    cells.map(cell => cell.companyId),
  )
  writeUuidColumn(
    writer,
    'server_id',
    cells.map(cell => cell.serverId),
  )
  const start = writer.column({ name: 'ts', type: "DateTime64(3, 'UTC')", bytesPerRow: 8 }, cells.length)
  const times = writer.memory()
  cells.forEach(({ startMs }, row) => {
    times.setBigInt64(start + row * 8, BigInt(startMs), true)
  })
}

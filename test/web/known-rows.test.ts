// Rows that are read again: which of them are asked for, and what stays as it was.
import { expect, test } from 'bun:test'
import { Records, type RowsReading, readRows } from '../../apps/hub/web/live/known-rows.ts'

type Row = { readonly id: string; readonly text: string; state: number }
const layout = { recordBytes: 19, rowBytes: 18 }
const idOf = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`

/** A table whose rows are written and whose readings say what was asked for. */
class Table {
  readonly rows = new Map<number, { version: number; state: number }>()
  asked: string[] = []
  last: RowsReading<Row> | null = null

  async read(ordered: readonly number[] = [...this.rows.keys()]): Promise<readonly string[]> {
    const bytes = Buffer.alloc(ordered.length * layout.recordBytes)
    for (const [place, number] of ordered.entries()) {
      const { version, state } = this.rows.get(number) ?? { version: 99, state: 99 }
      const at = place * layout.recordBytes
      bytes.write(idOf(number).replaceAll('-', ''), at, 'hex')
      bytes.writeInt16BE(version, at + 16)
      bytes.writeInt8(state, at + 18)
    }
    const records = new Records(bytes, layout)
    this.asked = []
    const read = async (ids: readonly string[]) => {
      this.asked.push(...ids)
      const wanted = new Set(ids)
      const found = [...this.rows].filter(([number]) => wanted.has(idOf(number)))
      return new Map(
        found.map(([number, { version }]) => [idOf(number), { id: idOf(number), text: `v${version}`, state: -1 }]),
      )
    }
    this.last = await readRows(this.last, records, read, (row, place) => {
      row.state = bytes.readInt8(place * layout.recordBytes + 18)
    })
    return this.last.rows.map(({ id, text, state }) => `${Number(id.slice(-12))} ${text} ${state}`)
  }
}

const tableOf = (...numbers: readonly number[]): Table => {
  const table = new Table()
  for (const number of numbers) table.rows.set(number, { version: 1, state: 0 })
  return table
}

test('a row is read once, and again when it is written; what else its record says is written into it', async () => {
  const table = tableOf(1, 2, 3)
  expect(await table.read()).toEqual(['1 v1 0', '2 v1 0', '3 v1 0'])
  expect(table.asked).toEqual([1, 2, 3].map(idOf))
  const [first] = table.last?.rows ?? []
  const before = table.last
  await table.read()
  expect([table.asked, table.last]).toEqual([[], before])
  expect(table.last).toBe(before)

  table.rows.set(1, { version: 1, state: 7 })
  table.rows.set(2, { version: 2, state: 5 })
  expect(await table.read()).toEqual(['1 v1 7', '2 v2 5', '3 v1 0'])
  expect(table.asked).toEqual([idOf(2)])
  expect(table.last?.rows[0]).toBe(first!)
  expect(table.last?.rows).not.toBe(before!.rows)
})

test('rows that come, go and change places are found where they are', async () => {
  const table = tableOf(1, 2, 3, 4)
  await table.read()
  table.rows.delete(2)
  table.rows.set(5, { version: 1, state: 1 })
  expect(await table.read([5, 4, 3, 1])).toEqual(['5 v1 1', '4 v1 0', '3 v1 0', '1 v1 0'])
  expect(table.asked).toEqual([idOf(5)])
  expect(await table.read([])).toEqual([])
})

test('a row that is gone before it is read is left out, and asked for again', async () => {
  const table = tableOf(1, 2)
  expect(await table.read([1, 2, 9])).toEqual(['1 v1 0', '2 v1 0'])
  table.rows.set(9, { version: 99, state: 99 })
  expect(await table.read([1, 2, 9])).toEqual(['1 v1 0', '2 v1 0', '9 v99 99'])
  expect(table.asked).toEqual([idOf(9)])
})

test('more rows than one statement reads are read with several', async () => {
  const table = tableOf(...Array.from({ length: 4_500 }, (_, number) => number))
  expect(await table.read()).toHaveLength(4_500)
  expect(table.asked).toHaveLength(4_500)
})

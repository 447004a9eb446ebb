// Rows that are read again and again and seldom change, as all servers of a company: a reading brings a short record of
// each, in one value, and then only those rows whose record says that they have changed. Ten thousand rows that stay
// as they are cost no object.

const ID_BYTES = 16

/** How long a record is, and how much of it from its beginning says which row it is of and which writing of the row. */
export type RecordLayout = { readonly recordBytes: number; readonly rowBytes: number }

/** Records one behind the other, each beginning with the id of its row, a uuid. */
export class Records {
  readonly count: number
  private places: Map<string, number> | null = null

  constructor(
    readonly bytes: Buffer,
    private readonly layout: RecordLayout,
  ) {
    this.count = bytes.length / layout.recordBytes
  }

  idAt(place: number): string {
    const at = place * this.layout.recordBytes
    const hex = this.bytes.toString('hex', at, at + ID_BYTES)
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
  }

  private isAlike(length: number, place: number, other: Records, otherPlace: number): boolean {
    const { recordBytes } = this.layout
    const [at, otherAt] = [place * recordBytes, otherPlace * recordBytes]
    return this.bytes.compare(other.bytes, otherAt, otherAt + length, at, at + length) === 0
  }

  /** Where another reading has the row of a place, which mostly is the same place; -1: nowhere. */
  placeIn(other: Records, place: number): number {
    if (place < other.count && this.isAlike(ID_BYTES, place, other, place)) return place
    return other.placeOf(this.idAt(place))
  }

  private placeOf(id: string): number {
    this.places ??= new Map(Array.from({ length: this.count }, (_, place) => [this.idAt(place), place]))
    return this.places.get(id) ?? -1
  }

  hasSameRow(place: number, other: Records, otherPlace: number): boolean {
    return this.isAlike(this.layout.rowBytes, place, other, otherPlace)
  }

  isSame(place: number, other: Records, otherPlace: number): boolean {
    return this.isAlike(this.layout.recordBytes, place, other, otherPlace)
  }
}

/** `placed`: by the places of the records; a row may be gone by the time it is read. */
export type RowsReading<T> = {
  readonly records: Records
  readonly placed: readonly (T | undefined)[]
  readonly rows: readonly T[]
}

/** Rows that are read with one statement. */
const ROWS_AT_ONCE = 2_000

/**
 * The rows of the records: those of `before` that are still the same, and the others from `read`, which gets at most
 * 2,000 ids. `update` writes into a row what the rest of its record says. The same reading where nothing has changed.
 */
export async function readRows<T>(
  before: RowsReading<T> | null,
  records: Records,
  read: (ids: readonly string[]) => Promise<ReadonlyMap<string, T>>,
  update: (row: T, place: number) => void,
): Promise<RowsReading<T>> {
  if (before?.records.bytes.equals(records.bytes) && !before.placed.includes(undefined)) return before
  const placed = Array.from({ length: records.count }, (_, place): T | undefined => {
    if (before === null) return undefined
    const former = records.placeIn(before.records, place)
    const known = before.placed[former]
    if (known === undefined || !records.hasSameRow(place, before.records, former)) return undefined
    if (!records.isSame(place, before.records, former)) update(known, place)
    return known
  })
  const changed = placed.flatMap((row, place) => (row === undefined ? [place] : []))
  for (let at = 0; at < changed.length; at += ROWS_AT_ONCE) {
    const places = changed.slice(at, at + ROWS_AT_ONCE)
    const ids = places.map(place => records.idAt(place))
    const found = await read(ids)
    for (const [index, place] of places.entries()) {
      const row = found.get(ids[index] ?? '')
      if (row === undefined) continue
      update(row, place)
      placed[place] = row
    }
  }
  return { records, placed, rows: placed.filter(row => row !== undefined) }
}

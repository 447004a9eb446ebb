// What the download of a source depends on.
import type { FetchOptions } from './fetch-file.ts'
import type { SourceRow } from './import/write-file.ts'

export type FetchContext = {
  /** `db.mirror`: stands for scheme and host of the default addresses; null: the addresses themselves. */
  readonly mirror: string | null
  /** An address that replaces the default one of this source. */
  readonly address: string | null
  readonly scratch: string
  readonly previous: readonly SourceRow[]
  readonly nowMs: number
  readonly options: FetchOptions
}

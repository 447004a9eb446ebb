// When what is fetched or given of a source is not taken (MAT-065, MAT-066): the source then keeps its rows of before.

/** Why a source or a bundle is not taken: said to the operator as it stands, so without paths and content of others. */
export class SourceRefused extends Error {}

const UNREADABLE_MAX_SHARE = 0.01
const SHRINK_MAX_SHARE = 0.2

/** Records of a source. */
type SourceRecords = {
  /** Of what was read now, and of these that could not be. */
  readonly read: number
  readonly unreadable: number
  /** In all that it would have now, and what it has. */
  readonly now: number
  readonly before: number
  /** The operator has said that it may become smaller. */
  readonly mayShrink: boolean
}

/** Why a source is refused; null: it is taken. */
export function sourceFault({ read, unreadable, now, before, mayShrink }: SourceRecords): string | null {
  if (unreadable > read * UNREADABLE_MAX_SHARE)
    return `${unreadable} of its ${read} records cannot be read, more than 1 %`
  if (mayShrink) return null
  if (now === 0) return 'it has no records; --accept-shrink takes it all the same'
  if (now < before * (1 - SHRINK_MAX_SHARE))
    return `it shrank from ${before} to ${now} records, more than 20 %; --accept-shrink takes it all the same`
  return null
}

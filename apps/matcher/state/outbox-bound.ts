// From which fill on the outbox counts as full: reports are then refused and re-matches pause (MAT-169).

/** What a row costs beside its events, indexes included: measured on a million rows. */
export const ROW_BYTES = 90
/** Reports are refused and re-matches pause beyond this part of the bound (MAT-169). */
const FULL_SHARE = 0.9

export const isOutboxFull = (bytes: number, bytesMax: number): boolean => bytes >= bytesMax * FULL_SHARE

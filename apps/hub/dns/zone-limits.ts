// How many records one request may bring to a zone, and how large a zone file may be.
export const RECORDS_WITH_ZONE = 1_000
export const RECORDS_AT_ONCE = 500
export const FILE_CHARACTERS_MAX = 2 * 1024 * 1024
export const FILE_BODY_BYTES_MAX = 8 * 1024 * 1024

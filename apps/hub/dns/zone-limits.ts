// How long a record may live, how many of them one request may bring to a zone, and how large a zone file may be.
export const TTL_MIN_SECONDS = 30
export const TTL_MAX_SECONDS = 604_800
export const RECORDS_WITH_ZONE = 1_000
export const RECORDS_AT_ONCE = 500
export const FILE_CHARACTERS_MAX = 2 * 1024 * 1024
export const FILE_BODY_BYTES_MAX = 8 * 1024 * 1024

// When a page says that its connection to the hub is lost, and what it shows no longer of now.

export type StreamState = 'connecting' | 'live' | 'lost'

/** The hub says something every three seconds; after this much silence the connection is dead. */
export const SILENCE_MAX_MS = 7_500

/** Data older than this is not said to be of now, unless the stream lives. */
const STALE_AFTER_MS = 10_000

/** The age is asked for only where it matters: it changes every second. */
export const isLost = (stream: StreamState, dataAgeMs: () => number): boolean =>
  stream === 'lost' || (stream !== 'live' && dataAgeMs() > STALE_AFTER_MS)

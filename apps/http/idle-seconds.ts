// For how long a connection may be silent before it is closed, of each kind of listener: seconds without progress,
// whether between requests or in a body that trickles. http-connection.ts and http2-connection.ts close it; how fast a
// body must come besides: body-pace.ts.
export const IDLE_SECONDS = {
  /** Agents and scanners. */
  agents: 45,
  /** Browsers, and programs that call the hub. */
  hub: 60,
  /** The hub waits 30 s for the answer to a purge. */
  admin: 60,
  /** A scraper asks again within it. */
  ops: 60,
  /** Commands on the matcher's own host. */
  control: 60,
} as const

// When an agent warns that the clock of its host is wrong: by the time that the collector names in an acknowledgement.

/** A clock further off than this loses points at the collector, which takes them 5 minutes ahead at most. */
const SKEW_WARN_MS = 60_000

/** `serverTimeMs` 0: the collector did not say. */
export const clockWarnings = (serverTimeMs: number, nowMs: number): readonly string[] =>
  serverTimeMs > 0 && Math.abs(serverTimeMs - nowMs) > SKEW_WARN_MS
    ? ['the clock of this host differs from the collector by more than a minute']
    : []

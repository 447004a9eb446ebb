// Whether lists and maps show a server as online: by the hub's records (core/lifecycle/agent-shown-online.ts), and by
// its newest values, which are there sooner.
import type { FleetServer } from './fleet.ts'
import type { ServerValues } from './newest-values.ts'

/** What a list shows of a server's connection: one that has just sent is heard, whatever the records say yet. */
export const connectivityNow = (
  { connectivity, lastSeenAtMs }: FleetServer,
  values: ServerValues | undefined,
  nowMs: number,
  thresholdMs: number,
): FleetServer['connectivity'] =>
  values !== undefined &&
  connectivity === 'unknown' &&
  lastSeenAtMs === null &&
  nowMs - values.sampledAtMs < thresholdMs
    ? 'online'
    : connectivity

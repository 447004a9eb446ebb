// Whether the hub counts a collector as online (decision G-31).
import { limits } from '../limits.ts'

/** A collector is online while its last heartbeat is at most 180 s old. */
export function collectorStatus(lastHeartbeatAtMs: number | null, nowMs: number): 'online' | 'offline' | 'never' {
  if (lastHeartbeatAtMs === null) return 'never'
  return nowMs - lastHeartbeatAtMs <= limits.collectorOnlineMs ? 'online' : 'offline'
}

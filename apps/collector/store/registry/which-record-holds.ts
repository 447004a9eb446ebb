// Which of two records of an agent holds, the one that is held or the one that comes: by its version, and never out of
// revoked (document 1 "Registry consistency rule"; decision G-35). The stores that processes share ask the same in one
// step with what they write: file-registry-store.ts in SQL, redis/redis-registry-store.ts in a script.
import type { AgentRecord } from './agent-record.ts'

/** True when everything but the cursor of the feed is the same. */
export function isSameContent(a: AgentRecord, b: AgentRecord): boolean {
  return (
    a.companyId === b.companyId &&
    a.serverId === b.serverId &&
    a.state === b.state &&
    a.tokenHash === b.tokenHash &&
    a.prevTokenHash === b.prevTokenHash &&
    a.prevTokenExpiresAtMs === b.prevTokenExpiresAtMs &&
    a.serverStatus === b.serverStatus &&
    a.subnetId === b.subnetId &&
    a.datacenter === b.datacenter &&
    a.hostname === b.hostname &&
    a.intervalSeconds === b.intervalSeconds &&
    a.scan?.matcherUrl === b.scan?.matcherUrl &&
    a.scan?.enrolCode === b.scan?.enrolCode
  )
}

/** The record that holds after `offered` arrived for a known agent, or null when `offered` is ignored. */
export function recordThatHolds(held: AgentRecord, offered: AgentRecord): AgentRecord | null {
  if (offered.version < held.version) return null
  // A record stored before hostnames were known is completed by the same record of the feed.
  const isFuller = held.hostname === '' && offered.hostname !== ''
  const isNewer = offered.version > held.version || offered.syncVersion > held.syncVersion || isFuller
  const isRevocation = offered.state === 'revoked' && held.state !== 'revoked'
  if (!isNewer && !isRevocation) return null
  const syncVersion = Math.max(held.syncVersion, offered.syncVersion)
  const enrolledAtMs = offered.enrolledAtMs || held.enrolledAtMs
  const hostname = offered.hostname || held.hostname
  // Only the feed and look-ups tell of scans; what the hub pushes, and a renewal, leave it out.
  const scan = offered.syncVersion === 0 ? held.scan : offered.scan
  return {
    ...offered,
    scan,
    syncVersion,
    enrolledAtMs,
    hostname,
    state: held.state === 'revoked' ? 'revoked' : offered.state,
  }
}

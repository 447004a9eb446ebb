// Which of several agents of a server stands for it: whose subnet, status and interval count (decision G-47).
import type { AgentRecord } from './agent-record.ts'

/** The latest one that is not revoked, by enrollment time where the hub sends it, else by version. */
export function latestAgent(records: readonly AgentRecord[], companyId: string): AgentRecord | undefined {
  let latest: AgentRecord | undefined
  for (const record of records) {
    if (record.companyId !== companyId || record.state === 'revoked') continue
    const isLater =
      !latest ||
      record.enrolledAtMs > latest.enrolledAtMs ||
      (record.enrolledAtMs === latest.enrolledAtMs && record.syncVersion > latest.syncVersion)
    if (isLater) latest = record
  }
  return latest
}

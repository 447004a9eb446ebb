// The newest values of the servers that somebody looks at, from their collectors: asked once in four seconds for all
// viewers. A slow or unreachable collector delays nobody: what is known is shown, and what is not is missing.
import pTimeout from 'p-timeout'
import type { Hub } from '../../hub-context.ts'
import { askCollector, type ServerNow, summaryOf } from '../../servers/health.ts'
import type { FleetServer } from './fleet.ts'
import { RecentValues } from './recent-values.ts'

const ANSWER_AGE_MS = 4_000
/** An older answer is shown while the collector is slow to give the next one. */
const ANSWER_USABLE_MS = 30_000
/** How long a view waits for the collector. */
const COLLECTOR_WAIT_MS = 1_500
const SHARED_MAX = 20_000
const ASKED_AT_ONCE = 8

export type CollectorState = 'ok' | 'unavailable' | 'not_configured'

/** Percent, 0 to 100; load as it is; null: not known. The disk is the fullest one, with its mount. */
export type ServerValues = {
  readonly cpu: number | null
  readonly memory: number | null
  readonly disk: number | null
  readonly mount: string | null
  readonly load: number | null
  readonly connectivity: FleetServer['connectivity'] | null
  readonly lastSeenAtMs: number | null
}

function fullestDisk(now: ServerNow): { disk: number | null; mount: string | null } {
  const disks = now.status?.metrics.disk_used_percent ?? []
  const fullest = disks.reduce<(typeof disks)[number] | null>(
    (worst, disk) => (worst === null || disk.value > worst.value ? disk : worst),
    null,
  )
  return { disk: fullest?.value ?? null, mount: fullest?.labels.mount ?? null }
}

function toValues(now: ServerNow | null): ServerValues | null {
  if (now?.status == null) return null
  const { cpu_percent, memory_percent, load1 } = summaryOf(now.status)
  const seenAtMs = now.status.last_seen === null ? null : Date.parse(now.status.last_seen)
  return {
    cpu: cpu_percent,
    memory: memory_percent,
    ...fullestDisk(now),
    load: load1,
    connectivity: now.status.state,
    lastSeenAtMs: seenAtMs,
  }
}

export class NewestValues {
  private readonly answers: RecentValues<ServerNow>

  constructor(private readonly hub: Hub) {
    this.answers = new RecentValues(ANSWER_AGE_MS, SHARED_MAX, hub.now)
  }

  /** The values of a page of servers, in their order; null where the collector has not answered. */
  async of(
    companyId: string,
    servers: readonly Pick<FleetServer, 'id' | 'agentId'>[],
  ): Promise<{ values: (ServerValues | null)[]; collector: CollectorState }> {
    const keyOf = ({ id, agentId }: Pick<FleetServer, 'id' | 'agentId'>) => `${companyId} ${id} ${agentId}`
    const waiting = [...servers]
    const ask = async () => {
      for (let server = waiting.shift(); server !== undefined; server = waiting.shift()) {
        const { id, agentId } = server
        await this.answers.get(keyOf(server), () => askCollector(this.hub, { server: { id, companyId }, agentId }))
      }
    }
    const answered = Promise.all(Array.from({ length: ASKED_AT_ONCE }, ask)).catch(error =>
      this.hub.log.warn({ err: error }, 'cannot ask the collector'),
    )
    await pTimeout(answered, { milliseconds: COLLECTOR_WAIT_MS, fallback: () => {} })
    const found = servers.map(server => this.answers.last(keyOf(server), ANSWER_USABLE_MS))
    const reasons = new Set(found.filter(now => now?.note.available === false).map(now => now?.note.reason))
    const collector = reasons.has('unavailable')
      ? 'unavailable'
      : reasons.has('not_configured')
        ? 'not_configured'
        : 'ok'
    return { values: found.map(toValues), collector }
  }
}

// The servers of a company with their newest values: what lists filter and sort. One array for all views of the same
// few seconds; a server stays the same object until its row changes.
import { LRUCache } from 'lru-cache'
import type { Hub } from '../../hub-context.ts'
import { connectivityNow } from './connectivity-now.ts'
import type { FleetServer } from './fleet.ts'
import type { NewestOfCompany, ServerValues } from './newest-values.ts'

/** A server with its newest values, where the collector has given some. */
export type LiveServer = FleetServer & { readonly values: ServerValues | undefined }
type KeptServer = { -readonly [K in keyof LiveServer]: LiveServer[K] }

type Joined = {
  readonly fleet: readonly FleetServer[]
  readonly of: NewestOfCompany
  readonly servers: readonly KeptServer[]
}

const COMPANIES_MAX = 200

export class LiveServers {
  private readonly joined = new LRUCache<string, Joined>({ max: COMPANIES_MAX })

  constructor(private readonly hub: Hub) {}

  join(companyId: string, fleet: readonly FleetServer[], of: NewestOfCompany): readonly LiveServer[] {
    const before = this.joined.get(companyId)
    if (before?.fleet === fleet && before.of === of) return before.servers
    const nowMs = this.hub.now()
    const thresholdMs = this.hub.config['agents.online_threshold']
    const servers = fleet.map((server, place): KeptServer => {
      const values = of.values.get(server.id)
      const connectivity = connectivityNow(server, values, nowMs, thresholdMs)
      const known = before?.fleet[place] === server ? before.servers[place] : undefined
      if (known === undefined) return { ...server, values, connectivity }
      const { lastSeenAtMs, openAlerts, worst, isSilenced } = server
      return Object.assign(known, { lastSeenAtMs, openAlerts, worst, isSilenced, values, connectivity })
    })
    this.joined.set(companyId, { fleet, of, servers })
    return servers
  }
}

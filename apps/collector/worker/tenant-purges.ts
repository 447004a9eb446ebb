// Purges as a worker carries them out: the tombstone, the registry, the threads, groups and outbox of this process, and
// what a restart cut short.

import type { Tombstone } from '../../../core/retention/tombstone.ts'
import { AdminError } from '../../admin-api/admin-error.ts'
import { createPurger, type Purger } from '../admin/purge.ts'
import type { WorkerConfig } from '../config.ts'
import type { CompanySettingsCache } from '../hub-link/company-settings.ts'
import type { AgentRegistry } from '../store/registry/registry.ts'
import type { CollectorMetrics } from '../telemetry.ts'
import type { Groups } from './evaluation/group-incidents.ts'
import type { ShardPool } from './evaluation/shard-pool.ts'
import type { SamplesClient } from './samples/samples-client.ts'
import type { WorkerStorage } from './storage/worker-storage.ts'

type TenantPurgesDeps = {
  readonly config: WorkerConfig
  readonly metrics: CollectorMetrics
  readonly registry: AgentRegistry
  readonly nowMs: () => number
  readonly shards: ShardPool
  readonly samples: SamplesClient
  readonly settings: CompanySettingsCache
  readonly storage: Pick<WorkerStorage, 'tombstones' | 'outbox'>
  readonly groups: Groups
  readonly onError: (what: string, error: unknown) => void
}

/** A change of the registry is kept for every process; where that fails, the call fails and the hub repeats it. */
export async function keptByRegistry<T>(
  { registry, onError }: Pick<TenantPurgesDeps, 'registry' | 'onError'>,
  result: T,
): Promise<T> {
  try {
    await registry.flushed()
  } catch (error) {
    onError('cannot keep a change of the registry; it is in force here, and kept later', error)
    throw new AdminError('unavailable', 'the change cannot be kept now; call again')
  }
  return result
}

export class TenantPurges {
  private readonly purger: Purger

  /** Goes on with the purges whose tombstones live. */
  constructor(private readonly deps: TenantPurgesDeps) {
    const { config, metrics, registry, nowMs, samples, storage, onError } = deps
    this.purger = createPurger({
      nowMs,
      tombstones: {
        write: async tombstone => {
          await storage.tombstones.write(tombstone)
          await this.learnTombstones([tombstone])
        },
      },
      registry: {
        removeCompany: companyId => keptByRegistry(deps, registry.removeCompany(companyId)),
        removeServer: (companyId, serverId) => keptByRegistry(deps, registry.removeServer(companyId, serverId)),
      },
      samples,
      tombstoneMs: config['purge.tombstone_ttl'],
      secondDeleteAfterMs: config['purge.second_delete_after'],
      onPurge: result => metrics.purges.inc({ result }),
      onError,
    })
    this.resume()
  }

  readonly purge: Purger['purge'] = (companyId, serverId) => this.purger.purge(companyId, serverId)

  /** Ends the waiting for second deletions. */
  stop(): void {
    this.purger.stop()
  }

  /** Tombstones were written, by this process or another: their tenants are forgotten here. */
  async learnTombstones(tombstones: readonly Tombstone[]): Promise<void> {
    const { shards, samples, storage } = this.deps
    shards.setTombstones(storage.tombstones.kept())
    samples.setTombstones(storage.tombstones.kept())
    for (const { companyId, serverId } of tombstones) await this.forget(companyId, serverId)
  }

  /** The state of a purged tenant goes, and its events that the hub was not told of. */
  private async forget(companyId: string, serverId: string | null): Promise<void> {
    const { shards, groups, storage, settings } = this.deps
    await shards.forget(companyId, serverId)
    await groups.forget(companyId, serverId)
    await storage.outbox.removeEventsOf(companyId, serverId)
    if (serverId === null) settings.forget(companyId)
  }

  /** A purge that a restart cut short goes on: the threads forgot the tenant before they evaluated anything. */
  private resume(): void {
    const { registry, storage, onError } = this.deps
    for (const { companyId, serverId } of storage.tombstones.living()) {
      if (serverId === null) registry.removeCompany(companyId)
      else registry.removeServer(companyId, serverId)
      void this.forget(companyId, serverId).catch(error => onError('cannot forget a purged tenant', error))
      this.purger.resume(companyId, serverId)
    }
  }
}

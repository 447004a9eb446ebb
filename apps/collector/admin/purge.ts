// Purge of a company or a server: tombstone, registry, data, and the data once more for what was on its way (document 3
// "Purge"; decision G-140). Every step may run again.
import type { PurgeResponse } from '../../../core/admin-api/calls.ts'
import { AdminError } from '../../admin-api/admin-error.ts'
import { type AdminCall, uuidOf } from '../../admin-api/call.ts'
import type { AdminDeps, PurgeDeps, PurgeOutcome } from './deps.ts'

/** DELETE /companies/{company_id}/data and DELETE /servers/{server_id}/data?company_id=. */
export async function purgeData(
  deps: AdminDeps,
  { params, query }: AdminCall,
  scope: 'company' | 'server',
): Promise<PurgeResponse> {
  const companyId = uuidOf('company_id', scope === 'company' ? params.company_id : query.get('company_id'))
  const serverId = scope === 'company' ? null : uuidOf('server_id', params.server_id)
  const result = await deps.purge(companyId, serverId)
  switch (result.outcome) {
    case 'no_tombstone':
      throw new AdminError('unavailable', 'the tombstone cannot be written; nothing was deleted')
    case 'failed':
      throw new AdminError('unavailable', 'the deletion is not complete; call again')
    case 'done':
      return {
        scope,
        id: serverId ?? companyId,
        registry_deleted: result.registryDeleted,
        tombstone_until: new Date(result.tombstoneUntilMs).toISOString(),
      }
  }
}

export type Purger = {
  readonly purge: (companyId: string, serverId: string | null) => Promise<PurgeOutcome>
  /**
   * Runs the deletion of a tombstone that was written before a restart, for the second time that it may have missed.
   */
  readonly resume: (companyId: string, serverId: string | null) => void
  /** Ends the waiting for second deletions; those that were due are left to `resume`. */
  readonly stop: () => void
}

export function createPurger(deps: PurgeDeps): Purger {
  const timers = new Set<ReturnType<typeof setTimeout>>()

  const later = (companyId: string, serverId: string | null, untilMs: number): void => {
    const timer = setTimeout(async () => {
      timers.delete(timer)
      try {
        await deps.samples.purge(companyId, serverId)
      } catch (error) {
        deps.onError('cannot delete samples of a purged tenant a second time', error)
        if (deps.nowMs() < untilMs) later(companyId, serverId, untilMs)
      }
    }, deps.secondDeleteAfterMs)
    timers.add(timer)
  }

  return {
    purge: async (companyId, serverId) => {
      const untilMs = deps.nowMs() + deps.tombstoneMs
      try {
        await deps.tombstones.write({ companyId, serverId, untilMs })
      } catch (error) {
        deps.onError('cannot write the tombstone of a purge', error)
        deps.onPurge('refused')
        return { outcome: 'no_tombstone' }
      }
      try {
        const registryDeleted =
          serverId === null
            ? await deps.registry.removeCompany(companyId)
            : await deps.registry.removeServer(companyId, serverId)
        await deps.samples.purge(companyId, serverId)
        later(companyId, serverId, untilMs)
        deps.onPurge('done')
        return { outcome: 'done', registryDeleted, tombstoneUntilMs: untilMs }
      } catch (error) {
        deps.onError('cannot complete a purge', error)
        deps.onPurge('failed')
        return { outcome: 'failed' }
      }
    },
    resume: (companyId, serverId) => later(companyId, serverId, deps.nowMs() + deps.tombstoneMs),
    stop: () => {
      for (const timer of timers) clearTimeout(timer)
      timers.clear()
    },
  }
}

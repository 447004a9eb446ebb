// The hub's calls to reload a feed: pulled here, and by the other processes of the collector, before the call is
// answered.
import pTimeout from 'p-timeout'
import type { ReloadFeed } from '../../../core/admin-api/calls.ts'
import { AdminError } from '../../admin-api/admin-error.ts'
import type { ReloadOutcome } from '../admin/deps.ts'
import type { CompanySettingsCache } from '../hub-link/company-settings.ts'
import type { HubClient } from '../hub-link/hub-client.ts'
import type { WorkerStorage } from './storage/worker-storage.ts'

/** A hub waits ten seconds for the answer to a reload call. */
const RELOAD_WAIT_MS = 6_000
const RELOAD_RETRY_S = 5

/** Reloads of what ingest reads from the hub. */
export type ReloadAgentFeeds = { readonly checks: () => Promise<'applied' | 'unavailable'> }

export type ReloadCallsDeps = {
  readonly hub: HubClient | null
  readonly settings: CompanySettingsCache
  readonly storage: Pick<WorkerStorage, 'raiseReload' | 'others'>
  readonly reloadRules: () => Promise<'applied' | 'unavailable'>
  readonly reloadSilences: () => Promise<'applied' | 'unavailable'>
  readonly reloadAgentFeeds: ReloadAgentFeeds | null
  readonly onError: (what: string, error: unknown) => void
}

export class ReloadCalls {
  constructor(private readonly deps: ReloadCallsDeps) {}

  /** Pulls a feed and puts it in force, everywhere. */
  readonly reload = async (feed: ReloadFeed): Promise<ReloadOutcome> => {
    if (!this.deps.hub) return 'not_configured'
    const reloading = Promise.all([this.reloadHere(feed), this.reloadElsewhere(feed)])
    const outcome = await pTimeout(reloading, { milliseconds: RELOAD_WAIT_MS, fallback: () => null })
    if (outcome !== null) return outcome[0]
    // Nobody waits for it any more; what became of it stands in the log of the feed.
    reloading.catch(() => {})
    throw new AdminError('unavailable', 'what is to be reloaded is not in force yet; call again', RELOAD_RETRY_S)
  }

  /** Pulls a feed and puts it in force in this process. */
  async reloadHere(feed: ReloadFeed): Promise<'applied' | 'unavailable'> {
    const { settings, reloadRules, reloadSilences, reloadAgentFeeds } = this.deps
    if (feed === 'rules') return reloadRules()
    if (feed === 'silences') return reloadSilences()
    if (feed === 'checks') return reloadAgentFeeds ? reloadAgentFeeds.checks() : 'applied'
    settings.clear()
    return 'applied'
  }

  /**
   * Workers are asked and answer; ingest, and a worker that does not answer, pull by the counter within two seconds.
   */
  private async reloadElsewhere(feed: ReloadFeed): Promise<void> {
    const { storage, onError } = this.deps
    try {
      await storage.raiseReload?.(feed)
      await storage.others?.reload(feed)
    } catch (error) {
      onError('cannot tell the other processes of a reload call', error)
      throw new AdminError('unavailable', 'the other processes cannot be told now; call again', RELOAD_RETRY_S)
    }
  }
}

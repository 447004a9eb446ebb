// The feed of scan hosts (MAT-050 to MAT-052): pulled page by page, each page applied in one transaction. A pull that
// breaks off goes on at the next one where it was.
import type { Logger } from 'pino'
import { isObject } from '../../../core/json-object.ts'
import { limits } from '../../../core/limits.ts'
import { isPublicKey } from '../../../core/matching/scan-protocol.ts'
import { isUuid } from '../../../core/series/uuid.ts'
import { describeResponse } from '../../hub-link/hub-connection.ts'
import { type PullOutcome, SyncLoop } from '../../hub-link/sync-loop.ts'
import type { MatcherState, ScanHost } from '../state/state-types.ts'
import type { MatcherHub } from './matcher-hub.ts'

const FEED = 'scan_hosts'
/** A hub that always says `more` must not hold the loop for ever. */
const PAGES_MAX = 100_000

type FeedHost = ScanHost & { readonly isDeleted: boolean }

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** A record of the feed; null for one that cannot be read. A deleted one needs no more than its id. */
function hostOf(record: unknown): FeedHost | null {
  if (!isObject(record)) return null
  const hostId = textOf(record.host_id)
  // As for agents: the version says which record is newer, sync_version where it stands in the feed (decision G-35).
  const version = Number(record.version ?? record.sync_version)
  const isDeleted = record.deleted === true
  const companyId = textOf(record.company_id)
  const publicKey = textOf(record.public_key)
  const { state } = record
  if (!isUuid(hostId) || !Number.isSafeInteger(version)) return null
  const isWhole = isUuid(companyId) && isPublicKey(publicKey) && (state === 'active' || state === 'revoked')
  if (!isDeleted && !isWhole) return null
  const serverId = textOf(record.server_id)
  return {
    hostId,
    companyId,
    serverId: isUuid(serverId) ? serverId : null,
    publicKey,
    state: state === 'active' && !isDeleted ? 'active' : 'revoked',
    isInactive: record.inactive === true,
    version,
    isDeleted,
  }
}

type SyncParts = {
  readonly state: MatcherState
  readonly hub: MatcherHub
  readonly log: Logger
  readonly nowMs: () => number
}

async function pull({ state, hub, log }: SyncParts): Promise<PullOutcome> {
  for (let page = 0; page < PAGES_MAX; page++) {
    const { since } = state.feed()
    const response = await hub.pullHosts(since, limits.syncPageMax)
    if (response.kind !== 'ok') return { error: describeResponse(response) }
    const { [FEED]: records, next_since: nextSince, more } = response.data
    if (!Array.isArray(records) || typeof nextSince !== 'number' || !Number.isSafeInteger(nextSince))
      return { error: `the hub's answer is not a page of ${FEED}` }
    if (more === true && nextSince <= since) return { error: `the hub's cursor of ${FEED} does not move` }
    const hosts = records.map(hostOf).filter(host => host !== null)
    if (hosts.length < records.length)
      log.error({ feed: FEED, skipped: records.length - hosts.length }, 'records of the feed cannot be read')
    await state.applyHostsPage(hosts, { nextSince, isLast: more !== true })
    if (more !== true) return { error: null }
  }
  return { error: `the hub's feed of ${FEED} does not end` }
}

/** The loop of the feed; not started yet. */
export const createHostsSync = (parts: SyncParts & { readonly intervalMs: number }): SyncLoop =>
  new SyncLoop({
    feed: FEED,
    intervalMs: parts.intervalMs,
    pull: () => pull(parts),
    since: () => parts.state.feed().since,
    syncedAtMs: parts.state.feed().syncedAtMs ?? 0,
    log: parts.log,
    nowMs: parts.nowMs,
  })

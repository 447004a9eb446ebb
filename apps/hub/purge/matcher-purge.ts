// What is deleted for good is deleted at the matcher too, by a job with the tries of a purge at the collectors, and
// after them (decision G-161). A hub without a matcher asks nobody.
import { auditByHub } from '../audit/audit.ts'
import type { Hub } from '../hub-context.ts'
import { inTransaction, type Tx } from '../platform/db/transaction.ts'
import { type JobPayload, PermanentJobFailure } from '../platform/jobs/jobs.ts'

type PurgeScope = { readonly scope: 'company' | 'server'; readonly company_id: string; readonly id: string }

const QUEUE = 'matcher.purge'

/** After the commit the matcher deletes the data of a company or a server. */
export function purgeAtMatcher(hub: Hub, tx: Tx, purge: PurgeScope): void {
  hub.jobs.enqueue(tx, [{ queue: QUEUE, payload: purge, key: `${purge.scope} ${purge.id}` }])
}

const pathOf = ({ scope, company_id, id }: JobPayload): string =>
  scope === 'company'
    ? `/companies/${String(id)}/data`
    : `/servers/${String(id)}/data?company_id=${encodeURIComponent(String(company_id))}`

async function purge(hub: Hub, payload: JobPayload): Promise<void> {
  if (!hub.matcher.isConfigured) return
  const { status } = await hub.matcher.call('DELETE', pathOf(payload), hub.config['collector.purge_timeout'])
  if (status === 400 || status === 404 || status === 405)
    throw new PermanentJobFailure(`the matcher answered ${status} to a purge`)
  if (status !== 200 && status !== 204) throw new Error(`the matcher answered ${status} to a purge`)
}

const recordFailure = (hub: Hub, payload: JobPayload): Promise<void> =>
  inTransaction(hub.database.db, tx =>
    auditByHub(tx, String(payload.company_id), 'purge.failed', {
      type: String(payload.scope),
      id: String(payload.id),
      name: 'matcher',
    }),
  )

export function registerMatcherJobs(hub: Hub): void {
  hub.jobs.register(QUEUE, { handle: payload => purge(hub, payload), onFailed: payload => recordFailure(hub, payload) })
}

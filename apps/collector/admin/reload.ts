// POST /internal/v1/reload/{rules,silences,checks,settings}: pull now. 202 means pulled and in force in this process,
// and told to the others (document 3 "Hub to collector admin API").
import type { ReloadFeed, ReloadResponse } from '../../../core/admin-api/calls.ts'
import { AdminError } from '../../admin-api/admin-error.ts'
import type { AdminDeps } from './deps.ts'

const RETRY_AFTER_S = 5

export async function reloadFeed(deps: AdminDeps, feed: ReloadFeed): Promise<Response> {
  const outcome = await deps.reload(feed)
  switch (outcome) {
    case 'applied':
      return Response.json({ data: { reload: feed, accepted: true } satisfies ReloadResponse }, { status: 202 })
    case 'not_configured':
      if (feed === 'settings') throw new AdminError('not_implemented', 'no hub is configured')
      throw new AdminError('unavailable', 'no hub is configured')
    case 'unavailable':
      throw new AdminError('unavailable', 'the hub cannot be called; what was loaded stays in force', RETRY_AFTER_S)
  }
}

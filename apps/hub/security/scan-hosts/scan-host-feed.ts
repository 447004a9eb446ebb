// The feed by which matchers know scan hosts (document 3; decisions G-159, G-163, G-175).
import { sql } from 'drizzle-orm'
import type { Db } from '../../platform/db/connect.ts'
import { type FeedPage, type LiveRows, type PageRow, pageOfFeed } from '../../platform/db/feed-page.ts'

type HostFeedRow = PageRow & {
  host_id: string
  company_id: string
  server_id: string | null
  public_key: string
  state: string
  inactive: boolean
  hostname: string
}

/** A host of a company that was deleted is revoked; that of a deleted server stays, and its events are refused. */
const HOSTS: LiveRows = {
  table: sql`scan_hosts`,
  from: sql`scan_hosts r join companies c on c.id = r.company_id`,
  columns: sql`r.host_id, r.company_id, r.server_id, r.public_key, r.hostname, r.inactive_at is not null as inactive,
    case when c.deleted_at is null then r.state else 'revoked' end as state`,
  bytes: null,
  key: sql`host_id`,
}

export const scanHostsFeed = (db: Db, since: number, limit: number): Promise<FeedPage> =>
  pageOfFeed<HostFeedRow>(
    db,
    'scan_hosts',
    since,
    limit,
    HOSTS,
    ({ available: _available, ...row }) => ({
      ...row,
      version: Number(row.sync_version),
      sync_version: Number(row.sync_version),
      deleted: false,
    }),
    row => ({
      host_id: row.id,
      company_id: row.company_id,
      state: 'revoked',
      version: Number(row.sync_version),
      sync_version: Number(row.sync_version),
      deleted: true,
    }),
  )

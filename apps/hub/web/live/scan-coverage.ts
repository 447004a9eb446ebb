// How well the servers of a company are scanned, and what of their findings is late. With a million findings that is a
// tenth of a second of the database, and it changes slowly: read once in twenty seconds for all who look.
import type { Hub } from '../../hub-context.ts'
import { type Coverage, coverage } from '../../security/findings/overview.ts'
import { type Freshness, RecentValues } from './recent-values.ts'

const AGE_MS = 20_000
const COMPANIES_MAX = 500

export class ScanCoverage {
  private readonly recent: RecentValues<Coverage>

  constructor(private readonly hub: Hub) {
    this.recent = new RecentValues(AGE_MS, COMPANIES_MAX, hub.now)
  }

  of(companyId: string, wanted: Freshness): Promise<Coverage> {
    return this.recent.of(companyId, wanted, () => coverage(this.hub.database.db, companyId, this.hub.now()))
  }
}

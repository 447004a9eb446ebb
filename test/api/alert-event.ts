// Events of a collector for tests of what the hub makes of them, and the wait until everything is told.
import { type Json, type Tenant, type TestHub, until } from './hub-harness.ts'

let seqs = 0

/**
 * An event of a company's server: CPU at 95 over 90, unless `more` says otherwise. Each is later than the one before.
 */
export const alertEvent = (by: Pick<Tenant, 'companyId'>, serverId: string, type: string, more: Json = {}): Json => ({
  event_id: crypto.randomUUID(),
  type,
  seq: ++seqs,
  occurred_at: new Date().toISOString(),
  company_id: by.companyId,
  server_id: serverId,
  rule_id: '11111111-1111-4111-8111-111111111111',
  rule_version: 1,
  series_key: 'cpu_usage_percent',
  severity: 'warning',
  value: 95,
  threshold: 90,
  suppressed: false,
  suppress_reason: null,
  group_key: null,
  labels: {},
  reason: 'recovered',
  ...more,
})

/** No job of notifications waits or runs: everything that was to be told is told. */
export const notificationsIdle = (hub: TestHub): Promise<unknown> =>
  until('every job is done', async () => {
    const [row] = await hub.hub.database.client`
      select count(*)::int as n from pgboss.job where state <= 'active' and name like 'notifications.%'`
    return row?.n === 0
  })

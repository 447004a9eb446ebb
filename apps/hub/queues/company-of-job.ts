// Whose work a job is, and so who sees it.
import { type SQL, sql } from 'drizzle-orm'
import type { Asker } from '../platform/http/collection.ts'

/**
 * The company whose work a job is, by what it was written with; null for work that is nobody's alone: reloads and what
 * the hub does by the clock. A failure carries what the job carried that failed.
 */
const COMPANY = sql`case
  when j.name in ('collector.purge', 'notifications.dispatch', 'jobs.failed') and jsonb_exists(j.data, 'company_id') then j.data->>'company_id'
  when j.name in ('notifications.webhook', 'notifications.email', 'jobs.failed') and jsonb_exists(j.data, 'delivery_id') then
    (select d.company_id::text from notification_deliveries d where d.id = (j.data->>'delivery_id')::uuid)
  when j.name = 'collector.agent' then
    (select a.company_id::text from monitoring_agents a where a.id = (j.data->>'agent_id')::uuid)
  end`

/** The jobs that the caller may know of. */
export const visibleTo = ({ caller, companyId }: Asker): SQL =>
  caller.actsAsSuperAdmin ? sql`true` : sql`${COMPANY} = ${companyId}`

// Whether a push is sent after all: whether its person still wants and may have it is looked at when it is sent, since
// that may be an hour after the event.
import { sql } from 'drizzle-orm'
import type { Severity } from '../../../core/alerting/rules/rule.ts'
import type { Hub } from '../hub-context.ts'
import { callerOfUser } from '../identity/authenticate.ts'
import type { Executor } from '../platform/db/connect.ts'
import { reaches } from './choose-channels.ts'
import { DEFAULT_LEVELS } from './default-levels.ts'
import type { AppPlatform } from './fcm-and-apns.ts'
import { isHeldByQuietHours, type QuietHours } from './quiet-hours.ts'
import type { NotificationLanguage } from './templates.ts'

export type PushPayload = {
  readonly title: string
  readonly body: string
  readonly link: string
  readonly id: string
  /** Without which nobody is sent it; that of alerts where nothing is said. */
  readonly permission?: string | undefined
}

export type WaitingPush = {
  id: string
  device_id: string
  company_id: string
  topic: string
  type: string
  severity: Severity
  payload: PushPayload
  created_at: string
  user_id: string
  platform: 'webpush' | AppPlatform
  token_sealed: string
  enabled: boolean
  language: NotificationLanguage
  level: string | null
  quiet_hours: QuietHours | null
  breaks_quiet: boolean | null
  show_details: boolean | null
}

export async function loadWaiting(db: Executor, pushId: string): Promise<WaitingPush | null> {
  const [row] = await db.execute<WaitingPush>(sql`
    select p.id, p.device_id, p.company_id, p.topic, p.type, p.severity, p.payload, p.created_at, d.user_id, d.platform,
      d.token_sealed, d.enabled, d.language, n.min_severity as level, s.quiet_hours,
      s.critical_breaks_quiet as breaks_quiet, s.show_details
    from push_deliveries p join mobile_devices d on d.id = p.device_id
      left join mobile_settings s on s.user_id = d.user_id
      left join notification_preferences n on n.user_id = d.user_id and n.channel = 'push'
    where p.id = ${pushId} and p.state = 'waiting'`)
  return row ?? null
}

/** Why a push is not sent after all; null: it is. A test is sent whenever its person asks for it. */
export async function reasonToDrop(hub: Hub, row: WaitingPush): Promise<string | null> {
  if (!row.enabled) return 'the device is disabled'
  const caller = await callerOfUser(hub.database.db, row.user_id, ['*'])
  if (!caller) return 'the person is gone'
  if (row.type === 'test') return null
  if (!caller.permissions.has(row.payload.permission ?? 'monitoring.view')) return 'the person may not see it'
  if (!reaches(row.severity, row.level ?? DEFAULT_LEVELS.push)) return 'below the severity that the person wants'
  if (isHeldByQuietHours(row, hub.now())) return 'quiet hours'
  return null
}

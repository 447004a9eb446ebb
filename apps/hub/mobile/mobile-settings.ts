// What a person wants of the mobile app: from which severity on, when it is quiet, how much is told.
import { Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import { usableCompanies } from '../identity/company-of-caller.ts'
import { DEFAULT_LEVELS, levels } from '../notifications/default-levels.ts'
import { isPlatformSet } from '../notifications/fcm-and-apns.ts'
import { preferencesOf, setPreferences } from '../notifications/preferences.ts'
import { pushKeys } from '../notifications/push.ts'
import { CRITICAL_BREAKS_QUIET, type QuietHours } from '../notifications/quiet-hours.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { boolean, clock, integer, listOf, oneOf, optional, timeZone } from '../platform/http/request-schema.ts'
import { amount, id, listed, named, nullable, string, wordOf } from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'

const EVERY_DAY = [1, 2, 3, 4, 5, 6, 7]

export const mobileSettingsBody = Type.Object({
  min_severity: Type.Optional(oneOf(levels)),
  quiet_hours: optional(
    Type.Object({
      from: clock('22:00'),
      to: clock('22:00'),
      time_zone: timeZone(),
      days: Type.Optional(listOf(integer(1, 7), 7, 1)),
    }),
  ),
  critical_breaks_quiet: Type.Optional(boolean()),
  show_details: Type.Optional(boolean()),
})

export const mobileSettingsResponse = named('MobileSettings', {
  min_severity: wordOf(levels),
  quiet_hours: nullable(Type.Object({ from: string(), to: string(), time_zone: string(), days: listed(amount()) })),
  critical_breaks_quiet: Type.Boolean(),
  show_details: Type.Boolean(),
  company_ids: listed(id()),
  platforms: Type.Object({
    webpush: Type.Object({ enabled: Type.Boolean(), public_key: string() }),
    fcm: Type.Object({ enabled: Type.Boolean() }),
    apns: Type.Object({ enabled: Type.Boolean() }),
  }),
})

type Row = { quiet_hours: QuietHours | null; critical_breaks_quiet: boolean; show_details: boolean }
const USUAL: Row = { quiet_hours: null, critical_breaks_quiet: CRITICAL_BREAKS_QUIET, show_details: true }

async function storedOf(hub: Hub, userId: string): Promise<Row> {
  const [row] = await hub.database.db.execute<Row>(
    sql`select quiet_hours, critical_breaks_quiet, show_details from mobile_settings where user_id = ${userId}`,
  )
  return row ?? USUAL
}

/** From which severity on a person is pushed to. */
export const pushLevelOf = async ({ hub, caller }: RouteContext): Promise<string> =>
  (await preferencesOf(hub.database.db, caller.user.id)).push?.min_severity ?? DEFAULT_LEVELS.push

export async function mobileSettings(context: RouteContext) {
  const { hub, caller } = context
  const [row, level, companies, keys] = await Promise.all([
    storedOf(hub, caller.user.id),
    pushLevelOf(context),
    usableCompanies(hub.database.db, caller),
    pushKeys(hub),
  ])
  return {
    min_severity: level,
    quiet_hours: row.quiet_hours,
    critical_breaks_quiet: row.critical_breaks_quiet,
    show_details: row.show_details,
    company_ids: companies.map(company => company.id),
    platforms: {
      webpush: { enabled: true, public_key: keys.publicKey },
      fcm: { enabled: isPlatformSet(hub, 'fcm') },
      apns: { enabled: isPlatformSet(hub, 'apns') },
    },
  }
}

type Given = {
  readonly min_severity?: (typeof levels)[number] | undefined
  readonly quiet_hours?:
    | (Omit<QuietHours, 'days'> & { readonly days?: readonly number[] | undefined })
    | null
    | undefined
  readonly critical_breaks_quiet?: boolean | undefined
  readonly show_details?: boolean | undefined
}

export async function setMobileSettings({ hub, caller }: RouteContext, given: Given): Promise<void> {
  const before = await storedOf(hub, caller.user.id)
  const asked = given.quiet_hours
  const quiet = asked === undefined ? before.quiet_hours : asked && { ...asked, days: asked.days ?? EVERY_DAY }
  const breaks = given.critical_breaks_quiet ?? before.critical_breaks_quiet
  const details = given.show_details ?? before.show_details
  await inTransaction(hub.database.db, async tx => {
    if (given.min_severity !== undefined)
      await setPreferences(tx.db, caller.user.id, { push: { min_severity: given.min_severity } })
    await tx.db.execute(sql`
      insert into mobile_settings (user_id, quiet_hours, critical_breaks_quiet, show_details)
      values (${caller.user.id}, ${quiet === null ? null : JSON.stringify(quiet)}::text::jsonb, ${breaks}, ${details})
      on conflict (user_id) do update set quiet_hours = excluded.quiet_hours,
        critical_breaks_quiet = excluded.critical_breaks_quiet, show_details = excluded.show_details`)
  })
}

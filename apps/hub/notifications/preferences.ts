// From which severity on a person hears of things by each channel, as they have chosen (decision G-104). Where they
// have not: default-levels.ts.
import { eq, sql } from 'drizzle-orm'
import type { Executor } from '../platform/db/connect.ts'
import { notificationPreferences } from '../platform/db/schema-identity.ts'
import { DEFAULT_LEVELS, type Level, type PreferenceChannel } from './default-levels.ts'

const CHANNELS: readonly PreferenceChannel[] = ['bell', 'email', 'push']

export async function preferencesOf(db: Executor, userId: string) {
  const { channel, minSeverity } = notificationPreferences
  const rows = await db
    .select({ channel, minSeverity })
    .from(notificationPreferences)
    .where(eq(notificationPreferences.userId, userId))
  const known = new Map(rows.map(row => [row.channel, row.minSeverity]))
  return Object.fromEntries(
    CHANNELS.map(channel => [channel, { min_severity: known.get(channel) ?? DEFAULT_LEVELS[channel] }]),
  )
}

type Preferences = { readonly [K in PreferenceChannel]?: { readonly min_severity: Level } | undefined }

export async function setPreferences(db: Executor, userId: string, given: Preferences): Promise<void> {
  const values = CHANNELS.flatMap(channel => {
    const level = given[channel]?.min_severity
    return level === undefined ? [] : [{ userId, channel, minSeverity: level }]
  })
  if (values.length === 0) return
  await db
    .insert(notificationPreferences)
    .values(values)
    .onConflictDoUpdate({
      target: [notificationPreferences.userId, notificationPreferences.channel],
      set: { minSeverity: sql`excluded.min_severity` },
    })
}

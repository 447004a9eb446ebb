// REST: /notifications (decisions G-104, G-106): the caller's bell and preferences.

import { Type } from '@sinclair/typebox'
import { and, count, desc, eq, sql } from 'drizzle-orm'
import { severities } from '../../../core/alerting/rules/rule.ts'
import type { Executor } from '../platform/db/connect.ts'
import { notificationPreferences, notifications } from '../platform/db/schema-identity.ts'
import { notFound } from '../platform/http/api-error.ts'
import { paged, pageOf, pageQuery } from '../platform/http/paging.ts'
import { isUuid, oneOf } from '../platform/http/request-schema.ts'
import {
  amount,
  answer,
  answerPage,
  id,
  named,
  nullable,
  string,
  time,
  wordOf,
} from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import { presentNotification } from './bell.ts'
import { streamNotifications } from './stream.ts'

const TAG = 'Notifications'
const LEVELS = [...severities, 'off'] as const
const DEFAULT_LEVELS = { bell: 'info', email: 'warning', push: 'critical' } as const
type PreferenceChannel = keyof typeof DEFAULT_LEVELS
const CHANNELS: readonly PreferenceChannel[] = ['bell', 'email', 'push']

async function preferencesOf(db: Executor, userId: string) {
  const rows = await db.select().from(notificationPreferences).where(eq(notificationPreferences.userId, userId))
  const known = new Map(rows.map(row => [row.channel, row.minSeverity]))
  return Object.fromEntries(
    CHANNELS.map(channel => [channel, { min_severity: known.get(channel) ?? DEFAULT_LEVELS[channel] }]),
  )
}

const notificationAnswer = named('Notification', {
  id: id(),
  type: string(),
  title: string(),
  body: string(),
  link: nullable(string()),
  read_at: nullable(time()),
  created_at: time(),
})
const level = Type.Object({ min_severity: wordOf(LEVELS) })
const preferencesAnswer = Type.Unsafe<Readonly<Record<string, { min_severity: string }>>>(
  named('NotificationPreferences', { bell: level, email: level, push: level }),
)

const preference = Type.Optional(Type.Object({ min_severity: oneOf(LEVELS) }))

export const notificationRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/notifications',
    accountPermission: 'notifications.view',
    tag: TAG,
    summary: "The caller's notifications, newest first",
    query: Type.Object({ unread: Type.Optional(oneOf(['0', '1'])), ...pageQuery }),
    answer: answerPage(notificationAnswer),
    async handle({ hub, caller, query, url }) {
      const page = pageOf(query)
      const { db } = hub.database
      const where = and(
        eq(notifications.userId, caller.user.id),
        query.unread === '1' ? sql`${notifications.readAt} is null` : undefined,
      )
      const [rows, totals] = await Promise.all([
        db
          .select()
          .from(notifications)
          .where(where)
          .orderBy(desc(notifications.position))
          .limit(page.limit)
          .offset(page.offset),
        db.select({ total: count() }).from(notifications).where(where),
      ])
      return paged(url, page, totals[0]?.total ?? 0, rows.map(presentNotification))
    },
  }),
  route({
    method: 'GET',
    path: '/notifications/unread-count',
    accountPermission: 'notifications.view',
    tag: TAG,
    summary: 'How many are unread',
    answer: answer(Type.Object({ unread: amount() })),
    async handle({ hub, caller }) {
      const [row] = await hub.database.db
        .select({ total: count() })
        .from(notifications)
        .where(and(eq(notifications.userId, caller.user.id), sql`${notifications.readAt} is null`))
      return { data: { unread: row?.total ?? 0 } }
    },
  }),
  route({
    method: 'GET',
    path: '/notifications/stream',
    accountPermission: 'notifications.view',
    tag: TAG,
    summary: 'Server-sent events: one `notification` each',
    answer: Type.Any(),
    answerType: 'text/event-stream',
    handle: async context => streamNotifications(context),
  }),
  route({
    method: 'POST',
    path: '/notifications/read-all',
    accountPermission: 'notifications.manage',
    tag: TAG,
    summary: 'Mark all as read',
    answer: answer(Type.Object({ updated: amount() })),
    async handle({ hub, caller }) {
      const rows = await hub.database.db
        .update(notifications)
        .set({ readAt: new Date(hub.now()) })
        .where(and(eq(notifications.userId, caller.user.id), sql`${notifications.readAt} is null`))
        .returning({ id: notifications.id })
      return { data: { updated: rows.length } }
    },
  }),
  route({
    method: 'GET',
    path: '/notifications/preferences',
    accountPermission: 'notifications.view',
    tag: TAG,
    summary: 'From which severity each channel tells',
    answer: answer(preferencesAnswer),
    handle: async ({ hub, caller }) => ({ data: await preferencesOf(hub.database.db, caller.user.id) }),
  }),
  route({
    method: 'PUT',
    path: '/notifications/preferences',
    accountPermission: 'notifications.manage',
    tag: TAG,
    summary: 'Set preferences',
    body: Type.Object({ bell: preference, email: preference, push: preference }),
    answer: answer(preferencesAnswer),
    async handle({ hub, caller, body }) {
      const { db } = hub.database
      for (const channel of CHANNELS) {
        const given = body[channel]
        if (!given) continue
        await db
          .insert(notificationPreferences)
          .values({ userId: caller.user.id, channel, minSeverity: given.min_severity })
          .onConflictDoUpdate({
            target: [notificationPreferences.userId, notificationPreferences.channel],
            set: { minSeverity: given.min_severity },
          })
      }
      return { data: await preferencesOf(db, caller.user.id) }
    },
  }),
  route({
    method: 'POST',
    path: '/notifications/:notification/read',
    accountPermission: 'notifications.manage',
    tag: TAG,
    summary: 'Mark as read',
    answer: answer(notificationAnswer),
    async handle({ hub, caller, params }) {
      const id = params.notification ?? ''
      if (!isUuid(id)) throw notFound()
      const [row] = await hub.database.db
        .update(notifications)
        .set({ readAt: sql`coalesce(${notifications.readAt}, now())` })
        .where(and(eq(notifications.id, id), eq(notifications.userId, caller.user.id)))
        .returning()
      if (!row) throw notFound()
      return { data: presentNotification(row) }
    },
  }),
  route({
    method: 'DELETE',
    path: '/notifications/:notification',
    accountPermission: 'notifications.manage',
    tag: TAG,
    summary: 'Delete a notification',
    async handle({ hub, caller, params }) {
      const id = params.notification ?? ''
      if (!isUuid(id)) throw notFound()
      const rows = await hub.database.db
        .delete(notifications)
        .where(and(eq(notifications.id, id), eq(notifications.userId, caller.user.id)))
        .returning({ id: notifications.id })
      if (rows.length === 0) throw notFound()
      return undefined
    },
  }),
]

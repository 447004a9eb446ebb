// A user's notifications (decisions G-104, G-106).
import { Type } from '@sinclair/typebox'
import { and, count, desc, eq, isNull, sql } from 'drizzle-orm'
import type { Executor } from '../platform/db/connect.ts'
import { notifications } from '../platform/db/schema-identity.ts'
import { notFound } from '../platform/http/api-error.ts'
import { collection, filter, ofCaller } from '../platform/http/collection.ts'
import { isUuid, oneOf } from '../platform/http/request-schema.ts'
import { id, named, nullable, string, time } from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { notificationColumns, presentNotification } from './bell.ts'

export const notificationResponse = named('Notification', {
  id: id(),
  type: string(),
  title: string(),
  body: string(),
  link: nullable(string()),
  read_at: nullable(time()),
  created_at: time(),
})

const UNREAD = isNull(notifications.readAt)

export const notificationCollection = collection({
  table: notifications,
  scope: ofCaller(notifications.userId),
  filters: { unread: filter(Type.Optional(oneOf(['0', '1'])), value => (value === '1' ? UNREAD : undefined)) },
  select: db => db.select(notificationColumns).from(notifications),
  order: [desc(notifications.position)],
  response: notificationResponse,
  present: presentNotification,
})

export async function countUnread(db: Executor, userId: string): Promise<number> {
  const [row] = await db
    .select({ total: count() })
    .from(notifications)
    .where(and(eq(notifications.userId, userId), UNREAD))
  return row?.total ?? 0
}

/** Returns how many were unread. */
export async function markAllRead({ hub, caller }: RouteContext): Promise<number> {
  const rows = await hub.database.db
    .update(notifications)
    .set({ readAt: new Date(hub.now()) })
    .where(and(eq(notifications.userId, caller.user.id), UNREAD))
    .returning({ id: notifications.id })
  return rows.length
}

const ownNotification = ({ caller }: RouteContext, notificationId: string) =>
  and(eq(notifications.id, notificationId), eq(notifications.userId, caller.user.id))

/** Once more changes nothing. Throws 404. */
export async function markRead(context: RouteContext, notificationId: string) {
  if (!isUuid(notificationId)) throw notFound()
  const [row] = await context.hub.database.db
    .update(notifications)
    .set({ readAt: sql`coalesce(${notifications.readAt}, now())` })
    .where(ownNotification(context, notificationId))
    .returning(notificationColumns)
  if (!row) throw notFound()
  return presentNotification(row)
}

/** Throws 404. */
export async function deleteNotification(context: RouteContext, notificationId: string): Promise<void> {
  if (!isUuid(notificationId)) throw notFound()
  const rows = await context.hub.database.db
    .delete(notifications)
    .where(ownNotification(context, notificationId))
    .returning({ id: notifications.id })
  if (rows.length === 0) throw notFound()
}

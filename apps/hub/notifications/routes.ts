// REST: /notifications (decisions G-104, G-106): the caller's bell and preferences.
import { Type } from '@sinclair/typebox'
import { list } from '../platform/http/list.ts'
import { oneOf } from '../platform/http/request-schema.ts'
import { amount, answer, named, wordOf } from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import { streamNotifications } from './bell-stream.ts'
import { levels } from './default-levels.ts'
import {
  countUnread,
  deleteNotification,
  markAllRead,
  markRead,
  notificationCollection,
  notificationResponse,
} from './notifications.ts'
import { preferencesOf, setPreferences } from './preferences.ts'

const TAG = 'Notifications'

const level = Type.Object({ min_severity: wordOf(levels) })
const preferencesResponse = Type.Unsafe<Readonly<Record<string, { min_severity: string }>>>(
  named('NotificationPreferences', { bell: level, email: level, push: level }),
)
const preference = Type.Optional(Type.Object({ min_severity: oneOf(levels) }))

export const notificationRoutes: readonly Route[] = [
  list({
    path: '/notifications',
    accountPermission: 'notifications.view',
    tag: TAG,
    summary: "The caller's notifications, newest first",
    of: notificationCollection,
  }),
  route({
    method: 'GET',
    path: '/notifications/unread-count',
    accountPermission: 'notifications.view',
    tag: TAG,
    summary: 'How many are unread',
    answer: answer(Type.Object({ unread: amount() })),
    handle: async ({ hub, caller }) => ({ data: { unread: await countUnread(hub.database.db, caller.user.id) } }),
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
    handle: async context => ({ data: { updated: await markAllRead(context) } }),
  }),
  route({
    method: 'GET',
    path: '/notifications/preferences',
    accountPermission: 'notifications.view',
    tag: TAG,
    summary: 'From which severity each channel tells',
    answer: answer(preferencesResponse),
    handle: async ({ hub, caller }) => ({ data: await preferencesOf(hub.database.db, caller.user.id) }),
  }),
  route({
    method: 'PUT',
    path: '/notifications/preferences',
    accountPermission: 'notifications.manage',
    tag: TAG,
    summary: 'Set preferences',
    body: Type.Object({ bell: preference, email: preference, push: preference }),
    answer: answer(preferencesResponse),
    async handle({ hub, caller, body }) {
      await setPreferences(hub.database.db, caller.user.id, body)
      return { data: await preferencesOf(hub.database.db, caller.user.id) }
    },
  }),
  route({
    method: 'POST',
    path: '/notifications/:notification/read',
    accountPermission: 'notifications.manage',
    tag: TAG,
    summary: 'Mark as read',
    answer: answer(notificationResponse),
    handle: async context => ({ data: await markRead(context, context.params.notification ?? '') }),
  }),
  route({
    method: 'DELETE',
    path: '/notifications/:notification',
    accountPermission: 'notifications.manage',
    tag: TAG,
    summary: 'Delete a notification',
    async handle(context) {
      await deleteNotification(context, context.params.notification ?? '')
      return undefined
    },
  }),
]

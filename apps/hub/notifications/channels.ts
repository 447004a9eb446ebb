// Channels of a company: group addresses that are told of alerts (decision G-104). Webhooks have a group of their own, with secrets.
import { Type } from '@sinclair/typebox'
import { desc, eq } from 'drizzle-orm'
import { type Severity, severities } from '../../../core/alerting/rules/rule.ts'
import { recorded } from '../audit/recorded.ts'
import { notificationChannels } from '../platform/db/schema-identity.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { collection, ofCompany } from '../platform/http/collection.ts'
import { anyObject, id, named, string, time, wordOf } from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { type ScopeInput, validScope } from '../scopes/scope.ts'
import { addDeliveries } from './deliveries.ts'

const channelResponse = named('NotificationChannel', {
  id: id(),
  company_id: id(),
  name: string(),
  type: wordOf(['email']),
  address: string(),
  min_severity: wordOf(severities),
  scope: anyObject(),
  enabled: Type.Boolean(),
  created_at: time(),
})

export const channelCollection = collection({
  table: notificationChannels,
  scope: ofCompany(notificationChannels.companyId),
  select: db => db.select().from(notificationChannels),
  order: [desc(notificationChannels.createdAt), desc(notificationChannels.id)],
  response: channelResponse,
  present: row => ({
    id: row.id,
    company_id: row.companyId,
    name: row.name,
    type: row.type,
    address: row.address,
    min_severity: row.minSeverity,
    scope: row.scope,
    enabled: row.enabled,
    created_at: row.createdAt,
  }),
})

type Channel = typeof notificationChannels.$inferSelect
export type ChannelInput = {
  readonly name: string
  readonly address: string
  readonly min_severity?: Severity | undefined
  readonly scope?: ScopeInput | undefined
  readonly enabled?: boolean | undefined
}

const changes = recorded({ type: 'channel', of: channelCollection, named: ({ id, name }: Channel) => ({ id, name }) })

export const createChannel = (context: RouteContext, input: ChannelInput): Promise<Channel> =>
  changes.create(context, async (tx, id) =>
    tx.db.insert(notificationChannels).values({
      id,
      companyId: context.companyId,
      name: input.name,
      type: 'email',
      address: input.address,
      minSeverity: input.min_severity ?? 'info',
      scope: await validScope(tx.db, context.companyId, input.scope ?? { all: true }),
      enabled: input.enabled ?? true,
    }),
  )

export const changeChannel = (context: RouteContext, { id }: Channel, input: Partial<ChannelInput>): Promise<Channel> =>
  changes.change(context, id, async (tx, before) =>
    tx.db
      .update(notificationChannels)
      .set({
        name: input.name ?? before.name,
        address: input.address ?? before.address,
        minSeverity: input.min_severity ?? before.minSeverity,
        scope: input.scope ? await validScope(tx.db, context.companyId, input.scope) : before.scope,
        enabled: input.enabled ?? before.enabled,
      })
      .where(eq(notificationChannels.id, id)),
  )

export const deleteChannel = (context: RouteContext, { id }: Channel): Promise<void> =>
  changes.delete(context, id, tx => tx.db.delete(notificationChannels).where(eq(notificationChannels.id, id)))

const testTexts = {
  en: (name: string) => ({ title: 'Test', body: `This is a test of ${name}.` }),
  vi: (name: string) => ({ title: 'Thử', body: `Đây là thư thử của ${name}.` }),
} as const

/** Queues a test message. Returns the id of its delivery. */
export async function testChannel(
  { hub, companyId, language }: RouteContext,
  { name, address }: Channel,
): Promise<string | null> {
  const payload = testTexts[language](name)
  const ids = await inTransaction(hub.database.db, tx =>
    addDeliveries(hub, tx, [{ companyId, channel: 'email', target: address, webhookId: null, type: 'ping', payload }]),
  )
  return ids[0] ?? null
}

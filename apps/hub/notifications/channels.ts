// Channels of a company: group addresses that get notifications of alerts (decision G-104). Webhooks have a group of
// their own, with secrets.
import { Type } from '@sinclair/typebox'
import { desc, eq, getTableColumns, sql } from 'drizzle-orm'
import { type Severity, severities } from '../../../core/alerting/rules/rule.ts'
import { recorded } from '../audit/change-with-audit.ts'
import type { Executor } from '../platform/db/connect.ts'
import { notificationChannels } from '../platform/db/schema-identity.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { collection, ofCompany } from '../platform/http/collection.ts'
import { anyObject, id, named, string, time, wordOf } from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { type ScopeInput, toScope, validScope } from '../scopes/scope.ts'
import { countAskedMail } from './asked-mail-rate.ts'
import { addDeliveries, toConfirm } from './deliveries.ts'
import { type AddressState, addressStates } from './unconfirmed-addresses.ts'

const channelResponse = named('NotificationChannel', {
  id: id(),
  company_id: id(),
  name: string(),
  type: wordOf(['email']),
  address: string(),
  min_severity: wordOf(severities),
  scope: anyObject(),
  enabled: Type.Boolean(),
  address_state: wordOf(addressStates),
  created_at: time(),
})

// The table is named in full: a column of the only table of a select is rendered bare.
const ADDRESS_STATE = sql<AddressState>`coalesce((select case when stopped_at is not null then 'stopped'
    when confirmed_at is not null then 'confirmed' end from mail_addresses a
  where a.company_id = notification_channels.company_id and a.address = lower(notification_channels.address)), 'unconfirmed')`

/** Channels with what is known of their addresses. */
export const selectChannels = (db: Executor) =>
  db.select({ ...getTableColumns(notificationChannels), addressState: ADDRESS_STATE }).from(notificationChannels)

export const channelCollection = collection({
  table: notificationChannels,
  scope: ofCompany(notificationChannels.companyId),
  select: selectChannels,
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
    address_state: row.addressState,
    created_at: row.createdAt,
  }),
})

type Channel = Awaited<ReturnType<typeof channelCollection.find>>
type ChannelInput = {
  readonly name: string
  readonly address: string
  readonly min_severity?: Severity | undefined
  readonly scope?: ScopeInput | undefined
  readonly enabled?: boolean | undefined
}

const changes = recorded({ type: 'channel', of: channelCollection, named: ({ id, name }: Channel) => ({ id, name }) })

/**
 * The address may belong to anybody: messages to it are counted until it is confirmed, and the number of new addresses
 * a minute is bounded.
 */
export async function createChannel(context: RouteContext, input: ChannelInput): Promise<Channel> {
  countAskedMail(context.hub, context.caller, context.companyId)
  return changes.create(context, async (tx, id) =>
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
}

export async function changeChannel(
  context: RouteContext,
  { id, address }: Channel,
  input: Partial<ChannelInput>,
): Promise<Channel> {
  if (input.address !== undefined && input.address !== address)
    countAskedMail(context.hub, context.caller, context.companyId)
  return changes.change(context, id, async (tx, before) =>
    tx.db
      .update(notificationChannels)
      .set({
        name: input.name ?? before.name,
        address: input.address ?? before.address,
        minSeverity: input.min_severity ?? before.minSeverity,
        scope: input.scope
          ? await validScope(tx.db, context.companyId, input.scope, toScope(before.scope))
          : before.scope,
        enabled: input.enabled ?? before.enabled,
      })
      .where(eq(notificationChannels.id, id)),
  )
}

export const deleteChannel = (context: RouteContext, { id }: Channel): Promise<void> =>
  changes.delete(context, id, tx => tx.db.delete(notificationChannels).where(eq(notificationChannels.id, id)))

const testTexts = {
  en: (name: string) => ({ title: 'Test', body: `This is a test of ${name}.` }),
  vi: (name: string) => ({ title: 'Thử', body: `Đây là thư thử của ${name}.` }),
} as const

/** Queues a test message. Returns the id of its delivery. */
export async function testChannel(
  { hub, caller, companyId, language }: RouteContext,
  { name, address }: Channel,
): Promise<string | null> {
  countAskedMail(hub, caller, companyId)
  const payload = { ...testTexts[language](name), ...toConfirm(language) }
  const ids = await inTransaction(hub.database.db, tx =>
    addDeliveries(hub, tx, [{ companyId, channel: 'email', target: address, webhookId: null, type: 'ping', payload }]),
  )
  return ids[0] ?? null
}

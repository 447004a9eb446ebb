// Webhooks: addresses of a company that are called with signed events (decision G-105).
import { desc, eq } from 'drizzle-orm'
import type { Severity } from '../../../core/alerting/rules/rule.ts'
import { recorded } from '../audit/change-with-audit.ts'
import type { Hub } from '../hub-context.ts'
import { newWebhookSecret } from '../identity/token-forms.ts'
import { addDeliveries } from '../notifications/deliveries.ts'
import { callFault } from '../notifications/webhook.ts'
import { webhooks } from '../platform/db/schema-identity.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import { collection, ofCompany } from '../platform/http/collection.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { type ScopeInput, toScope, validScope } from '../scopes/scope.ts'
import { webhookResponse } from './webhook-response.ts'

export const webhookCollection = collection({
  table: webhooks,
  scope: ofCompany(webhooks.companyId),
  select: db => db.select().from(webhooks),
  order: [desc(webhooks.createdAt), desc(webhooks.id)],
  response: webhookResponse,
  present: row => ({
    id: row.id,
    company_id: row.companyId,
    name: row.name,
    url: row.url,
    events: row.events,
    min_severity: row.minSeverity,
    scope: row.scope,
    enabled: row.enabled,
    failures_in_a_row: row.failuresInARow,
    disabled_reason: row.disabledReason,
    created_at: row.createdAt,
  }),
})

type Webhook = typeof webhooks.$inferSelect

const changes = recorded({ type: 'webhook', of: webhookCollection, named: ({ id, name }: Webhook) => ({ id, name }) })

type WebhookSettings = {
  readonly events?: readonly string[] | null | undefined
  readonly min_severity?: Severity | undefined
  readonly scope?: ScopeInput | undefined
  readonly enabled?: boolean | undefined
}
type WebhookInput = WebhookSettings & { readonly name: string; readonly url: string }

async function checkUrl(hub: Hub, url: string | undefined): Promise<void> {
  const fault = url === undefined ? null : await callFault(hub, url)
  if (fault !== null) throw invalidField('url', fault)
}

/** The secret is in the answer, once. */
export async function createWebhook(
  context: RouteContext,
  input: WebhookInput,
): Promise<{ row: Webhook; beside: { secret: string } }> {
  const { hub, companyId } = context
  await checkUrl(hub, input.url)
  const secret = newWebhookSecret()
  const row = await changes.create(context, async (tx, id) =>
    tx.db.insert(webhooks).values({
      id,
      companyId,
      name: input.name,
      url: input.url,
      secretSealed: hub.sealer.seal(secret),
      events: [...(input.events ?? [])],
      minSeverity: input.min_severity ?? 'info',
      scope: await validScope(tx.db, companyId, input.scope ?? { all: true }),
      enabled: input.enabled ?? true,
    }),
  )
  return { row, beside: { secret } }
}

/** One that is enabled begins anew: its failures are forgotten. */
const switched = (enabled: boolean): Partial<Webhook> =>
  enabled ? { enabled, failuresInARow: 0, disabledReason: null } : { enabled }

export async function changeWebhook(
  context: RouteContext,
  { id }: Webhook,
  input: Partial<WebhookInput>,
): Promise<Webhook> {
  const { hub, companyId } = context
  await checkUrl(hub, input.url)
  return changes.change(context, id, async (tx, before) =>
    tx.db
      .update(webhooks)
      .set({
        name: input.name ?? before.name,
        url: input.url ?? before.url,
        events: input.events === undefined ? before.events : [...(input.events ?? [])],
        minSeverity: input.min_severity ?? before.minSeverity,
        scope: input.scope ? await validScope(tx.db, companyId, input.scope, toScope(before.scope)) : before.scope,
        ...(input.enabled === undefined ? {} : switched(input.enabled)),
      })
      .where(eq(webhooks.id, id)),
  )
}

export const setWebhookEnabled = (context: RouteContext, { id }: Webhook, enabled: boolean): Promise<Webhook> =>
  changes.change(
    context,
    id,
    tx => tx.db.update(webhooks).set(switched(enabled)).where(eq(webhooks.id, id)),
    enabled ? 'enable' : 'disable',
  )

/** The secret is in the answer, once. */
export async function rotateWebhookSecret(
  context: RouteContext,
  { id }: Webhook,
): Promise<{ row: Webhook; beside: { secret: string } }> {
  const secret = newWebhookSecret()
  const secretSealed = context.hub.sealer.seal(secret)
  const row = await changes.change(
    context,
    id,
    tx => tx.db.update(webhooks).set({ secretSealed }).where(eq(webhooks.id, id)),
    'rotate_secret',
  )
  return { row, beside: { secret } }
}

export const deleteWebhook = (context: RouteContext, { id }: Webhook): Promise<void> =>
  changes.delete(context, id, tx => tx.db.delete(webhooks).where(eq(webhooks.id, id)))

/** Queues a ping. Returns the id of its delivery. */
export async function pingWebhook({ hub, companyId }: RouteContext, { id, url }: Webhook): Promise<string | null> {
  const ids = await inTransaction(hub.database.db, tx =>
    addDeliveries(hub, tx, [
      {
        companyId,
        channel: 'webhook',
        target: url,
        webhookId: id,
        type: 'ping',
        payload: { company_id: companyId, data: { webhook_id: id } },
      },
    ]),
  )
  return ids[0] ?? null
}

// Webhooks of a company, and one with what was sent to it.

import { and, asc, desc, eq, sql } from 'drizzle-orm'
import { severities } from '../../../../core/alerting/rules/rule.ts'
import { templateTypes } from '../../notifications/templates.ts'
import { notificationDeliveries, webhooks } from '../../platform/db/schema-identity.ts'
import { notFound } from '../../platform/http/api-error.ts'
import { isUuid } from '../../platform/http/request-schema.ts'
import { sitePages } from '../address/site-map.ts'
import type { DeliveryRow, WebhookRow, WebhooksView, WebhookView } from './administration-pages.ts'
import { askedOffset, type View } from './view.ts'

const WINDOW = 60
/** The first by name: others are found over the API. */
const READ_MAX = 1_000
/** So many of the newest deliveries are counted and shown: the page looks every two seconds. */
const DELIVERIES_MAX = 10_000

const toRow = (row: typeof webhooks.$inferSelect): WebhookRow => ({
  ...{ id: row.id, name: row.name, url: row.url, events: row.events ?? [] },
  ...{ isEnabled: row.enabled, failuresInARow: row.failuresInARow, disabledReason: row.disabledReason },
  minSeverity: severities.find(each => each === row.minSeverity) ?? 'info',
  isNarrowed: !row.scope.all,
})

const toDelivery = (row: typeof notificationDeliveries.$inferSelect): DeliveryRow => ({
  ...{ id: row.id, type: row.type, tries: row.tries, responseCode: row.responseCode, error: row.lastError },
  state: row.state === 'delivered' || row.state === 'failed' ? row.state : 'waiting',
  createdAtMs: row.createdAt.getTime(),
  finishedAtMs: row.finishedAt?.getTime() ?? null,
})

export const webhooksView: View<WebhooksView> = {
  permissions: ['webhooks.view'],
  params: sitePages.webhooks.takes,
  async make({ hub, companyId }) {
    const rows = await hub.database.db
      .select()
      .from(webhooks)
      .where(eq(webhooks.companyId, companyId))
      .orderBy(asc(sql`lower(${webhooks.name})`), asc(webhooks.id))
      .limit(READ_MAX)
    return { rows: rows.map(toRow), events: templateTypes }
  },
}

export const webhookView: View<WebhookView> = {
  permissions: ['webhooks.view'],
  params: ['webhook', ...sitePages.webhook.takes],
  async make({ hub, companyId, param }) {
    const { db } = hub.database
    const id = param('webhook')
    const [row] = isUuid(id)
      ? await db
          .select()
          .from(webhooks)
          .where(and(eq(webhooks.id, id), eq(webhooks.companyId, companyId)))
      : []
    if (!row) throw notFound()
    const offset = Math.min(askedOffset(param('offset')), DELIVERIES_MAX - WINDOW)
    const sent = eq(notificationDeliveries.webhookId, id)
    const [deliveries, [counted]] = await Promise.all([
      db
        .select()
        .from(notificationDeliveries)
        .where(sent)
        .orderBy(desc(notificationDeliveries.position))
        .limit(WINDOW)
        .offset(offset),
      db.execute<{ total: number }>(sql`select count(*)::int as total from (
        select 1 from notification_deliveries where webhook_id = ${id} limit ${DELIVERIES_MAX}) x`),
    ])
    return {
      ...{ webhook: toRow(row), events: templateTypes, total: counted?.total ?? 0, offset },
      deliveries: deliveries.map(toDelivery),
    }
  },
}

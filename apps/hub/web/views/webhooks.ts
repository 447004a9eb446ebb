// Webhooks of a company, and one with what was sent to it.

import { and, asc, eq, sql } from 'drizzle-orm'
import { severities } from '../../../../core/alerting/rules/rule.ts'
import { templateTypes } from '../../notifications/templates.ts'
import { notificationDeliveries, webhooks } from '../../platform/db/schema-identity.ts'
import { notFound } from '../../platform/http/api-error.ts'
import { isUuid } from '../../platform/http/request-schema.ts'
import { sitePages } from '../address/site-map.ts'
import type { WebhookRow, WebhooksView, WebhookView } from './administration-pages.ts'
import { deliveryWindow } from './delivery-rows.ts'
import type { View } from './view.ts'

/** The first by name: others are found over the API. */
const READ_MAX = 1_000

const toRow = (row: typeof webhooks.$inferSelect): WebhookRow => ({
  ...{ id: row.id, name: row.name, url: row.url, events: row.events ?? [] },
  ...{ isEnabled: row.enabled, failuresInARow: row.failuresInARow, disabledReason: row.disabledReason },
  minSeverity: severities.find(each => each === row.minSeverity) ?? 'info',
  isNarrowed: !row.scope.all,
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
    const sent = eq(notificationDeliveries.webhookId, id)
    return { webhook: toRow(row), events: templateTypes, ...(await deliveryWindow(db, sent, param('offset'), true)) }
  },
}

// Whom a company tells by mail besides its people, and what was sent of late, by mail and to webhooks.
import { asc, eq, sql } from 'drizzle-orm'
import { severities } from '../../../../core/alerting/rules/rule.ts'
import { selectChannels } from '../../notifications/channels.ts'
import { notificationChannels, notificationDeliveries } from '../../platform/db/schema-identity.ts'
import { toScope } from '../../scopes/scope.ts'
import { sitePages } from '../address/site-map.ts'
import type { ChannelRow, DeliveryRow, NotificationsView } from './administration-pages.ts'
import { deliveryWindow } from './delivery-rows.ts'
import type { View } from './view.ts'

/** The first by name: others are found over the API. */
const READ_MAX = 1_000

const deliveryStates: readonly DeliveryRow['state'][] = ['waiting', 'delivered', 'failed']

const toRow = (row: Awaited<ReturnType<typeof selectChannels>>[number]): ChannelRow => ({
  ...{ id: row.id, name: row.name, address: row.address, addressState: row.addressState, isEnabled: row.enabled },
  minSeverity: severities.find(each => each === row.minSeverity) ?? 'info',
  scope: toScope(row.scope),
})

export const notificationsView: View<NotificationsView> = {
  permissions: ['notifications.view'],
  params: sitePages.notifications.takes,
  optional: ['webhooks.view'],
  async make({ hub, companyId, param, may }) {
    const { db } = hub.database
    const whose = eq(notificationDeliveries.companyId, companyId)
    const state = deliveryStates.find(each => each === param('state')) ?? null
    const [channels, sent] = await Promise.all([
      selectChannels(db)
        .where(eq(notificationChannels.companyId, companyId))
        .orderBy(asc(sql`lower(${notificationChannels.name})`), asc(notificationChannels.id))
        .limit(READ_MAX),
      deliveryWindow(db, whose, param('offset'), may('webhooks.view'), state),
    ])
    return { channels: channels.map(toRow), isMailSent: Boolean(hub.config['smtp.url']), ...sent }
  },
}

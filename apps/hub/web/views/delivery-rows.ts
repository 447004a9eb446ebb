// Deliveries as pages show them: the newest of a company, or of one of its webhooks.
import { and, desc, eq, inArray, type SQL, sql } from 'drizzle-orm'
import { shownTarget } from '../../notifications/deliveries.ts'
import type { Executor } from '../../platform/db/connect.ts'
import { notificationDeliveries } from '../../platform/db/schema-identity.ts'
import type { DeliveryRow } from './administration-pages.ts'
import { askedOffset } from './view.ts'

const WINDOW = 60
/** So many of the newest are counted, searched and shown: a page looks every two seconds. */
const READ_MAX = 10_000

type DeliveryWindow = {
  readonly total: number
  readonly offset: number
  readonly deliveries: readonly DeliveryRow[]
}

const toRow = (row: typeof notificationDeliveries.$inferSelect, maySeeWebhooks: boolean): DeliveryRow => ({
  ...{ id: row.id, type: row.type, tries: row.tries, responseCode: row.responseCode, error: row.lastError },
  ...{ channel: row.channel === 'webhook' ? 'webhook' : 'email', target: shownTarget(row, maySeeWebhooks) },
  state: row.state === 'delivered' || row.state === 'failed' ? row.state : 'waiting',
  createdAtMs: row.createdAt.getTime(),
  finishedAtMs: row.finishedAt?.getTime() ?? null,
})

/** Those of `whose`, newest first; `state`: only what stands so among the newest. */
export async function deliveryWindow(
  db: Executor,
  whose: SQL,
  askedFrom: string,
  maySeeWebhooks: boolean,
  state: DeliveryRow['state'] | null = null,
): Promise<DeliveryWindow> {
  const offset = Math.min(askedOffset(askedFrom), READ_MAX - WINDOW)
  const newest = db
    .select({ id: notificationDeliveries.id, state: notificationDeliveries.state })
    .from(notificationDeliveries)
    .where(whose)
    .orderBy(desc(notificationDeliveries.position))
    .limit(READ_MAX)
    .as('newest')
  const shown =
    state === null
      ? whose
      : and(
          whose,
          inArray(notificationDeliveries.id, db.select({ id: newest.id }).from(newest).where(eq(newest.state, state))),
        )
  const [rows, [counted]] = await Promise.all([
    db
      .select()
      .from(notificationDeliveries)
      .where(shown)
      .orderBy(desc(notificationDeliveries.position))
      .limit(WINDOW)
      .offset(offset),
    db
      .select({ total: sql<number>`count(*)::int` })
      .from(newest)
      .where(state === null ? undefined : eq(newest.state, state)),
  ])
  return { total: counted?.total ?? 0, offset, deliveries: rows.map(row => toRow(row, maySeeWebhooks)) }
}

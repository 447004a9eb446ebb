// The alerts that a batch of events can concern, loaded with few queries and kept up to date while the batch is
// applied.
import { and, asc, eq, inArray, or } from 'drizzle-orm'
import type { AlertEvent } from '../../../core/alerting/evaluate/event.ts'
import { eventPairKey } from '../../../core/alerting/evaluate/event-id.ts'
import { type Alert, type AlertBook, isActive } from '../../../core/lifecycle/alert.ts'
import { alertsById, toAlert } from '../alerts/alert-rows.ts'
import { alerts } from '../platform/db/schema.ts'
import { isAnyOf, type Tx } from '../platform/db/transaction.ts'

const keyOf = (alert: Alert): string => `${alert.serverId}\n${alert.ruleKey}\n${alert.seriesKey}`

/** Alerts by id and by key; records which were created and which were changed since the load. */
export class AlertSet {
  private readonly byId = new Map<string, Alert>()
  private readonly latestByKey = new Map<string, string>()
  private readonly downByServer = new Map<string, Set<string>>()
  private readonly groupIds = new Set<string>()
  private readonly createdIds = new Set<string>()
  private readonly changedIds = new Set<string>()

  load(alert: Alert): void {
    this.byId.set(alert.id, alert)
    const key = keyOf(alert)
    const known = this.latestByKey.get(key)
    const latest = known === undefined ? undefined : this.byId.get(known)
    if (
      !latest ||
      (isActive(alert) && !isActive(latest)) ||
      (isActive(alert) === isActive(latest) && alert.openedAtMs >= latest.openedAtMs)
    )
      this.latestByKey.set(key, alert.id)
    if (alert.type === 'group_down') this.groupIds.add(alert.id)
    if (alert.type !== 'agent_down') return
    const ofServer = this.downByServer.get(alert.serverId) ?? new Set<string>()
    ofServer.add(alert.id)
    this.downByServer.set(alert.serverId, ofServer)
  }

  store(alert: Alert): void {
    if (this.byId.has(alert.id)) {
      this.byId.set(alert.id, alert)
      if (!this.createdIds.has(alert.id)) this.changedIds.add(alert.id)
      return
    }
    this.createdIds.add(alert.id)
    this.load(alert)
    this.latestByKey.set(keyOf(alert), alert.id)
  }

  /** The alerts as the processing of one event sees them. */
  viewOf(event: AlertEvent): AlertBook {
    const latestId = this.latestByKey.get(eventPairKey(event))
    const latest = latestId === undefined ? null : (this.byId.get(latestId) ?? null)
    return {
      active: latest && isActive(latest) ? latest : null,
      latest,
      groups: this.alertsOf(this.groupIds).filter(group => isActive(group) && group.companyId === event.company_id),
      downOf: serverId =>
        this.alertsOf(this.downByServer.get(serverId) ?? []).filter(
          alert => isActive(alert) && alert.companyId === event.company_id,
        ),
      childrenOf: groupId =>
        [...this.byId.values()].filter(alert => alert.groupId === groupId && alert.state === 'grouped'),
    }
  }

  private alertsOf(ids: Iterable<string>): Alert[] {
    return [...ids].map(id => this.byId.get(id)).filter(alert => alert !== undefined)
  }

  /** The newest alert of a pair-key, which its next event will refer to; null when it never had one. */
  newestIdOf(key: string): string | null {
    return this.latestByKey.get(key) ?? null
  }

  created(): Alert[] {
    return this.alertsOf(this.createdIds)
  }

  changed(): Alert[] {
    return this.alertsOf(this.changedIds)
  }
}

/**
 * Loads the alerts that a batch can concern: the newest alert of each event's key, and groups. The caller has locked
 * the companies.
 */
export async function loadAlertSet(
  tx: Tx,
  events: readonly AlertEvent[],
  newestIds: readonly string[],
): Promise<AlertSet> {
  const book = new AlertSet()
  for (const alert of await alertsById(tx, newestIds)) book.load(alert)
  if (!events.some(event => !event.type.startsWith('alert.'))) return book
  const companyIds = [...new Set(events.map(event => event.company_id))]
  const groups = await tx.db
    .select()
    .from(alerts)
    .where(
      and(
        isAnyOf(alerts.companyId, companyIds),
        eq(alerts.type, 'group_down'),
        inArray(alerts.state, ['open', 'acknowledged']),
      ),
    )
    .orderBy(asc(alerts.openedAt))
  for (const row of groups) book.load(toAlert(row))
  const memberIds = [...new Set(events.flatMap(event => event.member_server_ids ?? []))]
  const groupIds = groups.map(group => group.id)
  const concerned = or(
    memberIds.length > 0 ? isAnyOf(alerts.serverId, memberIds) : undefined,
    groupIds.length > 0 ? isAnyOf(alerts.groupId, groupIds) : undefined,
  )
  if (!concerned) return book
  const down = await tx.db
    .select()
    .from(alerts)
    .where(
      and(
        isAnyOf(alerts.companyId, companyIds),
        eq(alerts.type, 'agent_down'),
        inArray(alerts.state, ['open', 'acknowledged', 'grouped']),
        concerned,
      ),
    )
  for (const row of down) book.load(toAlert(row))
  return book
}

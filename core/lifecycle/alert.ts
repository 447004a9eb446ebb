// The life of an alert in the hub: what each event of a collector does to the alerts it concerns (document 1 "Alert
// state", document 2 "Hub-side alert changes from events"; decisions G-69, G-80, G-94 to G-101). Pure: the caller has
// dropped repeated and old events, hands in the alerts that can be concerned, and stores what comes out.
// Which alerts an incident takes in, and what becomes of them at its end: alerts-of-incident.ts.
import type { AlertEvent, SuppressReason } from '../alerting/evaluate/event.ts'
import type { Severity } from '../alerting/rules/rule.ts'
import { attach, groupWith, releaseChildren } from './alerts-of-incident.ts'

export const alertStates = ['open', 'acknowledged', 'resolved', 'closed', 'grouped'] as const
export type AlertState = (typeof alertStates)[number]
export type AlertType = 'threshold' | 'check' | 'no_data' | 'agent_down' | 'group_down'

/**
 * Why people were not told of an alert when it opened: its suppression (`suppressed`: one without a reason), or that
 * it was flapping that opened it.
 */
export type HeldBack = SuppressReason | 'suppressed' | 'flapping'

export type Alert = {
  readonly id: string
  readonly companyId: string
  readonly type: AlertType
  readonly serverId: string
  readonly agentId: string | null
  readonly ruleId: string | null
  /** The rule_id of its events: a uuid, agent_down or group_down. */
  readonly ruleKey: string
  readonly seriesKey: string
  readonly labels: Readonly<Record<string, string>>
  readonly severity: Severity
  readonly state: AlertState
  readonly openedAtMs: number
  readonly resolvedAtMs: number | null
  readonly resolvedReason: string | null
  readonly lastValue: number | null
  readonly peakValue: number | null
  readonly threshold: number | null
  readonly suppressed: boolean
  readonly suppressReason: string | null
  readonly flapping: boolean
  readonly groupId: string | null
  readonly groupTotal: number | null
  readonly groupMemberIds: readonly string[] | null
  readonly eventCount: number
  readonly lastEventSeq: number
  /** When people were last notified of the alert; null when they never were. */
  readonly notifiedAtMs: number | null
  /** While nobody was notified: they are to be, once this holds nothing back any more. Null: nobody waits for it. */
  readonly heldBack: HeldBack | null
  /**
   * People were notified of the alert, but it was resolved under suppression: they have not been notified of the
   * recovery.
   */
  readonly recoveryUntold: boolean
}

/** The alerts that an event can concern, in their state before the event. */
export type AlertBook = {
  /** The alert of the event's (server, rule, series) that is open, acknowledged or grouped. */
  readonly active: Alert | null
  /** The newest alert of the same key, in any state. */
  readonly latest: Alert | null
  /** Open group alerts of the company, oldest first. */
  readonly groups: readonly Alert[]
  /** Active agent.down alerts of servers. */
  readonly downOf: (serverId: string) => readonly Alert[]
  /** The grouped alerts (children) of a group. */
  readonly childrenOf: (groupId: string) => readonly Alert[]
}

/** What the hub looks up to apply an event. */
export type EventContext = {
  readonly newId: string
  readonly nowMs: number
  /** The company's rule of the event, if it exists. */
  readonly rule: { readonly id: string; readonly kind: string } | null
  /** The company's agent_down rule; null when there is none. */
  readonly agentDownRule: { readonly id: string; readonly severity: Severity; readonly applies: boolean } | null
  readonly agentId: string | null
}

/** What people are told of an alert. */
export const notifyTypes = [
  'alert.opened',
  'alert.resolved',
  'alert.reminder',
  'agent.down',
  'agent.up',
  'group_down',
  'group_resolved',
] as const
export type NotifyType = (typeof notifyTypes)[number]

type Outcome = {
  /** Alerts to store, new or changed. */
  readonly changed: readonly Alert[]
  /** The alert whose log the event belongs to; null when it concerns none. */
  readonly alertId: string | null
  readonly notify: { readonly type: NotifyType; readonly alert: Alert } | null
}

const LOGGED_ONLY = (alertId: string | null): Outcome => ({ changed: [], alertId, notify: null })

export const isActive = (alert: Alert): boolean =>
  alert.state === 'open' || alert.state === 'acknowledged' || alert.state === 'grouped'

const suppressionOf = (event: AlertEvent): HeldBack | null =>
  event.suppressed ? (event.suppress_reason ?? 'suppressed') : null

function newAlert(event: AlertEvent, context: EventContext, type: AlertType): Alert {
  return {
    id: context.newId,
    companyId: event.company_id,
    type,
    serverId: event.server_id,
    agentId: context.agentId,
    ruleId: context.rule?.id ?? null,
    ruleKey: event.rule_id,
    seriesKey: event.series_key,
    labels: event.labels,
    severity: event.severity,
    state: 'open',
    openedAtMs: Date.parse(event.occurred_at),
    resolvedAtMs: null,
    resolvedReason: null,
    lastValue: event.value,
    peakValue: event.peak_value ?? null,
    threshold: event.threshold,
    suppressed: event.suppressed,
    suppressReason: event.suppress_reason,
    flapping: false,
    groupId: null,
    groupTotal: null,
    groupMemberIds: null,
    eventCount: 1,
    lastEventSeq: event.seq,
    notifiedAtMs: null,
    heldBack: suppressionOf(event),
    recoveryUntold: false,
  }
}

/** The alert with the fields that every applied event updates. */
const withEvent = (alert: Alert, event: AlertEvent): Alert => ({
  ...alert,
  eventCount: alert.eventCount + 1,
  lastEventSeq: event.seq,
  suppressed: event.suppressed,
  suppressReason: event.suppress_reason,
})

/** Stores the alert and notifies people, unless it is suppressed or a grouped child. */
function told(alert: Alert, type: NotifyType, context: EventContext): Outcome {
  if (alert.suppressed || alert.state === 'grouped') return { changed: [alert], alertId: alert.id, notify: null }
  const marked = { ...alert, notifiedAtMs: alert.notifiedAtMs ?? context.nowMs }
  return { changed: [marked], alertId: alert.id, notify: { type, alert: marked } }
}

/** Resolves an alert. People are notified only when they were notified of its opening (decision G-101). */
function resolved(alert: Alert, event: AlertEvent, reason: string, type: NotifyType): Outcome {
  const wasTold = alert.notifiedAtMs !== null && alert.state !== 'grouped'
  const after: Alert = {
    ...withEvent(alert, event),
    state: 'resolved',
    // A sample of before the opening can end it.
    resolvedAtMs: Math.max(alert.openedAtMs, Date.parse(event.occurred_at)),
    resolvedReason: reason,
    lastValue: event.value ?? alert.lastValue,
    peakValue: event.peak_value ?? alert.peakValue,
    flapping: false,
    groupId: null,
    recoveryUntold: wasTold && event.suppressed,
  }
  const notify = wasTold && !event.suppressed ? { type, alert: after } : null
  return { changed: [after], alertId: after.id, notify }
}

const ruleAlertType = (event: AlertEvent, context: EventContext): AlertType => {
  if (event.labels.no_data === 'true') return 'no_data'
  return context.rule?.kind === 'check' ? 'check' : 'threshold'
}

function applyOpened(book: AlertBook, event: AlertEvent, context: EventContext): Outcome {
  if (!book.active) return told(newAlert(event, context, ruleAlertType(event, context)), 'alert.opened', context)
  // A second opened event is merged into the open alert: no second row, and a notification only when there was none
  // yet.
  const merged: Alert = {
    ...withEvent(book.active, event),
    lastValue: event.value ?? book.active.lastValue,
    severity: event.severity,
    threshold: event.threshold,
  }
  if (merged.notifiedAtMs === null) return told(merged, 'alert.opened', context)
  return { changed: [merged], alertId: merged.id, notify: null }
}

function applyReminder(book: AlertBook, event: AlertEvent, context: EventContext): Outcome {
  if (book.active) {
    const after: Alert = {
      ...withEvent(book.active, event),
      lastValue: event.value ?? book.active.lastValue,
      severity: event.severity,
      threshold: event.threshold,
    }
    return told(after, after.notifiedAtMs === null ? 'alert.opened' : 'alert.reminder', context)
  }
  if (!book.latest) return told(newAlert(event, context, ruleAlertType(event, context)), 'alert.reminder', context)
  // After a manual close the collector's reminders are only logged (decision G-96).
  if (book.latest.state === 'closed') return LOGGED_ONLY(book.latest.id)
  const reopened: Alert = {
    ...withEvent(book.latest, event),
    state: 'open',
    resolvedAtMs: null,
    resolvedReason: null,
    heldBack: suppressionOf(event) ?? book.latest.heldBack,
    recoveryUntold: false,
    lastValue: event.value ?? book.latest.lastValue,
    severity: event.severity,
    threshold: event.threshold,
  }
  return told(reopened, 'alert.reminder', context)
}

function applyFlapping(book: AlertBook, event: AlertEvent, context: EventContext): Outcome {
  const isEntered = event.reason === 'entered'
  if (book.active) {
    const after = { ...withEvent(book.active, event), flapping: isEntered }
    return { changed: [after], alertId: after.id, notify: null }
  }
  if (!isEntered) return LOGGED_ONLY(book.latest?.id ?? null)
  // No opened event comes before it exits: that it then still is open people are told from what was held back.
  // Where it is suppressed besides, both have to end: `suppressed` says the other.
  const opened = newAlert(event, context, ruleAlertType(event, context))
  const marked: Alert = { ...opened, flapping: true, heldBack: 'flapping' }
  return { changed: [marked], alertId: marked.id, notify: null }
}

function applyAgentDown(book: AlertBook, event: AlertEvent, context: EventContext): Outcome {
  if (book.active) {
    const after = { ...withEvent(book.active, event), lastValue: event.value ?? book.active.lastValue }
    return { changed: [after], alertId: after.id, notify: null }
  }
  const rule = context.agentDownRule
  if (rule && !rule.applies) return LOGGED_ONLY(null)
  const group = groupWith(book.groups, event.server_id)
  const alert: Alert = {
    ...newAlert(event, context, 'agent_down'),
    ruleId: rule?.id ?? null,
    severity: rule?.severity ?? 'critical',
    state: group ? 'grouped' : 'open',
    groupId: group?.id ?? null,
  }
  return told(alert, 'agent.down', context)
}

function applyGroupDown(book: AlertBook, event: AlertEvent, context: EventContext): Outcome {
  const memberIds = event.member_server_ids ?? []
  if (book.active) {
    const known: Alert = {
      ...withEvent(book.active, event),
      lastValue: event.value,
      groupMemberIds: memberIds,
      groupTotal: event.group_total ?? book.active.groupTotal,
    }
    return { changed: [known, ...attach(book.downOf, known)], alertId: known.id, notify: null }
  }
  const group: Alert = {
    ...newAlert(event, context, 'group_down'),
    ruleId: null,
    agentId: null,
    groupMemberIds: memberIds,
    groupTotal: event.group_total ?? null,
  }
  const outcome = told(group, 'group_down', context)
  return { ...outcome, changed: [...outcome.changed, ...attach(book.downOf, group)] }
}

function applyGroupUpdate(book: AlertBook, event: AlertEvent): Outcome {
  if (!book.active) return LOGGED_ONLY(book.latest?.id ?? null)
  const group: Alert = {
    ...withEvent(book.active, event),
    lastValue: event.value,
    groupMemberIds: event.member_server_ids ?? [],
    groupTotal: event.group_total ?? book.active.groupTotal,
  }
  return { changed: [group, ...attach(book.downOf, group)], alertId: group.id, notify: null }
}

function applyGroupResolved(book: AlertBook, event: AlertEvent): Outcome {
  const group = book.active
  if (!group) return LOGGED_ONLY(book.latest?.id ?? null)
  const outcome = resolved({ ...group, groupMemberIds: [] }, event, 'recovered', 'group_resolved')
  const children = releaseChildren(book.childrenOf(group.id), group, book.groups, Date.parse(event.occurred_at))
  return { ...outcome, changed: [...outcome.changed, ...children] }
}

/** Applies an event that is new and whose seq is above the last processed one. */
export function applyEvent(book: AlertBook, event: AlertEvent, context: EventContext): Outcome {
  switch (event.type) {
    case 'alert.opened':
      return applyOpened(book, event, context)
    case 'alert.reminder':
      return applyReminder(book, event, context)
    case 'alert.flapping':
      return applyFlapping(book, event, context)
    case 'alert.resolved':
      if (!book.active) return LOGGED_ONLY(book.latest?.id ?? null)
      return resolved(book.active, event, event.reason ?? 'recovered', 'alert.resolved')
    case 'agent.down':
      return applyAgentDown(book, event, context)
    case 'agent.up':
      if (!book.active) return LOGGED_ONLY(book.latest?.id ?? null)
      return resolved(book.active, event, 'recovered', 'agent.up')
    case 'group_down':
      return applyGroupDown(book, event, context)
    case 'group_update':
      return applyGroupUpdate(book, event)
    case 'group_resolved':
      return applyGroupResolved(book, event)
  }
}

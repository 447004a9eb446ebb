// Which faults refuse a whole batch of events (422), and which refuse only one event (decision G-102).

import { type AlertEvent, eventTypes } from '../../../core/alerting/evaluate/event.ts'
import { severities } from '../../../core/alerting/rules/rule.ts'
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import { limits } from '../../../core/limits.ts'
import { invalidField } from '../platform/http/api-error.ts'
import type { TextKey } from '../platform/http/api-texts.ts'
import { isInstant, isUuid } from '../platform/http/request-schema.ts'

export type RejectReason = 'unknown_server' | 'unsupported_type' | 'invalid_payload'

const EVENT_ID_CHARS_MAX = 64
const CODE = 'invalid_batch'
const COUNT_MAX = 2_147_483_647

const isNumberOrNull = (value: unknown): boolean =>
  value == null || (typeof value === 'number' && Number.isFinite(value))
const isOneOf = (list: readonly string[], value: unknown): boolean => typeof value === 'string' && list.includes(value)

/** The events of a batch, each with its id. Throws 422 for a body that is no batch. */
export function batchOf(body: unknown): (Unchecked & { readonly event_id: string })[] {
  const events = isObject(body) ? body.events : undefined
  if (!Array.isArray(events)) throw invalidField('events', 'list').withCode(CODE)
  if (events.length === 0) throw invalidField('events', 'list_min', { min: 1 }).withCode(CODE)
  if (events.length > limits.eventsPerRequest)
    throw invalidField('events', 'list_max', { max: limits.eventsPerRequest }).withCode(CODE)
  return events.map((event, index) => {
    const id = isObject(event) ? event.event_id : undefined
    const refused = (key: TextKey) =>
      invalidField(`events.${index}.event_id`, key, { max: EVENT_ID_CHARS_MAX }).withCode(CODE)
    if (id === undefined || id === null || id === '') throw refused('required')
    if (typeof id !== 'string') throw refused('string')
    if (id.length > EVENT_ID_CHARS_MAX) throw refused('length_max')
    return { ...(event as Unchecked), event_id: id }
  })
}

const isLabels = (value: unknown): boolean =>
  value == null || (isObject(value) && Object.values(value).every(item => typeof item === 'string'))

function isEnvelope(raw: Unchecked): boolean {
  const needsRule = String(raw.type).startsWith('alert.')
  return (
    isUuid(raw.company_id) &&
    isUuid(raw.server_id) &&
    Number.isSafeInteger(raw.seq) &&
    (raw.seq as number) >= 0 &&
    typeof raw.occurred_at === 'string' &&
    isInstant(raw.occurred_at) &&
    typeof raw.rule_id === 'string' &&
    (needsRule ? isUuid(raw.rule_id) : raw.rule_id.length > 0 && raw.rule_id.length <= 64) &&
    typeof raw.series_key === 'string' &&
    raw.series_key.length > 0 &&
    Buffer.byteLength(raw.series_key) <= limits.seriesKeyBytesMax &&
    isOneOf(severities, raw.severity) &&
    isNumberOrNull(raw.value) &&
    isNumberOrNull(raw.threshold) &&
    (raw.suppressed == null || typeof raw.suppressed === 'boolean') &&
    (raw.suppress_reason == null || isOneOf(['maintenance', 'silence', 'decommissioned'], raw.suppress_reason)) &&
    isLabels(raw.labels)
  )
}

const isGroupType = (type: unknown): boolean =>
  type === 'group_down' || type === 'group_update' || type === 'group_resolved'
const isCountOrNull = (value: unknown): boolean =>
  value == null || (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= COUNT_MAX)

function hasExtras(raw: Unchecked): boolean {
  if (raw.type === 'alert.flapping' && !isOneOf(['entered', 'exited'], raw.reason)) return false
  if (!isNumberOrNull(raw.peak_value) || !isNumberOrNull(raw.duration_seconds)) return false
  if (raw.type === 'alert.resolved' && raw.reason != null && typeof raw.reason !== 'string') return false
  if (!isGroupType(raw.type)) return true
  const members = raw.member_server_ids ?? (raw.type === 'group_resolved' ? [] : null)
  return Array.isArray(members) && members.every(isUuid) && isCountOrNull(raw.group_total)
}

/** True when envelope and extra fields are those of an event; optional fields may also be null. */
const isEvent = (raw: Unchecked): raw is Unchecked & AlertEvent => isEnvelope(raw) && hasExtras(raw)

/** An event that can be applied, or why it cannot. */
export function eventOf(raw: Unchecked & { readonly event_id: string }): AlertEvent | RejectReason {
  if (!isOneOf(eventTypes, raw.type)) return 'unsupported_type'
  if (!isEvent(raw)) return 'invalid_payload'
  const { member_server_ids: members, ...event } = raw
  return {
    ...event,
    occurred_at: new Date(event.occurred_at).toISOString(),
    company_id: event.company_id.toLowerCase(),
    server_id: event.server_id.toLowerCase(),
    value: event.value ?? null,
    threshold: event.threshold ?? null,
    suppressed: event.suppressed === true,
    suppress_reason: event.suppress_reason ?? null,
    labels: event.labels ?? {},
    ...(isGroupType(raw.type) ? { member_server_ids: (members ?? []).map(id => id.toLowerCase()) } : {}),
  }
}

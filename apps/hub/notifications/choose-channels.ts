// Who is told of an event by which channel: bells, devices and webhooks, from which severity and for which servers
// (decisions G-104, G-106), of an alert as of anything else; mailboxes: one-message-a-mailbox.ts. Whom it may be told
// at all is decided before (recipients.ts, or whoever tells it); what is written where is the business of
// deliveries.ts, dispatch.ts and messages.ts.
import type { Severity } from '../../../core/alerting/rules/rule.ts'
import type { Recipient } from './recipients.ts'

/** The attributes of a server by which scopes select. */
export type Attributes = {
  readonly id: string
  readonly tags: readonly string[]
  readonly environment: string | null
  readonly role: string | null
  readonly datacenter: string | null
}

export type Scope = Readonly<Record<string, unknown>>

/** What is to be told. */
export type ToTell = {
  readonly type: string
  readonly severity: Severity
  /** Whoever may be told, as far as they want to hear of the severity. */
  readonly people: readonly Recipient[]
  /** Whether group addresses are told, which hold no permission. */
  readonly isForGroups: boolean
  /** The servers that it is about, by which group addresses select. */
  readonly servers: readonly Attributes[]
}

const RANKS: Readonly<Record<string, number>> = { info: 0, warning: 1, critical: 2 }

/** True when a severity reaches a channel's threshold; `off` is never reached. */
export const reaches = (severity: Severity, from: string): boolean =>
  from !== 'off' && (RANKS[severity] ?? 0) >= (RANKS[from] ?? 0)

/** True when the scope of a webhook or a group address covers the server. */
function covers(scope: Scope, server: Attributes): boolean {
  const has = (list: unknown, value: string | null) => Array.isArray(list) && value !== null && list.includes(value)
  return (
    has(scope.server_ids, server.id) ||
    server.tags.some(tag => has(scope.tags, tag)) ||
    has(scope.environments, server.environment) ||
    has(scope.roles, server.role) ||
    has(scope.datacenters, server.datacenter)
  )
}

/** A scope for everything, or for one of the servers. Only the former is told of what is about no server. */
export const concerns = (scope: Scope, servers: readonly Attributes[]): boolean =>
  scope.all === true || servers.some(server => covers(scope, server))

/** Those whose bell rings. */
export const bellsOf = ({ severity, people }: ToTell): readonly Recipient[] =>
  people.filter(person => reaches(severity, person.bellFrom))

/** Of the devices of people who may be told those that are pushed to; asked again when it is sent. */
export const devicesOf = <D extends { readonly from: string }>(severity: Severity, devices: readonly D[]): D[] =>
  devices.filter(device => reaches(severity, device.from))

type HookChoice = { readonly events: readonly string[]; readonly minSeverity: string; readonly scope: Scope }

/** The webhooks that are called, each with those of the items that it selects; it may be none. */
export const webhooksOf = <H extends HookChoice, I extends { readonly servers: readonly Attributes[] }>(
  { type, severity }: Pick<ToTell, 'type' | 'severity'>,
  hooks: readonly H[],
  items: readonly I[],
): { readonly hook: H; readonly items: readonly I[] }[] =>
  hooks
    .filter(hook => hook.events.length === 0 || hook.events.includes(type))
    .filter(hook => reaches(severity, hook.minSeverity))
    .map(hook => ({ hook, items: items.filter(item => concerns(hook.scope, item.servers)) }))

// What the pages of administration are sent, apart from what makes it: the script knows these types alone.
import type { RuleScope, Severity } from '../../../../core/alerting/rules/rule.ts'
import type { AddressState } from '../../notifications/unconfirmed-addresses.ts'

export type Named = { readonly id: string; readonly name: string }

export type PersonRow = Named & {
  readonly email: string
  readonly roles: readonly Named[]
  readonly teams: readonly Named[]
  /** Keys that the person has beside those of roles. */
  readonly permissions: readonly string[]
  readonly isEnabled: boolean
  readonly isSuperAdmin: boolean
  readonly hasSecondFactor: boolean
  /** Null: nobody is signed in as this person. */
  readonly lastSeenAtMs: number | null
}

export type InvitationRow = {
  readonly id: string
  readonly email: string
  readonly name: string | null
  readonly roles: readonly string[]
  readonly inviter: string | null
  readonly expiresAtMs: number
  readonly isExpired: boolean
}

export type PeopleView = {
  readonly total: number
  readonly matching: number
  readonly offset: number
  readonly rows: readonly PersonRow[]
  readonly invitations: readonly InvitationRow[]
  readonly teams: readonly (Named & { readonly members: readonly Named[] })[]
  readonly roles: readonly Named[]
}

export type RoleRow = Named & {
  readonly isBuiltIn: boolean
  readonly permissions: readonly string[]
  readonly holders: number
}

export type RolesView = {
  readonly rows: readonly RoleRow[]
  /** Every key that can be given. */
  readonly keys: readonly string[]
}

export type WebhookRow = Named & {
  readonly url: string
  /** Empty: all. */
  readonly events: readonly string[]
  readonly minSeverity: Severity
  /** It is told of some servers only. */
  readonly isNarrowed: boolean
  readonly isEnabled: boolean
  readonly failuresInARow: number
  /** Why the hub switched it off. */
  readonly disabledReason: string | null
}

export type WebhooksView = {
  readonly rows: readonly WebhookRow[]
  /** What a webhook can be told of. */
  readonly events: readonly string[]
}

export type DeliveryRow = {
  readonly id: string
  readonly channel: 'webhook' | 'email'
  readonly target: string
  readonly type: string
  readonly state: 'waiting' | 'delivered' | 'failed'
  readonly tries: number
  readonly responseCode: number | null
  readonly error: string | null
  readonly createdAtMs: number
  readonly finishedAtMs: number | null
}

export type WebhookView = Pick<WebhooksView, 'events'> & {
  readonly webhook: WebhookRow
  readonly total: number
  readonly offset: number
  readonly deliveries: readonly DeliveryRow[]
}

export type ChannelRow = Named & {
  readonly address: string
  readonly minSeverity: Severity
  readonly scope: RuleScope
  readonly isEnabled: boolean
  /** Mail is counted until somebody says that they want it, and stops when they say that they do not. */
  readonly addressState: AddressState
}

export type NotificationsView = {
  readonly channels: readonly ChannelRow[]
  /** False: the hub sends no mail at all. */
  readonly isMailSent: boolean
  readonly total: number
  readonly offset: number
  readonly deliveries: readonly DeliveryRow[]
}

type AuditedField = { readonly field: string; readonly old: unknown; readonly new: unknown }

export type AuditRow = {
  readonly id: string
  readonly atMs: number
  readonly actorType: string
  readonly actor: string | null
  readonly action: string
  readonly subjectType: string
  readonly subject: string | null
  readonly ip: string | null
  readonly diff: readonly AuditedField[]
}

export type AuditView = {
  readonly total: number
  readonly offset: number
  readonly rows: readonly AuditRow[]
}

export type SettingsView = {
  readonly intervalSeconds: number
  readonly isServerMade: boolean
  readonly groupDownMin: number | null
  /** 0 to 1. */
  readonly groupDownRatio: number | null
  readonly groupDownWindowSeconds: number | null
  readonly retentionNote: string | null
  readonly alertEventDays: number
  /** Null: without an end. */
  readonly sampleDays: number | null
  /** What it was, while samples older than the new days are still kept: until `graceUntilMs`. */
  readonly previousSampleDays: number | null
  readonly graceUntilMs: number | null
  readonly plan: string
  readonly agents: number
  /** Null: as many as there are. */
  readonly agentQuota: number | null
}

// A renewal: somebody asked for a newer leaf (renew-and-revoke.ts), it was issued, and every place serves it;
// when it is due, and how far it is. The hub itself issues nothing.
import { listed, named, nullable, string, time, wordOf } from '../platform/http/response-schema.ts'
import { DAY_MS } from './certificate-state.ts'
import { type Deployment, placeOf } from './deployments.ts'

const renewalStates = ['requested', 'issued', 'deployed', 'overdue', 'cancelled'] as const

const DUE_BEFORE_DAYS = 7

/** A renewal is due so long before the end, unless somebody says otherwise. */
export const usualDueAt = (notAfter: Date | null): Date | null =>
  notAfter === null ? null : new Date(notAfter.getTime() - DUE_BEFORE_DAYS * DAY_MS)

/** As it is kept; times are texts (RFC 3339). */
export type Renewal = {
  readonly state: (typeof renewalStates)[number]
  readonly requested_at: string
  readonly due_at: string | null
  readonly note: string | null
  /** The leaf that is to be replaced. */
  readonly old_fingerprint: string | null
  /** When people were told that it was asked for. */
  readonly told_at?: string
}

export const renewalResponse = named('CertificateRenewal', {
  state: wordOf(renewalStates),
  requested_at: time(),
  due_at: nullable(time()),
  note: nullable(string()),
  new_fingerprint: nullable(string()),
  remaining_deployments: listed(string()),
})

export const isOpen = (renewal: Renewal | null): renewal is Renewal =>
  renewal !== null && ['requested', 'issued', 'overdue'].includes(renewal.state)

type Current = {
  readonly fingerprint: string | null
  readonly deployments: readonly Deployment[]
  readonly isGone: boolean
}

const newLeafOf = ({ old_fingerprint: old }: Renewal, fingerprint: string | null): string | null =>
  fingerprint === old ? null : fingerprint
const notYetServing = (fingerprint: string, deployments: readonly Deployment[]): readonly Deployment[] =>
  deployments.filter(place => place.fingerprint_sha256 !== fingerprint)

/** How far an open renewal is now; one that has ended stays as it is. */
export function renewalNow(
  renewal: Renewal | null,
  { fingerprint, deployments, isGone }: Current,
  now: Date,
): Renewal | null {
  if (!isOpen(renewal)) return renewal
  const issued = newLeafOf(renewal, fingerprint)
  const isDeployed = issued !== null && notYetServing(issued, deployments).length === 0
  const isOverdue = renewal.due_at !== null && Date.parse(renewal.due_at) <= now.getTime()
  const state = isDeployed
    ? 'deployed'
    : isGone
      ? 'cancelled'
      : isOverdue
        ? 'overdue'
        : issued !== null
          ? 'issued'
          : 'requested'
  return { ...renewal, state }
}

export function presentRenewal(renewal: Renewal, fingerprint: string | null, deployments: readonly Deployment[]) {
  const issued = newLeafOf(renewal, fingerprint)
  const remaining = isOpen(renewal) ? (issued === null ? deployments : notYetServing(issued, deployments)) : []
  return {
    state: renewal.state,
    requested_at: renewal.requested_at,
    due_at: renewal.due_at,
    note: renewal.note,
    new_fingerprint: issued,
    remaining_deployments: remaining.map(placeOf),
  }
}

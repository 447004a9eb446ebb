// What the hub finds wrong with a certificate, from what is stored of it and the clock: expiry in stages, the
// chain, host names, and what is served where. Also when the clock alone will change that. Days of the stages:
// apps/hub/system-state/setting-definitions.ts.

import type { Finding } from '../resources/conditions.ts'
import type { BothLanguages, ConditionSeverity, ConditionText } from '../resources/kind-info.ts'
import { DAY_MS } from './certificate-state.ts'
import type { Chain } from './chain.ts'
import { type Deployment, placeOf } from './deployments.ts'
import type { Renewal } from './renewal.ts'

const CRITICAL_DAYS = 7
/** A certificate that renews itself is told of from here on only (RES-107). */
const AUTO_RENEWED_DAYS = 7
/** What a probe finds counts after so many in a row (RES-027). */
const FAILURES_TO_COUNT = 2
const PLACES_NAMED = 20

const condition = (severity: ConditionSeverity, en: string, vi: string): ConditionText => ({
  severity,
  text: { en, vi } satisfies BothLanguages,
})

export const certificateConditions = {
  expiring: condition('warning', 'expires on {expires_on}', 'hết hạn ngày {expires_on}'),
  expired: condition('critical', 'expired on {expires_on}', 'đã hết hạn ngày {expires_on}'),
  chain_incomplete: condition(
    'warning',
    'the chain does not lead to a root[ at {deployments}]',
    'chuỗi chứng chỉ không dẫn tới chứng chỉ gốc[ tại {deployments}]',
  ),
  chain_expiring: condition(
    'warning',
    'the intermediate certificate {subject} expires on {expires_on}, before the certificate',
    'chứng chỉ trung gian {subject} hết hạn ngày {expires_on}, trước chứng chỉ này',
  ),
  hostname_mismatch: condition('warning', 'is not good for {hostnames}', 'không dùng được cho {hostnames}'),
  old_certificate_served: condition(
    'warning',
    'an older version is still served at {deployments}',
    'phiên bản cũ vẫn đang được dùng tại {deployments}',
  ),
  other_certificate_served: condition(
    'warning',
    'another certificate is served at {deployments}',
    'một chứng chỉ khác đang được dùng tại {deployments}',
  ),
  revoked_in_use: condition(
    'critical',
    'a revoked version is still served at {deployments}',
    'phiên bản đã thu hồi vẫn đang được dùng tại {deployments}',
  ),
  unreachable: condition('warning', 'cannot be seen at {deployments}', 'không kết nối được tới {deployments}'),
  renewal_overdue: condition(
    'warning',
    'the renewal was due on {due_on}',
    'việc gia hạn lẽ ra phải xong ngày {due_on}',
  ),
} as const
type Code = keyof typeof certificateConditions
export const conditionCodes: readonly string[] = Object.keys(certificateConditions)

type Judged = {
  readonly leaf: { readonly fingerprint: string; readonly notAfter: Date; readonly notBefore: Date } | null
  /** Every leaf of the certificate, with when it was revoked. */
  readonly versions: ReadonlyMap<string, Date | null>
  readonly chain: Chain | null
  /** Largest first. */
  readonly warnDays: readonly number[]
  readonly autoRenewed: boolean
  readonly hostnameProblems: readonly string[]
  readonly deployments: readonly Deployment[]
  readonly renewal: Renewal | null
}
type Judgement = {
  readonly findings: readonly Finding[]
  /** Null: only what is seen or written changes it. */
  readonly nextAt: Date | null
}

const dayOf = (date: Date): string => date.toISOString().slice(0, 10)
const before = (date: Date, days: number): Date => new Date(date.getTime() - days * DAY_MS)

/** The stages that are told, in days before the end. */
const stagesOf = ({ warnDays, autoRenewed }: Judged): readonly number[] =>
  autoRenewed ? [...new Set(warnDays.map(days => Math.min(days, AUTO_RENEWED_DAYS)))] : warnDays

const served = (deployments: readonly Deployment[]) => ({
  deployments: deployments.slice(0, PLACES_NAMED).map(placeOf),
})

/** What the dates say. Nothing of a leaf that was revoked: that it ends is wanted. */
function findExpiry(judged: Judged, now: Date): Finding[] {
  const { leaf, versions } = judged
  if (leaf === null || versions.get(leaf.fingerprint)) return []
  const { notAfter, fingerprint } = leaf
  const detail = { expires_on: dayOf(notAfter), not_after: notAfter.toISOString(), fingerprint }
  if (notAfter <= now) return [{ code: 'expired', detail }]
  const stage = Math.min(...stagesOf(judged).filter(days => before(notAfter, days) <= now))
  if (!Number.isFinite(stage)) return []
  const severity = before(notAfter, CRITICAL_DAYS) <= now ? 'critical' : 'warning'
  // Each stage is told, of each leaf once (RES-105).
  return [{ code: 'expiring', severity, stage: `${stage} ${fingerprint}`, detail }]
}

function findChainEnd({ leaf, chain, warnDays }: Judged, now: Date): Finding[] {
  const first = chain?.expiresFirst
  const stage = warnDays[0] ?? 0
  if (!leaf || !first || before(first.notAfter, stage) > now || before(leaf.notAfter, stage) <= now) return []
  const severity = first.notAfter <= now ? 'critical' : 'warning'
  return [{ code: 'chain_expiring', severity, detail: { subject: first.subject, expires_on: dayOf(first.notAfter) } }]
}

/** What is served where; a place with nothing wrong, or seen so once only, is in none. */
function findServed({ versions, deployments, chain }: Judged): Finding[] {
  const sure = deployments.filter(({ failures }) => failures >= FAILURES_TO_COUNT)
  const isOld = ({ fingerprint_sha256: print }: Deployment) => print !== null && versions.has(print)
  const isRevoked = ({ fingerprint_sha256: print }: Deployment) => print !== null && Boolean(versions.get(print))
  const other = sure.filter(({ problem }) => problem === 'other')
  const groups: readonly (readonly [Code, readonly Deployment[]])[] = [
    ['old_certificate_served', other.filter(isOld)],
    ['other_certificate_served', other.filter(each => !isOld(each))],
    // What was seen before it was revoked needs no second look.
    ['revoked_in_use', deployments.filter(isRevoked)],
    ['unreachable', sure.filter(({ problem }) => problem === 'unreachable')],
  ]
  const findings: Finding[] = groups.flatMap(([code, places]) =>
    places.length === 0 ? [] : [{ code, detail: served(places) }],
  )
  const cut = sure.filter(({ problem }) => problem === 'chain')
  if ((chain && !chain.complete) || cut.length > 0) findings.push({ code: 'chain_incomplete', detail: served(cut) })
  return findings
}

/** When the next of these comes. */
function nextOf(judged: Judged, now: Date): Date | null {
  const { leaf, chain, warnDays, renewal } = judged
  const end = leaf?.notAfter
  const times = [
    ...(leaf && end
      ? [leaf.notBefore, end, ...[...stagesOf(judged), CRITICAL_DAYS].map(days => before(end, days))]
      : []),
    ...(chain?.expiresFirst
      ? [0, warnDays[0] ?? 0].map(days => before(chain.expiresFirst?.notAfter ?? now, days))
      : []),
    ...(renewal?.due_at ? [new Date(renewal.due_at)] : []),
  ].filter(time => time > now)
  return times.length === 0 ? null : new Date(Math.min(...times.map(time => time.getTime())))
}

export function judge(judged: Judged, now: Date): Judgement {
  const { hostnameProblems, renewal } = judged
  const findings = [...findExpiry(judged, now), ...findChainEnd(judged, now), ...findServed(judged)]
  if (hostnameProblems.length > 0)
    findings.push({ code: 'hostname_mismatch', detail: { hostnames: hostnameProblems.slice(0, PLACES_NAMED) } })
  if (renewal?.state === 'overdue' && renewal.due_at)
    findings.push({ code: 'renewal_overdue', detail: { due_on: renewal.due_at.slice(0, 10) } })
  return { findings, nextAt: nextOf(judged, now) }
}

// After every change and every look: what is said of a certificate follows from its rows. The state of each deployment
// (deployment-state.ts), how far its renewal is (renewal.ts), its conditions (certificate-conditions.ts), and when the
// clock will change any of that.
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { setConditions } from '../resources/conditions.ts'
import type { KindInfo } from '../resources/kind-info.ts'
import { conditionCodes, judge } from './certificate-conditions.ts'
import { type Chain, readChain, TrustedRoots } from './chain.ts'
import { judgedDeployment, probeUntil } from './deployment-state.ts'
import { type Deployment, deploymentsOf, servedNames } from './deployments.ts'
import { isGoodFor } from './good-for-host.ts'
import { intervalMs, nextLookAt } from './look-schedule.ts'
import { monitorCheckIds } from './monitor-checks.ts'
import { type Renewal, renewalNow } from './renewal.ts'
import { revocationsOf } from './versions.ts'

type Row = {
  status: string
  pem: string | null
  fingerprint: string | null
  sans: string[]
  common_name: string | null
  hostnames: string[]
  warn_days: number[] | null
  auto_renewed: boolean
  not_before: Date | string | null
  not_after: Date | string | null
  renewal: Renewal | null
  chain: KeptChain | null
}

/** How a chain is shown and kept. */
export const keptChain = ({ complete, trusted, orderFixed, expiresFirst, problems }: Chain): KeptChain => ({
  complete,
  trusted,
  order_fixed: orderFixed,
  expires_first: expiresFirst && {
    subject: expiresFirst.subject,
    not_after: expiresFirst.notAfter.toISOString(),
  },
  problems,
})
export type KeptChain = {
  readonly complete: boolean
  readonly trusted: boolean
  readonly order_fixed: boolean
  readonly expires_first: { readonly subject: string; readonly not_after: string } | null
  readonly problems: readonly string[]
}

const UNRELATED = 'unrelated_certificate'
/** A chain that is judged again, by the roots and the clock of today; how it was given stays known. */
function judgedAgain(before: KeptChain | null, chain: Chain): KeptChain {
  const now = keptChain(chain)
  if (before === null) return now
  const problems = [...now.problems, ...before.problems.filter(problem => problem === UNRELATED)]
  return { ...now, order_fixed: before.order_fixed, problems }
}

/** The roots that a company trusts. */
export const rootsOf = async ({ state }: Hub, db: Executor, companyId: string): Promise<TrustedRoots> =>
  new TrustedRoots(await state.valueIn(db, companyId, 'certificates.extra_roots'))

/** The stages of a company, the largest first. */
export async function usualWarnDays({ state }: Hub, db: Executor, companyId: string): Promise<readonly number[]> {
  return ((await state.valueIn(db, companyId, 'certificates.warn_days')) ?? []).toSorted((a, b) => b - a)
}

type Names = {
  readonly sans: readonly string[]
  readonly commonName: string | null
  readonly hostnames: readonly string[]
}

/** Names that the certificate must be good for, or is asked for where it is served, and is not. */
export const hostnameProblemsOf = ({ hostnames, ...leaf }: Names, deployments: readonly Deployment[]): string[] =>
  [...new Set([...hostnames, ...servedNames(deployments)])].filter(name => !isGoodFor(leaf, name))

async function storeDeployments(
  tx: Tx,
  companyId: string,
  deployments: readonly Deployment[],
  seenIds: ReadonlySet<string>,
  interval: number,
  now: Date,
): Promise<void> {
  const rows = deployments.map(({ id, state, problem, failures }) => {
    const next = seenIds.has(id) ? nextLookAt({ problem, failures }, interval, now) : null
    return { id, state, problem, failures, next }
  })
  await tx.db.execute(sql`
    update certificate_deployments d set state = x.state, problem = x.problem, failures = x.failures,
      next_check_at = coalesce(x.next, d.next_check_at)
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as x (id uuid, state text, problem text, failures int,
      next timestamptz)
    where d.company_id = ${companyId} and d.id = x.id and (x.next is not null
      or (d.state, d.problem, d.failures) is distinct from (x.state, x.problem, x.failures))`)
}

const NOBODY: ReadonlySet<string> = new Set()

/** Brings all of it up to date, in the transaction of the change. `seenIds`: deployments that were looked at. */
export async function storeJudgement(
  tx: Tx,
  hub: Hub,
  info: KindInfo,
  companyId: string,
  id: string,
  seenIds: ReadonlySet<string> = NOBODY,
): Promise<void> {
  const [row] = await tx.db.execute<Row>(sql`
    select status, pem, fingerprint_sha256 as fingerprint, sans, common_name, hostnames, warn_days, auto_renewed,
      not_before, not_after, renewal, chain from certificates
    where company_id = ${companyId} and id = ${id} and deleted_at is null for no key update`)
  if (!row) return
  const now = new Date(hub.now())
  const { fingerprint } = row
  const notAfter = row.not_after === null ? null : new Date(row.not_after)
  const leaf =
    fingerprint !== null && notAfter !== null && row.not_before !== null
      ? { fingerprint, notAfter, notBefore: new Date(row.not_before) }
      : null
  const places = await deploymentsOf(tx.db, companyId, [id])
  const deployments = places.map(place => judgedDeployment(place, leaf, seenIds.has(place.id), now))
  const interval = intervalMs(notAfter, now)
  await storeDeployments(tx, companyId, deployments, seenIds, interval, now)
  const read = row.pem === null ? null : readChain(row.pem, await rootsOf(hub, tx.db, companyId), now)
  const chain = typeof read === 'string' ? null : read
  const renewal = renewalNow(row.renewal, { fingerprint, deployments, isGone: row.status === 'retired' }, now)
  const names = { sans: row.sans, commonName: row.common_name, hostnames: row.hostnames }
  const { findings, nextAt } = judge(
    {
      leaf,
      versions: await revocationsOf(tx.db, id),
      chain,
      warnDays: row.warn_days ?? (await usualWarnDays(hub, tx.db, companyId)),
      autoRenewed: row.auto_renewed,
      hostnameProblems: leaf ? hostnameProblemsOf(names, deployments) : [],
      deployments,
      renewal,
    },
    now,
  )
  await tx.db.execute(sql`
    update certificates set renewal = ${renewal && JSON.stringify(renewal)}::jsonb,
      chain = ${chain && JSON.stringify(judgedAgain(row.chain, chain))}::jsonb,
      judge_at = ${nextAt?.toISOString() ?? null}::timestamptz,
      probe_until = ${probeUntil(deployments, interval)?.toISOString() ?? null}::timestamptz
    where company_id = ${companyId} and id = ${id}`)
  await setConditions(tx, info, companyId, [id], conditionCodes, new Map([[id, findings]]))
  // Where agents watch the end, their alert tells of it.
  if ((await monitorCheckIds(tx.db, companyId, [id])).size > 0)
    await tx.db.execute(sql`
      update resource_conditions set told_at = now(), told_severity = severity, told_stage = stage,
        recovery_told_at = now()
      where company_id = ${companyId} and kind = ${info.kind} and resource_id = ${id} and code = 'expiring'
        and resolved_at is null`)
}

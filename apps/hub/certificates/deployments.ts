// Where certificates are served: places that people named, and those that come with virtual servers and sites.
import { randomUUID } from 'node:crypto'
import { type SQL, sql } from 'drizzle-orm'
import type { Executor } from '../platform/db/connect.ts'
import { type Tx, uuidList } from '../platform/db/transaction.ts'
import { ApiError } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'
import { askedName, type Endpoint, placeText } from './endpoint.ts'

const DEPLOYMENTS_MAX = 200

export const deploymentKinds = ['endpoint', 'server', 'virtual_server', 'proxy_site'] as const
type DeploymentKind = (typeof deploymentKinds)[number]
export const deploymentStates = ['ok', 'other', 'expired', 'unreachable', 'unknown'] as const
export type DeploymentState = (typeof deploymentStates)[number]

/** A place with what was seen there last. */
export type Deployment = {
  readonly id: string
  readonly certificate_id: string
  readonly kind: DeploymentKind
  /** Null while the server that it is on has no address. */
  readonly host: string | null
  readonly port: number
  readonly sni: string | null
  readonly made_by: 'hand' | 'link'
  readonly state: DeploymentState
  readonly error: string | null
  readonly fingerprint_sha256: string | null
  readonly not_after: Date | null
  readonly chain_complete: boolean | null
  readonly problem: string | null
  readonly failures: number
  readonly checked_at: Date | null
  readonly created_at: Date
}

const date = (value: Date | string | null): Date | null => (value === null ? null : new Date(value))

async function deploymentsWhere(db: Executor, where: SQL): Promise<Deployment[]> {
  const rows = await db.execute<Deployment>(sql`
    select d.id, d.certificate_id, d.kind, coalesce(d.host, s.ip_address, s.hostname) as host, d.port, d.sni, d.made_by,
      d.state, d.error, d.fingerprint_sha256, d.not_after, d.chain_complete, d.problem, d.failures, d.checked_at,
      d.created_at
    from certificate_deployments d
    left join servers s on d.kind = 'server' and s.company_id = d.company_id and s.id = d.target_id
      and s.deleted_at is null
    where ${where} order by d.created_at, d.id`)
  return rows.map(row => ({
    ...row,
    not_after: date(row.not_after),
    checked_at: date(row.checked_at),
    created_at: new Date(row.created_at),
  }))
}

/** The deployments of certificates of a company, in the order in which they were made. */
export const deploymentsOf = (db: Executor, companyId: string, certificateIds: readonly string[]) =>
  deploymentsWhere(db, sql`d.company_id = ${companyId} and d.certificate_id = any(${uuidList(certificateIds)}::uuid[])`)

/** `www.example.com:443`. */
export const placeOf = ({ host, port }: Pick<Deployment, 'host' | 'port'>): string => placeText(host ?? '?', port)

/** The names that clients ask for at these places. */
export const servedNames = (deployments: readonly Deployment[]): string[] =>
  deployments.flatMap(({ host, sni }) => (host === null ? [] : (askedName({ host, sni }) ?? [])))

/** The hosts of the rules of virtual servers, by the deployments that those are, in the order of the rules. */
export async function ruleHostsOf(
  db: Executor,
  companyId: string,
  deployments: readonly Deployment[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const linked = deployments.filter(({ kind }) => kind === 'virtual_server').map(({ id }) => id)
  if (linked.length === 0) return new Map()
  const rows = await db.execute<{ id: string; hosts: string[] }>(sql`
    select d.id, array(select r.rule ->> 'host' from jsonb_array_elements(v.rules) with ordinality r (rule, place)
      where r.rule ->> 'host' is not null order by r.place) as hosts
    from certificate_deployments d join virtual_servers v on v.company_id = d.company_id and v.id = d.target_id
    where d.company_id = ${companyId} and d.id = any(${uuidList(linked)}::uuid[])`)
  return new Map(rows.map(({ id, hosts }) => [id, hosts]))
}

type NewDeployment = {
  readonly companyId: string
  readonly certificateId: string
  readonly kind: DeploymentKind
  readonly targetId: string | null
  readonly host: string | null
  readonly port: number
  readonly sni: string | null
  readonly madeBy: 'hand' | 'link'
  readonly userId: string | null
}

/** Adds a place; null when the certificate has it already. Throws 422 at the limit. */
export async function insertDeployment(tx: Tx, made: NewDeployment): Promise<string | null> {
  const id = randomUUID()
  const rows = await tx.db.execute<{ id: string }>(sql`
    insert into certificate_deployments (id, company_id, certificate_id, kind, target_id, host, port, sni, made_by,
      created_by)
    values (${id}, ${made.companyId}, ${made.certificateId}, ${made.kind}, ${made.targetId}, ${made.host}, ${made.port},
      ${made.sni}, ${made.madeBy}, ${made.userId})
    on conflict do nothing returning id`)
  const [counted] = await tx.db.execute<{ total: number }>(sql`
    select count(*)::int as total from certificate_deployments where company_id = ${made.companyId}
      and certificate_id = ${made.certificateId}`)
  if ((counted?.total ?? 0) > DEPLOYMENTS_MAX)
    throw new ApiError(422, 'limit_exceeded', words('invalid'), {
      errors: { limit: [words('list_max', { max: DEPLOYMENTS_MAX })] },
      reason: 'company_quota',
    })
  return rows[0]?.id ?? null
}

/** The endpoint of a certificate is its first deployment, and follows it. */
export async function keepEndpoint(
  tx: Tx,
  certificate: { readonly id: string; readonly company_id: string },
  before: Endpoint | null,
  after: Endpoint | null,
  userId: string | null,
): Promise<boolean> {
  if (JSON.stringify(before) === JSON.stringify(after)) return false
  if (before !== null)
    await tx.db.execute(sql`
      delete from certificate_deployments where company_id = ${certificate.company_id}
        and certificate_id = ${certificate.id} and kind = 'endpoint' and made_by = 'hand' and host = ${before.host}
        and port = ${before.port} and sni is not distinct from ${before.sni}`)
  if (after === null) return false
  const made = await insertDeployment(tx, {
    companyId: certificate.company_id,
    certificateId: certificate.id,
    kind: 'endpoint',
    targetId: null,
    ...after,
    madeBy: 'hand',
    userId,
  })
  return made !== null
}

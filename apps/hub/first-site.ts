// The first site: what a fresh all-in-one installation needs before anything can run. Repeating it changes nothing that
// works; secrets kept from an earlier start are checked, and issued again when they no longer work.
import { randomUUID } from 'node:crypto'
import { and, eq, sql } from 'drizzle-orm'
import { auditByHub } from './audit/audit.ts'
import { createCompany } from './companies/companies.ts'
import type { Hub } from './hub-context.ts'
import { adminPermissions, createToken, createUser } from './identity/accounts.ts'
import { authenticateToken } from './identity/authenticate.ts'
import { assignablePermissions } from './identity/permission-keys.ts'
import { createCollector, createMatcher, rotateService } from './identity/service-accounts.ts'
import { newLicenseToken, newPassword, tokenHash, tokenHint } from './identity/token-forms.ts'
import { collectors, licenses, servers } from './platform/db/schema.ts'
import { apiTokens, users } from './platform/db/schema-identity.ts'
import { inTransaction, lockCompany, type Tx } from './platform/db/transaction.ts'
import { insertCode } from './security/scan-hosts/enrollment-codes.ts'
import { changeServer, insertServer } from './servers/servers.ts'

const ADMIN_EMAIL = 'admin@localhost'
const LICENSE_NAME = 'First site'
const LICENSE_USES = 1000
const LOOPBACK_RANGES = ['127.0.0.0/8', '::1/128']

/** What the caller keeps between starts. */
type SiteSecrets = {
  readonly apiToken: string
  readonly collectorToken: string
  readonly matcherToken: string
  readonly license: string
}

type SiteOptions = {
  /** What was kept from an earlier start; empty at the first. */
  readonly kept: Partial<SiteSecrets>
  /** The collector's admin API, and the token that it accepts. */
  readonly collectorAdminUrl: string
  readonly collectorAdminToken: string
  /** What agents are told as the collector's address. */
  readonly collectorBaseUrl: string
  /** The host that the local agent runs on; null without a local agent. */
  readonly localHost: {
    readonly hostname: string
    readonly ipAddresses: readonly string[]
    /** Whether the local agent needs a code to become a scan host. */
    readonly needsScanCode: boolean
  } | null
}

export type FirstSite = SiteSecrets & {
  readonly companyId: string
  readonly userEmail: string
  /** Only when the user was created now. */
  readonly userPassword: string | null
  readonly collectorId: string
  readonly matcherId: string
  readonly licenseId: string
  /** The server of the local host; null without a local agent. */
  readonly localServerId: string | null
  /** By which the local agent becomes the scan host of that server; null when it needs none. */
  readonly scanCode: string | null
}

async function ensureCompany(hub: Hub, tx: Tx): Promise<string> {
  const [known] = await tx.db.execute<{ id: string }>(sql`
    select c.id from users u join companies c on c.id = u.company_id
    where lower(u.email) = ${ADMIN_EMAIL} and u.super_admin and c.deleted_at is null`)
  if (known) return known.id
  const overrides = { agent_quota: null, metrics_retention_days: null }
  return (await createCompany(hub, tx, { name: 'First company', planCode: 'dedicated', overrides })).id
}

async function ensureAdmin(tx: Tx, companyId: string): Promise<{ id: string; password: string | null }> {
  const [known] = await tx.db
    .select({ id: users.id })
    .from(users)
    .where(and(eq(users.email, ADMIN_EMAIL), eq(users.superAdmin, true)))
  if (known) return { id: known.id, password: null }
  const password = newPassword()
  const user = {
    companyId,
    email: ADMIN_EMAIL,
    name: 'Administrator',
    permissions: adminPermissions,
    superAdmin: true,
    password,
  }
  const { id } = await createUser(tx, user)
  await auditByHub(tx, companyId, 'user.create', { type: 'user', id, name: user.name })
  return { id, password }
}

/** True when the token still authenticates as the user. */
async function stillWorks(tx: Tx, token: string | undefined, userId: string): Promise<boolean> {
  if (!token) return false
  try {
    return (await authenticateToken(tx.db, token)).user.id === userId
  } catch {
    return false
  }
}

async function ensureApiToken(tx: Tx, kept: string | undefined, userId: string): Promise<string> {
  const permissions = [...assignablePermissions]
  if (kept && (await stillWorks(tx, kept, userId))) {
    // A newer version may know more permissions: a token without one of them would be a limited one.
    await tx.db
      .update(apiTokens)
      .set({ permissions })
      .where(eq(apiTokens.tokenHash, tokenHash(kept)))
    return kept
  }
  return (await createToken(tx, { userId, name: 'ready file', permissions, expiresAt: null })).token
}

async function ensureCollector(hub: Hub, tx: Tx, options: SiteOptions): Promise<{ id: string; token: string }> {
  const [known] = await tx.db.execute<{ id: string; service_user_id: string | null }>(
    sql`select id, service_user_id from monitoring_collectors order by internal_id limit 1`,
  )
  if (!known || known.service_user_id === null) {
    const made = await createCollector(hub, tx, {
      name: 'Local collector',
      baseUrl: options.collectorBaseUrl,
      adminUrl: options.collectorAdminUrl,
      adminToken: options.collectorAdminToken,
    })
    return { id: made.id, token: made.token }
  }
  await tx.db
    .update(collectors)
    .set({
      baseUrl: options.collectorBaseUrl,
      adminUrl: options.collectorAdminUrl,
      adminTokenSealed: hub.sealer.seal(options.collectorAdminToken),
    })
    .where(eq(collectors.id, known.id))
  const kept = options.kept.collectorToken
  if (kept && (await stillWorks(tx, kept, known.service_user_id))) return { id: known.id, token: kept }
  return { id: known.id, token: (await rotateService(tx, known.id)).token }
}

async function ensureMatcher(tx: Tx, kept: string | undefined): Promise<{ id: string; token: string }> {
  const [known] = await tx.db
    .select({ id: users.id })
    .from(users)
    .where(eq(users.kind, 'matcher'))
    .orderBy(users.createdAt)
    .limit(1)
  if (!known) return createMatcher(tx, 'Local matcher', LOOPBACK_RANGES)
  if (kept && (await stillWorks(tx, kept, known.id))) return { id: known.id, token: kept }
  return { id: known.id, token: (await rotateService(tx, known.id)).token }
}

async function ensureLicense(
  tx: Tx,
  companyId: string,
  userId: string,
  kept: string | undefined,
): Promise<{ id: string; token: string }> {
  if (kept) {
    const [known] = await tx.db.execute<{ id: string }>(sql`
      select id from monitoring_licenses where token_hash = ${tokenHash(kept)} and company_id = ${companyId}
        and revoked_at is null and superseded_at is null and used_count < max_uses
        and (expires_at is null or expires_at > now())`)
    if (known) return { id: known.id, token: kept }
  }
  const token = newLicenseToken()
  const id = randomUUID()
  await tx.db.insert(licenses).values({
    id,
    companyId,
    name: LICENSE_NAME,
    tokenHash: tokenHash(token),
    tokenHint: tokenHint(token),
    maxUses: LICENSE_USES,
    createdBy: userId,
  })
  return { id, token }
}

/** The server row by which the local agent's enrollment pairs: by hostname. */
async function ensureLocalServer(
  hub: Hub,
  tx: Tx,
  companyId: string,
  localHost: NonNullable<SiteOptions['localHost']>,
): Promise<string> {
  const [known] = await tx.db.execute<{ id: string }>(sql`
    select id from servers where company_id = ${companyId} and lower(hostname) = lower(${localHost.hostname}) and deleted_at is null`)
  if (known) return known.id
  const address = localHost.ipAddresses.find(ip => ip !== '127.0.0.1' && ip !== '::1') ?? null
  const [named] = await tx.db.execute<{ id: string }>(sql`
    select id from servers where company_id = ${companyId} and lower(name) = lower(${localHost.hostname}) and deleted_at is null`)
  const fields = { hostname: localHost.hostname, ip_address: address }
  if (!named) return insertServer(hub, tx, companyId, { name: localHost.hostname, ...fields }, 'manual')
  const [server] = await tx.db.select().from(servers).where(eq(servers.id, named.id))
  if (server) await changeServer(hub, tx, server, fields)
  return named.id
}

/** Creates what is missing and returns the whole set of secrets, so that the caller can keep them. */
export async function ensureFirstSite(hub: Hub, options: SiteOptions): Promise<FirstSite> {
  return inTransaction(hub.database.db, async tx => {
    await tx.db.execute(sql`select pg_advisory_xact_lock(7203145002)`)
    const companyId = await ensureCompany(hub, tx)
    await lockCompany(tx, companyId)
    const admin = await ensureAdmin(tx, companyId)
    const apiToken = await ensureApiToken(tx, options.kept.apiToken, admin.id)
    const collector = await ensureCollector(hub, tx, options)
    const matcher = await ensureMatcher(tx, options.kept.matcherToken)
    const license = await ensureLicense(tx, companyId, admin.id, options.kept.license)
    const localServerId = options.localHost ? await ensureLocalServer(hub, tx, companyId, options.localHost) : null
    const code = { companyId, serverId: localServerId, maxUses: 1, createdBy: admin.id }
    const scanCode = options.localHost?.needsScanCode ? (await insertCode(tx, code, hub.now())).code : null
    return {
      companyId,
      userEmail: ADMIN_EMAIL,
      userPassword: admin.password,
      apiToken,
      collectorId: collector.id,
      collectorToken: collector.token,
      matcherId: matcher.id,
      matcherToken: matcher.token,
      licenseId: license.id,
      license: license.token,
      localServerId,
      scanCode,
    }
  })
}

// Companies: how they begin (settings row, default rules, a personal licence), change plan, and end (decisions G-04,
// G-41).
import { randomUUID } from 'node:crypto'
import { eq, sql } from 'drizzle-orm'
import { limits } from '../../../core/limits.ts'
import { revokeAgents } from '../agents/agents.ts'
import { auditByHub } from '../audit/audit.ts'
import { purgeEverywhere, reloadCollectors } from '../collectors/collector-jobs.ts'
import type { Hub } from '../hub-context.ts'
import { newLicenseToken, tokenHash, tokenHint } from '../identity/token-forms.ts'
import { licensedUses, lockAgentQuota } from '../plans/agent-quota.ts'
import { applyRetention } from '../plans/apply-retention.ts'
import { effectivePlan } from '../plans/effective-plan.ts'
import { licenses, settings } from '../platform/db/schema.ts'
import { companies, type PlanOverrides } from '../platform/db/schema-identity.ts'
import { allowLongStatements, lockCompanies, lockCompany, type Tx, uuidList } from '../platform/db/transaction.ts'
import { invalidField, notFound } from '../platform/http/api-error.ts'
import { deleteCompanySecurity } from '../purge/security-rows.ts'
import { createDefaultRules } from '../rules/default-rules.ts'
import { applyScanQuotas } from '../security/scan-hosts/scan-quota.ts'
import { checkLevels } from './tree-depth.ts'

type NewCompany = {
  readonly name: string
  readonly parentId?: string | null
  readonly planCode?: string | null
  readonly overrides?: PlanOverrides
  readonly personal?: boolean
}

const slugOf = (name: string): string =>
  name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 60) || 'company'

async function freeSlug(tx: Tx, name: string): Promise<string> {
  const slug = slugOf(name)
  const taken = await tx.db.execute(sql`select 1 from companies where slug = ${slug}`)
  return taken.length === 0 ? slug : `${slug}-${randomUUID().slice(0, 8)}`
}

/** Creates a company with its settings, its default rules and, for a personal one, its licence. */
export async function createCompany(hub: Hub, tx: Tx, company: NewCompany): Promise<{ id: string; slug: string }> {
  const parentId = company.parentId ?? null
  let tokenRateMax: number | null = null
  if (parentId !== null) {
    await lockTrees(tx, [parentId])
    const [parent] = await tx.db.execute<{ token_rate_max: number | null }>(
      sql`select token_rate_max from companies where id = ${parentId} and deleted_at is null`,
    )
    if (!parent) throw invalidField('parent_id', 'unknown_reference')
    // A child inherits the operator's bound, so that its users cannot exceed it there.
    tokenRateMax = parent.token_rate_max
  }
  const id = randomUUID()
  const slug = await freeSlug(tx, company.name)
  await tx.db.insert(companies).values({
    id,
    name: company.name,
    slug,
    parentId,
    planCode: company.planCode ?? null,
    planOverrides: company.overrides ?? {},
    personal: company.personal ?? false,
    tokenRateMax,
  })
  if (parentId !== null) await checkLevels(tx, id)
  const plan = await effectivePlan(tx.db, id)
  await tx.db.insert(settings).values({ companyId: id, metricsRetentionEffectiveDays: plan.metricsRetentionDays })
  await createDefaultRules(tx, id, null)
  await reloadCollectors(hub, tx, 'rules')
  if (company.personal) await createPersonalLicense(tx, id)
  return { id, slug }
}

async function createPersonalLicense(tx: Tx, companyId: string): Promise<void> {
  const quota = await lockAgentQuota(tx, companyId)
  const left = quota.max === null ? limits.licenseUsesMax : quota.max - (await licensedUses(tx.db, quota))
  const token = newLicenseToken()
  await tx.db.insert(licenses).values({
    id: randomUUID(),
    companyId,
    name: 'Personal license',
    tokenHash: tokenHash(token),
    tokenHint: tokenHint(token),
    maxUses: Math.max(1, Math.min(left, limits.licenseUsesMax)),
  })
}

type PlanChange = {
  readonly planCode?: string | null
  readonly expiresAt?: Date | null
  readonly overrides?: PlanOverrides
}

/** Changes plan, expiry or single values of the plan, and applies the retention rule in the same transaction. */
export async function changePlan(hub: Hub, tx: Tx, companyId: string, change: PlanChange): Promise<void> {
  await lockCompany(tx, companyId)
  const [company] = await tx.db.select().from(companies).where(eq(companies.id, companyId))
  if (!company) throw notFound()
  if (change.planCode != null) {
    const known = await tx.db.execute(sql`select 1 from plans where code = ${change.planCode}`)
    if (known.length === 0) throw invalidField('plan', 'unknown_reference')
  }
  // A new plan has its own values: overrides of the old plan do not outlive it.
  const kept = change.planCode === undefined ? company.planOverrides : {}
  await tx.db
    .update(companies)
    .set({
      ...(change.planCode === undefined ? {} : { planCode: change.planCode, planExpiresAt: null }),
      ...(change.expiresAt === undefined ? {} : { planExpiresAt: change.expiresAt }),
      planOverrides: { ...kept, ...change.overrides },
    })
    .where(eq(companies.id, companyId))
  await applyRetention(hub, tx, companyId)
  await applyScanQuotas(hub, tx, companyId)
}

/** The root companies of the trees that contain these companies. */
export async function rootsOf(tx: Tx, companyIds: readonly string[]): Promise<string[]> {
  const rows = await tx.db.execute<{ id: string }>(sql`
    with recursive above as (
      select id, parent_id from companies where id = any(${uuidList(companyIds)}::uuid[])
      union select c.id, c.parent_id from companies c join above a on c.id = a.parent_id)
    select distinct id from above where parent_id is null order by id`)
  return rows.map(row => row.id)
}

/** Locks whole trees by their roots: of two moves within them the second one sees the result of the first. */
async function lockTrees(tx: Tx, companyIds: readonly string[]): Promise<void> {
  let locked: string[] = []
  for (let roots = await rootsOf(tx, companyIds); roots.some(id => !locked.includes(id)); ) {
    await lockCompanies(tx, roots)
    locked = roots
    // A concurrent move may have brought them below another root while this one waited.
    roots = await rootsOf(tx, companyIds)
  }
}

/** Moves a company below another one; its effective plan may change with it. */
export async function changeParent(hub: Hub, tx: Tx, companyId: string, parentId: string | null): Promise<void> {
  await lockTrees(tx, parentId === null ? [companyId] : [companyId, parentId])
  await lockCompany(tx, companyId)
  if (parentId !== null) {
    const cycle = await tx.db.execute(sql`
      with recursive tree as (select id from companies where id = ${companyId}
        union select c.id from companies c join tree t on c.parent_id = t.id)
      select 1 from tree where id = ${parentId}`)
    const known = await tx.db.execute(sql`select 1 from companies where id = ${parentId} and deleted_at is null`)
    if (cycle.length > 0 || known.length === 0) throw invalidField('parent_id', 'unknown_reference')
  }
  await tx.db.update(companies).set({ parentId }).where(eq(companies.id, companyId))
  if (parentId !== null) await checkLevels(tx, companyId)
  await applyRetention(hub, tx, companyId)
  await applyScanQuotas(hub, tx, companyId)
}

async function companyFamily(tx: Tx, companyId: string): Promise<{ id: string; name: string }[]> {
  const rows = await tx.db.execute<{ id: string; name: string }>(sql`
    with recursive tree as (
      select id, name, 0 as depth from companies where id = ${companyId}
      union all select c.id, c.name, t.depth + 1 from companies c join tree t on c.parent_id = t.id where t.depth < 32)
    select id, name from tree order by depth desc, id`)
  return [...rows]
}

/** Soft delete: tokens, sessions and agents stop working, data stay for 30 days. */
export async function deleteCompany(hub: Hub, tx: Tx, companyId: string): Promise<void> {
  await allowLongStatements(tx)
  for (const company of await companyFamily(tx, companyId)) {
    await tx.db.execute(sql`update companies set deleted_at = coalesce(deleted_at, now()) where id = ${company.id}`)
    const agents = await tx.db.execute<{ id: string }>(
      sql`select id from monitoring_agents where company_id = ${company.id} and state <> 'revoked'`,
    )
    await revokeAgents(
      hub,
      tx,
      agents.map(agent => agent.id),
      'company deleted',
    )
    const hosts = await tx.db.execute<{ host_id: string }>(
      sql`select host_id from scan_hosts where company_id = ${company.id}`,
    )
    tx.touch(
      'scan_hosts',
      hosts.map(host => host.host_id),
    )
    await tx.db.execute(
      sql`delete from sessions where user_id in (select id from users where company_id = ${company.id})`,
    )
  }
  await reloadCollectors(hub, tx, 'settings')
}

/**
 * Deletes the records of a company and its children for good, and queues one purge a company at the collectors. Rules,
 * silences and checks leave the feeds as tombstones first: they stay behind, without a company's data, until swept.
 */
export async function purgeCompany(hub: Hub, tx: Tx, companyId: string): Promise<string[]> {
  await allowLongStatements(tx)
  const family = await companyFamily(tx, companyId)
  if (family.length === 0) throw notFound()
  for (const { id, name } of family) {
    await lockCompany(tx, id)
    for (const feed of ['checks', 'rules', 'servers', 'silences'] as const) {
      const table = sql.identifier(feed === 'servers' ? feed : `monitoring_${feed}`)
      const rows = await tx.db.execute<{ id: string }>(sql`select id from ${table} where company_id = ${id}`)
      tx.leaveTombstones(
        feed,
        id,
        rows.map(row => row.id),
      )
    }
    await deleteCompanySecurity(tx, id)
    await tx.db.execute(sql`delete from companies where id = ${id}`)
    await auditByHub(tx, id, 'purge.requested', { type: 'company', id, name })
    await purgeEverywhere(hub, tx, { scope: 'company', company_id: id, id })
  }
  for (const kind of ['rules', 'silences', 'checks', 'settings'] as const) await reloadCollectors(hub, tx, kind)
  return family.map(company => company.id)
}

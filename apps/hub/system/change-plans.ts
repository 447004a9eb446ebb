// Plans (decision G-05): the list, and what a change of one or of a company's plan does to the companies on it.
import { Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import { auditRequest } from '../audit/audit.ts'
import { changesBetween } from '../audit/masked-changes.ts'
import { shownPlan } from '../companies/child-companies.ts'
import { changePlan } from '../companies/companies.ts'
import { type Company, findCompany, presentCompany } from '../companies/company-list.ts'
import { companyResponse } from '../identity/identity-response.ts'
import { applyRetention } from '../plans/apply-retention.ts'
import { type Executor, violatedUniqueIndex } from '../platform/db/connect.ts'
import type { PlanOverrides } from '../platform/db/schema-identity.ts'
import { allowLongStatements, inTransaction, type Tx } from '../platform/db/transaction.ts'
import { invalidField, notFound } from '../platform/http/api-error.ts'
import { instant, integer, optional, text } from '../platform/http/request-schema.ts'
import { amount, named, nullable, string } from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { applyScanQuotas } from '../security/scan-hosts/scan-quota.ts'

const COUNT_MAX = 10_000_000
const DAYS_MAX = 3650

export const planResponse = named('Plan', {
  code: string(),
  name: string(),
  agent_quota: nullable(amount()),
  metrics_retention_days: nullable(amount()),
  scan_hosts: nullable(amount()),
  scan_history_days: nullable(amount()),
  scan_min_interval_hours: amount(),
})
export const companyPlanResponse = named('CompanyPlan', {
  company: companyResponse,
  effective_plan: Type.Object({
    code: string(),
    agent_quota: nullable(amount()),
    metrics_retention_days: nullable(amount()),
  }),
})

/** null: no limit. */
const numbers = {
  agent_quota: optional(integer(0, COUNT_MAX)),
  metrics_retention_days: optional(integer(1, DAYS_MAX)),
  scan_hosts: optional(integer(0, COUNT_MAX)),
  scan_history_days: optional(integer(1, DAYS_MAX)),
  scan_min_interval_hours: Type.Optional(integer(1, 168)),
}
const code = () => Type.String({ pattern: '^[a-z0-9-]{1,32}$', examples: ['pro'] })
export const planCode = { plan: code() }
export const newPlanBody = Type.Object({ code: code(), name: text(255), ...numbers })
export const planBody = Type.Object({ code: Type.Optional(Type.String()), name: Type.Optional(text(255)), ...numbers })
export const companyPlanBody = Type.Object({
  plan: optional(Type.String({ maxLength: 32 })),
  expires_at: optional(instant()),
  overrides: optional(
    Type.Object({ agent_quota: numbers.agent_quota, metrics_retention_days: numbers.metrics_retention_days }),
  ),
})

type Plan = {
  code: string
  name: string
  agent_quota: number | null
  metrics_retention_days: number | null
  scan_hosts: number | null
  scan_history_days: number | null
  scan_min_interval_hours: number
}
type PlanInput = { readonly [K in keyof Plan]?: Plan[K] | undefined }

const COLUMNS = sql`code, name, agent_quota, metrics_retention_days, scan_hosts, scan_history_days, scan_min_interval_hours`

export async function listPlans(db: Executor): Promise<Plan[]> {
  return [
    ...(await db.execute<Plan>(
      sql`select ${COLUMNS} from plans order by agent_quota nulls last, metrics_retention_days nulls last, code`,
    )),
  ]
}

const subjectOf = (plan: Plan) => ({ type: 'plan', id: null, name: plan.code })

async function findPlan(db: Executor, planCode: string, locks = false): Promise<Plan> {
  const [row] = await db.execute<Plan>(
    sql`select ${COLUMNS} from plans where code = ${planCode} ${locks ? sql`for update` : sql``}`,
  )
  if (!row) throw notFound()
  return row
}

/** The plan of the path. Throws 404. */
export const planOfPath = ({ hub, params }: RouteContext): Promise<Plan> => findPlan(hub.database.db, params.plan ?? '')

async function write(tx: Tx, plan: Plan): Promise<void> {
  await tx.db.execute(sql`
    insert into plans (${COLUMNS})
    values (${plan.code}, ${plan.name}, ${plan.agent_quota}, ${plan.metrics_retention_days}, ${plan.scan_hosts},
      ${plan.scan_history_days}, ${plan.scan_min_interval_hours})
    on conflict (code) do update set name = excluded.name, agent_quota = excluded.agent_quota,
      metrics_retention_days = excluded.metrics_retention_days, scan_hosts = excluded.scan_hosts,
      scan_history_days = excluded.scan_history_days, scan_min_interval_hours = excluded.scan_min_interval_hours`)
}

export async function createPlan(context: RouteContext, given: PlanInput & Pick<Plan, 'code' | 'name'>): Promise<Plan> {
  const plan: Plan = {
    code: given.code,
    name: given.name,
    agent_quota: given.agent_quota ?? null,
    metrics_retention_days: given.metrics_retention_days ?? null,
    scan_hosts: given.scan_hosts ?? null,
    scan_history_days: given.scan_history_days ?? null,
    scan_min_interval_hours: given.scan_min_interval_hours ?? 24,
  }
  try {
    await inTransaction(context.hub.database.db, async tx => {
      await tx.db.execute(
        sql`insert into plans (code, name, scan_min_interval_hours) values (${plan.code}, ${plan.name}, ${plan.scan_min_interval_hours})`,
      )
      await write(tx, plan)
      await auditRequest(tx, context, 'plan.create', subjectOf(plan))
    })
  } catch (error) {
    if (violatedUniqueIndex(error) !== null) throw invalidField('code', 'taken')
    throw error
  }
  return plan
}

/** The companies whose own plan this is; of `free` also the roots that have none. */
async function companiesOn(tx: Tx, planCode: string): Promise<string[]> {
  const rows = await tx.db.execute<{ id: string }>(sql`
    select id from companies where deleted_at is null and (
      (plan_code = ${planCode} and coalesce(plan_expires_at > now(), true))
      or (${planCode} = 'free' and parent_id is null and (plan_code is null or plan_expires_at <= now())))
    order by id`)
  return rows.map(row => row.id)
}

/** Changes what is given, and applies it to each company on the plan in the same transaction. */
export async function changePlanValues(
  context: RouteContext,
  { code: planCode }: Plan,
  given: PlanInput,
): Promise<Plan> {
  const { hub } = context
  if (given.code !== undefined && given.code !== planCode) throw invalidField('code', 'immutable')
  return inTransaction(hub.database.db, async tx => {
    await allowLongStatements(tx)
    const before = await findPlan(tx.db, planCode, true)
    const present = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
    const after: Plan = { ...before, ...present }
    const changes = changesBetween(before, after)
    if (Object.keys(changes).length === 0) return before
    await write(tx, after)
    for (const id of await companiesOn(tx, planCode)) {
      await applyRetention(hub, tx, id)
      await applyScanQuotas(hub, tx, id)
    }
    await auditRequest(tx, context, 'plan.update', subjectOf(after), changes)
    return after
  })
}

/** The company of the path. Throws 404. */
export const companyOfPath = (context: RouteContext): Promise<Company> =>
  findCompany(context, context.params.company ?? '')

type Assignment = {
  readonly plan?: string | null | undefined
  readonly expires_at?: string | null | undefined
  readonly overrides?:
    | PlanOverrides
    | { readonly [K in keyof PlanOverrides]?: number | null | undefined }
    | null
    | undefined
}

/** Gives a company a plan, or takes it; what stood there before goes, overrides included. */
export async function assignPlan(context: RouteContext, company: Company, given: Assignment) {
  const { hub } = context
  const overrides: PlanOverrides = Object.fromEntries(
    Object.entries(given.overrides ?? {}).filter(([, value]) => value !== undefined),
  )
  await inTransaction(hub.database.db, async tx => {
    await changePlan(hub, tx, company.id, {
      planCode: given.plan ?? null,
      expiresAt: given.expires_at == null ? null : new Date(given.expires_at),
      overrides,
    })
    const changes = changesBetween(
      { plan: company.planCode, expires_at: company.planExpiresAt, overrides: company.planOverrides },
      { plan: given.plan ?? null, expires_at: given.expires_at ?? null, overrides },
    )
    await auditRequest(
      tx,
      context,
      'company.plan',
      { type: 'company', id: company.id, name: company.name },
      changes,
      company.id,
    )
  })
  return {
    company: presentCompany(await findCompany(context, company.id)),
    effective_plan: await shownPlan(context, company.id),
  }
}

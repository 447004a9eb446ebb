// The administrative commands of the hub (operating rules, decision G-01): companies, people, tokens, service accounts,
// servers. They work on the database alone; a running hub picks up what follows from them.
import { Type } from '@sinclair/typebox'
import type { Command } from 'commander'
import { eq, sql } from 'drizzle-orm'
import { parseDuration } from '../../../core/config/resolve.ts'
import { auditByHub } from '../audit/audit.ts'
import { changesBetween } from '../audit/masked-changes.ts'
import { newCollector } from '../collectors/routes.ts'
import { changePlan, createCompany, purgeCompany } from '../companies/companies.ts'
import { adminPermissions, createToken, createUser, revokeToken } from '../identity/accounts.ts'
import { checkAssignable } from '../identity/may-give-permissions.ts'
import { createCollector, createMatcher, rotateAdminToken, rotateService } from '../identity/service-accounts.ts'
import { servers, settings } from '../platform/db/schema.ts'
import { companies, type PlanOverrides, userCompanyGrants } from '../platform/db/schema-identity.ts'
import { inTransaction, lockCompany, type Tx } from '../platform/db/transaction.ts'
import { isUuid, parseBody, text } from '../platform/http/request-schema.ts'
import { checkAddress, newServer } from '../servers/server-fields.ts'
import { destroyServer, insertServer, trashServer } from '../servers/servers.ts'
import { expiryOf, numberOrNone, type Run, wholeNumber } from './output.ts'
import { addPasswordCommand, readPassword } from './password-command.ts'
import { addTwoFactorCommand } from './two-factor-command.ts'

const named = Type.Object({ name: text(255) })
const ADMIN_TOKEN = /^[!-~]{20,255}$/
const QUOTA_MAX = 1_000_000
const DAYS_MAX = 3650
const RATE_MAX = 1_000_000

const list = (text: string | undefined): string[] | null =>
  text === undefined
    ? null
    : text
        .split(',')
        .map(item => item.trim())
        .filter(item => item !== '')
const collect = (value: string, previous: readonly string[]): string[] => [...previous, value]

/** A name as the API takes one. Throws 422. */
const nameOf = async (name: string): Promise<string> => (await parseBody(named, { name })).name

/** The admin token that was piped in. Throws for what no header can hold, or anybody could guess. */
async function readAdminToken(): Promise<string> {
  const token = (await Bun.stdin.text()).trim()
  if (!ADMIN_TOKEN.test(token))
    throw new Error('the token on standard input must have 20 to 255 characters: letters, digits and signs of ASCII')
  return token
}

/** A company by id or slug. */
async function companyId(tx: Tx, text: string): Promise<string> {
  const rows = await tx.db.execute<{ id: string }>(
    isUuid(text)
      ? sql`select id from companies where id = ${text}`
      : sql`select id from companies where slug = ${text}`,
  )
  if (!rows[0]) throw new Error(`there is no company ${text}`)
  return rows[0].id
}

async function userByEmail(tx: Tx, email: string): Promise<{ id: string }> {
  const rows = await tx.db.execute<{ id: string }>(
    isUuid(email)
      ? sql`select id from users where id = ${email}`
      : sql`select id from users where lower(email) = lower(${email})`,
  )
  if (!rows[0]) throw new Error(`there is no user ${email}`)
  if (rows[1]) throw new Error(`${rows.length} companies have a user ${email}: give the id of the user instead`)
  return rows[0]
}

type PlanOptions = { plan?: string; agentQuota?: string; retentionDays?: string; expiresIn?: string }

function overridesOf(options: PlanOptions): PlanOverrides {
  return {
    ...(options.agentQuota === undefined
      ? {}
      : { agent_quota: numberOrNone(options.agentQuota, '--agent-quota', 0, QUOTA_MAX) }),
    ...(options.retentionDays === undefined
      ? {}
      : { metrics_retention_days: numberOrNone(options.retentionDays, '--retention-days', 1, DAYS_MAX) }),
  }
}

const QUOTA = ['--agent-quota <n>', 'agents that may be enrolled, or none for no limit'] as const
const RETENTION = ['--retention-days <n>', 'days that metrics are kept, or none for no limit'] as const

export function addCompanyCommands(program: Command, run: Run): void {
  const company = program.command('company').description('companies, the tenants')
  company
    .command('create')
    .description('add a company, with its default rules')
    .requiredOption('--name <name>', 'its name')
    .option('--parent <id>', 'the company it belongs to')
    .option('--plan <code>', 'its plan')
    .option(...QUOTA)
    .option(...RETENTION)
    .option('--personal', 'an account of one person, with one fixed license')
    .action((options: PlanOptions & { name: string; parent?: string; personal?: boolean }, command: Command) =>
      run(command, async (hub, print) => {
        const name = await nameOf(options.name)
        const made = await inTransaction(hub.database.db, async tx => {
          const parentId = options.parent === undefined ? null : await companyId(tx, options.parent)
          const company = await createCompany(hub, tx, {
            name,
            parentId,
            planCode: options.plan ?? null,
            overrides: overridesOf(options),
            personal: options.personal ?? false,
          })
          const subject = { type: 'company', id: company.id, name }
          await auditByHub(tx, parentId ?? company.id, 'company.create', subject)
          return company
        })
        print({ company_id: made.id, slug: made.slug })
      }),
    )
  company
    .command('list')
    .description('every company, with its plan')
    .action((_options: unknown, command: Command) =>
      run(command, async (hub, print) => {
        const rows = await hub.database.db
          .select({
            company_id: companies.id,
            name: companies.name,
            slug: companies.slug,
            parent_id: companies.parentId,
            plan: companies.planCode,
            plan_overrides: companies.planOverrides,
            metrics_retention_days: settings.metricsRetentionEffectiveDays,
            suspended_at: companies.suspendedAt,
            deleted_at: companies.deletedAt,
          })
          .from(companies)
          .leftJoin(settings, eq(settings.companyId, companies.id))
          .orderBy(companies.createdAt)
        print({ data: rows })
      }),
    )
  addPlanCommand(company, run)
  addLimitsCommand(company, run)
  addCompanyAccessCommands(company, run)
}

/** A company as the log shows it. */
async function companyRow(tx: Tx, id: string) {
  const [row] = await tx.db
    .select({
      name: companies.name,
      plan: companies.planCode,
      plan_expires_at: companies.planExpiresAt,
      plan_overrides: companies.planOverrides,
    })
    .from(companies)
    .where(eq(companies.id, id))
  if (!row) throw new Error(`there is no company ${id}`)
  return row
}

function addPlanCommand(company: Command, run: Run): void {
  company
    .command('plan')
    .description('change the plan, or single values of it')
    .argument('<id>', 'the company')
    .option('--plan <code>', 'its new plan; single values of the old one end with it')
    .option('--expires-in <time>', 'when the plan ends: 90d, 12h, 30s or never')
    .option(...QUOTA)
    .option(...RETENTION)
    .action((id: string, options: PlanOptions, command: Command) =>
      run(command, async (hub, print) => {
        const changed = await inTransaction(hub.database.db, async tx => {
          const known = await companyId(tx, id)
          const before = await companyRow(tx, known)
          await changePlan(hub, tx, known, {
            ...(options.plan === undefined ? {} : { planCode: options.plan }),
            ...(options.expiresIn === undefined
              ? {}
              : { expiresAt: expiryOf(options.expiresIn, hub.now(), parseDuration) }),
            overrides: overridesOf(options),
          })
          const { name, ...after } = await companyRow(tx, known)
          const changes = changesBetween({ ...before, name: undefined }, after)
          await auditByHub(tx, known, 'company.update', { type: 'company', id: known, name }, changes)
          return known
        })
        print({ company_id: changed })
      }),
    )
}

/** What people of a company may give; the operator's to say. */
function addLimitsCommand(company: Command, run: Run): void {
  company
    .command('limits')
    .description('bound what the people of a company may give')
    .argument('<id>', 'the company')
    .requiredOption('--token-rate <n>', "requests a minute that a token may be given, or none for the hub's bound")
    .action((id: string, options: { tokenRate: string }, command: Command) =>
      run(command, async (hub, print) => {
        const tokenRateMax = numberOrNone(options.tokenRate, '--token-rate', 1, RATE_MAX)
        const known = await inTransaction(hub.database.db, async tx => {
          const known = await companyId(tx, id)
          const [before] = await tx.db
            .select({ name: companies.name, tokenRateMax: companies.tokenRateMax })
            .from(companies)
            .where(eq(companies.id, known))
            .for('update')
          await tx.db.update(companies).set({ tokenRateMax }).where(eq(companies.id, known))
          const changes = { rate_max: { old: before?.tokenRateMax ?? null, new: tokenRateMax } }
          await auditByHub(
            tx,
            known,
            'company.update',
            { type: 'company', id: known, name: before?.name ?? null },
            changes,
          )
          return known
        })
        print({ company_id: known, token_rate: tokenRateMax })
      }),
    )
}

function addCompanyAccessCommands(company: Command, run: Run): void {
  company
    .command('grant')
    .description('let a person of the parent company work in a child company')
    .requiredOption('--user <email>', 'who may work in it')
    .requiredOption('--company <id>', 'a child company')
    .action((options: { user: string; company: string }, command: Command) =>
      run(command, async (hub, print) => {
        const granted = await inTransaction(hub.database.db, async tx => {
          const [user, company] = [await userByEmail(tx, options.user), await companyId(tx, options.company)]
          await tx.db.insert(userCompanyGrants).values({ userId: user.id, companyId: company }).onConflictDoNothing()
          const subject = { type: 'company', id: company, name: (await companyRow(tx, company)).name }
          await auditByHub(tx, company, 'company.grant', subject, { user_id: { old: null, new: user.id } })
          return { user_id: user.id, company_id: company }
        })
        print(granted)
      }),
    )
  for (const action of ['suspend', 'resume'] as const)
    company
      .command(action)
      .description(action === 'suspend' ? 'mark a company as suspended; its data stay' : 'end the suspension')
      .argument('<id>', 'the company')
      .action((id: string, _options: unknown, command: Command) =>
        run(command, async (hub, print) => {
          const known = await inTransaction(hub.database.db, async tx => {
            const company = await companyId(tx, id)
            const suspendedAt = action === 'suspend' ? new Date(hub.now()) : null
            const [before] = await tx.db.select().from(companies).where(eq(companies.id, company)).for('update')
            await tx.db.update(companies).set({ suspendedAt }).where(eq(companies.id, company))
            const changes = { suspended_at: { old: before?.suspendedAt ?? null, new: suspendedAt } }
            const subject = { type: 'company', id: company, name: before?.name ?? null }
            await auditByHub(tx, company, 'company.update', subject, changes)
            return company
          })
          print({ company_id: known })
        }),
      )
  company
    .command('purge')
    .description('delete a company for good, with all of its data')
    .argument('<id>', 'the company; its children go with it')
    .option('--yes', 'delete without asking')
    .action((id: string, _options: unknown, command: Command) =>
      run(command, async (hub, print) => {
        const purged = await inTransaction(hub.database.db, async tx => purgeCompany(hub, tx, await companyId(tx, id)))
        print({ company_id: purged.at(-1) ?? id, data: purged.map(each => ({ company_id: each })) })
      }),
    )
}

type UserOptions = {
  company: string
  email: string
  name: string
  permissions?: string
  admin?: boolean
  superAdmin?: boolean
  passwordStdin?: boolean
}

export function addUserCommands(program: Command, run: Run): void {
  const user = program.command('user').description('people')
  addPasswordCommand(user, run)
  addTwoFactorCommand(user, run)
  user
    .command('create')
    .description('add a person; without a password they use API tokens only')
    .requiredOption('--company <id>', 'their company')
    .requiredOption('--email <email>', 'their address')
    .requiredOption('--name <name>', 'their name')
    .option('--permissions <list>', 'permission keys, separated by commas')
    .option('--admin', 'every permission inside the company')
    .option('--super-admin', 'also manages collectors, plans and every company')
    .option('--password-stdin', 'read the password from standard input')
    .action((options: UserOptions, command: Command) =>
      run(command, async (hub, print) => {
        const name = await nameOf(options.name)
        const password = options.passwordStdin ? await readPassword() : null
        const isAdmin = options.admin || options.superAdmin
        const permissions = isAdmin ? adminPermissions : (list(options.permissions) ?? [])
        const made = await inTransaction(hub.database.db, async tx => {
          const company = await companyId(tx, options.company)
          const person = await createUser(tx, {
            companyId: company,
            email: options.email,
            name,
            permissions,
            superAdmin: options.superAdmin ?? false,
            password,
          })
          await auditByHub(tx, company, 'user.create', { type: 'user', id: person.id, name })
          return person
        })
        print({ user_id: made.id, email: made.email })
      }),
    )
}

type TokenOptions = {
  user: string
  permissions?: string
  expiresIn: string
  ipRange: string[]
  rate?: string
  name: string
}

export function addTokenCommands(program: Command, run: Run): void {
  const token = program.command('token').description('API tokens')
  token
    .command('create')
    .description('make an API token; it is shown once')
    .requiredOption('--user <email>', 'whose token')
    .option('--permissions <list>', "some of the user's permissions; all of them without it")
    .option('--expires-in <time>', '90d, 12h, 30s or never', '90d')
    .option('--ip-range <cidr>', 'where it may be used from; may be repeated', collect, [])
    .option('--rate <n>', 'requests a minute')
    .option('--name <name>', 'a name for it', 'token')
    .action((options: TokenOptions, command: Command) =>
      run(command, async (hub, print) => {
        const name = await nameOf(options.name)
        const permissions = list(options.permissions)
        if (permissions) checkAssignable(permissions, 'permissions', true)
        const made = await inTransaction(hub.database.db, async tx =>
          createToken(tx, {
            userId: (await userByEmail(tx, options.user)).id,
            name,
            permissions,
            ipRanges: options.ipRange.flatMap(item => list(item) ?? []),
            ratePerMinute: options.rate === undefined ? null : wholeNumber(options.rate, '--rate', 1, RATE_MAX),
            expiresAt: expiryOf(options.expiresIn, hub.now(), parseDuration),
          }),
        )
        print({ token_id: made.id, token: made.token })
      }),
    )
  token
    .command('revoke')
    .description('end a token at once')
    .argument('<id>', 'the token')
    .action((id: string, _options: unknown, command: Command) =>
      run(command, async (hub, print) => {
        if (!isUuid(id)) throw new Error(`there is no token ${id}`)
        await inTransaction(hub.database.db, tx => revokeToken(tx, id))
        print({ token_id: id })
      }),
    )
}

type ServiceOptions = { kind: string; name: string; baseUrl?: string; adminUrl?: string; ipRange: string[] }

export function addServiceCommands(program: Command, run: Run): void {
  const service = program.command('service').description('service accounts of collectors and matchers')
  service
    .command('create')
    .description('add a collector or a matcher; its tokens are shown once')
    .requiredOption('--kind <kind>', 'collector or matcher')
    .requiredOption('--name <name>', 'its name')
    .option('--base-url <url>', 'where agents reach the collector')
    .option('--admin-url <url>', "where the hub reaches the collector's admin API")
    .option('--ip-range <cidr>', 'where its token may be used from; may be repeated', collect, [])
    .action((options: ServiceOptions, command: Command) =>
      run(command, async (hub, print) => {
        const ipRanges = options.ipRange.flatMap(item => list(item) ?? [])
        if (options.kind === 'collector') {
          const { baseUrl, adminUrl } = options
          const given = await parseBody(newCollector, {
            name: options.name,
            base_url: baseUrl ?? null,
            admin_url: adminUrl ?? null,
          })
          const { name, base_url = null, admin_url = null } = given
          const input = { name, baseUrl: base_url, adminUrl: admin_url, ipRanges }
          const made = await inTransaction(hub.database.db, async tx => {
            const account = await createCollector(hub, tx, input)
            await auditByHub(tx, null, 'collector.create', { type: 'collector', id: account.id, name })
            return account
          })
          print({ collector_id: made.id, token: made.token, admin_token: made.adminToken })
          return
        }
        if (options.kind !== 'matcher') throw new Error('--kind must be collector or matcher')
        const name = await nameOf(options.name)
        // Without a range the matcher is taken to run beside the hub: its token never works from everywhere.
        const ranges = ipRanges.length > 0 ? ipRanges : ['127.0.0.0/8', '::1/128']
        const made = await inTransaction(hub.database.db, tx => createMatcher(tx, name, ranges))
        print({ matcher_id: made.id, token: made.token })
      }),
    )
  service
    .command('rotate')
    .description('replace the token; the old one ends at once')
    .argument('<id>', 'collector_id or matcher_id')
    .action((id: string, _options: unknown, command: Command) =>
      run(command, async (hub, print) => {
        print({ ...(await inTransaction(hub.database.db, tx => rotateService(tx, id))) })
      }),
    )
  service
    .command('rotate-admin-token')
    .description('replace the token of the admin API, which the collector is to be given')
    .argument('<id>', 'collector_id')
    .option('--token-stdin', 'read the token from standard input: one that the collector has been given already')
    .action((id: string, options: { tokenStdin?: boolean }, command: Command) =>
      run(command, async (hub, print) => {
        const given = options.tokenStdin ? await readAdminToken() : null
        const made = await inTransaction(hub.database.db, async tx => {
          const rotated = await rotateAdminToken(hub, tx, id, given)
          const changes = { admin_token: { old: '(hidden)', new: '(hidden)' } }
          await auditByHub(tx, null, 'collector.update', { type: 'collector', id, name: null }, changes)
          return rotated
        })
        print({ collector_id: made.id, ...(given === null ? { admin_token: made.adminToken } : {}) })
      }),
    )
}

type ServerOptions = {
  company: string
  name: string
  hostname?: string
  ip?: string[]
  environment?: string
  role?: string
  datacenter?: string
  subnet?: string
  tag?: string[]
}

export function addServerCommands(program: Command, run: Run): void {
  const server = program.command('server').description('servers')
  server
    .command('create')
    .description('add a server')
    .requiredOption('--company <id>', 'whose server')
    .requiredOption('--name <name>', 'its name')
    .option('--hostname <name>', 'by which an agent pairs')
    .option('--ip <address>', 'by which an agent pairs', collect, [])
    .option('--environment <name>')
    .option('--role <name>')
    .option('--datacenter <name>')
    .option('--subnet <id>')
    .option('--tag <tag>', 'may be repeated', collect, [])
    .action((options: ServerOptions, command: Command) =>
      run(command, async (hub, print) => {
        const input = await parseBody(newServer, {
          name: options.name,
          hostname: options.hostname ?? null,
          ip_address: options.ip?.[0] ?? null,
          environment: options.environment ?? null,
          role: options.role ?? null,
          datacenter: options.datacenter ?? null,
          subnet_id: options.subnet ?? null,
          tags: options.tag ?? [],
        })
        checkAddress(input)
        const id = await inTransaction(hub.database.db, async tx => {
          const company = await companyId(tx, options.company)
          await lockCompany(tx, company)
          const made = await insertServer(hub, tx, company, input, 'manual')
          await auditByHub(tx, company, 'server.create', { type: 'server', id: made, name: input.name })
          return made
        })
        print({ server_id: id })
      }),
    )
  server
    .command('delete')
    .description('put a server into the bin, or delete it for good')
    .argument('<id>', 'the server')
    .option('--permanent', 'delete it for good, with its data')
    .action((id: string, options: { permanent?: boolean }, command: Command) =>
      run(command, async (hub, print) => {
        if (!isUuid(id)) throw new Error(`there is no server ${id}`)
        await inTransaction(hub.database.db, async tx => {
          const [found] = await tx.db.select().from(servers).where(eq(servers.id, id))
          if (!found) throw new Error(`there is no server ${id}`)
          await lockCompany(tx, found.companyId)
          const audit = (action: string) =>
            auditByHub(tx, found.companyId, action, { type: 'server', id, name: found.name })
          if (options.permanent) {
            await destroyServer(hub, tx, found)
            await audit('server.delete_permanent')
            await audit('purge.requested')
          } else if (found.deletedAt === null) {
            await trashServer(hub, tx, found)
            await audit('server.delete')
          }
        })
        print({ server_id: id })
      }),
    )
}

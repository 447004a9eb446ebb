// Starting, showing and cancelling runs of commands.
import { randomUUID } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { desc, eq, sql } from 'drizzle-orm'
import { auditRequest } from '../../audit/audit.ts'
import { type Executor, violatedUniqueIndex } from '../../platform/db/connect.ts'
import { commandRuns } from '../../platform/db/schema.ts'
import { users } from '../../platform/db/schema-identity.ts'
import { inTransaction } from '../../platform/db/transaction.ts'
import { ApiError, invalid, invalidField, notFound, superAdminOnly } from '../../platform/http/api-error.ts'
import { words } from '../../platform/http/api-texts.ts'
import { type Asker, collection, equals, ofCompany } from '../../platform/http/collection.ts'
import { oneOf, schemaFaults, text, uuid } from '../../platform/http/request-schema.ts'
import {
  amount,
  anyObject,
  id,
  named,
  nullable,
  reference,
  string,
  time,
  wordOf,
} from '../../platform/http/response-schema.ts'
import type { RouteContext } from '../../platform/http/route.ts'
import { type CommandDefinition, commandDefinitions } from './command-definitions.ts'

const runStates = ['queued', 'running', 'done', 'failed', 'cancelled'] as const

export const commandResponse = named('Command', {
  name: string(),
  title: string(),
  level: wordOf(['company', 'system']),
  /** A JSON Schema. */
  parameters: anyObject(),
  dangerous: Type.Boolean(),
  timeout_seconds: amount(),
})

const runResponse = named('CommandRun', {
  id: id(),
  company_id: id(),
  command: string(),
  level: wordOf(['company', 'system']),
  parameters: anyObject(),
  state: wordOf(runStates),
  started_by: nullable(reference),
  created_at: time(),
  started_at: nullable(time()),
  finished_at: nullable(time()),
  progress: Type.Object({ done: amount(), total: nullable(amount()) }),
  output: string(),
  error: nullable(string()),
})

type RunRow = {
  readonly run: typeof commandRuns.$inferSelect
  readonly starter: { readonly id: string; readonly name: string } | null
}

/** Runs in a company; those for all stand in the company of who started them. */
const shownRuns = {
  table: commandRuns,
  filters: {
    command: equals(commandRuns.command, text(64)),
    state: equals(commandRuns.state, oneOf(runStates)),
    started_by: equals(commandRuns.startedBy, uuid()),
  },
  select: (db: Executor) =>
    db
      .select({ run: commandRuns, starter: { id: users.id, name: users.name } })
      .from(commandRuns)
      .leftJoin(users, eq(users.id, commandRuns.startedBy)),
  order: [desc(commandRuns.createdAt), desc(commandRuns.id)],
  response: runResponse,
  present: ({ run, starter }: RunRow) => ({
    id: run.id,
    company_id: run.companyId,
    command: run.command,
    level: run.level,
    parameters: run.parameters,
    state: run.state,
    started_by: starter,
    created_at: run.createdAt,
    started_at: run.startedAt,
    finished_at: run.finishedAt,
    progress: { done: run.progressDone, total: run.progressTotal },
    output: run.output,
    error: run.error,
  }),
}

const companyRuns = collection({
  ...shownRuns,
  scope: ofCompany(commandRuns.companyId, eq(commandRuns.level, 'company')),
})
const allRuns = collection({ ...shownRuns, scope: ofCompany(commandRuns.companyId) })
/** What a caller may know of: runs for all are shown to super administrators only. */
const runsFor = ({ caller }: Asker) => (caller.actsAsSuperAdmin ? allRuns : companyRuns)

export const runCollection = {
  ...companyRuns,
  read: (...[asker, ...asked]: Parameters<typeof companyRuns.read>) => runsFor(asker).read(asker, ...asked),
}
export const findRun = (context: RouteContext, id: string): Promise<RunRow> =>
  runsFor(context).find(context.hub.database.db, context.companyId, id)

export const presentCommand = ({ language }: RouteContext, definition: CommandDefinition) => ({
  name: definition.name,
  title: definition.title[language],
  level: definition.level,
  parameters: JSON.parse(JSON.stringify(definition.parameters)) as Readonly<Record<string, unknown>>,
  dangerous: definition.isDangerous,
  timeout_seconds: definition.timeoutSeconds,
})

const mayRun = ({ caller }: RouteContext, { level }: CommandDefinition): boolean =>
  level === 'company' || caller.actsAsSuperAdmin

/** The commands that the caller may run. */
export const allowedCommands = (context: RouteContext): readonly CommandDefinition[] =>
  commandDefinitions.filter(definition => mayRun(context, definition))

/** The command of the path. Throws 404 for an unknown one, 403 for one of all companies. */
export async function commandOfPath(context: RouteContext): Promise<CommandDefinition> {
  const found = commandDefinitions.find(({ name }) => name === context.params.command)
  if (!found) throw notFound()
  if (!mayRun(context, found)) throw superAdminOnly()
  return found
}

const subjectOf = (runId: string, command: string) => ({ type: 'command_run', id: runId, name: command })

type Given = {
  readonly parameters?: Readonly<Record<string, unknown>> | undefined
  readonly confirm?: boolean | undefined
}

/** Throws 409 with the run that is under way. */
async function refuseSecond(context: RouteContext, { name, level }: CommandDefinition): Promise<never> {
  const [known] = await context.hub.database.db.execute<{ id: string }>(sql`
    select id from system_command_runs where command = ${name} and state in ('queued', 'running')
      and (level = 'system' or company_id = ${context.companyId}) and level = ${level}`)
  throw new ApiError(409, 'conflict', words('command_under_way'), {
    members: known ? { run_id: known.id } : {},
  })
}

export async function startRun(context: RouteContext, definition: CommandDefinition, given: Given): Promise<RunRow> {
  const { hub, companyId, caller } = context
  const parameters = given.parameters ?? {}
  const faults = [...schemaFaults(definition.parameters, parameters)]
  if (faults.length > 0) throw invalid(Object.fromEntries(faults.map(([field, text]) => [`parameters.${field}`, text])))
  if (definition.isDangerous && given.confirm !== true) throw invalidField('confirm', 'confirm')
  const runId = randomUUID()
  try {
    await inTransaction(hub.database.db, async tx => {
      await tx.db.insert(commandRuns).values({
        id: runId,
        companyId,
        level: definition.level,
        command: definition.name,
        parameters,
        startedBy: caller.user.id,
        createdAt: new Date(hub.now()),
      })
      hub.jobs.enqueue(tx, [{ queue: 'system.commands', payload: { run_id: runId }, group: companyId }])
      await auditRequest(tx, context, 'command.run', subjectOf(runId, definition.name), {
        parameters: { old: null, new: parameters },
      })
    })
  } catch (error) {
    if (violatedUniqueIndex(error) !== null) return refuseSecond(context, definition)
    throw error
  }
  return findRun(context, runId)
}

/** Cancels a run: one that waits at once, one that runs at its next safe point. */
export async function cancelRun(context: RouteContext, { run }: RunRow): Promise<RunRow> {
  const { hub, companyId } = context
  await inTransaction(hub.database.db, async tx => {
    const { run: locked } = await runsFor(context).lock(tx, companyId, run.id)
    if (locked.state !== 'queued' && locked.state !== 'running')
      throw invalidField('state', 'state_refused', { state: locked.state })
    const waits = locked.state === 'queued'
    await tx.db
      .update(commandRuns)
      .set({ cancelAsked: true, ...(waits ? { state: 'cancelled', finishedAt: new Date(hub.now()) } : {}) })
      .where(eq(commandRuns.id, run.id))
    await auditRequest(tx, context, 'command.cancel', subjectOf(run.id, run.command), {
      parameters: { old: null, new: run.parameters },
    })
  })
  return findRun(context, run.id)
}

// The job that runs a command.
import { sql } from 'drizzle-orm'
import { errorInfo } from '../../../../core/error-info.ts'
import type { Hub } from '../../hub-context.ts'
import type { JobPayload } from '../../platform/jobs/jobs.ts'
import { commandDefinitions } from './command-definitions.ts'
import { CommandTask, RunEnded } from './command-task.ts'

type Begun = { command: string; company_id: string; parameters: Readonly<Record<string, unknown>> }

async function runCommand(hub: Hub, payload: JobPayload): Promise<void> {
  const { db } = hub.database
  const runId = String(payload.run_id)
  const [begun] = await db.execute<Begun>(sql`
    update system_command_runs set state = 'running', started_at = now(), hub_id = ${hub.processId}
    where id = ${runId} and state = 'queued' returning command, company_id, parameters`)
  // Cancelled meanwhile, or of a hub that was lost.
  if (!begun) return
  const definition = commandDefinitions.find(({ name }) => name === begun.command)
  const endsAtMs = hub.now() + (definition?.timeoutSeconds ?? 0) * 1000
  const task = new CommandTask(hub, runId, begun.company_id, begun.parameters, endsAtMs)
  let state: 'done' | 'failed' | 'cancelled' = 'done'
  let error: string | null = null
  try {
    if (!definition) throw new RunEnded('failed', 'this version of the hub does not know the command')
    await definition.run(task)
  } catch (thrown) {
    state = thrown instanceof RunEnded ? thrown.state : 'failed'
    error = thrown instanceof RunEnded ? thrown.message : 'an unexpected error: the log of the hub has it'
    if (!(thrown instanceof RunEnded))
      hub.log.error({ err: errorInfo(thrown), run_id: runId, command: begun.command }, 'a command failed')
  }
  await db.execute(sql`
    update system_command_runs set state = ${state}, error = ${state === 'failed' ? error : null}, output = ${task.said},
      finished_at = now() where id = ${runId} and state = 'running' and hub_id = ${hub.processId}`)
}

export function registerCommandJobs(hub: Hub): void {
  hub.jobs.register('system.commands', {
    handle: payload => runCommand(hub, payload),
    async onFailed(payload) {
      await hub.database.db.execute(sql`
        update system_command_runs set state = 'failed', finished_at = now(), error = 'the hub that ran it is gone'
        where id = ${String(payload.run_id)} and state in ('queued', 'running')`)
    },
  })
}

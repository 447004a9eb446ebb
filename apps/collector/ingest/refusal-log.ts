// Which agent is refused, and why, in the log: once in ten minutes for an agent and a code, since whoever is refused comes again.
import type { Logger } from 'pino'
import type { AgentRecord } from '../store/agent-record.ts'
import type { ApiError } from './answers.ts'

const PERIOD_MS = 600_000
const TOLD_MAX = 50_000

export class RefusalLog {
  /** Agent and code -> when it was last told, ms. */
  private readonly told = new Map<string, number>()

  constructor(
    private readonly log: Logger,
    private readonly nowMs: () => number,
  ) {}

  /** Returns the error that it was given. Faults of this side (5xx) are told where they arise. */
  note({ agentId, companyId, serverId }: AgentRecord, error: ApiError): ApiError {
    const key = `${agentId} ${error.code}`
    const nowMs = this.nowMs()
    if (error.status >= 500 || nowMs < (this.told.get(key) ?? 0) + PERIOD_MS) return error
    if (this.told.size >= TOLD_MAX) this.told.clear()
    this.told.set(key, nowMs)
    this.log.warn(
      { agent_id: agentId, company_id: companyId, server_id: serverId, status: error.status, code: error.code },
      `an agent is refused: ${error.message}`,
    )
    return error
  }
}

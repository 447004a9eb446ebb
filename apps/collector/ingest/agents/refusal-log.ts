// Logs which agent is refused and why, once in ten minutes for each agent and code, since a refused agent keeps
// retrying.
import type { Logger } from 'pino'
import type { ApiError } from '../../../http/api-error.ts'
import { BoundedMap } from '../../bounded-map.ts'
import type { AgentRecord } from '../../store/registry/agent-record.ts'

const PERIOD_MS = 600_000
const AGENTS_MAX = 50_000

/** The codes that were logged for an agent; they are not logged again before `untilMs`. */
export type ToldRefusals = { readonly untilMs: number; readonly codes: readonly string[] }
export const NOTHING_TOLD: ToldRefusals = { untilMs: 0, codes: [] }

export class RefusalLog {
  /** Agents without a session, which are not authenticated. */
  private readonly strangers = new BoundedMap<string, ToldRefusals>(AGENTS_MAX)
  private fullBusToldUntilMs = 0

  constructor(
    private readonly log: Logger,
    private readonly nowMs: () => number,
  ) {}

  /**
   * Logs a refusal of an agent with a session; the logged codes are part of the session and move with it between
   * threads. Returns the error.
   */
  note(session: { readonly record: AgentRecord; told: ToldRefusals }, error: ApiError): ApiError {
    session.told = this.tell(session.record, session.told, error)
    return error
  }

  /** Logs a refusal of an agent that is not authenticated. */
  noteStranger(record: AgentRecord, error: ApiError): void {
    const told = this.tell(record, this.strangers.get(record.agentId) ?? NOTHING_TOLD, error)
    this.strangers.set(record.agentId, told)
  }

  /** Logs that the bus is at its bound, once for all agents. */
  noteFullBus(): void {
    const nowMs = this.nowMs()
    if (nowMs < this.fullBusToldUntilMs) return
    this.fullBusToldUntilMs = nowMs + PERIOD_MS
    this.log.warn(
      'the bus is full (bus.max_bytes, bus.max_age, or the disk): agents are told to keep their batches until the worker has caught up',
    )
  }

  /** Faults of the collector (5xx) are logged where they arise. */
  private tell({ agentId, companyId, serverId }: AgentRecord, told: ToldRefusals, error: ApiError): ToldRefusals {
    const nowMs = this.nowMs()
    const { untilMs, codes } = nowMs < told.untilMs ? told : { untilMs: nowMs + PERIOD_MS, codes: [] }
    if (error.status >= 500 || codes.includes(error.code)) return told
    this.log.warn(
      { agent_id: agentId, company_id: companyId, server_id: serverId, status: error.status, code: error.code },
      `an agent is refused: ${error.message}`,
    )
    return { untilMs, codes: [...codes, error.code] }
  }
}

// Which agent is refused, and why, in the log: once in ten minutes for an agent and a code, since whoever is refused
// comes again.
import type { Logger } from 'pino'
import { BoundedMap } from '../../bounded-map.ts'
import type { AgentRecord } from '../../store/registry/agent-record.ts'
import type { ApiError } from '../listener/responses.ts'

const PERIOD_MS = 600_000
const AGENTS_MAX = 50_000

/** The codes that the log has of an agent, until an instant. */
export type ToldRefusals = { readonly untilMs: number; readonly codes: readonly string[] }
export const NOTHING_TOLD: ToldRefusals = { untilMs: 0, codes: [] }

export class RefusalLog {
  /** Of agents that have no session: they are not let in. */
  private readonly strangers = new BoundedMap<string, ToldRefusals>(AGENTS_MAX)
  private fullBusToldUntilMs = 0

  constructor(
    private readonly log: Logger,
    private readonly nowMs: () => number,
  ) {}

  /** A refusal of an agent that has a session; what was told goes with it from thread to thread. Returns the error. */
  note(session: { readonly record: AgentRecord; told: ToldRefusals }, error: ApiError): ApiError {
    session.told = this.tell(session.record, session.told, error)
    return error
  }

  /** A refusal of an agent that is not let in. */
  noteStranger(record: AgentRecord, error: ApiError): void {
    const told = this.tell(record, this.strangers.get(record.agentId) ?? NOTHING_TOLD, error)
    this.strangers.set(record.agentId, told)
  }

  /** The bus is at its bound, for whoever sends: said once for all agents. */
  noteFullBus(): void {
    const nowMs = this.nowMs()
    if (nowMs < this.fullBusToldUntilMs) return
    this.fullBusToldUntilMs = nowMs + PERIOD_MS
    this.log.warn(
      'the bus is full (bus.max_bytes, bus.max_age, or the disk): agents are told to keep their batches until the worker has caught up',
    )
  }

  /** Faults of this side (5xx) are told where they arise. */
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

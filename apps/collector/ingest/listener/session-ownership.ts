// The session of an agent in a listener thread. Rates and series of an agent are owned by exactly one thread at a time:
// the one that served its last batch.
import { AgentSeries, type AgentSeriesState } from '../../../../core/wire/agent-series.ts'
import type { AgentRecord } from '../../store/registry/agent-record.ts'
import { AgentSession, type Etag } from '../agents/agent-session.ts'
import type { NotedWarning } from '../agents/agent-statement.ts'
import type { ToldRefusals } from '../agents/refusal-log.ts'
import type { SharedCompanySeries } from './agent-directory.ts'

/** Whether this thread owns an agent's state. */
type Ownership = 'remote' | 'acquiring' | 'owned' | 'releasing'

/** The state of an agent in transfer from one thread to another. */
export type AgentState = {
  readonly companyId: string
  readonly serverId: string
  /** The index of the company that counts the series. */
  readonly company: number
  readonly series: AgentSeriesState
  readonly rateFullAtMs: number
  readonly bytesRateFullAtMs: number
  readonly mustAnnounce: boolean
  readonly announcedUpToMs: number
  readonly logAtMs: number
  readonly told: ToldRefusals
  readonly warning: NotedWarning
}

/** The memory of a state, which is transferred with the message. */
export const transferOf = ({ series: { words } }: AgentState): ArrayBuffer[] =>
  words.length === 0 ? [] : [words.buffer]

export class ThreadSession extends AgentSession {
  ownership: Ownership = 'remote'
  /** Resolves when the state was acquired or released, or when the caller must try again. */
  move: PromiseWithResolvers<void> | null = null
  /** Threads that asked for the state, in the order of their requests. */
  readonly waiters: number[] = []
  isEtagStale = false

  constructor(
    /** The index of the agent in the directory. */
    readonly agentIndex: number,
    record: AgentRecord,
    public company: SharedCompanySeries,
    etag: Etag,
    nowMs: number,
  ) {
    super(record, company, nowMs)
    this.etag = etag
    this.isOwned = false
  }

  /** Batches may be admitted here from now on. */
  own(): void {
    this.ownership = 'owned'
    this.isOwned = true
    this.endTransfer()
  }

  startTransfer(ownership: 'acquiring' | 'releasing'): void {
    this.ownership = ownership
    this.isOwned = false
    this.move = Promise.withResolvers()
  }

  release(): void {
    this.ownership = 'remote'
    this.isOwned = false
    this.endTransfer()
  }

  private endTransfer(): void {
    const { move } = this
    this.move = null
    move?.resolve()
  }

  /** Starts with an empty state, because no thread has one of the agent. */
  startFresh(nowMs: number): void {
    this.series = new AgentSeries(this.company)
    this.metricsRate.restore(0)
    this.bytesRate.restore(0)
    this.announceAnew(nowMs)
    this.own()
  }

  detach(): AgentState {
    const { companyId, serverId } = this.record
    return {
      companyId,
      serverId,
      company: this.company.company,
      series: this.series.detach(),
      rateFullAtMs: this.metricsRate.fullAtMs,
      bytesRateFullAtMs: this.bytesRate.fullAtMs,
      mustAnnounce: this.mustAnnounce,
      announcedUpToMs: this.announcedUpToMs,
      logAtMs: this.logAtMs,
      told: this.told,
      warning: this.statement.detach(),
    }
  }

  attach(state: AgentState): void {
    this.metricsRate.restore(state.rateFullAtMs)
    this.bytesRate.restore(state.bytesRateFullAtMs)
    this.mustAnnounce = state.mustAnnounce
    this.announcedUpToMs = state.announcedUpToMs
    this.logAtMs = state.logAtMs
    this.told = state.told
    this.statement.attach(state.warning)
    this.series = AgentSeries.of(this.company, state.series)
    this.own()
  }

  /** The agent moved to another server: its series start empty. */
  startSeriesAnew(company: SharedCompanySeries): void {
    if (this.isOwned || this.ownership === 'releasing') this.series.release()
    this.company = company
    this.series = new AgentSeries(company)
  }
}

// What ingest knows of an agent that sends to it: its record, its known series, its rates, when it was last seen.
// Sessions follow the registry: a revoked or removed agent loses its session, and an agent that moved to another server
// gets a new one.
import { sha256Words } from '../../../../core/series/hash.ts'
import { AgentSeries, type CompanySeries, OwnCompanySeries } from '../../../../core/wire/agent-series.ts'
import { RateBucket } from '../../../../core/wire/rate-bucket.ts'
import type { AgentRecord } from '../../store/registry/agent-record.ts'
import type { AgentChange, AgentRegistry } from '../../store/registry/registry.ts'
import { AgentStatement } from './agent-statement.ts'
import { seriesToAnnounce } from './announce-series-again.ts'
import { NOTHING_TOLD, type ToldRefusals } from './refusal-log.ts'

/** An agent silent for this long has no active series; its session is dropped. */
export const SESSION_IDLE_MS = 3_600_000

/** An ETag as it is sent: text for headers, bytes for acknowledgements. */
export type Etag = { readonly text: string; readonly bytes: Uint8Array }

export class AgentSession {
  record: AgentRecord
  series: AgentSeries
  isClosed = false
  /**
   * True while this thread may admit batches of the agent; false once the session is closed or another thread owns it.
   */
  isOwned = true
  /** Batches whose publish the bus has not answered yet. */
  publishing = 0
  /** Called when `publishing` reaches 0, for a transfer that waits for it. */
  whenIdle: (() => void) | null = null
  readonly metricsRate = new RateBucket()
  /** The rate of inflated bytes. */
  readonly bytesRate = new RateBucket()
  readonly configRate = new RateBucket()
  readonly inventoryRate = new RateBucket()
  lastSeenAtMs = 0
  /** The hub has not been told of the agent's last activity. */
  isUnreported = false
  agentVersion = ''
  protoVersion = 0
  /** What it says of itself. */
  readonly statement = new AgentStatement()
  /** The ETag of its config; null when it must be computed. */
  etag: Etag | null = null
  /** Entries with new series whose publish the bus has not answered yet. */
  newSeriesInFlight = 0
  /** All definitions must be announced again, because a publish with new ones was refused. */
  mustAnnounce = false
  /** The bus has all announcements that were due before this instant. */
  announcedUpToMs: number
  /** Shifts the turns of this agent against those of others. */
  private readonly turnShift: number
  /** Warnings of this agent are logged again from this instant on. */
  logAtMs = 0
  told: ToldRefusals = NOTHING_TOLD

  constructor(record: AgentRecord, company: CompanySeries, nowMs: number) {
    this.record = record
    this.series = new AgentSeries(company)
    this.turnShift = sha256Words(record.agentId).lo
    this.announcedUpToMs = nowMs
  }

  /** Sets which definitions a batch of now announces again; true for all. */
  setAnnouncements(nowMs: number): boolean {
    const due = seriesToAnnounce(this.announcedUpToMs, nowMs)
    const isAll = this.mustAnnounce || this.newSeriesInFlight > 0 || due.isAll
    this.series.announce(isAll, due.from + this.turnShift, due.turns)
    return isAll
  }

  /** The bus has what a batch of this instant announced. */
  announced(atMs: number, isAll: boolean): void {
    if (isAll) this.mustAnnounce = false
    this.announcedUpToMs = Math.max(this.announcedUpToMs, atMs)
  }

  /** The series start empty: each is announced as a new one. */
  announceAnew(nowMs: number): void {
    this.mustAnnounce = false
    this.announcedUpToMs = nowMs
  }
}

export class Sessions {
  private readonly byAgent = new Map<string, AgentSession>()
  private readonly companies = new Map<string, OwnCompanySeries>()
  private readonly registry: AgentRegistry
  private readonly stopListening: () => void

  constructor(registry: AgentRegistry) {
    this.registry = registry
    this.stopListening = registry.onChange(changes => this.follow(changes))
  }

  /** The session of an agent, made at its first call. */
  of(record: AgentRecord, nowMs: number): AgentSession {
    let session = this.byAgent.get(record.agentId)
    if (!session) {
      session = new AgentSession(record, this.companyOf(record.companyId), nowMs)
      this.byAgent.set(record.agentId, session)
    }
    return session
  }

  values(): IterableIterator<AgentSession> {
    return this.byAgent.values()
  }

  /** Series active within the last hour, of all agents. */
  activeSeries(): number {
    let total = 0
    for (const company of this.companies.values()) total += company.inUse
    return total
  }

  /** Drops sessions of silent agents and silent series. */
  sweep(nowMs: number): void {
    const nowSeconds = Math.floor(nowMs / 1000)
    for (const session of this.byAgent.values()) {
      if (nowMs - session.lastSeenAtMs < SESSION_IDLE_MS || session.isUnreported) session.series.expire(nowSeconds)
      else if (session.lastSeenAtMs > 0) this.close(session)
    }
  }

  /** The set of checks changed: every ETag must be computed again. */
  forgetEtags(): void {
    for (const session of this.byAgent.values()) session.etag = null
  }

  stop(): void {
    this.stopListening()
  }

  private companyOf(companyId: string): CompanySeries {
    let company = this.companies.get(companyId)
    if (!company) {
      company = new OwnCompanySeries()
      this.companies.set(companyId, company)
    }
    return company
  }

  private close(session: AgentSession): void {
    session.isClosed = true
    session.isOwned = false
    session.series.release()
    this.byAgent.delete(session.record.agentId)
  }

  private follow(changes: readonly AgentChange[]): void {
    for (const { agentId, before, record } of changes) {
      // Checks go to the latest agent of a server alone: a change of one agent may concern the others of its server.
      for (const serverId of new Set([before?.serverId, record?.serverId]))
        if (serverId)
          for (const other of this.registry.agentsOfServer(serverId)) {
            const session = this.byAgent.get(other.agentId)
            if (session) session.etag = null
          }
      const session = this.byAgent.get(agentId)
      if (!session) continue
      const isMoved =
        record && (record.serverId !== session.record.serverId || record.companyId !== session.record.companyId)
      if (!record || record.state === 'revoked') {
        this.close(session)
        continue
      }
      if (isMoved) {
        session.series.release()
        session.series = new AgentSeries(this.companyOf(record.companyId))
      }
      session.record = record
      session.etag = null
    }
  }
}

// The agents that listener threads know, as the main thread keeps them: their places in the directory, and when the hub last heard of
// them. Follows the registry: every change of such an agent is news for the threads.
import type { SeenAgent } from '../../hub-link/report-seen.ts'
import type { AgentRecord } from '../../store/registry/agent-record.ts'
import type { AgentChange, AgentRegistry } from '../../store/registry/registry.ts'
import { DIRECTORY_PLACES, type Directory } from '../listener/agent-directory.ts'
import type { AgentNews, KnownAgent } from '../listener/thread-messages.ts'
import type { AgentConfigs } from './agent-configs.ts'
import type { AuthFailure, Identifier } from './authenticate.ts'

/** A place that an agent left is given to another one only when no thread can still be handling a request of the first. */
const REUSE_AFTER_MS = 600_000

class PlacedAgent implements SeenAgent {
  agentVersion = ''
  protoVersion = 0
  private reportedAtMs = 0

  constructor(
    readonly place: number,
    public company: number,
    public record: AgentRecord,
    private readonly directory: Directory,
  ) {}

  get lastSeenAtMs(): number {
    return this.directory.lastSeenAtMs(this.place)
  }

  get isSeenNews(): boolean {
    return this.lastSeenAtMs > this.reportedAtMs
  }

  set isSeenNews(isNews: boolean) {
    this.reportedAtMs = isNews ? 0 : this.lastSeenAtMs
  }
}

export type KnownAgentsParts = {
  readonly registry: AgentRegistry
  readonly identifier: Identifier
  readonly configs: AgentConfigs
  readonly directory: Directory
  readonly nowMs: () => number
  readonly onNews: (agents: readonly AgentNews[]) => void
}

export class KnownAgents {
  private readonly byId = new Map<string, PlacedAgent>()
  private readonly byPlace = new Map<number, PlacedAgent>()
  private readonly companies = new Map<string, number>()
  private placesUsed = 0
  private readonly left: { readonly place: number; readonly atMs: number }[] = []
  private readonly stopListening: () => void

  constructor(private readonly parts: KnownAgentsParts) {
    this.stopListening = parts.registry.onChange(changes => this.follow(changes))
  }

  values(): IterableIterator<SeenAgent> {
    return this.byId.values()
  }

  /** Series active within the last hour, of all agents. */
  activeSeries(): number {
    let total = 0
    for (const company of this.companies.values()) total += this.parts.directory.seriesOf(company).inUse
    return total
  }

  /** Lets the agent of a token in, or says why not. `answer` is called in the same step as the look: news come after it. */
  async identify(tokenHash: string | null, answer: (found: KnownAgent | AuthFailure) => void): Promise<void> {
    const { identifier } = this.parts
    let record = await identifier.identify(tokenHash)
    while (typeof record !== 'string' && !identifier.isCurrent(record)) record = await identifier.identify(tokenHash)
    answer(typeof record === 'string' ? record : this.know(record))
  }

  private know(record: AgentRecord): KnownAgent | AuthFailure {
    const agent = this.placeOf(record)
    if (!agent) return 'unavailable'
    const { place, company } = agent
    return { place, company, record, etag: this.parts.configs.etagFor(record).text }
  }

  etagAt(place: number): string | null {
    const agent = this.byPlace.get(place)
    return agent ? this.parts.configs.etagFor(agent.record).text : null
  }

  noteVersion(place: number, agentVersion: string, protoVersion: number): void {
    const agent = this.byPlace.get(place)
    if (!agent) return
    agent.agentVersion = agentVersion
    agent.protoVersion = protoVersion
  }

  stop(): void {
    this.stopListening()
  }

  /** The place of an agent; undefined when the directory is full. */
  private placeOf(record: AgentRecord): PlacedAgent | undefined {
    const held = this.byId.get(record.agentId)
    if (held) return held
    const company = this.companyOf(record.companyId)
    const place = this.freePlace()
    if (company === null || place === null) return undefined
    this.parts.directory.noteSeen(place, 0)
    return this.put(new PlacedAgent(place, company, record, this.parts.directory))
  }

  private put(agent: PlacedAgent): PlacedAgent {
    this.byId.set(agent.record.agentId, agent)
    this.byPlace.set(agent.place, agent)
    return agent
  }

  private companyOf(companyId: string): number | null {
    let company = this.companies.get(companyId)
    if (company === undefined) {
      if (this.companies.size === DIRECTORY_PLACES) return null
      company = this.companies.size
      this.companies.set(companyId, company)
    }
    return company
  }

  private freePlace(): number | null {
    const oldest = this.left[0]
    if (oldest && this.parts.nowMs() - oldest.atMs >= REUSE_AFTER_MS) {
      this.left.shift()
      return oldest.place
    }
    return this.placesUsed < DIRECTORY_PLACES ? this.placesUsed++ : null
  }

  private follow(changes: readonly AgentChange[]): void {
    const news: AgentNews[] = []
    for (const { agentId, before, record } of changes) {
      const agent = this.byId.get(agentId)
      if (agent) news.push(this.change(agent, record))
      // Checks go to the latest agent of a machine alone: a change of one agent may concern the others of its machine.
      for (const serverId of new Set([before?.serverId, record?.serverId]))
        if (serverId) this.addOthers(serverId, agentId, news)
    }
    if (news.length > 0) this.parts.onNews(news)
  }

  private addOthers(serverId: string, agentId: string, news: AgentNews[]): void {
    for (const other of this.parts.registry.agentsOfServer(serverId)) {
      const agent = other.agentId === agentId ? undefined : this.byId.get(other.agentId)
      if (agent) news.push({ place: agent.place, company: agent.company, record: agent.record })
    }
  }

  private change(agent: PlacedAgent, record: AgentRecord | null): AgentNews {
    const { place } = agent
    const company = record && record.state !== 'revoked' ? this.companyOf(record.companyId) : null
    if (!record || company === null) {
      this.byId.delete(agent.record.agentId)
      this.byPlace.delete(place)
      this.left.push({ place, atMs: this.parts.nowMs() })
      return { place, company: agent.company, record: null }
    }
    agent.record = record
    agent.company = company
    return { place, company, record }
  }
}

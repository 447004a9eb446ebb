// The main thread's list of the agents that listener threads know, with their indexes in the directory and what was
// reported to the hub. It follows the registry and broadcasts every change of such an agent to the threads.
import type { SeenAgent } from '../../hub-link/report-seen.ts'
import type { AgentRecord } from '../../store/registry/agent-record.ts'
import type { AgentChange, AgentRegistry } from '../../store/registry/registry.ts'
import { DIRECTORY_SLOTS, type Directory } from '../listener/agent-directory.ts'
import type { AgentUpdate, KnownAgent } from '../listener/thread-messages.ts'
import type { AgentConfigs } from './agent-configs.ts'
import type { AuthFailure, Identifier } from './authenticate.ts'

/**
 * The index of a removed agent is reused only after this time, when no thread can still be handling a request of that
 * agent.
 */
const REUSE_AFTER_MS = 600_000

class IndexedAgent implements SeenAgent {
  agentVersion = ''
  protoVersion = 0
  private reportedAtMs = 0
  private lastWarning = ''
  private lastWarningAtMs = 0

  constructor(
    readonly agentIndex: number,
    public company: number,
    public record: AgentRecord,
    private readonly directory: Directory,
  ) {}

  get lastSeenAtMs(): number {
    return this.directory.lastSeenAtMs(this.agentIndex)
  }

  get statement(): SeenAgent['statement'] {
    const { agentIndex, directory, lastWarning, lastWarningAtMs } = this
    return {
      bufferBytes: directory.bufferBytes(agentIndex),
      bufferBatches: directory.bufferBatches(agentIndex),
      lastWarning,
      lastWarningAtMs,
    }
  }

  noteWarning(text: string, atMs: number): void {
    if (atMs < this.lastWarningAtMs) return
    this.lastWarning = text
    this.lastWarningAtMs = atMs
    // It may come after a report that took the batch for reported.
    this.isUnreported = true
  }

  get isUnreported(): boolean {
    return this.lastSeenAtMs > this.reportedAtMs
  }

  set isUnreported(isNews: boolean) {
    this.reportedAtMs = isNews ? 0 : this.lastSeenAtMs
  }
}

type KnownAgentsParts = {
  readonly registry: AgentRegistry
  readonly identifier: Identifier
  readonly configs: AgentConfigs
  readonly directory: Directory
  readonly nowMs: () => number
  readonly onUpdate: (agents: readonly AgentUpdate[]) => void
}

export class KnownAgents {
  private readonly byId = new Map<string, IndexedAgent>()
  private readonly byIndex = new Map<number, IndexedAgent>()
  private readonly companies = new Map<string, number>()
  private indexesUsed = 0
  private readonly left: { readonly agentIndex: number; readonly atMs: number }[] = []
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

  /**
   * Authenticates the agent of a token, or gives the reason why not. `answer` is called in the same step as the
   * look-up, so that later changes reach the thread after it.
   */
  async identify(tokenHash: string | null, answer: (found: KnownAgent | AuthFailure) => void): Promise<void> {
    const { identifier } = this.parts
    let record = await identifier.identify(tokenHash)
    while (typeof record !== 'string' && !identifier.isCurrent(record)) record = await identifier.identify(tokenHash)
    answer(typeof record === 'string' ? record : this.know(record))
  }

  private know(record: AgentRecord): KnownAgent | AuthFailure {
    const agent = this.indexedAgent(record)
    if (!agent) return 'unavailable'
    const { agentIndex, company } = agent
    return { agentIndex, company, record, etag: this.parts.configs.etagFor(record).text }
  }

  etagAt(agentIndex: number): string | null {
    const agent = this.byIndex.get(agentIndex)
    return agent ? this.parts.configs.etagFor(agent.record).text : null
  }

  noteVersion(agentIndex: number, agentVersion: string, protoVersion: number): void {
    const agent = this.byIndex.get(agentIndex)
    if (!agent) return
    agent.agentVersion = agentVersion
    agent.protoVersion = protoVersion
  }

  noteWarning(agentIndex: number, text: string, atMs: number): void {
    this.byIndex.get(agentIndex)?.noteWarning(text, atMs)
  }

  stop(): void {
    this.stopListening()
  }

  /** The agent with its index in the directory; undefined when the directory is full. */
  private indexedAgent(record: AgentRecord): IndexedAgent | undefined {
    const held = this.byId.get(record.agentId)
    if (held) return held
    const company = this.companyOf(record.companyId)
    const agentIndex = this.freeIndex()
    if (company === null || agentIndex === null) return undefined
    this.parts.directory.noteSeen(agentIndex, 0)
    this.parts.directory.noteBuffer(agentIndex, -1, 0)
    return this.put(new IndexedAgent(agentIndex, company, record, this.parts.directory))
  }

  private put(agent: IndexedAgent): IndexedAgent {
    this.byId.set(agent.record.agentId, agent)
    this.byIndex.set(agent.agentIndex, agent)
    return agent
  }

  private companyOf(companyId: string): number | null {
    let company = this.companies.get(companyId)
    if (company === undefined) {
      if (this.companies.size === DIRECTORY_SLOTS) return null
      company = this.companies.size
      this.companies.set(companyId, company)
    }
    return company
  }

  private freeIndex(): number | null {
    const oldest = this.left[0]
    if (oldest && this.parts.nowMs() - oldest.atMs >= REUSE_AFTER_MS) {
      this.left.shift()
      return oldest.agentIndex
    }
    return this.indexesUsed < DIRECTORY_SLOTS ? this.indexesUsed++ : null
  }

  private follow(changes: readonly AgentChange[]): void {
    const news: AgentUpdate[] = []
    for (const { agentId, before, record } of changes) {
      const agent = this.byId.get(agentId)
      if (agent) news.push(this.change(agent, record))
      // Checks go to the latest agent of a server alone: a change of one agent may concern the others of its server.
      for (const serverId of new Set([before?.serverId, record?.serverId]))
        if (serverId) this.addOthers(serverId, agentId, news)
    }
    if (news.length > 0) this.parts.onUpdate(news)
  }

  private addOthers(serverId: string, agentId: string, news: AgentUpdate[]): void {
    for (const other of this.parts.registry.agentsOfServer(serverId)) {
      const agent = other.agentId === agentId ? undefined : this.byId.get(other.agentId)
      if (agent) news.push({ agentIndex: agent.agentIndex, company: agent.company, record: agent.record })
    }
  }

  private change(agent: IndexedAgent, record: AgentRecord | null): AgentUpdate {
    const { agentIndex } = agent
    const company = record && record.state !== 'revoked' ? this.companyOf(record.companyId) : null
    if (!record || company === null) {
      this.byId.delete(agent.record.agentId)
      this.byIndex.delete(agentIndex)
      this.left.push({ agentIndex, atMs: this.parts.nowMs() })
      return { agentIndex, company: agent.company, record: null }
    }
    agent.record = record
    agent.company = company
    return { agentIndex, company, record }
  }
}

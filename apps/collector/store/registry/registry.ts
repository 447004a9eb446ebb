// The agents registry: who may send, and for which server (document 3 "Authentication"; document 1 "Registry
// consistency rule"; decisions G-34, G-35, G-47). All in memory, by agent, by token hash and by server; kept on disk by
// the registry store.
import type { AgentState } from '../../../../core/lifecycle/agent.ts'
import { type AgentRecord, emptyRecord, isTokenOf } from './agent-record.ts'
import type { RegistryCursor, RegistryRow } from './file-registry-store.ts'
import { latestAgent } from './latest-agent-of-server.ts'
import { isSameContent, recordThatHolds } from './which-record-holds.ts'

/** One change of the registry. `before` null: the agent is new. `record` null: it was removed. */
export type AgentChange = {
  readonly agentId: string
  readonly before: AgentRecord | null
  readonly record: AgentRecord | null
}
type ChangeListener = (changes: readonly AgentChange[]) => void

/** The agent of a token hash, and whether the token is valid at an instant. */
type TokenMatch = { readonly record: AgentRecord; readonly isValid: boolean }

/** The durable store of the registry: on disk, or in Redis, where a write is durable once it is `flushed`. */
export interface RegistryBacking {
  /** Everything written since the last call, by any process; the first call returns the whole registry. */
  readChanges(): RegistryRow[]
  /** The cursor of the agents feed, as of the last read. */
  cursor(): RegistryCursor
  /**
   * Writes rows, and the cursor with them when it is given. An older record never replaces a newer row, and revoked is
   * for good.
   */
  write(rows: readonly RegistryRow[], cursor: RegistryCursor | null): void
  /** For a store that writes asynchronously: resolves once everything handed over is durable. */
  flushed?(): Promise<void>
}

const NONE: readonly string[] = []

export class AgentRegistry {
  private readonly agents = new Map<string, AgentRecord>()
  /** Token hash -> agent id, current and previous. */
  private readonly tokens = new Map<string, string>()
  /** Server id -> agent id, or the ids where there are several. */
  private readonly servers = new Map<string, string | readonly string[]>()
  private readonly states: Record<AgentState, number> = { pending: 0, active: 0, revoked: 0 }
  private readonly listeners = new Set<ChangeListener>()
  private readonly store: RegistryBacking | null
  private cursorNow: RegistryCursor = { since: 0, syncedAtMs: 0 }

  /** Loads what the store has; without one the registry lives in memory. */
  constructor(store: RegistryBacking | null) {
    this.store = store
    this.refresh()
  }

  get size(): number {
    return this.agents.size
  }

  countOf(state: AgentState): number {
    return this.states[state]
  }

  /** True once a feed was read to its end, now or before a restart. */
  get isFilled(): boolean {
    return this.cursorNow.syncedAtMs > 0
  }

  get cursor(): RegistryCursor {
    return this.cursorNow
  }

  byAgent(agentId: string): AgentRecord | undefined {
    return this.agents.get(agentId)
  }

  all(): IterableIterator<AgentRecord> {
    return this.agents.values()
  }

  /** The agent of a token, the current or the previous one, and whether the token is valid now. */
  byTokenHash(tokenHash: string, nowMs: number): TokenMatch | undefined {
    const agentId = this.tokens.get(tokenHash)
    const record = agentId === undefined ? undefined : this.agents.get(agentId)
    if (!record) return undefined
    return { record, isValid: isTokenOf(record, tokenHash, nowMs) }
  }

  /** The agents of a server, revoked ones too. */
  agentsOfServer(serverId: string): AgentRecord[] {
    const held = this.servers.get(serverId)
    const ids = held === undefined ? NONE : typeof held === 'string' ? [held] : held
    return ids.flatMap(id => this.agents.get(id) ?? [])
  }

  /** The agent that represents a server (latest-agent-of-server.ts). */
  latestOfServer(companyId: string, serverId: string): AgentRecord | undefined {
    return latestAgent(this.agentsOfServer(serverId), companyId)
  }

  /** Agents of a company that are not revoked. */
  agentsOfCompany(companyId: string): AgentRecord[] {
    const found: AgentRecord[] = []
    for (const record of this.agents.values())
      if (record.companyId === companyId && record.state !== 'revoked') found.push(record)
    return found
  }

  /**
   * Counts for GET /companies/{id}/summary: pending and active agents, and how many of them `isOnline` says are online.
   */
  companySummary(
    companyId: string,
    isOnline: (record: AgentRecord) => boolean,
  ): { agentsTotal: number; online: number; offline: number } {
    const agents = this.agentsOfCompany(companyId)
    const online = agents.filter(isOnline).length
    return { agentsTotal: agents.length, online, offline: agents.length - online }
  }

  onChange(listener: ChangeListener): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /**
   * Applies records of the feed, a look-up or a renewal. A record of a lower version is ignored, one of an equal
   * version counts only if the feed's cursor moved on, and no record takes an agent out of revoked. `cursor` is given
   * when the feed was read to its end. Returns how many were applied.
   */
  apply(records: readonly AgentRecord[], cursor: RegistryCursor | null = null): number {
    const changes: AgentChange[] = []
    let applied = 0
    for (const offered of records) {
      const before = this.agents.get(offered.agentId) ?? null
      const record = before ? recordThatHolds(before, offered) : offered
      if (!record) continue
      applied++
      if (before && isSameContent(before, record) && before.version === record.version) {
        // Only the feed's cursor moved: there is no change to announce or to store.
        this.agents.set(record.agentId, record)
        continue
      }
      this.put(before, record)
      changes.push({ agentId: record.agentId, before, record })
    }
    if (cursor) this.cursorNow = cursor
    this.keep(changes, cursor)
    return applied
  }

  /**
   * Applies a record that the hub pushed. True when it is now in force, which a record that would take an agent out of
   * revoked never is.
   */
  push(record: AgentRecord): boolean {
    const held = this.agents.get(record.agentId)
    const isRepeat = held !== undefined && held.version === record.version && isSameContent(held, record)
    const isApplied = this.apply([record]) > 0 && this.agents.get(record.agentId)?.state === record.state
    return isApplied || isRepeat
  }

  /**
   * Revokes at once and for good; an unknown agent is remembered as revoked, so that a late record cannot let it in.
   */
  revoke(agentId: string): void {
    const held = this.agents.get(agentId) ?? null
    if (held?.state === 'revoked') return
    const record: AgentRecord = held ? { ...held, state: 'revoked' } : emptyRecord(agentId)
    this.put(held, record)
    this.keep([{ agentId, before: held, record }], null)
  }

  /** Removes every agent of a company. Returns how many there were. */
  removeCompany(companyId: string): number {
    return this.remove([...this.agents.values()].filter(record => record.companyId === companyId))
  }

  /** Removes the agents of a server of the company. Returns how many there were. */
  removeServer(companyId: string, serverId: string): number {
    return this.remove(this.agentsOfServer(serverId).filter(record => record.companyId === companyId))
  }

  /** Removes every agent that is not listed, after the feed was read again from its start. */
  removeOthers(agentIds: ReadonlySet<string>): number {
    return this.remove([...this.agents.values()].filter(record => !agentIds.has(record.agentId)))
  }

  private remove(records: readonly AgentRecord[]): number {
    const changes = records.map(before => ({ agentId: before.agentId, before, record: null }))
    for (const before of records) this.drop(before)
    this.keep(changes, null)
    return records.length
  }

  /** Applies what other processes wrote to the store since the last call. Cheap when they wrote nothing. */
  refresh(): void {
    if (!this.store) return
    const changes: AgentChange[] = []
    for (const { agentId, record } of this.store.readChanges()) {
      const before = this.agents.get(agentId) ?? null
      if (record) {
        const merged = before ? recordThatHolds(before, record) : record
        if (!merged || (before && isSameContent(before, merged) && before.version === merged.version)) continue
        this.put(before, merged)
        changes.push({ agentId, before, record: merged })
      } else if (before) {
        this.drop(before)
        changes.push({ agentId, before, record: null })
      }
    }
    this.cursorNow = this.store.cursor()
    this.tell(changes)
  }

  /**
   * Resolves once every change so far is durable for all processes that share the registry. Rejects when the store does
   * not accept it now.
   */
  async flushed(): Promise<void> {
    await this.store?.flushed?.()
  }

  private keep(changes: readonly AgentChange[], cursor: RegistryCursor | null): void {
    if (this.store && (changes.length > 0 || cursor)) {
      const rows: RegistryRow[] = changes.map(({ agentId, record }) => ({ agentId, record }))
      this.store.write(rows, cursor)
    }
    this.tell(changes)
  }

  private tell(changes: readonly AgentChange[]): void {
    if (changes.length === 0) return
    for (const listener of this.listeners) listener(changes)
  }

  private put(before: AgentRecord | null, record: AgentRecord): void {
    if (before) this.drop(before)
    this.agents.set(record.agentId, record)
    this.states[record.state]++
    if (record.tokenHash) this.tokens.set(record.tokenHash, record.agentId)
    if (record.prevTokenHash) this.tokens.set(record.prevTokenHash, record.agentId)
    if (!record.serverId) return
    const held = this.servers.get(record.serverId)
    this.servers.set(
      record.serverId,
      held === undefined ? record.agentId : [...(typeof held === 'string' ? [held] : held), record.agentId],
    )
  }

  private drop(record: AgentRecord): void {
    this.agents.delete(record.agentId)
    this.states[record.state]--
    for (const hash of [record.tokenHash, record.prevTokenHash])
      if (this.tokens.get(hash) === record.agentId) this.tokens.delete(hash)
    const held = this.servers.get(record.serverId)
    if (held === undefined) return
    const rest = typeof held === 'string' ? NONE : held.filter(id => id !== record.agentId)
    if (rest.length > 1) this.servers.set(record.serverId, rest)
    else if (rest[0] !== undefined) this.servers.set(record.serverId, rest[0])
    else this.servers.delete(record.serverId)
  }
}

// Reports to the hub which agents were seen, about once a minute (document 1 "/agents/seen"; decisions G-31, G-39,
// G-40). An agent that is new, or was silent for long, is reported at once, since the hub would show it as unknown or
// down for up to a minute more. What agents say of themselves goes with it where it is news: of most it never is.
import type { Logger } from 'pino'
import { limits } from '../../../core/limits.ts'
import { describeResponse, type HubResponse } from '../../hub-link/hub-connection.ts'
import type { HubClient, SeenEntry } from './hub-client.ts'

/** The report on an agent; `isUnreported` is reset once the hub has accepted it. */
export type SeenAgent = {
  readonly record: { readonly agentId: string }
  readonly lastSeenAtMs: number
  readonly agentVersion: string
  readonly protoVersion: number
  readonly statement: SeenStatement
  isUnreported: boolean
}

/** What an agent says of itself; `bufferBytes` is -1 while it says nothing, `lastWarning` '' while there was none. */
type SeenStatement = {
  readonly bufferBytes: number
  readonly bufferBatches: number
  readonly lastWarning: string
  readonly lastWarningAtMs: number
}

/** What the hub was told of an agent, and up to when it was told that it was seen. */
type Told = SeenStatement & {
  readonly seenMs: number
  /** When a warning of it was told, on the monotonic clock; 0: never. */
  readonly warnedMs: number
}
const NOTHING_TOLD: Told = {
  ...{ seenMs: 0, warnedMs: 0 },
  ...{ bufferBytes: -1, bufferBatches: 0, lastWarning: '', lastWarningAtMs: 0 },
}

/** How often agents that must be reported at once are searched for. */
const POLL_MS = 2_000
/** After a report the hub counts an agent as seen for longer than this. */
const SILENT_MS = 2 * limits.seenIntervalMs
/** How often the pages of one report are halved to find the faulty agents: finding one takes about ten. */
const SPLITS_MAX = 100
/** Warnings are long beside all else: so many go in a page, the others with the next report. */
const WARNINGS_PER_PAGE_MAX = 200

/**
 * True when the hub refuses the page itself. Sending it again would block all later ones for ever, so it is split: one
 * bad agent must not stop the reports of the others.
 */
const isRefused = (answer: HubResponse): boolean => answer.kind === 'refused' && [400, 413, 422].includes(answer.status)

/** The agent's version arrives unchecked, so anything but printable ASCII in it is replaced by spaces. */
function versionsOf({ agentVersion, protoVersion }: SeenAgent): Partial<SeenEntry> {
  const version = agentVersion.replace(/[^\x21-\x7e]+/g, ' ').trim()
  return {
    ...(version === '' ? {} : { agent_version: version }),
    ...(protoVersion > 0 ? { proto_version: protoVersion } : {}),
  }
}

export class SeenReporter {
  private readonly agents: () => Iterable<SeenAgent>
  private readonly hub: HubClient
  private readonly log: Logger
  private readonly intervalMs: number
  private readonly told = new WeakMap<SeenAgent, Told>()
  private reportedAtMs = performance.now()
  /**
   * False from a report that the hub did not accept until one that it accepted: meanwhile no agent is reported ahead of
   * time.
   */
  private isForced = true
  private timer: ReturnType<typeof setTimeout> | null = null
  private running: Promise<void> | null = null
  private isStopped = false
  private splitsLeft = 0

  constructor(parts: {
    readonly agents: () => Iterable<SeenAgent>
    readonly hub: HubClient
    readonly log: Logger
    readonly intervalMs: number
  }) {
    this.agents = parts.agents
    this.hub = parts.hub
    this.log = parts.log
    this.intervalMs = parts.intervalMs
    this.schedule()
  }

  /** Reports all agents with unreported activity. Agents that the hub did not accept stay unreported. */
  report(): Promise<void> {
    this.reportedAtMs = performance.now()
    return this.run(() => true)
  }

  private run(isDue: (agent: SeenAgent) => boolean): Promise<void> {
    this.running ??= this.send(isDue).finally(() => {
      this.running = null
    })
    return this.running
  }

  private look(): Promise<void> {
    if (performance.now() - this.reportedAtMs >= this.intervalMs) return this.report()
    return this.isForced ? this.run(agent => this.isBack(agent)) : Promise.resolve()
  }

  /** True when the agent was never reported to the hub, or not for long. */
  private isBack(agent: SeenAgent): boolean {
    return agent.lastSeenAtMs - (this.told.get(agent) ?? NOTHING_TOLD).seenMs > SILENT_MS
  }

  /** What the hub was told of an agent; another collector may have told of one that was away. */
  private toldOf(agent: SeenAgent): Told {
    return this.isBack(agent) ? NOTHING_TOLD : (this.told.get(agent) ?? NOTHING_TOLD)
  }

  /** The agents with a warning that the hub does not know, those first that have waited longest for their turn. */
  private withNewWarnings(page: readonly SeenAgent[]): SeenAgent[] {
    const found = page.filter(agent => {
      const { lastWarning, lastWarningAtMs } = agent.statement
      if (lastWarning === '') return false
      const told = this.toldOf(agent)
      return lastWarning !== told.lastWarning || lastWarningAtMs !== told.lastWarningAtMs
    })
    const warnedMs = (agent: SeenAgent): number => this.told.get(agent)?.warnedMs ?? 0
    return found.sort((one, other) => warnedMs(one) - warnedMs(other))
  }

  /** The entries of a page, what the hub has been told once it takes them, and whose warning waits for the next one. */
  private entriesOf(page: readonly SeenAgent[]): { entries: SeenEntry[]; news: Told[]; waiting: readonly SeenAgent[] } {
    const news: Told[] = []
    const nowMs = performance.now()
    const found = this.withNewWarnings(page)
    const warned = new Set(found.slice(0, WARNINGS_PER_PAGE_MAX))
    const entries = page.map((agent): SeenEntry => {
      const { lastSeenAtMs, statement } = agent
      const { bufferBytes, bufferBatches, lastWarning, lastWarningAtMs } = statement
      const told = this.toldOf(agent)
      const isBufferNew = bufferBytes !== told.bufferBytes || bufferBatches !== told.bufferBatches
      const isWarned = warned.has(agent)
      news.push({
        ...{ seenMs: lastSeenAtMs, bufferBytes, bufferBatches },
        ...(isWarned
          ? { warnedMs: nowMs, lastWarning, lastWarningAtMs }
          : { warnedMs: told.warnedMs, lastWarning: told.lastWarning, lastWarningAtMs: told.lastWarningAtMs }),
      })
      return {
        agent_id: agent.record.agentId,
        last_seen_at: new Date(lastSeenAtMs).toISOString(),
        ...versionsOf(agent),
        ...(isBufferNew ? { buffer_bytes: bufferBytes, buffer_batches: bufferBatches } : {}),
        ...(isWarned ? { last_warning: lastWarning, last_warning_at: new Date(lastWarningAtMs).toISOString() } : {}),
      }
    })
    return { entries, news, waiting: found.slice(WARNINGS_PER_PAGE_MAX) }
  }

  async stop(): Promise<void> {
    this.isStopped = true
    if (this.timer !== null) clearTimeout(this.timer)
    await this.running
    await this.report()
  }

  private schedule(): void {
    if (this.isStopped) return
    this.timer = setTimeout(() => void this.look().finally(() => this.schedule()), Math.min(POLL_MS, this.intervalMs))
  }

  private async send(isDue: (agent: SeenAgent) => boolean): Promise<void> {
    this.splitsLeft = SPLITS_MAX
    let page: SeenAgent[] = []
    for (const agent of this.agents()) {
      if (!agent.isUnreported || !isDue(agent)) continue
      page.push(agent)
      if (page.length < limits.seenPerRequest) continue
      if (!(await this.sendPage(page))) return
      page = []
    }
    if (page.length > 0) await this.sendPage(page)
  }

  private async sendPage(page: readonly SeenAgent[]): Promise<boolean> {
    const { entries, news, waiting } = this.entriesOf(page)
    // Batches that arrive during the call set this again.
    for (const agent of page) agent.isUnreported = false
    const answer = await this.hub.postSeen(entries)
    // A page that is refused for good counts as reported, so that the other agents are still reported at once.
    const isOver = answer.kind === 'ok' || isRefused(answer)
    this.isForced = isOver
    if (isRefused(answer) && page.length > 1 && this.splitsLeft > 0) {
      this.splitsLeft--
      for (const agent of page) agent.isUnreported = true
      const half = Math.ceil(page.length / 2)
      return (await this.sendPage(page.slice(0, half))) && (await this.sendPage(page.slice(half)))
    }
    if (isOver) {
      for (const [index, agent] of page.entries()) this.told.set(agent, news[index] ?? NOTHING_TOLD)
      for (const agent of waiting) agent.isUnreported = true
      if (answer.kind === 'ok') return true
      const agentIds = page.slice(0, 10).map(agent => agent.record.agentId)
      this.log.error(
        { reason: describeResponse(answer), agents: page.length, agent_ids: agentIds },
        'the hub refuses a report of seen agents',
      )
      return true
    }
    for (const agent of page) agent.isUnreported = true
    this.log.warn(
      { reason: describeResponse(answer) },
      'cannot tell the hub which agents were seen; it hears of it later',
    )
    return false
  }
}

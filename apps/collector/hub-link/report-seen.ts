// Tells the hub which agents were seen, about once a minute (document 1 "/agents/seen"; decisions G-31, G-39, G-40).
import type { Logger } from 'pino'
import { limits } from '../../../core/limits.ts'
import { describeAnswer, type HubClient, type SeenEntry } from './hub-client.ts'

/** What is reported of an agent; `isSeenNews` is taken back once the hub has heard of it. */
export type SeenAgent = {
  readonly record: { readonly agentId: string }
  readonly lastSeenAtMs: number
  readonly agentVersion: string
  readonly protoVersion: number
  isSeenNews: boolean
}

export class SeenReporter {
  private readonly agents: () => Iterable<SeenAgent>
  private readonly hub: HubClient
  private readonly log: Logger
  private readonly intervalMs: number
  private timer: ReturnType<typeof setTimeout> | null = null
  private running: Promise<void> | null = null
  private isStopped = false

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

  /** Reports everything that is news. What the hub did not take is news still. */
  report(): Promise<void> {
    this.running ??= this.send().finally(() => {
      this.running = null
    })
    return this.running
  }

  async stop(): Promise<void> {
    this.isStopped = true
    if (this.timer !== null) clearTimeout(this.timer)
    await this.report()
  }

  private schedule(): void {
    if (this.isStopped) return
    this.timer = setTimeout(() => void this.report().finally(() => this.schedule()), this.intervalMs)
  }

  private async send(): Promise<void> {
    let page: SeenAgent[] = []
    for (const agent of this.agents()) {
      if (!agent.isSeenNews) continue
      page.push(agent)
      if (page.length < limits.seenPerRequest) continue
      if (!(await this.sendPage(page))) return
      page = []
    }
    if (page.length > 0) await this.sendPage(page)
  }

  private async sendPage(page: readonly SeenAgent[]): Promise<boolean> {
    const entries: SeenEntry[] = page.map(agent => ({
      agent_id: agent.record.agentId,
      last_seen_at: new Date(agent.lastSeenAtMs).toISOString(),
      agent_version: agent.agentVersion,
      ...(agent.protoVersion > 0 ? { proto_version: agent.protoVersion } : {}),
    }))
    // Batches that come during the call are news again afterwards.
    for (const agent of page) agent.isSeenNews = false
    const answer = await this.hub.postSeen(entries)
    if (answer.kind === 'ok') return true
    if (answer.kind === 'refused' && [400, 413, 422].includes(answer.status)) {
      // The page itself is at fault: sent again it would hold up all others for ever.
      this.log.error({ reason: describeAnswer(answer), agents: page.length }, 'the hub refuses a report of seen agents')
      return true
    }
    for (const agent of page) agent.isSeenNews = true
    this.log.warn(
      { reason: describeAnswer(answer) },
      'cannot tell the hub which agents were seen; it hears of it later',
    )
    return false
  }
}

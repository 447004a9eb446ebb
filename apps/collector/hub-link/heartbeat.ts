// The collector's own report to the hub (document 1 "/heartbeat"; decision G-32): every 30 s.
import type { Logger } from 'pino'
import { describeAnswer, type HeartbeatBody, type HubClient } from './hub-client.ts'

export class Heartbeat {
  private readonly hub: HubClient
  private readonly facts: () => HeartbeatBody
  private readonly intervalMs: number
  private readonly log: Logger
  private timer: ReturnType<typeof setTimeout> | null = null
  private running: Promise<void> | null = null
  private isFailing = false
  private isStopped = false

  /** Reports at once and at every interval. A process reports only the facts that it knows. */
  constructor(parts: {
    readonly hub: HubClient
    readonly facts: () => HeartbeatBody
    readonly intervalMs: number
    readonly log: Logger
  }) {
    this.hub = parts.hub
    this.facts = parts.facts
    this.intervalMs = parts.intervalMs
    this.log = parts.log
    this.run()
  }

  async stop(): Promise<void> {
    this.isStopped = true
    if (this.timer !== null) clearTimeout(this.timer)
    await this.running
  }

  private run(): void {
    this.running = this.send().finally(() => {
      if (!this.isStopped) this.timer = setTimeout(() => this.run(), this.intervalMs)
    })
  }

  private async send(): Promise<void> {
    const answer = await this.hub.postHeartbeat(this.facts())
    const isFailing = answer.kind !== 'ok'
    if (isFailing && !this.isFailing)
      this.log.warn({ reason: describeAnswer(answer) }, 'cannot send a heartbeat to the hub')
    this.isFailing = isFailing
  }
}

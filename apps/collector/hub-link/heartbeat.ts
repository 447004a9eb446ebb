// The collector's own report to the hub (document 1 "/heartbeat"; decision G-32): every 30 s.
import type { Logger } from 'pino'
import { describeResponse } from '../../hub-link/hub-connection.ts'
import type { HeartbeatBoard, ProcessHeartbeat } from '../store/process-heartbeats.ts'
import type { AgentRegistry } from '../store/registry/registry.ts'
import { productVersion } from '../version.ts'
import type { HeartbeatBody, HubClient } from './hub-client.ts'

/**
 * The heartbeat of one process of a collector: the sums over all its processes, or its own figures where the others'
 * cannot be read now.
 */
export async function sharedHeartbeat(
  board: HeartbeatBoard,
  own: ProcessHeartbeat,
  rest: Pick<HeartbeatBody, 'version' | 'agent_count'>,
  log: Logger,
): Promise<HeartbeatBody> {
  const all = await board.exchange(own).catch(error => {
    log.warn(
      { err: error },
      'cannot read what the other processes of this collector know; the heartbeat tells of this one alone',
    )
    return own
  })
  return {
    ...rest,
    ...(all.ingestRps === undefined ? {} : { ingest_rps: all.ingestRps }),
    ...(all.outboxDepth === undefined ? {} : { outbox_depth: all.outboxDepth }),
  }
}

export class Heartbeat {
  private readonly hub: HubClient
  private readonly body: () => HeartbeatBody | Promise<HeartbeatBody>
  private readonly intervalMs: number
  private readonly log: Logger
  private timer: ReturnType<typeof setTimeout> | null = null
  private running: Promise<void> | null = null
  private isFailing = false
  private isStopped = false

  /** Sends a heartbeat at once and at every interval. Unknown figures are left out. */
  constructor(parts: {
    readonly hub: HubClient
    readonly body: () => HeartbeatBody | Promise<HeartbeatBody>
    readonly intervalMs: number
    readonly log: Logger
  }) {
    this.hub = parts.hub
    this.body = parts.body
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
    const answer = await this.hub.postHeartbeat(await this.body())
    const isFailing = answer.kind !== 'ok'
    if (isFailing && !this.isFailing)
      this.log.warn({ reason: describeResponse(answer) }, 'cannot send a heartbeat to the hub')
    this.isFailing = isFailing
  }
}

/**
 * The heartbeat of a process that shares a collector with others; null without a hub. `own`: what this process knows.
 */
export function startSharedHeartbeat(parts: {
  readonly config: { readonly 'heartbeat.interval': number }
  readonly hub: HubClient | null
  readonly log: Logger
  readonly board: HeartbeatBoard
  readonly registry: AgentRegistry
  readonly own: () => ProcessHeartbeat
}): Heartbeat | null {
  const { config, hub, log, board, registry, own } = parts
  if (!hub) return null
  const agentCount = (): number => registry.countOf('active') + registry.countOf('pending')
  return new Heartbeat({
    hub,
    log,
    intervalMs: config['heartbeat.interval'],
    body: () => sharedHeartbeat(board, own(), { version: productVersion, agent_count: agentCount() }, log),
  })
}

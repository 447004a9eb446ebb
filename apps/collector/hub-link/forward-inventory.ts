// Forwards inventory reports to the hub (document 1 "Inventory ingest"; decision G-59): the newest report of each
// agent, every 30 s or at 100 reports, held for at most a day. A 4xx other than 429 is final and counted; after any
// other failure the report is sent again.
import type { Logger } from 'pino'
import { DAY_MS, limits } from '../../../core/limits.ts'
import { describeResponse, type HubResponse } from '../../hub-link/hub-connection.ts'
import type { CollectorMetrics } from '../telemetry.ts'
import type { HubClient } from './hub-client.ts'

const ITEM_BYTES_MAX = 512 * 1024
const QUEUE_BYTES_MAX = 256 * 1024 * 1024
/** The bytes of `{"items":[` and `]}`; each item adds a comma. */
const ENVELOPE_BYTES = 12

type InventoryReport = {
  readonly agentId: string
  readonly companyId: string
  readonly serverId: string
  readonly reportedAtMs: number
  readonly facts: Readonly<Record<string, unknown>>
}

type Item = { readonly agentId: string; readonly reportedAtMs: number; readonly json: string; readonly bytes: number }

type InventoryForwarderOptions = {
  readonly hub: HubClient | null
  readonly log: Logger
  readonly metrics: CollectorMetrics
  readonly nowMs: () => number
  readonly periodMs?: number
}

export class InventoryForwarder {
  private readonly options: InventoryForwarderOptions
  /** By agent, in the order of arrival. */
  private readonly queue = new Map<string, Item>()
  private queueBytes = 0
  private timer: ReturnType<typeof setTimeout> | null = null
  private sending: Promise<void> | null = null
  private notBeforeMs = 0
  private isStopped = false

  constructor(options: InventoryForwarderOptions) {
    this.options = options
    for (const result of ['accepted', 'rejected', 'dropped']) options.metrics.inventorySent.inc({ result }, 0)
    options.metrics.onScrape(() => options.metrics.inventoryQueued.set(this.queue.size))
    this.schedule()
  }

  get depth(): number {
    return this.queue.size
  }

  /** Queues a report in place of an older one of the agent; false when it is too large to be sent. */
  add(report: InventoryReport): boolean {
    const json = JSON.stringify({
      agent_id: report.agentId,
      company_id: report.companyId,
      server_id: report.serverId,
      reported_at: new Date(report.reportedAtMs).toISOString(),
      facts: report.facts,
    })
    const bytes = Buffer.byteLength(json)
    if (bytes > ITEM_BYTES_MAX) return false
    this.remove(report.agentId)
    this.queue.set(report.agentId, { agentId: report.agentId, reportedAtMs: report.reportedAtMs, json, bytes })
    this.queueBytes += bytes
    while (this.queueBytes > QUEUE_BYTES_MAX) this.dropOldest()
    if (this.queue.size >= limits.inventoryPerRequest && this.options.nowMs() >= this.notBeforeMs) void this.flush()
    return true
  }

  /** Sends what is queued, batch after batch, until the queue is empty or the hub cannot take more now. */
  flush(): Promise<void> {
    this.sending ??= this.sendAll().finally(() => {
      this.sending = null
    })
    return this.sending
  }

  /** Ends the forwarding with a last try. */
  async stop(): Promise<void> {
    this.isStopped = true
    if (this.timer !== null) clearTimeout(this.timer)
    await this.flush()
  }

  private schedule(): void {
    if (this.isStopped) return
    this.timer = setTimeout(() => {
      const isDue = this.options.nowMs() >= this.notBeforeMs
      void (isDue ? this.flush() : Promise.resolve()).finally(() => this.schedule())
    }, this.options.periodMs ?? 30_000)
  }

  private async sendAll(): Promise<void> {
    const { hub, nowMs } = this.options
    this.dropAged(nowMs() - DAY_MS)
    if (!hub) return
    while (this.queue.size > 0) {
      const items = this.nextBatch()
      const answer = await hub.postInventory(items.map(item => item.json))
      if (!this.applyVerdict(items, answer)) return
    }
  }

  /** The oldest items: at most 100, at most 1 MiB of body. */
  private nextBatch(): Item[] {
    const items: Item[] = []
    let bytes = ENVELOPE_BYTES
    for (const item of this.queue.values()) {
      if (items.length === limits.inventoryPerRequest || bytes + item.bytes + 1 > limits.inventoryBodyBytesMax) break
      items.push(item)
      bytes += item.bytes + 1
    }
    return items
  }

  /** Removes the items that the hub accepted or refused for good; false when they are to be sent again later. */
  private applyVerdict(items: readonly Item[], answer: HubResponse): boolean {
    const { log, metrics, nowMs } = this.options
    const isFinal = answer.kind === 'refused' && answer.status >= 400 && answer.status < 500 && answer.status !== 429
    if (answer.kind !== 'ok' && !isFinal) {
      const seconds = answer.kind === 'refused' ? (answer.retryAfterSeconds ?? 0) : 0
      this.notBeforeMs = nowMs() + seconds * 1000
      log.warn({ reason: describeResponse(answer), queued: this.queue.size }, 'cannot forward inventory; it is kept')
      return false
    }
    for (const item of items) if (this.queue.get(item.agentId) === item) this.remove(item.agentId)
    if (answer.kind === 'ok') {
      const rejected = Array.isArray(answer.data.rejected) ? answer.data.rejected : []
      metrics.inventorySent.inc({ result: 'accepted' }, items.length - Math.min(rejected.length, items.length))
      metrics.inventorySent.inc({ result: 'rejected' }, rejected.length)
      if (rejected.length > 0) log.warn({ rejected: rejected.slice(0, 10) }, 'the hub rejected inventory')
    } else {
      metrics.inventorySent.inc({ result: 'dropped' }, items.length)
      log.error({ reason: describeResponse(answer), items: items.length }, 'inventory is given up: the hub refused it')
    }
    return true
  }

  private dropAged(beforeMs: number): void {
    for (const item of this.queue.values()) if (item.reportedAtMs < beforeMs) this.giveUp(item)
  }

  private dropOldest(): void {
    for (const item of this.queue.values()) {
      this.giveUp(item)
      return
    }
  }

  private giveUp(item: Item): void {
    this.remove(item.agentId)
    this.options.metrics.inventorySent.inc({ result: 'dropped' })
  }

  private remove(agentId: string): void {
    const held = this.queue.get(agentId)
    if (!held) return
    this.queue.delete(agentId)
    this.queueBytes -= held.bytes
  }
}

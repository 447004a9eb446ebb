// The hub's processing rules 1 to 3 of document 2, and what is open after them.
import type { AlertEvent } from '../../core/alerting/evaluate/event.ts'

export class HubModel {
  private readonly seen = new Map<string, string>()
  private readonly processedSeq = new Map<string, number>()
  private readonly openKeys = new Set<string>()
  /** Called with every event that rules 1 and 2 let through. */
  onApplied: (event: AlertEvent) => void = () => {}
  /** Two different events under one id. */
  readonly clashes: string[] = []

  receive(event: AlertEvent): void {
    const { event_id: id, seq } = event
    const text = JSON.stringify(event)
    const known = this.seen.get(id)
    if (known !== undefined) {
      if (known !== text) this.clashes.push(`${known} and ${text}`)
      return
    }
    this.seen.set(id, text)
    const key = `${event.server_id}|${event.rule_id}|${event.series_key}`
    if (seq <= (this.processedSeq.get(key) ?? Number.NEGATIVE_INFINITY)) return
    this.processedSeq.set(key, seq)
    this.apply(key, event)
  }

  private apply(key: string, event: AlertEvent): void {
    this.onApplied(event)
    const isEnd = event.type === 'alert.resolved' || event.type === 'agent.up'
    const isExit = event.type === 'alert.flapping' && event.reason === 'exited'
    if (isEnd) this.openKeys.delete(key)
    else if (!isExit) this.openKeys.add(key)
  }

  open(): string[] {
    return [...this.openKeys].sort()
  }
}

// The hub's own alert lifecycle behind the processing rules, in memory: what its alerts come to in a world.
import type { AlertEvent } from '../../core/alerting/evaluate/event.ts'
import { type Alert, applyEvent, isActive } from '../../core/lifecycle/alert.ts'

const keyOf = (event: { server_id: string; rule_id: string; series_key: string }): string =>
  `${event.server_id}|${event.rule_id}|${event.series_key}`

export class LifecycleHub {
  /** By key, in the order in which they were opened. */
  private readonly alerts = new Map<string, Map<string, Alert>>()
  private count = 0

  /** An event that rules 1 and 2 let through. */
  apply(event: AlertEvent): void {
    const key = keyOf(event)
    const alerts = this.alerts.get(key) ?? new Map<string, Alert>()
    this.alerts.set(key, alerts)
    const own = [...alerts.values()]
    const book = {
      active: own.find(isActive) ?? null,
      latest: own.at(-1) ?? null,
      groups: [],
      downOf: () => [],
      childrenOf: () => [],
    }
    const isRule = event.type.startsWith('alert.')
    const context = {
      newId: `alert ${++this.count}`,
      nowMs: Date.parse(event.occurred_at),
      rule: isRule ? { id: event.rule_id, kind: 'threshold' } : null,
      agentDownRule: null,
      agentId: null,
    }
    for (const alert of applyEvent(book, event, context).changed) alerts.set(alert.id, alert)
  }

  /** Keys with an active alert; a key that has two stands twice. */
  open(): string[] {
    return [...this.alerts].flatMap(([key, alerts]) => [...alerts.values()].filter(isActive).map(() => key)).sort()
  }
}

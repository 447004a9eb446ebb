// The hub's own alert lifecycle behind the processing rules, in memory: what its alerts come to in a world.
import type { AlertEvent } from '../../core/alerting/event.ts'
import { type Alert, applyEvent, isActive } from '../../core/lifecycle/alert.ts'

const keyOf = (event: { server_id: string; rule_id: string; series_key: string }): string =>
  `${event.server_id}|${event.rule_id}|${event.series_key}`

export class LifecycleHub {
  private readonly alerts = new Map<string, Alert>()

  /** An event that rules 1 and 2 let through. */
  apply(event: AlertEvent): void {
    const own = [...this.alerts.values()].filter(
      alert => `${alert.serverId}|${alert.ruleKey}|${alert.seriesKey}` === keyOf(event),
    )
    const book = {
      active: own.find(isActive) ?? null,
      latest: own.at(-1) ?? null,
      groups: [],
      downOf: () => [],
      childrenOf: () => [],
    }
    const isRule = event.type.startsWith('alert.')
    const context = {
      newId: `alert ${this.alerts.size + 1}`,
      nowMs: Date.parse(event.occurred_at),
      rule: isRule ? { id: event.rule_id, kind: 'threshold' } : null,
      agentDownRule: null,
      agentId: null,
    }
    for (const alert of applyEvent(book, event, context).changed) this.alerts.set(alert.id, alert)
  }

  /** Keys with an active alert; a key that has two stands twice. */
  open(): string[] {
    return [...this.alerts.values()]
      .filter(isActive)
      .map(alert => `${alert.serverId}|${alert.ruleKey}|${alert.seriesKey}`)
      .sort()
  }
}

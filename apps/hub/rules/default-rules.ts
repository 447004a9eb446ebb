// The rules that every company starts with (document 2 "Default rule set"; decisions G-69, G-91): eight, since the row
// on certificates gives two.
import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import type { RuleKind, Severity } from '../../../core/alerting/rules/rule.ts'
import { rules } from '../platform/db/schema.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { type ConditionInput, conditionColumns } from './rule-condition.ts'

type DefaultRule = {
  readonly key: string
  readonly name: string
  readonly kind: RuleKind
  readonly severity: Severity
  readonly condition: ConditionInput
}

const MINUTE = 60

const above = (metric: string, threshold: number, minutes: number, recover: number | null = null): ConditionInput => ({
  metric,
  operator: '>',
  threshold,
  for_seconds: minutes * MINUTE,
  recover_threshold: recover,
})
const certificate = (days: number): ConditionInput => ({ metric: 'cert_days_left', operator: '<', threshold: days })

export const defaultRules: readonly DefaultRule[] = [
  { key: 'lost_signal', name: 'Lost signal', kind: 'agent_down', severity: 'critical', condition: {} },
  {
    key: 'high_cpu',
    name: 'High CPU',
    kind: 'threshold',
    severity: 'warning',
    condition: above('cpu_usage_percent', 90, 10, 80),
  },
  {
    key: 'high_ram',
    name: 'High RAM',
    kind: 'threshold',
    severity: 'warning',
    condition: above('mem_used_percent', 90, 10, 85),
  },
  {
    key: 'disk_filling',
    name: 'Disk filling',
    kind: 'threshold',
    severity: 'warning',
    condition: above('disk_used_percent', 85, 5),
  },
  {
    key: 'disk_nearly_full',
    name: 'Disk nearly full',
    kind: 'threshold',
    severity: 'critical',
    condition: above('disk_used_percent', 95, 5),
  },
  {
    key: 'high_load',
    name: 'High load',
    kind: 'threshold',
    severity: 'warning',
    condition: above('load_per_core_5m', 2, 15),
  },
  {
    key: 'cert_expiring',
    name: 'Certificate expiring',
    kind: 'check',
    severity: 'warning',
    condition: certificate(14),
  },
  {
    key: 'cert_expiring_soon',
    name: 'Certificate expiring very soon',
    kind: 'check',
    severity: 'critical',
    condition: certificate(3),
  },
]

const EVERYWHERE = { all: true, server_ids: [], tags: [], environments: [], roles: [], datacenters: [] }

/** Creates the default rules that a company does not have. Returns the ids of what was created. */
export async function createDefaultRules(tx: Tx, companyId: string, createdBy: string | null): Promise<string[]> {
  const present = await tx.db.execute<{ default_key: string | null; kind: string }>(sql`
    select default_key, kind from monitoring_rules where company_id = ${companyId} and deleted_at is null`)
  const keys = new Set(present.map(row => row.default_key))
  const hasAgentDown = present.some(row => row.kind === 'agent_down')
  const missing = defaultRules.filter(rule => !keys.has(rule.key) && !(rule.kind === 'agent_down' && hasAgentDown))
  if (missing.length === 0) return []
  const created = missing.map(({ key, name, kind, severity, condition }) => ({
    id: randomUUID(),
    companyId,
    name,
    kind,
    severity,
    scope: EVERYWHERE,
    isDefault: true,
    defaultKey: key,
    createdBy,
    ...conditionColumns(kind, condition),
  }))
  await tx.db.insert(rules).values(created)
  const ids = created.map(rule => rule.id)
  tx.touch('rules', ids)
  return ids
}

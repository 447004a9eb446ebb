// The rule that a new check brings along: down for two minutes, or a certificate with less than 14 days; none where an
// enabled rule says the same (decisions G-91, G-92).

import { sql } from 'drizzle-orm'
import type { Severity } from '../../../core/alerting/rules/rule.ts'
import { reloadCollectors } from '../collectors/collector-jobs.ts'
import type { CheckType, checks } from '../platform/db/schema.ts'
import type { Tx } from '../platform/db/transaction.ts'
import type { Editor } from '../resources/editor.ts'
import { insertRule, ruleColumns } from '../rules/rules.ts'
import { targetMatchers, UP_METRICS } from './check-target.ts'

type CheckRule = {
  readonly name: string
  readonly metric: string
  readonly threshold: number
  readonly forSeconds: number
  readonly severity: Severity
}

/** The rule of kind check that a check starts with: down for two minutes, or a certificate with less than 14 days. */
export function defaultCheckRule(type: CheckType, checkName: string): CheckRule {
  const name = checkName.slice(0, 230)
  if (type === 'cert')
    return {
      name: `${name}: certificate expiring`,
      metric: 'cert_days_left',
      threshold: 14,
      forSeconds: 0,
      severity: 'warning',
    }
  return { name: `${name}: down`, metric: UP_METRICS[type], threshold: 1, forSeconds: 120, severity: 'critical' }
}

/** True when an enabled rule covers the same metric, threshold and severity for the check's servers (G-91). */
async function isCovered(tx: Tx, companyId: string, check: typeof checks.$inferSelect): Promise<boolean> {
  if (check.type !== 'cert') return false
  const { metric, threshold, severity } = defaultCheckRule('cert', check.name)
  const rows = await tx.db.execute(sql`
    select 1 from monitoring_rules r where r.company_id = ${companyId} and r.deleted_at is null and r.enabled
      and r.metric = ${metric} and r.threshold = ${threshold} and r.operator = '<' and r.severity = ${severity}
      and r.matchers = '{}'::jsonb and ((r.scope->>'all')::boolean or (not (${JSON.stringify(check.scope)}::jsonb->>'all')::boolean
        and ${`{${check.resolvedServerIds.join(',')}}`}::uuid[] <@ r.resolved_server_ids))`)
  return rows.length > 0
}

export async function createRules(editor: Editor, tx: Tx, check: typeof checks.$inferSelect): Promise<void> {
  const { hub, companyId } = editor
  if (await isCovered(tx, companyId, check)) return
  const { name, metric, threshold, forSeconds, severity } = defaultCheckRule(check.type, check.name)
  await insertRule(
    hub,
    tx,
    companyId,
    ruleColumns(
      {
        name,
        kind: 'check',
        scope: check.scope,
        metric,
        matchers: targetMatchers(check.type, check.target),
        operator: '<',
        threshold,
        for_seconds: forSeconds,
        severity,
      },
      check.scope,
    ),
    check.enabled,
    { checkId: check.id, createdBy: editor.userId },
  )
  await reloadCollectors(hub, tx, 'rules')
}

// Rules that a collector refuses to run, and why. The hub checks a rule by the same code before it saves it, so this
// happens only where a collector is of another version, or a rule names too many servers to be delivered.
import { dataOf } from '../../../core/admin-api/envelope.ts'
import { collectorStatusPath } from '../../../core/admin-api/status.ts'
import { isObject } from '../../../core/json-object.ts'
import type { Hub } from '../hub-context.ts'

/** By id of the rule; a collector that does not answer says nothing. */
export async function invalidRules(hub: Hub): Promise<Map<string, string>> {
  const targets = await hub.collectors.targets()
  const invalid = new Map<string, string>()
  const answers = await Promise.all(
    targets.map(target => hub.collectors.query(target, 'collector_status', collectorStatusPath)),
  )
  for (const answer of answers) {
    const data = answer?.status === 200 ? dataOf(answer.body) : null
    const rules = isObject(data?.rules) ? data.rules.invalid_rules : null
    for (const rule of Array.isArray(rules) ? rules : [])
      if (isObject(rule) && typeof rule.rule_id === 'string') invalid.set(rule.rule_id, String(rule.message ?? ''))
  }
  return invalid
}

// What a draft would have told on up to 25 of its servers: the hub runs their samples through the same evaluation. The
// browser judges the worst series at once, this says how it looks beyond them.

import { severities } from '../../../../core/alerting/rules/rule.ts'
import { faultsError } from '../../platform/http/request-schema.ts'
import { previewRule } from '../../rules/preview.ts'
import { faultsOfRule } from '../../rules/rules.ts'
import { hoursParam, jsonParam, scopeParam } from './rule-preview.ts'
import type { View } from './view.ts'

const AGE_MS = 30_000

export type RuleHistoryView = {
  readonly covered: number
  readonly read: number
  readonly told: number
  readonly firedOn: number
  readonly longestSeconds: number
  readonly firingNow: number
}

const nothing = { read: 0, told: 0, firedOn: 0, longestSeconds: 0, firingNow: 0 }

export const ruleHistoryView: View<RuleHistoryView> = {
  permissions: ['monitoring.manage'],
  params: ['condition', 'matchers', 'scope', 'hours'],
  ageMs: AGE_MS,
  async make(context) {
    const { hub, companyId } = context
    const given = {
      ...jsonParam(context, 'condition'),
      matchers: jsonParam(context, 'matchers'),
      scope: scopeParam(context),
    }
    const draft = { name: 'draft', severity: severities[0], kind: 'threshold' as const, ...given }
    const faults = await faultsOfRule(hub.database.db, companyId, draft)
    if (faults.size > 0) throw faultsError(faults, 'invalid_request')
    const { data } = await previewRule({ hub, companyId }, { ...draft, kind: 'threshold', hours: hoursParam(context) })
    const { history } = data
    if (history === null) return { covered: data.matched_servers, ...nothing }
    return {
      covered: data.matched_servers,
      read: history.servers_read,
      told: history.alerts,
      firedOn: history.servers_fired,
      longestSeconds: Math.max(0, ...history.servers.map(server => server.longest_seconds)),
      firingNow: history.servers.filter(server => server.firing_now).length,
    }
  },
}

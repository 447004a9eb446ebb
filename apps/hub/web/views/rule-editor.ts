// What the rule editor begins with: the rule as it is saved, the metrics, and the words that a scope can name. It is
// followed while somebody edits, so that the editor knows when another person has saved the rule.
import type { RuleScope } from '../../../../core/alerting/rules/rule.ts'
import { metrics, type Unit } from '../../../../core/series/catalogue.ts'
import { notFound } from '../../platform/http/api-error.ts'
import { isUuid } from '../../platform/http/request-schema.ts'
import { findRule } from '../../rules/rule-list.ts'
import { type RuleRow, ruleActivity, toRuleRow } from './rules.ts'
import { type Facet, serverFacets } from './servers.ts'
import type { View } from './view.ts'

export type EditedMetric = { readonly name: string; readonly labels: readonly string[]; readonly unit: Unit }

export type SavedRule = {
  readonly row: RuleRow
  readonly scope: RuleScope
  /** The servers that the scope names, as far as they are still there. */
  readonly servers: readonly { readonly id: string; readonly name: string }[]
}

export type RuleEditorView = {
  /** Null: a new rule. */
  readonly rule: SavedRule | null
  /** The server that a new rule is to be about; null: none is named, or it is not there. */
  readonly server: { readonly id: string; readonly name: string } | null
  readonly metrics: readonly EditedMetric[]
  readonly facets: Readonly<Record<string, Facet>>
}

export const ruleEditorView: View<RuleEditorView> = {
  permissions: ['monitoring.manage'],
  params: ['rule', 'server'],
  async make({ hub, companyId, param, fleets }) {
    const id = param('rule').toLowerCase()
    const fleet = await fleets.of(companyId)
    const named = fleet.find(server => server.id === param('server').toLowerCase())
    const shared = {
      server: named === undefined ? null : { id: named.id, name: named.name },
      metrics: metrics.map(({ name, labels, unit }) => ({ name, labels, unit })),
      facets: serverFacets(fleet),
    }
    if (id === '') return { rule: null, ...shared }
    if (!isUuid(id)) throw notFound()
    const record = await findRule(hub.database.db, companyId, id)
    const chosen = new Set(record.rule.scope.server_ids)
    return {
      rule: {
        row: toRuleRow(record, await ruleActivity(hub, companyId)),
        scope: record.rule.scope,
        servers: fleet.filter(server => chosen.has(server.id)).map(server => ({ id: server.id, name: server.name })),
      },
      ...shared,
    }
  },
}

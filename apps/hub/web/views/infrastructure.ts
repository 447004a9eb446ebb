// The kinds of resources of a company: how many of each, in which health, and what is wrong with any of them.

import { kinds } from '../../kinds.ts'
import { conditionText } from '../../resources/conditions.ts'
import { readOverview } from '../../resources/resource-overview.ts'
import type { InfrastructureView, KindCounts, ResourceProblem } from './resource-pages.ts'
import type { View } from './view.ts'

/** Keys that decide which kinds are seen, and which of them may be changed. */
export const RESOURCE_KEYS = [...new Set(kinds.flatMap(({ info }) => [info.permissions.view, info.permissions.manage]))]

export const infrastructureView: View<InfrastructureView> = {
  permissions: [],
  optional: RESOURCE_KEYS,
  params: [],
  // All rows of all kinds are counted.
  ageMs: 10_000,
  async make({ hub, companyId, may }) {
    const { kinds: counted, problems } = await readOverview({ hub, companyId, caller: { permissions: { has: may } } })
    const counts = new Map(counted.map(each => [each.kind, each]))
    return {
      kinds: kinds.flatMap(({ info }): KindCounts[] => {
        const found = counts.get(info.kind)
        return found ? [{ ...found, title: info.title.many, isPart: info.parent !== null }] : []
      }),
      problems: problems.flatMap(({ info, kind, id, name, code, severity, detail, since }): ResourceProblem[] => {
        if (severity === 'info') return []
        const message = { en: conditionText(info, code, detail, 'en'), vi: conditionText(info, code, detail, 'vi') }
        return [{ kind, id, name, severity, sinceMs: since.getTime(), message }]
      }),
    }
  },
}

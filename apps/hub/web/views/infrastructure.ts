// The kinds of resources of a company: how many of each, in which health, and what is wrong with any of them.

import { kinds } from '../../kinds.ts'
import { resourcesOverview } from '../../resources/resource-overview.ts'
import type { InfrastructureView, KindCounts, ResourceProblem } from './resource-pages.ts'
import type { View } from './view.ts'

/** Keys that decide which kinds are seen, and which of them may be changed. */
export const RESOURCE_KEYS = [...new Set(kinds.flatMap(({ info }) => [info.permissions.view, info.permissions.manage]))]

export const infrastructureView: View<InfrastructureView> = {
  permissions: [],
  optional: RESOURCE_KEYS,
  params: [],
  async make({ hub, companyId, may }) {
    const caller = { permissions: { has: may } }
    const [en, vi] = await Promise.all([
      resourcesOverview({ hub, companyId, caller, language: 'en' }),
      resourcesOverview({ hub, companyId, caller, language: 'vi' }),
    ])
    const counts = new Map(en.kinds.map(each => [each.kind, each]))
    const vietnamese = new Map(vi.problems.map(({ kind, id, code, message }) => [`${kind} ${id} ${code}`, message]))
    return {
      kinds: kinds.flatMap(({ info }): KindCounts[] => {
        const found = counts.get(info.kind)
        return found ? [{ ...found, title: info.title.many, isPart: info.parent !== null }] : []
      }),
      problems: en.problems.flatMap(({ kind, id, name, code, severity, message, since }): ResourceProblem[] => {
        if (severity === 'info') return []
        const messages = { en: message, vi: vietnamese.get(`${kind} ${id} ${code}`) ?? message }
        return [{ kind, id, name, severity, sinceMs: since.getTime(), message: messages }]
      }),
    }
  },
}

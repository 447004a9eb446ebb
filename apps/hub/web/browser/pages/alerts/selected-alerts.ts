// Which alerts are selected, as rows or as groups of them, and what an act needs to know of them: also of rows that one
// has scrolled past, which the page is not sent any more.
import { useMemo } from 'preact/hooks'
import type { AlertGroup, AlertsView, MatchingAlertsView } from '../../../views/alerts.ts'
import { param } from '../../address/router.ts'
import { type Selection, useSelection } from '../../parts/selection.ts'
import { askView } from '../../view-request.ts'
import type { ActTarget } from './alert-acts.tsx'
import { titleOf } from './alert-face.tsx'

type Known = { readonly name: string | null; readonly serverId: string }

type SelectedAlerts = ActTarget & { readonly serverIds: readonly string[] }

export const groupKeyOf = ({ within, key }: AlertGroup): string => JSON.stringify([within, key])

/** So much of keys a question: they stand in an address, where a letter takes up to nine signs. */
const KEYS_CHARS_MAX = 1_500

/** The keys of groups in as many questions as they need; a group that stands in a chosen one is chosen with it. */
function questionsFor(keys: readonly string[]): string[] {
  const chosen = new Set(keys)
  const questions: string[] = []
  let part: string[] = []
  for (const key of keys) {
    const [within]: readonly [string | null, string] = JSON.parse(key)
    if (within !== null && chosen.has(JSON.stringify([null, within]))) continue
    if (part.join().length + key.length > KEYS_CHARS_MAX && part.length > 0) {
      questions.push(`[${part}]`)
      part = []
    }
    part.push(key)
  }
  return part.length === 0 ? questions : [...questions, `[${part}]`]
}

const ask = (groups: string | null): Promise<MatchingAlertsView> =>
  askView('matching-alerts', { q: param('q'), ...(groups === null ? {} : { group: param('group'), in: groups }) })

/** The alerts of several answers, each once: one that has two tags stands in two groups. */
function joined(answers: readonly MatchingAlertsView[]): Map<string, Known> {
  const found = new Map<string, Known>()
  for (const { ids, names, serverIds, serverAt } of answers)
    for (const [at, id] of ids.entries())
      found.set(id, { name: names[at] ?? null, serverId: serverIds[serverAt[at] ?? 0] ?? '' })
  return found
}

function targetOf(known: ReadonlyMap<string, Known>, ids: readonly string[]): SelectedAlerts {
  const all = ids.flatMap(id => known.get(id) ?? [])
  const names = all.flatMap(({ name }) => name ?? [])
  return { ids, names, serverIds: [...new Set(all.map(({ serverId }) => serverId))] }
}

type Selected = {
  readonly selection: Selection
  /** All alerts that the filter names, or all groups of them. Throws an ApiFault. */
  readonly selectMatching: () => Promise<void>
  /** All alerts that the filter names, with their servers. Throws an ApiFault. */
  readonly matching: () => Promise<MatchingAlertsView>
  /** What is selected, by alerts. Throws an ApiFault: which alerts are in a group the hub is asked for. */
  readonly target: () => Promise<SelectedAlerts>
}

export function useSelectedAlerts(data: AlertsView | null): Selected {
  const selection = useSelection(param('group'))
  const known = useMemo(() => new Map<string, Known>(), [selection])
  for (const row of data?.rows ?? [])
    if (selection.has(row.id))
      known.set(row.id, { name: `${titleOf(row)} · ${row.serverName}`, serverId: row.serverId })
  const groups = data?.groups ?? null
  const selectMatching = async (): Promise<void> => {
    if (groups !== null) return selection.setMatching(groups.map(groupKeyOf))
    const matching = joined([await ask(null)])
    for (const [id, each] of matching) known.set(id, each)
    selection.setMatching([...matching.keys()])
  }
  const target = async (): Promise<SelectedAlerts> => {
    if (groups === null) return targetOf(known, selection.all)
    const answers: MatchingAlertsView[] = []
    for (const question of selection.isOfAll ? [null] : questionsFor(selection.all)) answers.push(await ask(question))
    const found = joined(answers)
    return targetOf(found, [...found.keys()])
  }
  return { selection, selectMatching, matching: () => ask(null), target }
}

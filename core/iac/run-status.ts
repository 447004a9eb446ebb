// What becomes of a run (decisions G-125, G-183; resources.md ): its status from its items, and the title
// of one that has none. Which items an apply takes: items-to-apply.ts.

export type ItemAction = 'create' | 'update' | 'delete' | 'none'
export type ItemStatus = 'planned' | 'applied' | 'skipped' | 'failed'
export type RunStatus = 'planned' | 'invalid' | 'applied' | 'partially-applied'

/**
 * The status of a run after an apply: all items applied, or some, or none. Items of action none count once something
 * was applied at all; a run of nothing else is applied.
 */
export function statusAfterApply(items: readonly { readonly status: ItemStatus }[]): RunStatus {
  const applied = items.filter(item => item.status === 'applied').length
  if (applied === items.length) return 'applied'
  return applied > 0 ? 'partially-applied' : 'planned'
}

const VERBS: readonly (readonly [action: ItemAction, verb: string])[] = [
  ['create', 'Create'],
  ['update', 'Update'],
  ['delete', 'Delete'],
]
const TITLE_CHARS_MAX = 255

type TitledItem = { readonly action: ItemAction; readonly kind: string; readonly name: string }

/** `Create server web-1, update 3`: a single item is named, more are counted. */
export function titleOfPlan(items: readonly TitledItem[], errorCount: number): string {
  if (errorCount > 0) return errorCount === 1 ? 'Invalid: 1 error' : `Invalid: ${errorCount} errors`
  const parts = VERBS.flatMap(([action, verb]) => {
    const some = items.filter(item => item.action === action)
    const [first] = some
    if (!first) return []
    return [some.length === 1 ? `${verb} ${first.kind} ${first.name}` : `${verb} ${some.length}`]
  })
  const text = parts.length === 0 ? 'No changes' : parts.join(', ')
  return text.slice(0, TITLE_CHARS_MAX)
}

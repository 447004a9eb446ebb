// What commands do with the state of a matcher: the same calls whether it runs, and does them itself, or is stopped.
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import type { DeadLetter, MatcherState } from '../state/state-types.ts'

const PAGE = 500

/** Ids null: all of them. */
export type ControlCall =
  | { readonly kind: 'list_dead_letters'; readonly after: number }
  | { readonly kind: 'retry_dead_letters'; readonly ids: readonly number[] | null }
  | { readonly kind: 'drop_dead_letters'; readonly ids: readonly number[] | null }
  | { readonly kind: 'stored_host'; readonly hostId: string }

/** The result as it goes over the wire. */
export type ControlResult = Readonly<Record<string, unknown>>

const letterOf = (letter: DeadLetter): Unchecked => ({
  id: letter.id,
  company_id: letter.companyId,
  event_id: letter.eventId,
  type: letter.event.type,
  host_id: letter.event.host_id,
  at: new Date(letter.atMs).toISOString(),
  reason: letter.reason,
})

export async function perform(state: MatcherState, call: ControlCall): Promise<ControlResult> {
  switch (call.kind) {
    case 'list_dead_letters': {
      const letters = state.deadLetters(call.after, PAGE)
      return { data: letters.map(letterOf), after: letters.at(-1)?.id ?? call.after, more: letters.length === PAGE }
    }
    case 'retry_dead_letters':
      return { count: await state.retryDeadLetters(call.ids) }
    case 'drop_dead_letters':
      return { count: await state.dropDeadLetters(call.ids) }
    case 'stored_host':
      return { stored: state.storedHost(call.hostId) }
  }
}

const isIds = (value: unknown): value is readonly number[] | null =>
  value === null || (Array.isArray(value) && value.every(id => Number.isSafeInteger(id)))

/** A call as it came; null for one that is none. */
export function parseCall(value: unknown): ControlCall | null {
  if (!isObject(value)) return null
  const { kind, after, ids, hostId } = value
  if (kind === 'list_dead_letters' && typeof after === 'number') return { kind, after }
  if ((kind === 'retry_dead_letters' || kind === 'drop_dead_letters') && isIds(ids)) return { kind, ids }
  if (kind === 'stored_host' && typeof hostId === 'string') return { kind, hostId }
  return null
}

// When a publication is refused because it would empty a zone or delete much of it.
import { RunFailed } from '../resources/runs.ts'
import { keyOf, type RecordSet } from './powerdns-api.ts'

const RECORDS_TO_GUARD = 10
const DELETED_SHARE_MAX = 0.3

/** Throws RunFailed for a change that empties a zone or deletes much of it. */
export function refuseUnsafe(intended: readonly RecordSet[], served: readonly RecordSet[]): void {
  const values = (sets: readonly RecordSet[]) =>
    new Set(sets.flatMap(set => set.values.map(value => `${keyOf(set)} ${value}`)))
  const [wanted, known] = [values(intended), values(served)]
  const gone = [...known].filter(value => !wanted.has(value)).length
  const isMuch = known.size >= RECORDS_TO_GUARD && gone > known.size * DELETED_SHARE_MAX
  if (known.size > 0 && (wanted.size === 0 || isMuch)) throw new RunFailed('unsafe_publish')
}

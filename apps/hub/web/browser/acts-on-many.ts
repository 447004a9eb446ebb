// How an act on many things is done: in which portions, how many side by side, and what is left when something is
// refused.
import { type ApiFault, type ApiResult, send } from './api.ts'

/** How many requests of an act on many are under way at a time. */
const EACH_AT_ONCE = 4
/** An act on many, one by one: how many were done, which were not, and what the first of those was told. */
export type EachResult = { readonly done: number; readonly left: readonly string[]; readonly fault: ApiFault | null }

/** Whether the same would be said of everything else: no right, no hub. */
const isOfAll = ({ status }: ApiFault): boolean => status === 0 || status === 403 || status >= 500

/**
 * An act that the API takes one by one, a few at a time. What is refused of one holds up no other; once nothing can be
 * done any more, or `isOver` says so, the rest is left.
 */
export async function sendEach(
  ids: readonly string[],
  act: (id: string) => Promise<ApiResult>,
  onDone: (done: number) => void = () => {},
  isOver: () => boolean = () => false,
): Promise<EachResult> {
  const left = new Set(ids)
  let [next, fault, isStopped]: [number, ApiFault | null, boolean] = [0, null, false]
  const work = async (): Promise<void> => {
    for (let id = ids[next++]; id !== undefined && !isStopped && !isOver(); id = ids[next++]) {
      const result = await act(id)
      if (result.ok) {
        left.delete(id)
        onDone(ids.length - left.size)
      } else {
        fault ??= result.fault
        isStopped ||= isOfAll(result.fault)
      }
    }
  }
  await Promise.all(Array.from({ length: EACH_AT_ONCE }, work))
  return { done: ids.length - left.size, left: [...left], fault }
}

/** The most ids that a bulk endpoint takes in a call. */
const BULK_MAX = 200
/** An act on many as the bulk endpoints answer it: how many were done, and what was refused. */
type Refusal = { readonly id: string; readonly errors: Readonly<Record<string, string>> }
type BulkResult = {
  readonly done: number
  readonly refused: readonly Refusal[]
  readonly fault: ApiFault | null
}

/** Whether an act on many was done to all of them, as an act on one says it: what was refused is a fault. */
export function resultOfAll({ refused: [first], fault }: BulkResult): ApiResult {
  if (fault !== null) return { ok: false, fault }
  if (first === undefined) return { ok: true, body: null }
  const message = Object.values(first.errors).join(' ')
  return { ok: false, fault: { status: 422, message, errors: {}, requestId: null } }
}

/** An act on many things, in as few requests as the API allows. `onDone` is told how many are done so far. */
export async function sendBulk(
  path: string,
  idsName: string,
  ids: readonly string[],
  body: Readonly<Record<string, unknown>>,
  onDone: (done: number) => void = () => {},
): Promise<BulkResult> {
  let done = 0
  const refused: Refusal[] = []
  for (let at = 0; at < ids.length; at += BULK_MAX) {
    const part = ids.slice(at, at + BULK_MAX)
    const result = await send<{ refused: readonly Refusal[] }>('POST', path, { ...body, [idsName]: part })
    if (!result.ok) return { done, refused, fault: result.fault }
    refused.push(...result.body.refused)
    done += part.length - result.body.refused.length
    onDone(done)
  }
  return { done, refused, fault: null }
}

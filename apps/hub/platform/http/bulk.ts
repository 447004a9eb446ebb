// Bulk calls: the hub acts on each resource that it can, and names the others with the reason. One alert that recovered
// in the meantime must not keep an operator from acknowledging the fifty others.
import { type TSchema, Type } from '@sinclair/typebox'
import { ApiError } from './api-error.ts'
import { type Language, render } from './api-texts.ts'
import { id, listed, named, texts } from './response-schema.ts'

/** How many resources one bulk call may name, unless the route says otherwise. */
export const BULK_MAX = 200

const refusal = named('Refusal', { id: id(), errors: texts() })

/** The response of a bulk call: what was done, and what was refused. */
export const bulkResponse = <T extends TSchema>(item: T) =>
  Type.Object({ data: listed(item), refused: listed(refusal) })

export type Refusal = { readonly id: string; readonly errors: Readonly<Record<string, string>> }

export function refusalOf(resourceId: string, error: ApiError, language: Language): Refusal {
  const fields = Object.entries(error.more.errors ?? {}).map(
    ([field, list]) => [field, list.map(text => render(text, language)).join(', ')] as const,
  )
  return { id: resourceId, errors: Object.fromEntries(fields) }
}

/** Acts on each id once. `find` throws 404 for an id that the company does not have, before anything is changed. */
export async function forEachId<T>(
  ids: readonly string[],
  language: Language,
  find: (id: string) => Promise<unknown>,
  act: (id: string) => Promise<T>,
): Promise<{ done: T[]; refused: Refusal[] }> {
  const unique = [...new Set(ids.map(each => each.toLowerCase()))]
  for (const each of unique) await find(each)
  const done: T[] = []
  const refused: Refusal[] = []
  for (const each of unique)
    try {
      done.push(await act(each))
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 422) throw error
      refused.push(refusalOf(each, error, language))
    }
  return { done, refused }
}

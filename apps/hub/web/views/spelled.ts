// How servers spell what a filter asks of them: a filter makes nothing of case, and what is made of it, as the scope of
// a silence, does.
import { parseFilter } from '../address/filter.ts'

type Server = {
  readonly tags: readonly string[]
  readonly environment: string | null
  readonly role: string | null
  readonly datacenter: string | null
}

const values = {
  tag: ({ tags }: Server) => tags,
  env: ({ environment }: Server) => [environment],
  role: ({ role }: Server) => [role],
  dc: ({ datacenter }: Server) => [datacenter],
} as const
const isKey = (key: string | null): key is keyof typeof values => key !== null && Object.hasOwn(values, key)

/** The values that the terms of a filter name, of the servers which it found: in the order of the terms, each once. */
export function spelledBy(servers: readonly Server[], filter: string): readonly string[] {
  const found = new Set<string>()
  for (const { key, value } of parseFilter(filter)) {
    if (!isKey(key)) continue
    const wanted = value.toLowerCase()
    for (const server of servers)
      for (const each of values[key](server)) if (each?.toLowerCase() === wanted) found.add(each)
  }
  return [...found]
}

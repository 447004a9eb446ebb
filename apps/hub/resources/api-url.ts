// The address of another program's interface: credentials have fields of their own, which are sealed, and paths are
// appended to it.
import { type Words, words } from '../platform/http/api-texts.ts'

/** What is wrong with an address that is not http(s), or that holds a user, a query or a fragment. */
export function apiUrlFault(given: string): Words | null {
  const url = URL.parse(given)
  const isPlain =
    url !== null && ['http:', 'https:'].includes(url.protocol) && !/[@?#]/.test(given) && url.username === ''
  return isPlain ? null : words('management_url')
}

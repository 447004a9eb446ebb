// Which addresses of a collector or a matcher an agent takes: https, or plain http on its own host. Whether it moves to
// another one: collector-move.ts.
import { isPlainBeyondHost } from '../../../core/config/plain-http.ts'

/** Why an address of a collector or a matcher cannot be used; null when it can. Plain http is for this host only. */
export function collectorUrlFault(url: string): string | null {
  if (!URL.canParse(url)) return 'must be an address such as https://collector.example.com'
  const parsed = new URL(url)
  const { protocol, username, password, search, hash } = parsed
  if (username !== '' || password !== '') return 'must not carry credentials'
  if (search !== '' || hash !== '') return 'must not carry a query or a fragment'
  if (protocol === 'https:') return null
  if (protocol !== 'http:') return 'must be https'
  return isPlainBeyondHost(parsed) ? 'must be https: plain http is for this host only' : null
}

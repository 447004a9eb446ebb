// Which addresses of a collector or a matcher an agent takes: https, or plain http on its own host. Whether it moves to
// another one: collector-move.ts.
import { isLoopback } from '../../../core/config/address.ts'
import { isPlainBeyondHost } from '../../../core/config/plain-http.ts'

/**
 * What `fetch` is told of proxies: nothing of this host goes through one, whatever HTTP_PROXY says, for it would be
 * told token and licence in plain text. NO_PROXY of the environment holds for the rest.
 */
export const proxyOf = (url: string): { readonly proxy?: false } =>
  isLoopback(URL.parse(url)?.hostname ?? '') ? { proxy: false } : {}

/** The variable of the environment by which requests to an address go through a proxy; null without one. */
export function proxyVariable(url: string, environment: Readonly<Record<string, string | undefined>>): string | null {
  const parsed = URL.parse(url)
  if (parsed === null || isLoopback(parsed.hostname)) return null
  const names = parsed.protocol === 'https:' ? ['https_proxy', 'HTTPS_PROXY'] : ['http_proxy', 'HTTP_PROXY']
  return names.find(name => environment[name]) ?? null
}

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

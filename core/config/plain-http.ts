// When plain HTTP is refused: beyond this host, whether it is served there or called, unless the operator says
// otherwise (decision G-15). An agent has no such permission: its collector is reached over https, or is on its own
// host.
import { isLoopback, splitAddress } from './address.ts'
import type { ConfigFault } from './keys.ts'

/** Whether a call of this address would go in plain text to another host. */
export const isPlainBeyondHost = (url: URL): boolean => url.protocol === 'http:' && !isLoopback(url.hostname)

/** Addresses of other parts that the executable calls. What else is wrong with the last two is told elsewhere. */
const CALLED_KEYS = ['hub.url', 'matcher.url', 'collector.admin_url'] as const

/** What an executable that serves or calls by these keys may not be told. */
export function plainFaults(config: Readonly<Record<string, unknown>>): ConfigFault[] {
  const faults: ConfigFault[] = []
  const isAllowed = config['listen.insecure'] === true
  const isTls = typeof config['tls.cert_file'] === 'string'
  for (const key of ['listen', 'admin.listen', 'ops.listen']) {
    const value = config[key]
    if (typeof value !== 'string' || isAllowed || isLoopback(splitAddress(value).hostname)) continue
    if (key === 'ops.listen' || !isTls)
      faults.push({
        key,
        value,
        message: 'would serve plain HTTP beyond this host; set listen.insecure to allow it',
      })
  }
  for (const key of CALLED_KEYS) {
    const value = config[key]
    if (typeof value !== 'string') continue
    const url = URL.parse(value)
    if (key === 'hub.url' && !/^https?:$/.test(url?.protocol ?? ''))
      faults.push({ key, value, message: 'must be an http:// or https:// address' })
    else if (!isAllowed && url !== null && isPlainBeyondHost(url))
      faults.push({ key, value, message: 'is plain http to another host; use https' })
  }
  return faults
}

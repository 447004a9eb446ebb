// When plain HTTP is refused: beyond this host, whether it is served there or called, unless the operator says
// otherwise (decision G-15). An agent has no such permission: its collector is reached over https, or is on its own
// host.
import { isLoopback, splitAddress } from './address.ts'
import type { ConfigFault } from './keys.ts'

/** Whether a call of this address would go in plain text to another host. */
export const isPlainBeyondHost = (url: URL): boolean => url.protocol === 'http:' && !isLoopback(url.hostname)

/** What an executable that serves or calls by `listen`, `admin.listen`, `ops.listen` and `hub.url` may not be told. */
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
  const hubUrl = config['hub.url']
  if (typeof hubUrl !== 'string') return faults
  const url = URL.canParse(hubUrl) ? new URL(hubUrl) : null
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
    faults.push({ key: 'hub.url', value: hubUrl, message: 'must be an http:// or https:// address' })
  else if (!isAllowed && isPlainBeyondHost(url))
    faults.push({ key: 'hub.url', value: hubUrl, message: 'is plain http to another host; use https' })
  return faults
}

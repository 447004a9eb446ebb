// One look at a site, as a visitor sees it: where its name leads, what it answers, with which certificate (RES-091 to
// RES-093). The connection goes to the address that the name has and that was checked; a name that does not resolve is
// looked for at the proxy itself, so that a site can be seen before its name leads there.
import { randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import { rootCertificates } from 'node:tls'
import { parseAddress } from '../../../core/network/ip-address.ts'
import { type Listener, tlsPortOf } from '../../../core/proxies/proxy-config.ts'
import { isExpectedStatus } from '../../../core/proxies/site-fields.ts'
import type { Hub } from '../hub-context.ts'
import { NoConnection, openConnection, requestOver, secure } from '../platform/open-connection.ts'
import { isAllowedAddress, readBeginning, resolveTarget } from '../platform/outbound-guard.ts'
import { wayOutOf } from '../way-out/forward-proxy.ts'
import type { ProxySite, SiteResult } from './proxy-site.ts'

const CHECK_MS = 10_000
const HTTP_PORT = 80
const HTTPS_PORT = 443

type CheckedProxy = {
  readonly companyId: string
  /** Where its names must lead; empty when nobody said. */
  readonly addresses: readonly string[]
  readonly listen: readonly Listener[]
  /** Further certificates to trust, PEM. */
  readonly extraRoots: string | null
}
type Seen = { -readonly [K in keyof SiteResult]: SiteResult[K] }

/** A name that only a wildcard has. */
const askedName = (name: string): string =>
  name.startsWith('*.') ? `${randomBytes(8).toString('hex')}${name.slice(1)}` : name

const normalAddress = (text: string): string => parseAddress(text)?.toString() ?? text

/** Whether a site is looked at with TLS, and the port. */
function portOf(site: ProxySite, listen: readonly Listener[]): { readonly isTls: boolean; readonly port: number } {
  const plain = listen.find(({ tls, port }) => !tls && port === HTTP_PORT) ?? listen.find(({ tls }) => !tls)
  const secured = listen.length === 0 ? HTTPS_PORT : tlsPortOf(listen)
  const isTls = secured !== null && (site.certificate_id !== null || site.redirect_https || plain === undefined)
  return isTls ? { isTls, port: secured } : { isTls, port: plain?.port ?? HTTP_PORT }
}

/** The address to connect to. Throws NoConnection. */
async function findAddress({ config }: Hub, host: string, own: readonly string[], seen: Seen): Promise<string> {
  const resolved = await resolveTarget(config, host)
  if ('addresses' in resolved) {
    seen.resolves_to = resolved.addresses.map(normalAddress)
    const here = seen.resolves_to.find(address => own.includes(address))
    if (own.length > 0) seen.resolves_here = here !== undefined
    return here ?? seen.resolves_to[0] ?? ''
  }
  if (resolved.fault === 'target_not_allowed') throw new NoConnection(resolved.fault)
  if (own.length > 0) seen.resolves_here = false
  const instead = own.find(address => isAllowedAddress(config, address))
  if (instead === undefined) throw new NoConnection('dns')
  return instead
}

const plainFingerprint = (text: string): string => text.replaceAll(':', '').toLowerCase()

async function look(hub: Hub, proxy: CheckedProxy, site: ProxySite, seen: Seen, bound: string | null): Promise<void> {
  const host = askedName(site.hostnames[0] ?? '')
  const deadlineMs = performance.now() + CHECK_MS
  const address = await findAddress(hub, host, proxy.addresses, seen)
  const { isTls, port } = portOf(site, proxy.listen)
  const via = await wayOutOf(hub, proxy.companyId, 'probes', host, [address])
  const plain = await openConnection({ host: address, port }, via, deadlineMs)
  let socket = plain
  if (isTls) {
    const ca = proxy.extraRoots === null ? {} : { ca: [...rootCertificates, proxy.extraRoots] }
    const secured = await secure(plain, host, { deadlineMs, verifies: false, ...ca })
    seen.tls_valid = secured.authorized
    seen.certificate_fingerprint = plainFingerprint(secured.getPeerCertificate().fingerprint256 ?? '')
    if (bound !== null) seen.certificate_matches = seen.certificate_fingerprint === plainFingerprint(bound)
    socket = secured
  }
  const { path, contains, expect_status } = site.check
  const usualPort = isTls ? HTTPS_PORT : HTTP_PORT
  const headers = {
    Host: `${isIP(host) === 6 ? `[${host}]` : host}${port === usualPort ? '' : `:${port}`}`,
    'User-Agent': 'svc-hub',
    Accept: '*/*',
  }
  const response = await requestOver(socket, { method: 'GET', path, headers, deadlineMs })
  seen.status_code = response.status
  const body = await readBeginning(response)
  if (seen.tls_valid === false) seen.error = 'tls'
  else if (!isExpectedStatus(expect_status, response.status)) seen.error = 'status'
  else if (contains !== null && !body.includes(contains)) seen.error = 'contains'
}

/** Looks at a site. `bound` is the fingerprint of its certificate, where one is bound and known. */
export async function checkSite(
  hub: Hub,
  proxy: CheckedProxy,
  site: ProxySite,
  bound: string | null,
): Promise<SiteResult> {
  const seen: Seen = {
    checked_at: new Date(hub.now()).toISOString(),
    resolves_to: [],
    resolves_here: null,
    status_code: null,
    seconds: null,
    tls_valid: null,
    certificate_fingerprint: null,
    certificate_matches: null,
    error: null,
  }
  const startMs = performance.now()
  try {
    await look(hub, proxy, site, seen, bound)
    seen.seconds = Math.round(performance.now() - startMs) / 1000
  } catch (error) {
    // What breaks off in the middle of a body is a connection that was closed.
    seen.error = error instanceof NoConnection ? error.fault : 'closed'
  }
  return seen
}

// What is wrong with a site of a proxy, by what its probe saw.
import type { Finding } from '../resources/conditions.ts'
import type { ProxySite, SiteResult } from './proxy-site.ts'

export type Checked = { readonly site: ProxySite; readonly result: SiteResult }

export function findingsOf({ site, result }: Checked): Finding[] {
  const host = site.hostnames[0] ?? ''
  const found: Finding[] = []
  if (result.error !== null) found.push({ code: 'site_failing', detail: { host, error: result.error }, isProbed: true })
  // A name that has no address now may have one at the next look; one that leads elsewhere does.
  if (result.resolves_here === false)
    found.push({
      code: 'dns_elsewhere',
      detail: { host, resolves_to: result.resolves_to },
      isProbed: result.resolves_to.length === 0,
    })
  if (result.certificate_matches === false)
    found.push({ code: 'wrong_certificate', detail: { host, fingerprint: result.certificate_fingerprint } })
  return found
}

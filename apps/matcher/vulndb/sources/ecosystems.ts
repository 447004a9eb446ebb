// Which release an OSV ecosystem is, and what it says of the build (MAT-076, 082): `Ubuntu:Pro:18.04:LTS` is release
// 18.04 in the channel esm, `Ubuntu:Pro:FIPS:22.04:LTS` special builds of it. Ecosystems that are not known here give
// no rows.
import type { Affected, FixChannel } from '../../../../core/matching/advisory.ts'

type Ecosystem = {
  readonly release: string
  readonly channel: FixChannel
  readonly flavour?: string
}

/** The distributions that are read from OSV records. */
export type OsvDistro = 'debian' | 'ubuntu' | 'almalinux' | 'rocky' | 'suse' | 'opensuse'

/** What each names its packages by (MAT-078). */
export const osvNamesBy = (distro: OsvDistro): Affected['by'] => (distro === 'almalinux' ? 'binary' : 'source')

const standard = (release: string): Ecosystem => ({ release, channel: 'standard' })

function ubuntu(parts: readonly string[]): Ecosystem | null {
  const version = parts.find(part => /^\d\d\.\d\d$/.test(part))
  if (version === undefined) return null
  const rest = parts.filter(part => part !== version && part !== 'LTS' && part !== 'Pro')
  const mark = rest.join(':').toLowerCase()
  // Canonical spells both `Pro:Realtime:22.04:LTS` and `Pro:22.04:LTS:Realtime:Kernel`.
  const flavour = /^fips[^:]*$/.test(mark) ? 'fips' : /^realtime[^:]*(:kernel)?$/.test(mark) ? 'realtime' : null
  const release = `ubuntu:${version}`
  const channel = parts.includes('Pro') ? 'esm' : 'standard'
  if (rest.length === 0) return { release, channel }
  return flavour === null ? null : { release, channel, flavour }
}

const numbered = (distro: string, parts: readonly string[]): Ecosystem | null =>
  parts.length === 1 && /^\d+$/.test(parts[0]!) ? standard(`${distro}:${parts[0]}`) : null

/**
 * `SUSE:Linux Enterprise Module for Basesystem 15 SP5` is `suse:15.5`, the release of all products and modules of the
 * service pack; other products, as Micro, keep their names.
 */
function suse(product: string): Ecosystem | null {
  const name = product.toLowerCase()
  const pack = /^linux enterprise (?!micro).*?(\d+)(?:(?:\.| sp)(\d+))?(?:-[a-z -]+)?$/.exec(name)
  const version = pack ? (pack[2] === undefined ? pack[1] : `${pack[1]}.${pack[2]}`) : name
  return name === '' ? null : standard(`suse:${version}`)
}

function opensuse(product: string): Ecosystem | null {
  const leap = /^Leap (\d+\.\d+)$/.exec(product)?.[1]
  if (leap !== undefined) return standard(`opensuse:${leap}`)
  return product === 'Tumbleweed' ? standard('opensuse:tumbleweed') : null
}

/** The release of an ecosystem such as `AlmaLinux:9`; null when this distribution has no such. */
export function ecosystemOf(distro: OsvDistro, ecosystem: string): Ecosystem | null {
  const [name, ...parts] = ecosystem.split(':')
  switch (distro) {
    case 'debian':
      return name === 'Debian' ? numbered('debian', parts) : null
    case 'ubuntu':
      return name === 'Ubuntu' ? ubuntu(parts) : null
    case 'almalinux':
      return name === 'AlmaLinux' ? numbered('almalinux', parts) : null
    case 'rocky':
      return name === 'Rocky Linux' ? numbered('rocky', parts) : null
    case 'suse':
      return name === 'SUSE' ? suse(parts.join(':')) : null
    case 'opensuse':
      return name === 'openSUSE' ? opensuse(parts.join(':')) : null
  }
}

// The release of a distribution that a server runs, and whose advisories it is compared with: its own, or those of what
// it is built on (MAT-110, MAT-112).
import { KNOWN_RELEASES } from './end-of-life.ts'
import type { MatchOptions } from './match-options.ts'
import type { Report } from './report-schema.ts'

type OperatingSystem = Report['os']

export type HostRelease = {
  /** The server's own distribution, part of its findings' keys; as `centos`. */
  readonly distro: string
  /** As `centos:7`: `<distro>:<release>` in lower case. */
  readonly ecosystem: string
  /** The release whose rows count, as `rhel:7`; and its distribution, whose source must be in the database. */
  readonly database: string
  readonly databaseDistro: string
  /** The release whose ends of support count: of the ecosystem, but CentOS Stream has others than CentOS Linux. */
  readonly support: string
}

/** Releases by codename, of which derivatives name the one that they are built on. */
const byCodename = (distro: string): ReadonlyMap<string, string> =>
  new Map(
    KNOWN_RELEASES.filter(release => release.distro === distro).map(({ codename, version }) => [codename, version]),
  )
const UBUNTU_CODENAMES = byCodename('ubuntu')
/** Debian itself names its version when it has one. */
const DEBIAN_CODENAMES = byCodename('debian')

/** Undefined for a distribution that is unknown here (unsupported_os). */
export function releaseOf(os: OperatingSystem, options: Pick<MatchOptions, 'centosAsRedhat'>): HostRelease | undefined {
  const id = os.id.toLowerCase()
  switch (id) {
    case 'debian':
      return own('debian', debianVersion(os))
    case 'raspbian':
      return borrowed('raspbian', debianVersion(os), 'debian', debianVersion(os))
    case 'ubuntu':
      return own('ubuntu', leading(os.version_id, /^\d+\.\d+/) || os.codename)
    case 'alpine':
      return own('alpine', os.branch === 'edge' ? 'edge' : leading(os.version_id, /^\d+\.\d+/))
    case 'rhel':
      return rhel(os)
    case 'almalinux':
    case 'rocky':
      return own(id, leading(os.version_id, /^\d+/))
    case 'centos':
      return options.centosAsRedhat ? centos(os) : undefined
    default:
      return suse(os, id) ?? derivative(os, id)
  }
}

/** `<distro>:<release>` of any server, of one whose distribution is unknown here too: packages are listed under it. */
export function ecosystemOf(os: OperatingSystem, options: Pick<MatchOptions, 'centosAsRedhat'>): string {
  return releaseOf(os, options)?.ecosystem ?? `${os.id}:${os.version_id || os.codename}`.toLowerCase()
}

function own(distro: string, version: string): HostRelease {
  return borrowed(distro, version, distro, version)
}

function borrowed(distro: string, version: string, databaseDistro: string, databaseVersion: string): HostRelease {
  const ecosystem = `${distro}:${version.toLowerCase()}`
  const database = `${databaseDistro}:${databaseVersion.toLowerCase()}`
  return { distro, ecosystem, database, databaseDistro, support: ecosystem }
}

const leading = (text: string, form: RegExp): string => form.exec(text)?.[0] ?? ''

/** Testing and unstable have no number: their codename stands for it, of which no rows exist. */
function debianVersion(os: OperatingSystem): string {
  const number = leading(os.version_id, /^\d+/)
  return number || os.codename || (/\bsid\b/.test(os.pretty_name ?? '') ? 'sid' : '')
}

/** The paid extensions of a minor release have rows of their own, for servers whose CPE names one (MAT-085). */
function rhel(os: OperatingSystem): HostRelease {
  const release = own('rhel', leading(os.version_id, /^\d+/))
  const extended = /^cpe:\/o:redhat:rhel_(eus|aus|tus|e4s):(\d+\.\d+)(?::|$)/.exec(os.cpe_name)
  return extended ? { ...release, database: `rhel:${extended[2]}-${extended[1]}` } : release
}

/** The release whose rows count beside those of a minor release's extension: `rhel:8` of `rhel:8.6-eus`. */
export function baseRelease(release: string): string | undefined {
  const major = /^rhel:(\d+)\.\d+-[a-z0-9]+$/.exec(release)?.[1]
  return major && `rhel:${major}`
}

function centos(os: OperatingSystem): HostRelease {
  const major = leading(os.version_id, /^\d+/)
  const release = borrowed('centos', major, 'rhel', major)
  // From 9 on there is no other CentOS than Stream.
  const isStream = /stream/i.test(os.pretty_name ?? '') || Number(major) >= 9
  return isStream ? { ...release, support: `centos-stream:${major}` } : release
}

/**
 * The ecosystem is the product as PRETTY_NAME spells it (`suse:linux enterprise server 15 sp5`, `opensuse:leap 15.6`);
 * the database has one release for all products and modules of a service pack (`suse:15.5`, `opensuse:15.6`), or from
 * 16 on of a minor release (`suse:16.0`).
 */
function suse(os: OperatingSystem, id: string): HostRelease | undefined {
  if (!/^(sle[sd]?([-_].+)?|sl-micro|opensuse.*)$/.test(id)) return undefined
  const product = susePattern(os.pretty_name ?? '') ?? susePattern(suseProduct(os, id))
  if (!product) return undefined
  const [, open, name] = product
  const distro = open ? 'opensuse' : 'suse'
  const leap = /^leap (\d+\.\d+)$/.exec(name!)?.[1]
  const pack = /^linux enterprise (?!micro).*?(\d+)(?:(?:\.| sp)(\d+))?$/.exec(name!)
  const version = leap ?? (pack ? (pack[2] ? `${pack[1]}.${pack[2]}` : pack[1]!) : name!)
  const release = borrowed(distro, name!, distro, version)
  return { ...release, support: release.database }
}

const susePattern = (product: string): RegExpExecArray | null =>
  /^(open)?suse (.+)$/.exec(product.trim().toLowerCase().replace(/\s+/g, ' '))

/** The product's name as os-release would spell it, of a report without PRETTY_NAME. */
function suseProduct(os: OperatingSystem, id: string): string {
  if (id.startsWith('opensuse')) {
    const isLeap = /^\d/.test(os.version_id) && !id.includes('tumbleweed')
    return isLeap ? `openSUSE Leap ${leading(os.version_id, /^\d+\.\d+/)}` : 'openSUSE Tumbleweed'
  }
  if (id === 'sl-micro') return `SUSE Linux Micro ${os.version_id}`
  if (/micro/.test(id)) return `SUSE Linux Enterprise Micro ${os.version_id}`
  const product = SUSE_PRODUCTS.get(id) ?? 'Server'
  const [major = '', pack] = os.version_id.split('.')
  // From 16 on there are no service packs: 16.0 is a release as 16.1 is.
  if (Number(major) >= 16) return `SUSE Linux Enterprise ${product} ${os.version_id}`
  return `SUSE Linux Enterprise ${product} ${major}${pack && pack !== '0' ? ` SP${pack}` : ''}`
}

const SUSE_PRODUCTS: ReadonlyMap<string, string> = new Map([
  ['sled', 'Desktop'],
  ['sles_sap', 'Server for SAP Applications'],
  ['sle_hpc', 'High Performance Computing'],
  ['sle_rt', 'Real Time'],
])

/**
 * Derivatives of Ubuntu and Debian are matched with the release that they are built on, when they name it: by
 * UBUNTU_CODENAME, or by a codename of their own that is that of the release (Pop!_OS).
 */
function derivative(os: OperatingSystem, id: string): HostRelease | undefined {
  const likes = os.id_like.map(like => like.toLowerCase())
  const codename = os.codename.toLowerCase()
  const version = os.version_id.toLowerCase() || codename
  const ofUbuntu = os.ubuntu_codename?.toLowerCase() || (likes.includes('ubuntu') ? codename : '')
  const ubuntu = UBUNTU_CODENAMES.get(ofUbuntu)
  if (ubuntu) return borrowed(id, version, 'ubuntu', ubuntu)
  const debian = likes.includes('debian') ? DEBIAN_CODENAMES.get(codename) : undefined
  return debian && !likes.includes('ubuntu') ? borrowed(id, version, 'debian', debian) : undefined
}

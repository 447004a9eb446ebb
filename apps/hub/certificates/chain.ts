// What a certificate says, and what the certificates that are sent with it are worth: read from PEM by the
// platform's own X.509 code (RFC 5280), chained by issuer and signature, judged against the roots that are trusted.
import { createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { getCACertificates } from 'node:tls'
import { parseAddress } from '../../../core/network/ip-address.ts'

const CERTIFICATES_MAX = 10
const PEM_BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----[^-]*-----END \1-----/g

export type CertificateInfo = {
  readonly subject: string
  readonly issuer: string
  /** Hexadecimal, as openssl prints it. */
  readonly serial: string
  /** SHA-256 of the DER form, hexadecimal in lower case. */
  readonly fingerprint: string
  /** Host names and addresses that it is good for. */
  readonly sans: readonly string[]
  readonly commonName: string | null
  /** `rsa-2048`, `ec-p256`, `ed25519`; `unknown` for a kind of key that the platform cannot read. */
  readonly keyType: string
  readonly signatureAlgorithm: string
  readonly notBefore: Date
  readonly notAfter: Date
  readonly selfSigned: boolean
}

type ChainProblem = 'unrelated_certificate' | 'incomplete' | 'untrusted_root' | 'intermediate_expired'

export type Chain = {
  readonly leaf: CertificateInfo
  /** The leaf first, each followed by its issuer; what belongs to none of them is left out. */
  readonly pem: string
  readonly leafDer: Buffer
  readonly complete: boolean
  readonly trusted: boolean
  readonly orderFixed: boolean
  /** The one after the leaf that ends first; null when the leaf is alone. */
  readonly expiresFirst: { readonly subject: string; readonly notAfter: Date } | null
  readonly problems: readonly ChainProblem[]
}

/** Why a PEM text is refused. */
export type PemFault = 'no_certificate' | 'private_key' | 'too_many' | 'unreadable'

/** The library reads the bytes of UTF-8 texts one by one. */
const asUtf8 = (text: string): string => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: whether there is anything but single bytes.
  if (!/^[\x00-\xff]*$/.test(text)) return text
  const decoded = Buffer.from(text, 'latin1').toString('utf8')
  return decoded.includes('\ufffd') ? text : decoded
}

/** `CN=a.example.com, O=Example`, in the order of the certificate. */
const oneLine = (distinguished: string): string => asUtf8(distinguished).split('\n').join(', ')

const nameOf = (certificate: X509Certificate): string | null =>
  /^CN=(.*)$/m.exec(asUtf8(certificate.subject))?.[1] ?? null

/** Names of hosts and addresses; other kinds of names say nothing about a server. */
const sansOf = ({ subjectAltName }: X509Certificate): string[] =>
  (subjectAltName ?? '')
    .split(', ')
    .map(entry => /^(?:DNS|IP Address):(.+)$/.exec(entry)?.[1])
    .filter(name => name !== undefined)
    .map(name => parseAddress(name)?.toString() ?? name.toLowerCase())

const CURVES: Readonly<Record<string, string>> = { prime256v1: 'p256', secp384r1: 'p384', secp521r1: 'p521' }

/** The key that a certificate is for; null where the platform cannot read it (RSA-PSS, secp256k1, Ed448). */
function publicKeyOf(certificate: X509Certificate): KeyObject | null {
  try {
    return certificate.publicKey
  } catch {
    return null
  }
}

function keyTypeOf(certificate: X509Certificate): string {
  const { asymmetricKeyType = 'unknown', asymmetricKeyDetails } = publicKeyOf(certificate) ?? {}
  if (asymmetricKeyType === 'ec') {
    const curve = asymmetricKeyDetails?.namedCurve ?? 'unknown'
    return `ec-${CURVES[curve] ?? curve}`
  }
  const bits = asymmetricKeyDetails?.modulusLength
  return bits === undefined ? asymmetricKeyType : `${asymmetricKeyType}-${bits}`
}

const pemOf = (chain: readonly X509Certificate[]): string => `${chain.map(each => each.toString().trim()).join('\n')}\n`

const isSelfSigned = (certificate: X509Certificate): boolean => isIssuedBy(certificate, certificate)

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  try {
    return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)
  } catch {
    return false
  }
}

function infoOf(certificate: X509Certificate): CertificateInfo {
  return {
    subject: oneLine(certificate.subject),
    issuer: oneLine(certificate.issuer),
    serial: certificate.serialNumber,
    fingerprint: createHash('sha256').update(certificate.raw).digest('hex'),
    sans: sansOf(certificate),
    commonName: nameOf(certificate),
    keyType: keyTypeOf(certificate),
    signatureAlgorithm: certificate.signatureAlgorithm ?? 'unknown',
    notBefore: certificate.validFromDate,
    notAfter: certificate.validToDate,
    selfSigned: isSelfSigned(certificate),
  }
}

/** The certificates of a PEM text, in its order (RES-097, RES-098). */
function readPem(pem: string): X509Certificate[] | PemFault {
  if (/-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/.test(pem)) return 'private_key'
  const all = [...pem.matchAll(PEM_BLOCK)]
  const blocks = all.filter(([, label]) => label === 'CERTIFICATE').map(([block]) => block)
  if (blocks.length === 0) return 'no_certificate'
  if (blocks.length > CERTIFICATES_MAX) return 'too_many'
  // One that was cut off would be missing from the chain in silence.
  if (all.length < (pem.match(/-----BEGIN /g)?.length ?? 0)) return 'unreadable'
  try {
    return blocks.map(block => new X509Certificate(block))
  } catch {
    return 'unreadable'
  }
}

type BySubject = ReadonlyMap<string, readonly X509Certificate[]>

const bySubject = (certificates: readonly X509Certificate[]): BySubject =>
  Map.groupBy(certificates, certificate => certificate.subject)

let readSystemRoots: BySubject | null = null
/** The roots of the system; those that come with the runtime where it has none. Read once. */
function systemRoots(): BySubject {
  if (readSystemRoots) return readSystemRoots
  const system = getCACertificates('system')
  const pems = system.length > 0 ? system : getCACertificates('bundled')
  readSystemRoots = bySubject(pems.map(pem => new X509Certificate(pem)))
  return readSystemRoots
}

/** The certificates that are trusted: those of the system, and an operator's own. */
export class TrustedRoots {
  readonly #extra: BySubject

  /** One PEM text of an operator's own roots, which may be many; what cannot be read is left out. */
  constructor(extraPem: string | null) {
    const blocks = extraPem?.match(PEM_BLOCK) ?? []
    const extra = blocks.map(readPem)
    this.#extra = bySubject(extra.flatMap(read => (typeof read === 'string' ? [] : read)))
  }

  private named(subject: string): readonly X509Certificate[] {
    return [...(this.#extra.get(subject) ?? []), ...(systemRoots().get(subject) ?? [])]
  }

  /** Whether a certificate is one of them or was issued by one. */
  vouchFor(certificate: X509Certificate): boolean {
    const { fingerprint256 } = certificate
    if (this.named(certificate.subject).some(root => root.fingerprint256 === fingerprint256)) return true
    return this.named(certificate.issuer).some(root => isIssuedBy(certificate, root))
  }
}

/** The certificate that issued none of the others: it is what the file is about. */
const leafOf = (certificates: readonly X509Certificate[]): X509Certificate =>
  certificates.find(each => !certificates.some(other => other !== each && isIssuedBy(other, each))) ?? certificates[0]!

/** The leaf, followed by issuer after issuer. */
function inOrder(certificates: readonly X509Certificate[]): X509Certificate[] {
  const chain = [leafOf(certificates)]
  for (;;) {
    const last = chain.at(-1)!
    const issuer = certificates.find(each => !chain.includes(each) && isIssuedBy(last, each))
    if (issuer === undefined || isSelfSigned(last)) return chain
    chain.push(issuer)
  }
}

function chainOf(sent: readonly X509Certificate[], roots: TrustedRoots, now: Date): Chain {
  const certificates = [...new Map(sent.map(each => [each.fingerprint256, each])).values()]
  const chain = inOrder(certificates)
  const [leaf] = chain as [X509Certificate, ...X509Certificate[]]
  // What a root vouches for needs nothing after it: an old cross-signed root that is sent along is not judged.
  const anchor = chain.findIndex(each => roots.vouchFor(each))
  const trusted = anchor >= 0
  const issuers = chain.slice(1, trusted ? anchor + 1 : undefined)
  const complete = trusted || isSelfSigned(chain.at(-1)!)
  const first = issuers.toSorted((a, b) => a.validToDate.getTime() - b.validToDate.getTime())[0]
  const problems: ChainProblem[] = []
  if (chain.length < certificates.length) problems.push('unrelated_certificate')
  if (!complete) problems.push('incomplete')
  if (complete && !trusted) problems.push('untrusted_root')
  if (first && first.validToDate <= now) problems.push('intermediate_expired')
  return {
    leaf: infoOf(leaf),
    pem: pemOf(chain),
    leafDer: leaf.raw,
    complete,
    trusted,
    orderFixed: chain.some((each, at) => each !== certificates[at]),
    expiresFirst: first ? { subject: oneLine(first.subject), notAfter: first.validToDate } : null,
    problems,
  }
}

/** A PEM text in the form in which it is kept: the chain in order, without what stood between its blocks. */
export function normalPem(pem: string): string {
  const certificates = readPem(pem)
  return typeof certificates === 'string' ? pem : pemOf(inOrder(certificates))
}

/** What is wrong with a PEM text; null when it can be read. */
export function pemFault(pem: string): PemFault | null {
  const certificates = readPem(pem)
  return typeof certificates === 'string' ? certificates : null
}

/** The chain of a PEM text. */
export function readChain(pem: string, roots: TrustedRoots, now: Date): Chain | PemFault {
  const certificates = readPem(pem)
  return typeof certificates === 'string' ? certificates : chainOf(certificates, roots, now)
}

/** The chain that a TLS server sent, as DER in the order of sending. Throws for what is no certificate. */
export const chainOfDer = (sent: readonly Buffer[], roots: TrustedRoots, now: Date): Chain =>
  chainOf(
    sent.slice(0, CERTIFICATES_MAX).map(der => new X509Certificate(der)),
    roots,
    now,
  )

/** Whether a private key belongs to the first certificate of a chain; null for what is no readable key. */
export function keyMatches({ leafDer }: Chain, privateKey: string): boolean | null {
  try {
    return new X509Certificate(leafDer).checkPrivateKey(createPrivateKey(privateKey))
  } catch {
    return null
  }
}

/** The leaf of a chain that is kept, as DER. */
export const leafDer = (pem: string): Buffer => new X509Certificate(pem).raw

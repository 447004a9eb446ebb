// Certificates as operators have them, made by openssl: an authority, one in between, and leaves with names and dates.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export type Issued = { readonly pem: string; readonly key: string; readonly certFile: string; readonly keyFile: string }
type Wanted = {
  readonly subject: string
  /** `DNS:a.example.com,IP:192.0.2.1` */
  readonly sans?: string
  readonly days?: number
  readonly key?: keyof typeof NEW_KEY
  readonly isAuthority?: boolean
  /** The certificate vouches for itself where none is given. */
  readonly issuer?: Issued
}

const NEW_KEY = {
  ec: ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'],
  rsa: ['-newkey', 'rsa:2048'],
  ed25519: ['-newkey', 'ed25519'],
  'rsa-pss': ['-newkey', 'rsa-pss', '-pkeyopt', 'rsa_keygen_bits:2048'],
  secp256k1: ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:secp256k1'],
  ed448: ['-newkey', 'ed448'],
} as const

export const openssl = (...args: readonly string[]): string =>
  execFileSync('openssl', [...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })

/** Makes certificates in one folder. */
export class CertificateMaker {
  readonly #folder: string
  #count = 0

  constructor(folder: string) {
    mkdirSync(folder, { recursive: true })
    this.#folder = folder
  }

  make({ subject, sans, days = 90, key = 'ec', isAuthority = false, issuer }: Wanted): Issued {
    const path = (extension: string): string => join(this.#folder, `${this.#count}.${extension}`)
    this.#count++
    const [certFile, keyFile, requestFile, extensionFile] = [path('crt'), path('key'), path('csr'), path('ext')]
    const extensions = [
      isAuthority ? 'basicConstraints=critical,CA:TRUE' : 'basicConstraints=CA:FALSE',
      ...(sans === undefined ? [] : [`subjectAltName=${sans}`]),
    ]
    writeFileSync(extensionFile, `${extensions.join('\n')}\n`)
    openssl(
      'req',
      '-new',
      ...NEW_KEY[key],
      '-nodes',
      '-utf8',
      '-subj',
      subject,
      '-keyout',
      keyFile,
      '-out',
      requestFile,
    )
    const by = issuer ? ['-CA', issuer.certFile, '-CAkey', issuer.keyFile, '-CAcreateserial'] : ['-signkey', keyFile]
    const dates = ['-days', String(days), '-extfile', extensionFile]
    openssl('x509', '-req', '-in', requestFile, ...by, ...dates, '-out', certFile)
    return { certFile, keyFile, pem: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') }
  }
}

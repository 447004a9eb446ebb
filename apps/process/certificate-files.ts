// The files with which a process proves who it is over TLS: `tls.cert_file` and `tls.key_file`, or another pair of
// keys. Read in one place, so that the check of a configuration, a start and a reload find the same faults.
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import type { Logger } from 'pino'
import type { ConfigFault } from '../../core/config/keys.ts'
import { DAY_MS } from '../../core/limits.ts'
import { describeFault, fileFaults } from './config-file.ts'

type CertificateFiles = { readonly 'tls.cert_file': string | null; readonly 'tls.key_file': string | null }

/** PEM, the chain and its key. */
type CertificateText = { readonly cert: string; readonly key: string }

/** What `parse` makes, or null where it throws. */
function parsed<T>(parse: () => T): T | null {
  try {
    return parse()
  } catch {
    return null
  }
}

const isEncrypted = (key: string): boolean => /^-----BEGIN ENCRYPTED |^Proc-Type: 4,ENCRYPTED/m.test(key)

/** What is wrong with a chain and its key, both PEM; null where they serve. */
function pairFault({ cert, key }: CertificateText): { readonly of: 'cert' | 'key'; readonly message: string } | null {
  const certificate = parsed(() => new X509Certificate(cert))
  if (!certificate) return { of: 'cert', message: 'holds no certificate in PEM' }
  if (isEncrypted(key)) return { of: 'key', message: 'is encrypted: give a key without a passphrase' }
  const privateKey: KeyObject | null = parsed(() => createPrivateKey(key))
  if (!privateKey) return { of: 'key', message: 'holds no private key in PEM' }
  if (!certificate.checkPrivateKey(privateKey)) return { of: 'key', message: 'is the key of another certificate' }
  const isUsable = parsed(() => createSecureContext({ cert, key })) !== null
  return isUsable ? null : { of: 'cert', message: 'cannot be used: a certificate of the chain is damaged' }
}

/** A file of authorities without a certificate is a fault: nobody could be verified by it. None where it is not set. */
export function authorityFaults(config: Readonly<Record<string, unknown>>, key: string): ConfigFault[] {
  const unreadable = fileFaults(config, [key])
  const value = config[key]
  if (unreadable.length > 0 || typeof value !== 'string') return unreadable
  const isCertificate = parsed(() => new X509Certificate(readFileSync(value, 'utf8'))) !== null
  return isCertificate ? [] : [{ key, value, message: 'holds no certificate in PEM' }]
}

/** The pair as it was judged: a renewal may write the files between two readings. Null where the keys are not set. */
function readPair(
  config: Readonly<Record<string, unknown>>,
  certKey: string,
  keyKey: string,
): { readonly faults: readonly ConfigFault[]; readonly pair: CertificateText | null } {
  const unreadable = fileFaults(config, [certKey, keyKey])
  const [certFile, keyFile] = [config[certKey], config[keyKey]]
  if (unreadable.length > 0 || typeof certFile !== 'string' || typeof keyFile !== 'string')
    return { faults: unreadable, pair: null }
  const pair = { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') }
  const fault = pairFault(pair)
  if (!fault) return { faults: [], pair }
  const [key, value] = fault.of === 'cert' ? [certKey, certFile] : [keyKey, keyFile]
  return { faults: [{ key, value, message: fault.message }], pair: null }
}

/** A pair that cannot be read or does not serve is a fault of the configuration. None where the keys are not set. */
export const certificateFaults = (
  config: Readonly<Record<string, unknown>>,
  certKey = 'tls.cert_file',
  keyKey = 'tls.key_file',
): readonly ConfigFault[] => readPair(config, certKey, keyKey).faults

/** The certificate of a listener; null without one. Throws with the key, the file and what is wrong with it. */
export function readCertificate(config: CertificateFiles): CertificateText | null {
  const { faults, pair } = readPair(config, 'tls.cert_file', 'tls.key_file')
  if (faults.length > 0) throw new Error(faults.map(describeFault).join('\n'))
  return pair
}

/** What ends within it is said before it ends. */
const ENDING_MS = 7 * DAY_MS

/** What keeps no process from starting and clients from coming: a certificate out of its time, or soon to be. */
export function certificateWarnings(config: Readonly<Record<string, unknown>>, nowMs = Date.now()): ConfigFault[] {
  const { pair } = readPair(config, 'tls.cert_file', 'tls.key_file')
  if (pair === null) return []
  const { validFrom, validTo } = new X509Certificate(pair.cert)
  const [fromMs, toMs] = [Date.parse(validFrom), Date.parse(validTo)]
  const told = (message: string): ConfigFault[] => [
    { key: 'tls.cert_file', value: String(config['tls.cert_file']), message },
  ]
  const at = (ms: number): string => new Date(ms).toISOString().replace('.000', '')
  if (toMs <= nowMs) return told(`expired at ${at(toMs)}: clients that verify it do not connect`)
  if (fromMs > nowMs) return told(`is not valid before ${at(fromMs)}: clients that verify it do not connect until then`)
  return toMs - nowMs < ENDING_MS ? told(`expires at ${at(toMs)}, in less than 7 days`) : []
}

/** At a start and at a reload. */
export function warnOfCertificate(config: CertificateFiles, log: Logger): void {
  for (const fault of certificateWarnings(config)) log.warn(describeFault(fault))
}

/** For commands: a line each on standard error. */
export function sayCertificateWarnings(config: Readonly<Record<string, unknown>>): void {
  for (const fault of certificateWarnings(config)) process.stderr.write(`warning: ${describeFault(fault)}\n`)
}

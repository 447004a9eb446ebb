// A certificate and its key, as the check of a configuration, a start and a reload read them.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  authorityFaults,
  certificateFaults,
  certificateWarnings,
  readCertificate,
} from '../../apps/process/certificate-files.ts'
import { DAY_MS } from '../../core/limits.ts'
import { CertificateMaker, type Issued, openssl } from '../support/certificates.ts'

let folder: string
let one: Issued
let other: Issued

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-certificate-files-'))
  const maker = new CertificateMaker(folder)
  one = maker.make({ subject: '/CN=one' })
  other = maker.make({ subject: '/CN=other', key: 'rsa' })
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

const written = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

/** `key message` of every fault. */
const faultsOf = (certFile: string | null, keyFile: string | null): string[] =>
  certificateFaults({ 'tls.cert_file': certFile, 'tls.key_file': keyFile }).map(({ key, value, message }) => {
    expect(value).toBe((key === 'tls.cert_file' ? certFile : keyFile) ?? '')
    return `${key} ${message}`
  })

test('a pair that serves has no fault, with a chain too; no keys, no fault', () => {
  expect(faultsOf(one.certFile, one.keyFile)).toEqual([])
  expect(faultsOf(other.certFile, other.keyFile)).toEqual([])
  expect(faultsOf(written('chain.crt', `${one.pem}${other.pem}`), one.keyFile)).toEqual([])
  expect(faultsOf(null, null)).toEqual([])
  expect(readCertificate({ 'tls.cert_file': one.certFile, 'tls.key_file': one.keyFile })).toEqual({
    cert: readFileSync(one.certFile, 'utf8'),
    key: readFileSync(one.keyFile, 'utf8'),
  })
  expect(readCertificate({ 'tls.cert_file': null, 'tls.key_file': null })).toBeNull()
})

test('what does not serve is said with its key, its file and what is wrong', () => {
  const garbage = written('garbage', 'no certificate')
  const encrypted = join(folder, 'encrypted.key')
  openssl('pkcs8', '-topk8', '-in', one.keyFile, '-out', encrypted, '-passout', 'pass:secret')
  const cutOff = written('cut-off.crt', `${one.pem}${other.pem.slice(0, 200)}\n-----END CERTIFICATE-----\n`)
  expect(faultsOf(garbage, one.keyFile)).toEqual(['tls.cert_file holds no certificate in PEM'])
  expect(faultsOf(one.keyFile, one.keyFile)).toEqual(['tls.cert_file holds no certificate in PEM'])
  expect(faultsOf(one.certFile, garbage)).toEqual(['tls.key_file holds no private key in PEM'])
  expect(faultsOf(one.certFile, other.keyFile)).toEqual(['tls.key_file is the key of another certificate'])
  expect(faultsOf(one.certFile, encrypted)).toEqual(['tls.key_file is encrypted: give a key without a passphrase'])
  expect(faultsOf(cutOff, one.keyFile)).toEqual(['tls.cert_file cannot be used: a certificate of the chain is damaged'])
  expect(faultsOf(join(folder, 'absent'), one.keyFile)).toEqual(['tls.cert_file cannot be read (ENOENT)'])
  expect(() => readCertificate({ 'tls.cert_file': one.certFile, 'tls.key_file': other.keyFile })).toThrow(
    `tls.key_file = ${other.keyFile} is the key of another certificate`,
  )
})

test('a file of authorities without a certificate is a fault', () => {
  const of = (path: string | null): string[] =>
    authorityFaults({ 'tls.ca_file': path }, 'tls.ca_file').map(({ key, message }) => `${key} ${message}`)
  expect(of(null)).toEqual([])
  expect(of(one.certFile)).toEqual([])
  expect(of(one.keyFile)).toEqual(['tls.ca_file holds no certificate in PEM'])
  expect(of(join(folder, 'absent'))).toEqual(['tls.ca_file cannot be read (ENOENT)'])
})

test('a certificate that has expired, is not valid yet or ends within 7 days is told with key, file and time', () => {
  const tls = { 'tls.cert_file': one.certFile, 'tls.key_file': one.keyFile }
  const { validFrom, validTo } = new X509Certificate(one.pem)
  const [fromMs, toMs] = [Date.parse(validFrom), Date.parse(validTo)]
  const at = (ms: number) => new Date(ms).toISOString().replace('.000', '')
  const f = (nowMs: number) =>
    certificateWarnings(tls, nowMs).map(({ key, value, message }) => {
      expect([key, value]).toEqual(['tls.cert_file', one.certFile])
      return message
    })
  expect(toMs - fromMs).toBe(90 * DAY_MS)
  expect(f(fromMs)).toEqual([])
  expect(f(toMs - 7 * DAY_MS)).toEqual([])
  expect(f(toMs - 7 * DAY_MS + 1)).toEqual([`expires at ${at(toMs)}, in less than 7 days`])
  expect(f(toMs)).toEqual([`expired at ${at(toMs)}: clients that verify it do not connect`])
  expect(f(fromMs - 1)).toEqual([`is not valid before ${at(fromMs)}: clients that verify it do not connect until then`])
  expect(certificateWarnings({ 'tls.cert_file': null, 'tls.key_file': null })).toEqual([])
  expect(certificateWarnings({ ...tls, 'tls.key_file': other.keyFile })).toEqual([])
})

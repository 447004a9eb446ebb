// Certificates made by openssl, read and judged: every fact is held against what openssl prints of the same file.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { daysLeft, stateOf } from '../../apps/hub/certificates/certificate-state.ts'
import { type Chain, keyMatches, type PemFault, readChain, TrustedRoots } from '../../apps/hub/certificates/chain.ts'
import { isGoodFor } from '../../apps/hub/certificates/good-for-host.ts'
import { CertificateMaker, type Issued, openssl } from '../support/certificates.ts'

let folder = ''
let root: Issued
let between: Issued
let leaf: Issued
let own: Issued
let roots: TrustedRoots
const now = new Date()

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'certificates-'))
  const maker = new CertificateMaker(folder)
  root = maker.make({ subject: '/CN=Root', isAuthority: true, days: 3650 })
  between = maker.make({ subject: '/CN=Between', isAuthority: true, issuer: root, days: 40 })
  const sans = 'DNS:shop.example.com,DNS:*.example.com,IP:192.0.2.1,IP:2001:db8::1,email:a@example.com'
  leaf = maker.make({ subject: '/CN=shop.example.com/O=Ä, Söhne', sans, issuer: between, days: 5 })
  own = maker.make({ subject: '/CN=own.example.com', key: 'rsa' })
  roots = new TrustedRoots(root.pem)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function chain(pem: string, trusted = roots): Chain {
  const read: Chain | PemFault = readChain(pem, trusted, now)
  if (typeof read === 'string') throw new Error(read)
  return read
}

test('[RES-100] every fact equals what openssl shows for the same file', () => {
  for (const { pem, certFile } of [leaf, own, root]) {
    const shown = (option: string, ...more: string[]): string =>
      openssl('x509', '-in', certFile, '-noout', option, ...more)
        .trim()
        .replace(/^[^=]+= ?/, '')
    const { leaf: facts } = chain(pem)
    expect(facts.serial).toBe(shown('-serial'))
    expect(facts.fingerprint).toBe(shown('-fingerprint', '-sha256').replaceAll(':', '').toLowerCase())
    expect(facts.notAfter).toEqual(new Date(shown('-enddate')))
    expect(facts.notBefore).toEqual(new Date(shown('-startdate')))
    const names = ['-nameopt', 'esc_2253,utf8,sep_comma_plus_space']
    expect(facts.subject).toBe(shown('-subject', ...names))
    expect(facts.issuer).toBe(shown('-issuer', ...names))
    const text = openssl('x509', '-in', certFile, '-noout', '-text')
    expect(text).toContain(`Signature Algorithm: ${facts.signatureAlgorithm}`)
  }
  expect(chain(leaf.pem).leaf.sans).toEqual(['shop.example.com', '*.example.com', '192.0.2.1', '2001:db8::1'])
  expect([chain(leaf.pem).leaf.keyType, chain(own.pem).leaf.keyType]).toEqual(['ec-p256', 'rsa-2048'])
})

test('[RES-097] [RES-100] a certificate is read although the platform cannot read its key', () => {
  const maker = new CertificateMaker(join(folder, 'odd-keys'))
  for (const key of ['rsa-pss', 'secp256k1', 'ed448'] as const) {
    const odd = maker.make({ subject: `/CN=${key}.example.com`, sans: `DNS:${key}.example.com`, key })
    const { leaf: facts } = chain(odd.pem + own.pem)
    expect([facts.keyType, facts.sans]).toEqual(['unknown', [`${key}.example.com`]])
    expect(facts.serial).toBe(openssl('x509', '-in', odd.certFile, '-noout', '-serial').trim().replace('serial=', ''))
  }
})

test('[RES-101] a chain in wrong order is put in order, and says so', () => {
  const inOrder = chain(leaf.pem + between.pem + root.pem)
  expect([inOrder.orderFixed, inOrder.complete, inOrder.trusted, inOrder.problems]).toEqual([false, true, true, []])
  const mixed = chain(root.pem + leaf.pem + between.pem)
  expect(mixed.orderFixed).toBe(true)
  expect(mixed.pem).toBe(inOrder.pem)
  expect(mixed.expiresFirst?.subject).toBe('CN=Between')
  expect(chain(leaf.pem + between.pem + own.pem).problems).toEqual(['unrelated_certificate'])
})

test('[RES-102] a leaf alone whose issuer is no root is no complete chain', () => {
  expect(chain(leaf.pem)).toMatchObject({
    complete: false,
    trusted: false,
    problems: ['incomplete'],
    expiresFirst: null,
  })
  expect(chain(leaf.pem + between.pem)).toMatchObject({ complete: true, trusted: true })
  expect(chain(leaf.pem + between.pem, new TrustedRoots(null))).toMatchObject({ complete: false, trusted: false })
  expect(chain(own.pem)).toMatchObject({ complete: true, trusted: false, problems: ['untrusted_root'] })
  expect(chain(own.pem).leaf.selfSigned).toBe(true)
})

test('[RES-097] [RES-098] what is no certificate, or too many, or holds a key, is refused', () => {
  const fault = (pem: string) => readChain(pem, roots, now)
  expect(fault('hello')).toBe('no_certificate')
  expect(fault(leaf.pem.repeat(11))).toBe('too_many')
  expect(fault(leaf.pem + leaf.key)).toBe('private_key')
  expect(fault('-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n')).toBe('unreadable')
})

test('[RES-099] a private key fits its certificate and no other', () => {
  expect(keyMatches(chain(leaf.pem + between.pem), leaf.key)).toBe(true)
  expect(keyMatches(chain(leaf.pem), own.key)).toBe(false)
  expect(keyMatches(chain(leaf.pem), 'x')).toBeNull()
})

test('[RES-108] a wildcard stands for one label, and the common name counts without other names', () => {
  const wildcard = { sans: ['*.example.com'], commonName: 'other.example' }
  expect(isGoodFor(wildcard, 'A.example.com.')).toBe(true)
  for (const host of ['a.b.example.com', 'example.com', 'other.example', '.example.com', '192.0.2.1'])
    expect(isGoodFor(wildcard, host)).toBe(false)
  expect(isGoodFor({ sans: [], commonName: 'Own.example.com' }, 'own.example.com')).toBe(true)
  expect(isGoodFor({ sans: ['2001:db8::1'], commonName: null }, '2001:DB8:0::1')).toBe(true)
})

test('[RES-103] [RES-104] days are whole and go below zero; a revocation outweighs the dates', () => {
  const day = 86_400_000
  const at = (days: number) => new Date(now.getTime() + days * day)
  expect([daysLeft(at(1.99), now), daysLeft(at(0.5), now), daysLeft(at(-0.5), now), daysLeft(null, now)]).toEqual([
    1,
    0,
    -1,
    null,
  ])
  const state = (from: number, to: number, revoked = false) =>
    stateOf({ notBefore: at(from), notAfter: at(to), revoked }, 30, now)
  expect([state(-9, 31), state(-9, 30), state(-9, -1), state(1, 90), state(-9, 31, true)]).toEqual([
    'valid',
    'expiring',
    'expired',
    'not_yet_valid',
    'revoked',
  ])
  expect(stateOf({ notBefore: null, notAfter: null, revoked: false }, 30, now)).toBe('unknown')
})

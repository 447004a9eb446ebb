// SIGHUP at a hub that serves over TLS: certificate and settings are read again while requests go on.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { firstCertificate, secondCertificate, type TestCertificate } from '../ingest/certificates.ts'
import { Executable } from '../support/executable.ts'
import { newDatabase, stopPostgres } from '../support/postgres.ts'
import { until } from './hub-harness.ts'

const folder = mkdtempSync(join(tmpdir(), 'hub-reload-'))
const file = (name: string): string => join(folder, name)
let hub: Executable
let url = ''

const useCertificate = ({ cert, key }: TestCertificate): void => {
  writeFileSync(file('tls.crt'), cert)
  writeFileSync(file('tls.key'), key)
}
const configure = (perMinute: number, more = ''): void =>
  writeFileSync(
    file('hub.yaml'),
    `listen: 127.0.0.1:0
tls: { cert_file: ${file('tls.crt')}, key_file: ${file('tls.key')} }
database: { url_file: ${file('database.url')} }
rate: { session_per_minute: ${perMinute} }
${more}`,
  )

beforeAll(async () => {
  writeFileSync(file('database.url'), await newDatabase())
  useCertificate(firstCertificate)
  configure(30)
  hub = new Executable('hub', ['serve', '--config', file('hub.yaml')], file('ready.json'))
  url = String((await hub.start()).hub_url)
}, 120_000)
afterAll(async () => {
  await hub.stop()
  await stopPostgres()
  rmSync(folder, { recursive: true, force: true })
}, 120_000)

/** The common name that the hub shows to a new connection. */
const shownName = (): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port), rejectUnauthorized: false }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN))
      socket.end()
    })
    socket.on('error', reject)
  })
const ask = async (path: string): Promise<number> =>
  (await fetch(`${url}${path}`, { tls: { rejectUnauthorized: false }, keepalive: false, redirect: 'manual' })).status
/** A connection that the old listener had not taken yet is closed without a request on it, and made again. */
const statusOf = (path: string): Promise<number> => ask(path).catch(() => ask(path))
const signal = () => process.kill(hub.pid, 'SIGHUP')
const told = (text: string, times: number) => until(text, async () => hub.output.split(text).length - 1 >= times)

test('a hub with a certificate answers over TLS', async () => {
  expect([url.startsWith('https://'), await shownName(), await statusOf('/api/v1/me')]).toEqual([true, 'first', 401])
})

test('after SIGHUP new connections get the new certificate, and somebody listens all the time', async () => {
  let isOver = false
  const statuses = new Set<number>()
  const asking = (async () => {
    while (!isOver) statuses.add(await statusOf('/api/v1/me'))
  })()
  useCertificate(secondCertificate)
  signal()
  await until('the second certificate', async () => (await shownName().catch(() => '')) === 'second')
  isOver = true
  await asking
  expect([...statuses]).toEqual([401])
})

test('files that are no certificate leave everything as it is, and the log says why', async () => {
  writeFileSync(file('tls.crt'), 'nothing')
  signal()
  await told('cannot reload', 1)
  expect([await shownName(), await statusOf('/api/v1/me')]).toEqual(['second', 401])
  useCertificate(secondCertificate)
})

test('settings hold from the next request on; those that need a restart are named; a faulty file changes nothing', async () => {
  configure(31, 'log: { level: info }\njobs: { poll: 7s }\npublic_url: https://hub.example.net\n')
  signal()
  await told('"public_url","rate.session_per_minute"', 1)
  expect(hub.output).toContain('"keys":["jobs.poll"]')
  configure(0)
  signal()
  await told('cannot reload', 2)
  expect(hub.output).toContain('rate.session_per_minute')
})

// Scan hosts and events of the matcher, as it would send them, for tests of the hub.

import { expect } from 'bun:test'
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import type { Call, Json, Tenant, TestHub } from './hub-harness.ts'

export const hex64 = (): string => randomBytes(32).toString('hex')

export type Host = {
  readonly hostId: string
  readonly companyId: string
  readonly serverId: string | null
  readonly machineHash: string
  readonly publicKey: string
  readonly privateKey: KeyObject
}

export function newKey(): { readonly publicKey: string; readonly privateKey: KeyObject } {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  return { publicKey: publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64'), privateKey }
}

export const signed = (key: KeyObject, text: string): string => sign(null, Buffer.from(text), key).toString('base64')

type Enrolling = {
  readonly serverId?: string
  readonly machineHash?: string
  readonly code?: string
  readonly key?: ReturnType<typeof newKey>
}

/** The body of an enrollment. */
export const enrolling = (code: string, publicKey: string, machineHash = hex64()) => ({
  code,
  public_key: publicKey,
  hostname: 'web-1.example.test',
  ip_addresses: ['192.0.2.1'],
  machine_id_hash: machineHash,
  os: { id: 'debian', version_id: '12', codename: 'bookworm' },
})

/** A code of the company and a scan host by it, attached to the server if one is named. */
export async function enroll(owner: Tenant, matcher: Call, given: Enrolling = {}): Promise<Host> {
  const key = given.key ?? newKey()
  const machineHash = given.machineHash ?? hex64()
  const made = given.code
    ? null
    : await owner.call('POST', '/security/scan-hosts/enrolment-codes', { server_id: given.serverId ?? null })
  const code: string = given.code ?? made?.body.data.code
  const { status, body } = await matcher('POST', '/scan-hosts/enroll', enrolling(code, key.publicKey, machineHash))
  expect([status, body.error]).toEqual([201, undefined])
  const { host_id: hostId, company_id: companyId, server_id: serverId } = body.data
  return { hostId, companyId, serverId, machineHash, ...key }
}

let names = 0
export async function newServer(owner: Tenant): Promise<string> {
  const { body } = await owner.call('POST', '/servers', { name: `scanned-${++names}` })
  return body.data.id
}

let lastSeq = 1_000
export const nextSeq = (): number => ++lastSeq

type Change = Readonly<Record<string, unknown>>

export const findingPayload = (change: Change = {}) => ({
  finding_key: hex64(),
  kind: 'vulnerability',
  vuln_id: 'CVE-2026-0001',
  aliases: ['GHSA-aaaa-bbbb-cccc'],
  advisory_ids: ['DSA-1-1'],
  ecosystem: 'debian:12',
  package_key: 'openssl',
  packages: [{ name: 'libssl3', version: '3.0.1-1', arch: 'amd64' }],
  installed_version: '3.0.1-1',
  fixed_version: '3.0.1-2',
  fix_status: 'fixed',
  fix_channel: 'standard',
  severity_label: 'medium',
  minor: false,
  kernel: false,
  reboot_required: false,
  no_distro_fix: false,
  eol_date: '',
  upgrade_to: [],
  cvss_score: 7.5,
  cvss_vector: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H',
  score_source: 'nvd',
  kev: false,
  epss: null,
  first_seen_at: '2026-06-01T12:00:00.000Z',
  db_version: 2026060101,
  ...change,
})

export const resolvedPayload = (findingKey: string, change: Change = {}) => ({
  finding_key: findingKey,
  kind: 'vulnerability',
  resolved_reason: 'package_updated',
  resolved_at: '2026-06-03T12:00:00.000Z',
  db_version: 2026060301,
  ...change,
})

export const scannedPayload = (change: Change = {}) => ({
  scanned_at: '2026-06-01T12:00:00.000Z',
  scanner_version: '1.2.3',
  db_version: 2026060101,
  os: { id: 'debian', version_id: '12', codename: 'bookworm' },
  kernel_running: '6.1.0-18-amd64',
  reboot_required: false,
  livepatch_active: false,
  package_count: 800,
  error_codes: [],
  match_status: 'ok',
  release_support: 'standard',
  open_findings: 3,
  ...change,
})

type Event = {
  readonly event_id: string
  readonly type: string
  readonly company_id: string
  readonly server_id: string | null
  readonly host_id: string
  readonly seq: number
  readonly occurred_at: string
  readonly payload: Json
}

/** An event of a host with the next seq. */
export const eventOf = (host: Host, type: string, payload: Json, change: Partial<Event> = {}): Event => ({
  event_id: hex64(),
  type,
  company_id: host.companyId,
  server_id: host.serverId,
  host_id: host.hostId,
  seq: nextSeq(),
  occurred_at: '2026-06-01T12:00:00.000Z',
  payload,
  ...change,
})

export const opened = (host: Host, payload: Json, change: Partial<Event> = {}): Event =>
  eventOf(host, 'finding.opened', payload, change)

/** Sends a batch that must be answered with 200. */
export async function send(
  matcher: Call,
  events: readonly unknown[],
): Promise<{ accepted: string[]; rejected: Json[] }> {
  const { status, body } = await matcher('POST', '/events', { events })
  expect([status, body.error]).toEqual([200, undefined])
  return body.data
}

/** The stored rows of a company's findings, by finding_key. */
export async function findingsOf(hub: TestHub, companyId: string): Promise<Map<string, Json>> {
  const rows = await hub.hub.database.client`
    select *, kev_due_date::text as kev_due_date from security_findings where company_id = ${companyId}`
  return new Map(rows.map(row => [String(row.finding_key), row]))
}

// A state in a directory of its own with hosts that report to it, for tests: reports are short to write, the clock is
// the test's, and what the hub would be told is read batch by batch.
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openState } from '../../../apps/matcher/state/open-state.ts'
import type { MatcherState, ReportInput, ReportOutcome, ScanHost } from '../../../apps/matcher/state/state-types.ts'
import type { SecurityEvent } from '../../../core/matching/finding-event.ts'
import type { Report } from '../../../core/matching/report-schema.ts'
import { stateOptions } from './state-options.ts'

export const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
export const STARTED_MS = Date.parse('2026-11-22T10:00:00.000Z')

const uuid = (kind: number, number: number): string =>
  `00000000-0000-4000-8${kind.toString(16).padStart(3, '0')}-${number.toString(16).padStart(12, '0')}`
export const companyId = (number: number): string => uuid(1, number)
export const hostId = (number: number): string => uuid(2, number)
export const serverId = (number: number): string => uuid(3, number)

export const scanHost = (number: number, more: Partial<ScanHost> = {}): ScanHost & { isDeleted: boolean } => ({
  hostId: hostId(number),
  companyId: companyId(1),
  serverId: serverId(number),
  publicKey: 'key',
  state: 'active',
  isInactive: false,
  version: 1,
  isDeleted: false,
  ...more,
})

/** `name version` or `name version source`, dpkg of amd64. */
export function report(packages: readonly string[] | null, more: Partial<Report> = {}): Report {
  const rows = (packages ?? []).map(text => text.split(' '))
  return {
    schema: 1,
    collected_at_ms: STARTED_MS + 1_000 * DAY_MS,
    scanner_version: '1.0.0',
    machine_id_hash: 'a'.repeat(64),
    os: { id: 'debian', version_id: '12', codename: 'bookworm', id_like: [], cpe_name: '' },
    kernel: { running: '', build: '', booted_at_ms: 0 },
    reboot_required: false,
    livepatch_active: false,
    esm: { attached: false, infra: false, apps: false },
    elts: false,
    modules: {},
    system: 'dpkg',
    error_codes: packages === null ? ['packages_unreadable'] : [],
    ...(packages === null
      ? {}
      : {
          packages: {
            name: rows.map(row => row[0]!),
            version: rows.map(row => row[1]!),
            arch: rows.map(() => 'amd64'),
            source: rows.map(row => row[2] ?? row[0]!),
            source_version: rows.map(row => row[1]!),
            module: rows.map(() => ''),
            vendor: rows.map(() => ''),
          },
        }),
    ...more,
  }
}

export class FleetSite {
  readonly dir: string
  state: MatcherState
  nowMs = STARTED_MS
  /** Told by `deliver`, in order. */
  readonly told: SecurityEvent[] = []
  readonly errors: unknown[] = []
  /** What failed, by its own words. */
  readonly failed: string[] = []

  constructor(dir = mkdtempSync(join(tmpdir(), 'matcher-state-'))) {
    this.dir = dir
    this.state = this.#open()
  }

  #open(): MatcherState {
    return openState(this.dir, {
      ...stateOptions(() => this.nowMs),
      onError: (what, error) => {
        this.failed.push(what)
        this.errors.push(error)
      },
    })
  }

  async reopen(): Promise<void> {
    await this.state.close()
    this.state = this.#open()
  }

  async hosts(...hosts: readonly (ScanHost & { readonly isDeleted: boolean })[]): Promise<void> {
    await this.state.applyHostsPage(hosts, { nextSince: 1, isLast: true })
  }

  /** A second after whatever came before, unless `more` says otherwise. */
  send(host: number, body: Report | null, more: Partial<ReportInput> = {}): Promise<ReportOutcome> {
    this.nowMs += 1_000
    const contentHash = body === null ? '' : contentHashOf(body)
    return this.state.acceptReport({
      hostId: hostId(host),
      report: body,
      contentHash,
      requestTimeMs: this.nowMs,
      signature: `${host} ${this.nowMs}`,
      receivedAtMs: this.nowMs,
      minIntervalMs: 0,
      ...more,
    })
  }

  /** Takes all that waits, as a hub that accepts everything. Returns what is new. */
  async deliver(): Promise<SecurityEvent[]> {
    const before = this.told.length
    for (let companies = this.state.companiesWaiting(); companies.length > 0; companies = this.state.companiesWaiting())
      for (const company of companies) {
        const batch = await this.state.nextBatch(company)
        if (batch === null) continue
        this.told.push(...batch.events)
        await this.state.settle(batch)
      }
    return this.told.slice(before)
  }
}

export const contentHashOf = (body: Report): string => {
  const { collected_at_ms: _collected, scanner_version: _version, kernel, ...rest } = body
  return new Bun.CryptoHasher('sha256').update(JSON.stringify({ ...rest, running: kernel.running })).digest('hex')
}

/** `opened debian:12 openssl CVE-1` and so on: what an event says, without its identity. */
function words(event: SecurityEvent, keys: ReadonlyMap<string, string> = new Map()): string {
  const { payload } = event
  switch (event.type) {
    case 'finding.opened':
    case 'finding.updated':
      return `${event.type.slice(8)} ${event.payload.package_key} ${event.payload.vuln_id} ${event.payload.installed_version}`
    case 'finding.resolved':
      return `resolved ${keys.get(event.payload.finding_key) ?? '?'} ${event.payload.resolved_reason}`
    case 'server.scanned':
      return `scanned ${event.payload.match_status} ${event.payload.open_findings}`
  }
  throw new Error(`an event of an unknown type: ${JSON.stringify(payload)}`)
}

/** All events in words; a resolved finding is named after the event that opened it. */
export function wordsOf(events: readonly SecurityEvent[], earlier: readonly SecurityEvent[] = events): string[] {
  const keys = new Map<string, string>()
  for (const event of earlier)
    if (event.type === 'finding.opened')
      keys.set(event.payload.finding_key, `${event.payload.package_key} ${event.payload.vuln_id}`)
  return events.map(event => words(event, keys))
}

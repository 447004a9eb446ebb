// A matcher in this process: real state on the disk, real listeners on ports of their own, and a scripted hub.
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Logger, pino } from 'pino'
import { type MatcherConfig, resolveMatcherConfig, stateOptionsOf } from '../../apps/matcher/config.ts'
import { DatabaseLink } from '../../apps/matcher/database-link.ts'
import { type RunningMatcher, startMatcher } from '../../apps/matcher/matcher.ts'
import { openState } from '../../apps/matcher/state/open-state.ts'
import type { MatcherState } from '../../apps/matcher/state/state-types.ts'
import { createMatcherMetrics, type MatcherMetrics } from '../../apps/matcher/telemetry.ts'
import type { FindingPayload, SecurityEvent } from '../../core/matching/finding-event.ts'
import { until } from '../support/until.ts'
import { ScanClient } from './scan-client.ts'
import { hubToken, ScriptedHub } from './scripted-hub.ts'

export const adminToken = 'admin-token-of-the-matcher'

type RigOptions = {
  readonly keys?: Readonly<Record<string, unknown>>
  readonly hub?: ScriptedHub
  readonly dir?: string
  readonly nowMs?: () => number
  /** A database file to begin with. */
  readonly prepare?: (dir: string) => Promise<void>
  /** The lines of the log that are kept, all unless said otherwise. */
  readonly keepsLine?: (line: string) => boolean
}

export class Rig {
  readonly lines: string[] = []
  readonly company = randomUUID()
  readonly hub: ScriptedHub
  readonly dir: string
  readonly log: Logger
  private readonly nowMs: () => number
  config!: MatcherConfig
  state!: MatcherState
  metrics!: MatcherMetrics
  matcher!: RunningMatcher

  constructor(private readonly options: RigOptions = {}) {
    this.hub = options.hub ?? new ScriptedHub()
    this.dir = options.dir ?? mkdtempSync(join(tmpdir(), 'svc-matcher-'))
    this.nowMs = options.nowMs ?? Date.now
    const { keepsLine = () => true } = options
    this.log = pino({ level: 'trace' }, { write: line => void (keepsLine(line) && this.lines.push(line)) })
    this.hub.codes.set('code', this.company)
  }

  /** Starts on the directory; again after `stop`. */
  async start(): Promise<this> {
    const { config, faults } = resolveMatcherConfig({
      listen: '127.0.0.1:0',
      'admin.listen': '127.0.0.1:0',
      'admin.token': adminToken,
      'hub.url': this.hub.url,
      'hub.token': hubToken,
      data_dir: this.dir,
      'hosts.sync_interval': '100ms',
      'db.update_interval': 'off',
      // As many enrollments and calls as a test likes.
      'limits.enroll_per_minute': 100_000,
      'limits.host_per_minute': 100_000,
      ...this.options.keys,
    })
    if (faults.length > 0) throw new Error(JSON.stringify(faults))
    await this.options.prepare?.(this.dir)
    const { log, nowMs } = this
    this.config = config
    this.metrics = createMatcherMetrics('0.0.0')
    this.state = openState(this.dir, stateOptionsOf(config, nowMs, log))
    const parts = { config, state: this.state, metrics: this.metrics, log, nowMs }
    this.matcher = startMatcher({ ...parts, database: new DatabaseLink(parts) })
    return this
  }

  get scanUrl(): string {
    return this.matcher.scanUrl
  }

  client(name: string, nowMs?: () => number): ScanClient {
    return new ScanClient(this.scanUrl, name, nowMs)
  }

  /** A client that is enrolled with the code of the rig's company. */
  async enrolled(name: string, code = 'code'): Promise<ScanClient> {
    const client = this.client(name)
    const answer = await client.enroll(code)
    if (answer.status !== 201) throw new Error(`cannot enroll: ${answer.status} ${JSON.stringify(answer.body)}`)
    return client
  }

  /** A call of the internal API. */
  async admin(method: string, path: string, token = adminToken) {
    const response = await fetch(`${this.matcher.adminUrl}/internal/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${token}` },
    })
    const text = await response.text()
    const body = text === '' ? {} : (JSON.parse(text) as { data?: unknown; error?: { code: string; message: string } })
    return { status: response.status, data: body.data as Record<string, unknown>, code: body.error?.code ?? '', body }
  }

  /** Waits until nothing waits for the hub. */
  delivered(): Promise<unknown> {
    return until('all events to be delivered', () => this.state.counters().outboxDepth === 0)
  }

  /** What the hub has been told, each event once, in the order of its first delivery. */
  told(hostId?: string): SecurityEvent[] {
    const known = new Map(this.hub.taken.map(event => [event.event_id, event]))
    return [...known.values()].filter(event => hostId === undefined || event.host_id === hostId)
  }

  async stop(): Promise<void> {
    await this.matcher.stop()
  }

  async dispose(): Promise<void> {
    await this.stop()
    await this.hub.stop()
    rmSync(this.dir, { recursive: true, force: true })
  }
}

/** The open findings by the events that the hub was told, by key. */
export function openFindings(events: readonly SecurityEvent[]): Map<string, FindingPayload> {
  const open = new Map<string, FindingPayload>()
  for (const event of events.toSorted((a, b) => a.seq - b.seq)) {
    if (event.type === 'finding.resolved') open.delete(event.payload.finding_key)
    else if (event.type !== 'server.scanned') open.set(event.payload.finding_key, event.payload)
  }
  return open
}

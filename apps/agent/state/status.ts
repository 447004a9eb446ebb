// What the agent says about itself on its own host: status.json, which `agent status` shows (decision G-61).
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Clock } from '../clock.ts'
import { isNotFound, type StateDir } from './state-dir.ts'

export type AgentState =
  | 'starting'
  | 'online'
  | 'buffering'
  | 'unauthorized'
  | 'revoked'
  | 'upgrade_required'
  | 'enroll_failed'

const FILE = 'status.json'
const WARNINGS_MAX = 20

type Facts = {
  agentId: string | null
  collectorUrl: string | null
  intervalSeconds: number
  configEtag: string
  bufferBatches: number
  bufferBytes: number
  droppedPoints: number
  sendErrors: number
  lastSuccessAtMs: number | null
  lastError: string | null
  /** What became of the last offer of an update; null without one. */
  update: string | null
}

export class StatusReport {
  readonly #dir: StateDir
  readonly #clock: Clock
  readonly #log: Logger
  readonly #version: string
  readonly #warnings = new Map<string, readonly string[]>()
  #state: AgentState = 'starting'
  #sinceMs: number
  #facts: Facts = {
    agentId: null,
    collectorUrl: null,
    intervalSeconds: 0,
    configEtag: '',
    bufferBatches: 0,
    bufferBytes: 0,
    droppedPoints: 0,
    sendErrors: 0,
    lastSuccessAtMs: null,
    lastError: null,
    update: null,
  }

  constructor(dir: StateDir, clock: Clock, log: Logger, version: string) {
    this.#dir = dir
    this.#clock = clock
    this.#log = log
    this.#version = version
    this.#sinceMs = clock.now()
  }

  get state(): AgentState {
    return this.#state
  }

  /** Everything that the operator should know now, from all who warned; at most 20. */
  get warnings(): string[] {
    return [...new Set([...this.#warnings.values()].flat())].slice(0, WARNINGS_MAX)
  }

  get facts(): Readonly<Facts> {
    return this.#facts
  }

  /** Replaces the warnings of one source. */
  warn(source: string, warnings: readonly string[]): void {
    for (const warning of warnings)
      if (!this.#warnings.get(source)?.includes(warning)) this.#log.warn({ source }, warning)
    if (warnings.length === 0) this.#warnings.delete(source)
    else this.#warnings.set(source, warnings)
  }

  /** Changes facts, and the state where one is given, and writes the file. */
  update(facts: Partial<Facts>, state: AgentState = this.#state): void {
    this.#facts = { ...this.#facts, ...facts }
    if (state !== this.#state) {
      this.#log.info({ from: this.#state, to: state }, 'state changed')
      this.#state = state
      this.#sinceMs = this.#clock.now()
    }
    this.#write()
  }

  #write(): void {
    const facts = this.#facts
    const document = {
      state: this.#state,
      since_ms: this.#sinceMs,
      updated_at_ms: this.#clock.now(),
      pid: process.pid,
      version: this.#version,
      agent_id: facts.agentId,
      collector_url: facts.collectorUrl,
      interval_seconds: facts.intervalSeconds,
      config_etag: facts.configEtag,
      buffer_batches: facts.bufferBatches,
      buffer_bytes: facts.bufferBytes,
      dropped_points: facts.droppedPoints,
      send_errors: facts.sendErrors,
      last_success_at_ms: facts.lastSuccessAtMs,
      last_error: facts.lastError,
      update: facts.update,
      warnings: this.warnings,
    }
    try {
      this.#dir.write(FILE, `${JSON.stringify(document, null, 2)}\n`)
    } catch (error) {
      this.#log.debug({ error: error instanceof Error ? error.message : String(error) }, 'cannot write status.json')
    }
  }
}

/** The text of status.json in a state directory; null before the first run. Makes nothing. */
export function readStatus(stateDir: string): string | null {
  try {
    return readFileSync(join(stateDir, FILE), 'utf8')
  } catch (error) {
    if (isNotFound(error)) return null
    throw error
  }
}

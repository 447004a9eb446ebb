// Per-company settings of the hub (document 1 "Settings"): fetched when needed and cached for five minutes, or thirty
// seconds after an error. The last known answer is kept while the hub does not answer; a company whose settings were
// never fetched has none (document 3 "Series parameters").
import { describeResponse } from '../../hub-link/hub-connection.ts'
import type { HubClient } from './hub-client.ts'

const ERROR_CACHE_MS = 30_000

/** The settings as the hub sent them; null is unset. Each reader ignores a value outside its domain. */
export type CompanySettings = {
  readonly groupDownMin: number | null
  readonly groupDownRatio: number | null
  readonly groupDownWindowSeconds: number | null
  readonly retentionDays: number | null
  readonly previousDays: number | null
  readonly graceUntilMs: number | null
}

type Held = { settings: CompanySettings | null; validUntilMs: number; error: string | null }

const numberOf = (value: unknown): number | null => (typeof value === 'number' && Number.isFinite(value) ? value : null)

function instantOf(value: unknown): number | null {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isFinite(ms) ? ms : null
}

export class CompanySettingsCache {
  private readonly held = new Map<string, Held>()
  private readonly pulls = new Map<string, Promise<Held>>()
  /** Raised by `clear`: the answer to a request that was sent earlier is not cached. */
  private generation = 0

  constructor(
    private readonly hub: HubClient | null,
    private readonly cacheMs: number,
    private readonly nowMs: () => number,
  ) {}

  /** The settings of a company, or null when the hub has never returned any. */
  async get(companyId: string): Promise<CompanySettings | null> {
    const held = this.held.get(companyId)
    if (held && this.nowMs() < held.validUntilMs) return held.settings
    return (await this.pull(companyId)).settings
  }

  /** Fetches the settings regardless of the cache. Null: the hub did not answer (the cache keeps what it had). */
  async fresh(companyId: string): Promise<CompanySettings | null> {
    const { settings, error } = await this.pull(companyId)
    return error === null ? settings : null
  }

  /** What is known now, without a call. */
  known(companyId: string): CompanySettings | null {
    return this.held.get(companyId)?.settings ?? null
  }

  /**
   * Makes every company's settings be fetched again at their next use; the known ones stay while the hub does not
   * answer.
   */
  clear(): void {
    this.generation++
    this.pulls.clear()
    for (const held of this.held.values()) held.validUntilMs = 0
  }

  forget(companyId: string): void {
    this.held.delete(companyId)
  }

  private pull(companyId: string): Promise<Held> {
    const running = this.pulls.get(companyId)
    if (running) return running
    const pull = this.ask(companyId).finally(() => {
      if (this.pulls.get(companyId) === pull) this.pulls.delete(companyId)
    })
    this.pulls.set(companyId, pull)
    return pull
  }

  private async ask(companyId: string): Promise<Held> {
    const { generation } = this
    const before = this.held.get(companyId)?.settings ?? null
    const answer = this.hub ? await this.hub.settings(companyId) : null
    if (answer?.kind !== 'ok') {
      const error = answer ? describeResponse(answer) : 'no hub is configured'
      return this.hold(companyId, generation, { settings: before, validUntilMs: this.nowMs() + ERROR_CACHE_MS, error })
    }
    const { data } = answer
    const settings: CompanySettings = {
      groupDownMin: numberOf(data.group_down_min),
      groupDownRatio: numberOf(data.group_down_ratio),
      groupDownWindowSeconds: numberOf(data.group_down_window_seconds),
      retentionDays: numberOf(data.metrics_retention_days),
      previousDays: numberOf(data.metrics_retention_previous_days),
      graceUntilMs: instantOf(data.metrics_retention_grace_until),
    }
    return this.hold(companyId, generation, { settings, validUntilMs: this.nowMs() + this.cacheMs, error: null })
  }

  private hold(companyId: string, generation: number, held: Held): Held {
    if (generation === this.generation) this.held.set(companyId, held)
    return held
  }
}

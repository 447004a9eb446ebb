// Settings of companies (MAT-220): asked for when a host of the company reports and what is held is older than five
// minutes. The last known are kept while the hub is away, over a restart too.
import type { Logger } from 'pino'
import { isObject } from '../../../core/json-object.ts'
import { describeResponse } from '../../hub-link/hub-connection.ts'
import type { CompanySettings, MatcherState } from '../state/state-types.ts'
import type { MatcherHub } from './matcher-hub.ts'

const FRESH_MS = 5 * 60_000
/** After a refusal, or no answer, the hub is asked again no sooner. */
const ERROR_MS = 30_000
const INTERVAL_HOURS_MAX = 720

type SettingsParts = {
  readonly state: MatcherState
  readonly hub: MatcherHub | null
  readonly log: Logger
  readonly nowMs: () => number
}

const positive = (value: unknown): number =>
  typeof value === 'number' && Number.isFinite(value) && value > 0 ? Math.min(value, INTERVAL_HOURS_MAX) : 0

/**
 * The settings as the hub sent them; null when they are none. The interval is at least the plan's (MAT-221); a hub that
 * does not name the plan's has it within its interval.
 */
function settingsOf(data: unknown, companyId: string, nowMs: number): Omit<CompanySettings, 'disabledSinceMs'> | null {
  if (!isObject(data)) return null
  const least = positive(data.min_scan_interval_hours)
  const hours = Math.max(positive(data.scan_interval_hours), least)
  if (hours === 0) return null
  const version = typeof data.version === 'number' && Number.isSafeInteger(data.version) ? data.version : 0
  return {
    companyId,
    version,
    isEnabled: data.enabled !== false,
    scanIntervalHours: hours,
    minIntervalHours: least === 0 ? hours : least,
    fetchedAtMs: nowMs,
  }
}

export class CompanySettingsCache {
  private readonly pulls = new Map<string, Promise<void>>()
  private readonly failedAtMs = new Map<string, number>()

  constructor(private readonly parts: SettingsParts) {}

  async of(companyId: string): Promise<CompanySettings | null> {
    const { state, hub, nowMs } = this.parts
    const held = state.settings(companyId)
    const ageMs = held ? Math.abs(nowMs() - held.fetchedAtMs) : Number.POSITIVE_INFINITY
    const failedMs = Math.abs(nowMs() - (this.failedAtMs.get(companyId) ?? Number.NEGATIVE_INFINITY))
    if (hub === null || ageMs < FRESH_MS || failedMs < ERROR_MS) return held
    await this.pull(hub, companyId)
    return state.settings(companyId)
  }

  private pull(hub: MatcherHub, companyId: string): Promise<void> {
    const running = this.pulls.get(companyId)
    if (running) return running
    const pull = this.ask(hub, companyId).finally(() => this.pulls.delete(companyId))
    this.pulls.set(companyId, pull)
    return pull
  }

  private async ask(hub: MatcherHub, companyId: string): Promise<void> {
    const { state, nowMs, log } = this.parts
    const response = await hub.settings(companyId)
    const settings = response.kind === 'ok' ? settingsOf(response.data, companyId, nowMs()) : null
    if (settings) {
      this.failedAtMs.delete(companyId)
      await state.putSettings(settings)
      return
    }
    this.failedAtMs.set(companyId, nowMs())
    log.debug({ company_id: companyId, reason: describeResponse(response) }, 'cannot read the settings of a company')
  }
}

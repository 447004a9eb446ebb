// Gives the hub the reference data of vulnerabilities with an open finding (MAT-223; decision G-188): those that are
// new to it or changed, after the events, at most 500 a call and ten calls a minute.
import type { Logger } from 'pino'
import { judgeBatch } from '../../hub-link/events-kept-or-refused.ts'
import { describeResponse, type HubResponse } from '../../hub-link/hub-connection.ts'
import type { MatcherState, Reference } from '../state/state-types.ts'
import type { MatcherHub, VulnerabilityItem } from './matcher-hub.ts'

const ITEMS_MAX = 500
/** Ten calls a minute. */
const PERIOD_MS = 6_000
const RETRY_MS = 30_000
/** Events go first, but not for ever. */
const DEFERRALS_MAX = 10
const TEXT_MAX = 4096
const REFERENCES_MAX = 100
const DAY = /^\d{4}-\d{2}-\d{2}$/

const isoOf = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString())

/** As the hub takes it; texts of the sources are cut at what it keeps. */
const itemOf = (reference: Reference): VulnerabilityItem => ({
  vuln_id: reference.id,
  title: reference.title.slice(0, TEXT_MAX).toWellFormed(),
  cvss_score: reference.cvss_score,
  cvss_vector: reference.cvss_vector.slice(0, 1024),
  severity: reference.severity.slice(0, 64),
  published_at: isoOf(reference.published_ms),
  modified_at: isoOf(reference.modified_ms),
  references: reference.references.slice(0, REFERENCES_MAX).filter(link => link.length <= TEXT_MAX),
  aliases: reference.aliases.slice(0, REFERENCES_MAX).filter(alias => alias !== '' && alias.length <= 256),
  kev: reference.kev,
  kev_due_date: DAY.test(reference.kev_due_date) ? reference.kev_due_date : null,
  epss: reference.epss,
})

export class ReferenceSender {
  private timer: ReturnType<typeof setTimeout> | null = null
  private running: Promise<void> | null = null
  private isStopped = false
  /** Halved while the hub refuses, until the item that it refuses stands alone. */
  private itemsMax = ITEMS_MAX
  private deferrals = 0

  constructor(
    private readonly parts: {
      readonly state: Pick<MatcherState, 'referencesToSend' | 'referencesSent' | 'companiesWaiting'>
      readonly hub: Pick<MatcherHub, 'putVulnerabilities'>
      readonly log: Logger
      /** Stands in for setTimeout in tests. */
      readonly schedule?: (work: () => void, ms: number) => ReturnType<typeof setTimeout>
    },
  ) {}

  /** To be called when events are delivered. */
  wake(): void {
    if (this.timer === null && this.running === null && !this.isStopped) this.run()
  }

  async stop(): Promise<void> {
    this.isStopped = true
    if (this.timer !== null) clearTimeout(this.timer)
    await this.running
  }

  private run(): void {
    this.timer = null
    this.running = this.sendOnce()
      .catch(error => {
        this.parts.log.error({ err: error }, 'cannot give reference data to the hub')
        return RETRY_MS
      })
      .then(waitMs => {
        this.running = null
        const run = (): void => this.run()
        if (!this.isStopped) this.timer = this.parts.schedule?.(run, waitMs) ?? setTimeout(run, waitMs)
      })
  }

  /** Returns the ms until the next call. */
  private async sendOnce(): Promise<number> {
    const { state, hub, log } = this.parts
    if (state.companiesWaiting().length > 0 && this.deferrals++ < DEFERRALS_MAX) return PERIOD_MS
    this.deferrals = 0
    const references = state.referencesToSend(this.itemsMax)
    if (references.length === 0) return PERIOD_MS
    const response = await hub.putVulnerabilities(references.map(itemOf))
    if (this.isStopped) return PERIOD_MS
    const verdict = judgeBatch(response)
    if (verdict === 'keep') {
      log.debug({ reason: describeResponse(response) }, 'cannot give reference data to the hub now')
      return Math.max(RETRY_MS, retryAfterMs(response))
    }
    if (verdict === 'refused' && references.length > 1) {
      this.itemsMax = Math.ceil(references.length / 2)
      return PERIOD_MS
    }
    if (verdict === 'refused')
      log.warn({ vuln_id: references[0]?.id, reason: describeResponse(response) }, 'the hub refuses reference data')
    this.itemsMax = Math.min(ITEMS_MAX, this.itemsMax * 2)
    await state.referencesSent(references)
    return PERIOD_MS
  }
}

const retryAfterMs = (response: HubResponse): number =>
  response.kind === 'refused' ? (response.retryAfterSeconds ?? 0) * 1000 : 0

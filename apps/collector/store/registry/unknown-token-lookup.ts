// Asks the hub about a token that the registry does not have (document 1 "Collector-facing endpoints"; decision G-36):
// one request at a time for each token, and so many tokens a minute. A "no" is remembered for a minute; an unreachable
// hub never counts as a "no".
import type { Logger } from 'pino'
import { RateBucket, RateLimit } from '../../../../core/wire/rate-bucket.ts'
import { describeResponse } from '../../../hub-link/hub-connection.ts'
import type { HubClient } from '../../hub-link/hub-client.ts'
import type { CollectorMetrics } from '../../telemetry.ts'
import { isRecordFault, parseAgentRecord } from './agent-record-faults.ts'
import type { AgentRegistry } from './registry.ts'

/** `found`: the registry has it now. */
type LookupResult = 'found' | 'unknown' | 'unavailable'

const NEGATIVES_MAX = 50_000
/** A flood of random tokens must leave room in the hub's limit of 1,200 calls a minute. */
const LOOKUPS_PER_MINUTE = 600
const LOOKUPS_BURST = 200

type UnknownTokenLookupOptions = {
  readonly registry: AgentRegistry
  readonly hub: HubClient | null
  readonly negativeTtlMs: number
  readonly log: Logger
  readonly metrics: CollectorMetrics
  readonly nowMs: () => number
}

export class UnknownTokenLookup {
  private readonly options: UnknownTokenLookupOptions
  private readonly running = new Map<string, Promise<LookupResult>>()
  /** Token hash -> when the hub may be asked again, in the order of the requests. */
  private readonly negatives = new Map<string, number>()
  private readonly limit = new RateLimit(LOOKUPS_PER_MINUTE, LOOKUPS_BURST)
  private readonly bucket = new RateBucket()

  constructor(options: UnknownTokenLookupOptions) {
    this.options = options
    for (const result of ['found', 'unknown', 'unavailable', 'negative_cached'])
      options.metrics.registryLookups.inc({ result }, 0)
  }

  /** Asks the hub about a token hash that the registry does not have. */
  async resolve(tokenHash: string): Promise<LookupResult> {
    const { metrics, nowMs } = this.options
    const askAgainAtMs = this.negatives.get(tokenHash)
    if (askAgainAtMs !== undefined) {
      if (nowMs() < askAgainAtMs) {
        metrics.registryLookups.inc({ result: 'negative_cached' })
        return 'unknown'
      }
      this.negatives.delete(tokenHash)
    }
    return this.askOnce(tokenHash, false)
  }

  /**
   * Asks for the agent of a token that the hub issued a moment ago. Nobody guesses such a token, so that the limit of
   * look-ups does not hold: of a fleet that enrolls at once every agent is known when it sends its first batch. The
   * next use of the token asks again where the hub did not know it yet.
   */
  async fetchIssued(tokenHash: string): Promise<void> {
    await this.askOnce(tokenHash, true)
    this.negatives.delete(tokenHash)
  }

  private async askOnce(tokenHash: string, isIssued: boolean): Promise<LookupResult> {
    let asked = this.running.get(tokenHash)
    if (!asked) {
      asked = this.ask(tokenHash, isIssued).finally(() => this.running.delete(tokenHash))
      this.running.set(tokenHash, asked)
    }
    const result = await asked
    this.options.metrics.registryLookups.inc({ result })
    return result
  }

  private async ask(tokenHash: string, isIssued: boolean): Promise<LookupResult> {
    const { hub, registry, log, nowMs } = this.options
    if (!hub) return 'unknown'
    if (!isIssued && this.bucket.take(this.limit, nowMs()) > 0) return 'unavailable'
    const answer = await hub.lookupByToken(tokenHash)
    if (answer.kind === 'refused' && answer.status === 404) {
      this.rememberUnknown(tokenHash)
      return 'unknown'
    }
    if (answer.kind !== 'ok') {
      log.warn({ reason: describeResponse(answer) }, 'cannot look a token up at the hub')
      return 'unavailable'
    }
    const record = parseAgentRecord(answer.data.agent)
    if (isRecordFault(record)) {
      log.error({ field: record.field, expected: record.expected }, "the hub's answer to a look-up is no agent record")
      return 'unavailable'
    }
    try {
      registry.apply([record])
    } catch (error) {
      // The agent is known in memory; only after a restart the hub would have to be asked again.
      log.error({ err: error }, 'cannot keep an agent record on disk')
    }
    if (registry.byTokenHash(tokenHash, nowMs())) return 'found'
    // The hub returned an agent whose tokens do not include the one in question.
    this.rememberUnknown(tokenHash)
    return 'unknown'
  }

  private rememberUnknown(tokenHash: string): void {
    const { nowMs, negativeTtlMs } = this.options
    if (this.negatives.size >= NEGATIVES_MAX)
      for (const oldest of this.negatives.keys()) {
        this.negatives.delete(oldest)
        break
      }
    this.negatives.set(tokenHash, nowMs() + negativeTtlMs)
  }
}

// The rules and silences of the hub on their way to the shard threads: pulled, counted, said where they are not valid,
// and in force once every thread runs them.
import type { Logger } from 'pino'
import type { SilenceRecord } from '../../../core/alerting/evaluate/suppression.ts'
import { compileRule } from '../../../core/alerting/rules/compile-rule.ts'
import { packRule } from '../../../core/alerting/rules/packed-rule.ts'
import type { RuleRecord } from '../../../core/alerting/rules/rule.ts'
import { isExpiredSilence, isGone } from '../../../core/sync/gone-records.ts'
import type { WorkerConfig } from '../config.ts'
import { FeedSync } from '../hub-link/feed-sync.ts'
import type { HubClient } from '../hub-link/hub-client.ts'
import type { FeedStore, RawRecord } from '../store/feed-store.ts'
import type { CollectorMetrics } from '../telemetry.ts'
import type { ShardPool } from './evaluation/shard-pool.ts'
import type { WorkerStorage } from './storage/worker-storage.ts'
import type { WorkerStatus } from './worker-status.ts'

type AlertingFeedsDeps = {
  readonly config: WorkerConfig
  readonly hub: HubClient | null
  readonly log: Logger
  readonly metrics: CollectorMetrics
  readonly nowMs: () => number
}

type Records = ReadonlyMap<string, RawRecord>

/** The rules of the feed as threads take them; a record that stays gives the same object. */
function ruleHandover(): (records: Records) => RuleRecord[] {
  const packed = new WeakMap<RawRecord, RuleRecord>()
  const ruleOf = (record: RawRecord): RuleRecord => {
    const rule = packed.get(record) ?? packRule(record)
    packed.set(record, rule)
    return rule
  }
  return records => [...records.values()].map(ruleOf)
}

const asSilences = (records: Records): SilenceRecord[] => [...records.values()]

export class AlertingFeeds {
  private shards: ShardPool | null = null
  /** Resolves once the threads run what was pulled last. */
  private applied: Promise<void> = Promise.resolve()
  private readonly asRules = ruleHandover()
  /** Rejected rules that were told of, by id and version. */
  private readonly toldRejected = new Set<string>()
  private readonly rules: FeedSync
  private readonly silences: FeedSync

  private constructor(
    private readonly deps: AlertingFeedsDeps,
    private readonly status: WorkerStatus,
    stores: { readonly rules: FeedStore; readonly silences: FeedStore },
  ) {
    const { config, hub, log, metrics, nowMs } = deps
    const shared = { hub, log, metrics, nowMs }
    this.rules = new FeedSync({
      ...shared,
      feed: 'rules',
      intervalMs: config['alerting.rules_sync_interval'],
      store: stores.rules,
      isGone: isGone.rules,
      onApplied: (records, since) => this.applyRules(records, since),
    })
    this.silences = new FeedSync({
      ...shared,
      feed: 'silences',
      intervalMs: config['alerting.silences_sync_interval'],
      store: stores.silences,
      isGone: isGone.silences,
      isExpired: isExpiredSilence,
      onApplied: records => this.applySilences(records),
    })
  }

  /** Loads the saved sets; nothing is pulled before `start`. */
  static async open(deps: AlertingFeedsDeps, storage: WorkerStorage, status: WorkerStatus): Promise<AlertingFeeds> {
    const rules = await storage.feedStore('rules')
    const silences = await storage.feedStore('silences')
    return new AlertingFeeds(deps, status, { rules, silences })
  }

  /** For /status. */
  get both(): { readonly rules: FeedSync; readonly silences: FeedSync } {
    return { rules: this.rules, silences: this.silences }
  }

  /** The sets as the shard threads start with them. */
  get current(): { rules: readonly RuleRecord[]; rulesSince: number; silences: readonly SilenceRecord[] } {
    return {
      rules: this.asRules(this.rules.records),
      rulesSince: this.rules.status().since,
      silences: asSilences(this.silences.records),
    }
  }

  /** Rules were read from the hub, now or before a restart. */
  get hasRules(): boolean {
    return this.rules.isFilled
  }

  /** Pulls into these threads, and again at every interval. Resolves once the first pulls are in force. */
  async start(shards: ShardPool): Promise<void> {
    this.shards = shards
    await Promise.all([this.rules.start(), this.silences.start()])
    await this.applied
  }

  /** Pulls one feed. Resolves once the threads run what it brought. */
  async reload(name: 'rules' | 'silences'): Promise<'applied' | 'unavailable'> {
    const result = await this[name].reload()
    await this.applied
    return result
  }

  async stop(): Promise<void> {
    await Promise.all([this.rules.stop(), this.silences.stop()])
  }

  private applyRules(records: Records, since: number): Promise<void> {
    const rules = this.asRules(records)
    this.tellRejected(rules)
    this.applied = this.shards?.setRules(rules, since) ?? this.applied
    return this.applied
  }

  private applySilences(records: Records): Promise<void> {
    const silences = asSilences(records)
    this.status.setSilences(silences)
    this.applied = this.shards?.setSilences(silences) ?? this.applied
    return this.applied
  }

  /** Each rejected rule is told once a version: a log line, a counter; all of them stand in /status. */
  private tellRejected(rules: readonly RuleRecord[]): void {
    const results = rules.map(compileRule)
    const rejected = results.flatMap(result => (result.kind === 'rejected' ? [result.rejected] : []))
    this.status.setRules(results.filter(result => result.kind === 'compiled').length, rejected)
    for (const rule of rejected) {
      const key = `${rule.rule_id}:${rule.version}`
      if (this.toldRejected.has(key)) continue
      this.toldRejected.add(key)
      this.deps.metrics.rulesRejected.inc({ reason: rule.reason })
      this.deps.log.warn({ ...rule }, 'a rule of the hub is not valid and is skipped')
    }
  }
}

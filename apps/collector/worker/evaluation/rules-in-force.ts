// The rules under which a loop evaluates: what it does when they change, and how a replay goes through the changes that
// the snapshots do not reflect, so that it judges each sample under the rules of its time (document 2 "Rule changes",
// "State persistence and restart").
import {
  allBound,
  isAllBound,
  type RawRules,
  type RuleChangeRecord,
  ruleChanges,
  rulesById,
  withRuleChange,
} from '../../../../core/alerting/durability/rule-change-record.ts'
import { rebindServer } from '../../../../core/alerting/rules/apply-rule-change.ts'
import { compileRuleSet } from '../../../../core/alerting/rules/compile-rule-set.ts'
import type { RuleRecord } from '../../../../core/alerting/rules/rule.ts'
import { setRules } from '../../../../core/alerting/rules/rule-slots.ts'
import type { EvaluationState } from '../../../../core/alerting/state/evaluation-state.ts'
import type { ShardStore } from '../../store/shard-store.ts'

/** A shard's snapshot: its position, and how many of the changes at this very position it reflects. */
type Reflected = { readonly position: number; readonly ruleChanges: number }

/** A change, and how many came before it at its position. */
type Placed = { readonly change: RuleChangeRecord; readonly ordinal: number }

function placed(changes: readonly RuleChangeRecord[]): Placed[] {
  const counts = new Map<number, number>()
  return changes.map(change => {
    const ordinal = counts.get(change.position) ?? 0
    counts.set(change.position, ordinal + 1)
    return { change, ordinal }
  })
}

/**
 * True when a snapshot does not reflect the change. At position 0 stand the changes from before the whole bus, which
 * every snapshot reflects.
 */
const isBehind = ({ change, ordinal }: Placed, snapshot: Reflected): boolean =>
  change.position > snapshot.position ||
  (change.position === snapshot.position && change.position > 0 && ordinal >= snapshot.ruleChanges)

export class RulesInForce {
  private rules: RawRules = new Map()
  /** The changes that were kept when the loop started. */
  private kept: readonly Placed[] = []
  /** Those of them that the replay has not reached yet. */
  private behind: readonly Placed[] = []
  /** The position of the last change, and how many were made there. */
  private last = { position: 0, count: 0 }
  private readonly snapshots = new Map<number, Reflected>()
  /** It is kept that a sweep bound all servers to the rules in force. */
  isBoundKept = false

  constructor(
    private readonly evaluation: EvaluationState,
    private readonly store: ShardStore,
    private readonly threadIndex: number,
    private readonly nowMs: () => number,
  ) {}

  private activate(rules: RawRules): void {
    this.rules = rules
    setRules(this.evaluation, compileRuleSet(rules.values(), this.evaluation.rules))
  }

  /**
   * Puts the rules in force under which the shards were evaluated when the process ended: the stored set of feed cursor
   * `since`, and the changes that this loop activated after the set was stored. Returns them.
   */
  start(raw: readonly RuleRecord[], since: number): RuleRecord[] {
    let rules = rulesById(raw)
    const changes = this.store.ruleChanges(this.threadIndex)
    this.kept = placed(changes)
    const last = this.kept.at(-1)
    if (last) this.last = { position: last.change.position, count: last.ordinal + 1 }
    for (const change of changes) if (change.since > since) rules = withRuleChange(rules, change, change.after)
    this.activate(rules)
    return [...rules.values()]
  }

  /** Undoes the changes that a snapshot of a shard does not reflect; `snapshots` names all shards of the loop. */
  rollBack(snapshots: ReadonlyMap<number, Reflected>): void {
    for (const [shard, snapshot] of snapshots) this.snapshots.set(shard, snapshot)
    this.behind = this.kept.filter(one => [...snapshots.values()].some(snapshot => isBehind(one, snapshot)))
    this.kept = []
    const undo = (rules: RawRules, { change }: Placed) => withRuleChange(rules, change, change.before)
    if (this.behind.length > 0) this.activate(this.behind.reduceRight(undo, this.rules))
  }

  /** The replay has changes left. */
  get isReplaying(): boolean {
    return this.behind.length > 0
  }

  /** True when the replay has changes left that were made before `position`. */
  isDue(position: number): boolean {
    return this.behind.length > 0 && this.behind[0]!.change.position < position
  }

  /**
   * During a replay: activates the changes before `position` one after another, so that an alert closes under the
   * version of its rule that was then in force.
   */
  replay(position: number): void {
    while (this.isDue(position)) {
      const [next, ...rest] = this.behind
      this.behind = rest
      if (isAllBound(next!.change)) this.bindAll(next!)
      else this.activate(withRuleChange(this.rules, next!.change, next!.change.after))
    }
  }

  /** What a sweep did. The bus has no trace of it, and the journal only where an alert closed. */
  private bindAll(bound: Placed): void {
    const { evaluation } = this
    for (const server of evaluation.servers) {
      if (!server || !isBehind(bound, this.snapshots.get(server.shard)!)) continue
      const rules = evaluation.companyRules(server.companyId)
      // What the journal has of this position was evaluated before, or is not touched: no batch came since.
      if (server.boundTo !== rules) rebindServer(evaluation, server, rules, this.nowMs(), bound.change.position + 1)
    }
  }

  /**
   * Puts the next set in force, and keeps what changes with the position, so that a replay evaluates each sample under
   * the rules of its time. Throws where there is no room: the rules of before stay in force.
   */
  take(raw: readonly RuleRecord[], since: number, position: number): void {
    const next = rulesById(raw)
    const changes = ruleChanges(this.rules, next, since, position)
    if (changes.length === 0) return
    this.keep(changes, position)
    this.isBoundKept = false
    this.activate(next)
  }

  /** Keeps that a sweep at `position` bound all servers to the rules in force. Throws where there is no room. */
  keepBound(position: number): void {
    this.keep([allBound(position)], position)
    this.isBoundKept = true
  }

  private keep(changes: readonly RuleChangeRecord[], position: number): void {
    this.store.keepRules(this.threadIndex, changes)
    this.last = { position, count: this.changesAt(position) + changes.length }
  }

  /** How many changes were made at `position`: a snapshot taken now reflects as many. */
  changesAt(position: number): number {
    return this.last.position === position ? this.last.count : 0
  }
}

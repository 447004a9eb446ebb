// What the loop of a shard needs of the store that keeps its state: over SQLite, over Redis, or in a simulation.
import type { QuietPresence } from '../../../../core/alerting/state/evaluation-state.ts'
import type { EvaluationStore } from '../../store/file-evaluation-store.ts'

/**
 * What a loop keeps durably. A store that writes later, in order, has `settled`: it resolves once all that was handed over is durable,
 * and rejects when that will never be; then this loop must end, and another one starts from what is durable.
 */
export type ShardStore = ShardWrites &
  SlowWrites & {
    readonly settled?: () => Promise<void>
    /** Shows presence to other processes (decision G-182); a store of one process has nobody to show it to. */
    keepPresence?(changes: readonly QuietPresence[]): void
  }

/** Of a store whose medium may be slow: a snapshot is written while the loop goes on, and then put in place. */
type SlowWrites = Partial<Pick<EvaluationStore, 'writeSnapshot'>>

type ShardWrites = Pick<
  EvaluationStore,
  | 'journalMark'
  | 'commit'
  | 'journalAfter'
  | 'keys'
  | 'keepKeys'
  | 'dropKeys'
  | 'saveSnapshot'
  | 'loadSnapshot'
  | 'keepRules'
  | 'ruleNotes'
  | 'passRules'
>

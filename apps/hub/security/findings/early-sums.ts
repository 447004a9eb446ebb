// Counts of findings are added up by the clock (schedule.ts). While a matcher tells of a great many findings that is
// too seldom: every list reads all changes that are not added up yet, so the hub that wrote them adds them up between.
import type { Logger } from 'pino'
import type { Executor } from '../../platform/db/connect.ts'
import { addUpFindingCounts } from './finding-page.ts'

/** A list reads this many in a millisecond or two; to add fewer up at once costs more for each. */
const CHANGES_MAX = 2000

export class EarlySums {
  private waiting = 0
  private running: Promise<void> | null = null

  constructor(
    private readonly db: Executor,
    private readonly log: Logger,
  ) {}

  /** So many findings were written, and are committed. */
  note(findings: number): void {
    this.waiting += findings
    if (this.waiting < CHANGES_MAX || this.running) return
    this.waiting = 0
    this.running = addUpFindingCounts(this.db)
      // The clock comes to it.
      .catch((error: unknown) => this.log.warn({ err: error }, 'cannot add up the counts of findings'))
      .finally(() => {
        this.running = null
      })
  }

  /** Resolves when nothing is being added up. */
  async settled(): Promise<void> {
    await this.running
  }
}

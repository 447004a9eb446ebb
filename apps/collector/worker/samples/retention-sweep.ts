// The hourly sweep that takes samples off the disk once they left a company's retention window (document 3 "Retention
// semantics"). What may go is decided in core/retention/readable-and-deletable.ts; here the hub is asked, and what is
// decided is done.
import { deletion, planDays, type RetentionSettings } from '../../../../core/retention/readable-and-deletable.ts'
import type { RetentionStatus } from '../../admin/collector-status.ts'
import type { Expiry } from '../../store/clickhouse/samples-delete.ts'
import type { SamplesClient } from './samples-client.ts'
import type { RetentionMemoryRow } from './samples-messages.ts'

type RetentionSweeperOptions = {
  readonly samples: Pick<SamplesClient, 'companies' | 'expire' | 'reclaim' | 'rememberRetention' | 'setRetentionDays'>
  /** Asks the hub now, without cache; undefined when it does not answer. */
  readonly askRetention: (companyId: string) => Promise<RetentionSettings | undefined>
  readonly nowMs: () => number
  readonly sweepEveryMs: number
  /** Of several workers one sweeps. */
  readonly isLeader?: () => boolean
  readonly newCompanyWaitMs: number
  /** Count what would be deleted, delete nothing. */
  readonly isDryRun: boolean
  readonly onDaysDeleted: (days: number) => void
  readonly onError: (what: string, error: unknown) => void
}

export class RetentionSweeper {
  private readonly options: RetentionSweeperOptions
  private timer: ReturnType<typeof setInterval> | null = null
  private sweeping: Promise<RetentionStatus> | null = null
  private isStopping = false
  /**
   * Up to where each company's samples are gone: nothing is written there any more, so that a day is looked at once.
   */
  private readonly goneBeforeMs = new Map<string, number>()
  /** Totals of the last sweep; null before the first. */
  last: RetentionStatus | null = null

  constructor(options: RetentionSweeperOptions) {
    this.options = options
  }

  start(): void {
    const { isLeader, sweepEveryMs } = this.options
    this.timer = setInterval(() => {
      if (isLeader?.() ?? true) void this.sweep()
    }, sweepEveryMs)
  }

  /** Ends a sweep under way after the company at hand. */
  async stop(): Promise<void> {
    this.isStopping = true
    if (this.timer !== null) clearInterval(this.timer)
    await this.sweeping
  }

  /** One sweep; a second call while it runs is answered by it. */
  sweep(): Promise<RetentionStatus> {
    this.sweeping ??= this.sweepOnce().finally(() => {
      this.sweeping = null
    })
    return this.sweeping
  }

  private async sweepOnce(): Promise<RetentionStatus> {
    const { samples, nowMs, isDryRun, onError } = this.options
    const atMs = nowMs()
    const began = performance.now()
    const totals = { companies: 0, skipped: 0, daysDeleted: 0, errors: 0 }
    try {
      const companies = await samples.companies()
      totals.companies = companies.length
      const settings = await this.askAll(companies, totals)
      const memory = await samples.rememberRetention(
        [...settings].map(([companyId, each]) => ({ companyId, retentionDays: planDays(each) })),
        atMs,
      )
      const expiries = this.decide(memory, settings, atMs, totals)
      if (!this.isStopping) await this.expire(expiries, totals)
      if (!isDryRun && !this.isStopping) await samples.reclaim()
    } catch (error) {
      totals.errors++
      onError('cannot complete a retention sweep', error)
    }
    this.last = { atMs, ...totals, dryRun: isDryRun, durationSeconds: (performance.now() - began) / 1000 }
    return this.last
  }

  /** The hub's answers, of the companies that it answered for; the others are skipped. */
  private async askAll(
    companies: readonly string[],
    totals: { skipped: number; errors: number },
  ): Promise<Map<string, RetentionSettings>> {
    const { askRetention, samples, onError } = this.options
    const settings = new Map<string, RetentionSettings>()
    for (const companyId of companies) {
      if (this.isStopping) break
      try {
        const answer = await askRetention(companyId)
        if (answer) settings.set(companyId, answer)
        else totals.skipped++
      } catch (error) {
        totals.skipped++
        totals.errors++
        onError('cannot ask the hub for the retention of a company', error)
      }
    }
    samples.setRetentionDays(new Map([...settings].map(([companyId, each]) => [companyId, planDays(each)])))
    return settings
  }

  /** What may leave the disk now, of the companies that the hub answered for. */
  private decide(
    memory: readonly RetentionMemoryRow[],
    settings: ReadonlyMap<string, RetentionSettings>,
    atMs: number,
    totals: { skipped: number },
  ): Expiry[] {
    const expiries: Expiry[] = []
    for (const row of memory) {
      const { companyId } = row
      const decided = deletion(settings.get(companyId), row, atMs, this.options.newCompanyWaitMs)
      if ('keep' in decided) totals.skipped++
      else if (decided.deleteBeforeMs > (this.goneBeforeMs.get(companyId) ?? Number.NEGATIVE_INFINITY))
        expiries.push({ companyId, beforeMs: decided.deleteBeforeMs })
    }
    return expiries
  }

  private async expire(expiries: readonly Expiry[], totals: { daysDeleted: number }): Promise<void> {
    const { samples, isDryRun, onDaysDeleted } = this.options
    if (expiries.length === 0) return
    const expired = await samples.expire(expiries, isDryRun)
    const days = expired.reduce((sum, company) => sum + company.days, 0)
    totals.daysDeleted += days
    if (isDryRun) return
    for (const { companyId, beforeMs } of expiries) this.goneBeforeMs.set(companyId, beforeMs)
    if (days > 0) onDaysDeleted(days)
  }
}

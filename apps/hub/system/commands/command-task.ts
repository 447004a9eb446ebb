// A command under way: where it stands, what it says, and whether it is to end. Everything it does lies between two
// safe points, each step a transaction of its own (RES-262).
import { sql } from 'drizzle-orm'
import type { Hub } from '../../hub-context.ts'

const OUTPUT_BYTES_MAX = 64 * 1024
const CUT = '…\n'

/** Thrown at a safe point of a run that is to end. */
export class RunEnded extends Error {
  constructor(
    readonly state: 'cancelled' | 'failed',
    message: string,
  ) {
    super(message)
  }
}

export class CommandTask {
  private output = ''
  private done = 0
  private total: number | null = null

  constructor(
    readonly hub: Hub,
    readonly runId: string,
    readonly companyId: string,
    readonly parameters: Readonly<Record<string, unknown>>,
    private readonly endsAtMs: number,
  ) {}

  /** A line for people. What does not fit is left out, and the end says so. */
  say(line: string): void {
    if (this.output.endsWith(CUT)) return
    const longer = `${this.output}${line}\n`
    this.output = Buffer.byteLength(longer) + CUT.length * 3 > OUTPUT_BYTES_MAX ? `${this.output}${CUT}` : longer
  }

  get said(): string {
    return this.output
  }

  /** A safe point: notes how far it is, and throws when the run is to end. */
  async reached(done: number, total: number | null): Promise<void> {
    this.done = done
    this.total = total
    const [row] = await this.hub.database.db.execute<{ cancel_asked: boolean }>(sql`
      update system_command_runs set progress_done = ${this.done}, progress_total = ${this.total}, output = ${this.output}
      where id = ${this.runId} and state = 'running' and hub_id = ${this.hub.processId} returning cancel_asked`)
    if (!row) throw new RunEnded('failed', 'the run was taken from this hub')
    if (row.cancel_asked) throw new RunEnded('cancelled', 'cancelled')
    if (this.hub.now() > this.endsAtMs) throw new RunEnded('failed', 'it took longer than it may')
  }
}

// The page's side of the judge (judge-messages.ts): one worker, started by the first question.
import type { Firing, FromJudge, JudgedCondition, JudgedSeries, ScenarioVerdict, ToJudge } from './judge-messages.ts'

/** What came of a text of scenarios; a text that is none has the line at which it ends to be one. */
export type ScenarioResult =
  | { readonly verdicts: readonly ScenarioVerdict[] }
  | { readonly line: number; readonly message: string }

/** Called for each series as it is judged, and with null when all are. */
type OnJudged = (judged: { readonly series: number; readonly firings: readonly Firing[] } | null) => void

export class Judge {
  private worker: Worker | null = null
  private runs = 0
  private readonly judging = new Map<string, { readonly run: number; readonly onJudged: OnJudged }>()
  private readonly running = new Map<number, (result: ScenarioResult) => void>()

  private tell(message: ToJudge): void {
    if (!this.worker) {
      // All files of the page lie in one folder; the name of the folder changes with their content.
      this.worker = new Worker(new URL('judge/judge-worker.js', import.meta.url), { type: 'module' })
      this.worker.addEventListener('message', ({ data }: MessageEvent<FromJudge>) => this.hear(data))
    }
    this.worker.postMessage(message)
  }

  /** The series that are judged from now on, up to `toMs`. */
  load(series: readonly JudgedSeries[], toMs: number): void {
    this.tell({ kind: 'series', series, toMs })
  }

  /** Asks for the firings of all loaded series; a later question of the same name takes the place of this one. */
  judge(name: string, condition: JudgedCondition, onJudged: OnJudged): void {
    const run = ++this.runs
    this.judging.set(name, { run, onJudged })
    this.tell({ kind: 'judge', name, run, condition })
  }

  runScenarios(text: string): Promise<ScenarioResult> {
    const run = ++this.runs
    return new Promise(resolve => {
      this.running.set(run, resolve)
      this.tell({ kind: 'scenarios', run, text })
    })
  }

  stop(): void {
    this.worker?.terminate()
    this.worker = null
    this.judging.clear()
  }

  private hear(message: FromJudge): void {
    if (message.kind === 'judged' || message.kind === 'ended') {
      const question = this.judging.get(message.name)
      if (question?.run === message.run) question.onJudged(message.kind === 'judged' ? message : null)
      return
    }
    const resolve = this.running.get(message.run)
    this.running.delete(message.run)
    resolve?.(message)
  }
}

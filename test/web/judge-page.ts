// The script of the page that judge.test.ts opens: nothing but a judge.
import type { ScenarioResult } from '../../apps/hub/web/browser/judge/judge.ts'
import { Judge } from '../../apps/hub/web/browser/judge/judge.ts'
import type { Firing, JudgedCondition, JudgedSeries } from '../../apps/hub/web/browser/judge/judge-messages.ts'

export type JudgePage = {
  judge: (series: readonly JudgedSeries[], toMs: number, condition: JudgedCondition) => Promise<(readonly Firing[])[]>
  runScenarios: (text: string) => Promise<ScenarioResult>
}

const judge = new Judge()

const page: JudgePage = {
  judge: (series, toMs, condition) =>
    new Promise(resolve => {
      const firings: (readonly Firing[])[] = []
      judge.load(series, toMs)
      judge.judge('test', condition, judged => {
        if (judged) firings[judged.series] = judged.firings
        else resolve(firings)
      })
    }),
  runScenarios: text => judge.runScenarios(text),
}

Object.assign(globalThis, { judgePage: page })

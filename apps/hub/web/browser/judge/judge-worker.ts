// The judge: a web worker that answers judge-messages.ts. Between two series it looks whether a newer question came.
import { firingsOf, type ReplayedSeries, replayRule } from '../../../../../core/alerting/evaluate/backtest.ts'
import type { RawRule } from '../../../../../core/alerting/rules/rule.ts'
import type { FromJudge, JudgedCondition, JudgedSeries, ToJudge } from './judge-messages.ts'

/** Identities of no meaning: evaluation wants a rule of a company, and nothing of them is shown. */
const NOBODY = '00000000-0000-4000-8000-000000000000'

const NOWHERE = { all: true, server_ids: [], tags: [], environments: [], roles: [], datacenters: [] }

const ruleOf = (condition: JudgedCondition): RawRule => ({
  ...condition,
  id: NOBODY,
  company_id: NOBODY,
  version: 1,
  sync_version: 1,
  name: '',
  kind: 'threshold',
  scope: NOWHERE,
  resolved_server_ids: [],
  matchers: {},
  renotify_seconds: 0,
  enabled: true,
  deleted: false,
})

type Loaded = { readonly of: JudgedSeries; readonly replayed: ReplayedSeries }

let loaded: readonly Loaded[] = []
let loadedToMs = 0
/** The newest question of each name. */
const asked = new Map<string, number>()

const say = (message: FromJudge): void => self.postMessage(message)

/** Lets messages in that came meanwhile. */
const pause = (): Promise<void> =>
  new Promise(resolve => {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => {
      port1.close()
      resolve()
    }
    port2.postMessage(null)
  })

async function judge(name: string, run: number, condition: JudgedCondition): Promise<void> {
  asked.set(name, run)
  const rule = ruleOf(condition)
  const judged = loaded
  for (const [series, { of, replayed }] of judged.entries()) {
    await pause()
    if (asked.get(name) !== run || loaded !== judged) return
    const { serverId, heardAtMs, intervalSeconds } = of
    const events = replayRule({
      rule,
      serverId,
      series: [replayed],
      heardAtMs,
      stepMs: intervalSeconds * 1000,
      toMs: loadedToMs,
    })
    say({ kind: 'judged', name, run, series, firings: firingsOf(events) })
  }
  say({ kind: 'ended', name, run })
}

/** The runner and its regular expressions are loaded when the first scenario is run. */
async function runScenarios(run: number, text: string): Promise<void> {
  const { runText } = await import('./scenarios.ts')
  const result = runText(text)
  say('verdicts' in result ? { kind: 'scenarios', run, ...result } : { kind: 'unread', run, ...result })
}

self.addEventListener('message', ({ data }: MessageEvent<ToJudge>) => {
  switch (data.kind) {
    case 'series':
      loadedToMs = data.toMs
      loaded = data.series.map(of => ({
        of,
        replayed: { labels: of.labels, points: of.tsMs.map((tsMs, at) => [tsMs, of.values[at]!] as const) },
      }))
      return
    case 'judge':
      void judge(data.name, data.run, data.condition)
      return
    case 'scenarios':
      void runScenarios(data.run, data.text)
  }
})

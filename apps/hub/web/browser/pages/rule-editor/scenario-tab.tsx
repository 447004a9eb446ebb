// Scenarios of a rule: text that runs here as in the collector, with what differs by line.
import { useEffect, useMemo, useState } from 'preact/hooks'
import { ruleEditorWords } from '../../../words/rule-editor.ts'
import { Judge, type ScenarioResult } from '../../judge/judge.ts'
import { TextField } from '../../parts/field.tsx'
import { StateMark } from '../../parts/state-mark.tsx'
import { textsOf } from '../../session.ts'
import type { Draft } from './draft.ts'
import { scenarioOf } from './scenario-text.ts'

const t = textsOf(ruleEditorWords)

type Props = { readonly draft: Draft; readonly text: string | null; readonly onText: (text: string) => void }

export function ScenarioTab({ draft, text, onText }: Props) {
  const judge = useMemo(() => new Judge(), [])
  useEffect(() => () => judge.stop(), [judge])
  const [result, setResult] = useState<ScenarioResult | null>(null)
  const shown = text ?? (draft.metric === '' ? '' : scenarioOf(draft))
  return (
    <div class="scenario">
      <TextField label={t('scenario_text')} hint={t('scenario_hint')} value={shown} onInput={onText} lines={16} />
      <div class="toolbar">
        <button
          type="button"
          class="primary"
          disabled={shown.trim() === ''}
          onClick={() => void judge.runScenarios(shown).then(setResult)}
        >
          {t('scenario_run')}
        </button>
        <button type="button" disabled={draft.metric === ''} onClick={() => onText(scenarioOf(draft))}>
          {t('scenario_fill')}
        </button>
      </div>
      <div role="status" aria-label={t('scenario_results')}>
        {result === null ? null : <Results result={result} />}
      </div>
    </div>
  )
}

function Results({ result }: { readonly result: ScenarioResult }) {
  if (!('verdicts' in result))
    return <p class="fault">{t('scenario_line', { line: String(result.line), message: result.message })}</p>
  return (
    <ul class="plain">
      {result.verdicts.map(({ name, line, faults }) => (
        <li key={line}>
          <StateMark
            state={faults.length === 0 ? 'ok' : 'critical'}
            text={t(faults.length === 0 ? 'scenario_passed' : 'scenario_failed')}
          />{' '}
          {name}
          {faults.map(fault => (
            <pre key={fault}>{fault}</pre>
          ))}
        </li>
      ))}
    </ul>
  )
}

// Somebody else has saved the rule while it was edited: both are shown, and one says which holds.
import { ruleEditorWords } from '../../../words/rule-editor.ts'
import { textsOf } from '../../session.ts'
import { type Draft, differencesOf } from './draft.ts'

const t = textsOf(ruleEditorWords)

type Props = {
  readonly draft: Draft
  readonly theirs: Draft
  readonly base: number
  readonly version: number
  readonly onTakeTheirs: () => void
  readonly onKeepMine: () => void
}

export function Conflict({ draft, theirs, base, version, onTakeTheirs, onKeepMine }: Props) {
  return (
    <section class="banner conflict" role="alert">
      <p>{t('changed_elsewhere', { version: String(version), base: String(base) })}</p>
      <table class="plain-table differences">
        <thead>
          <tr>
            <th scope="col">{t('field')}</th>
            <th scope="col">{t('yours')}</th>
            <th scope="col">{t('theirs')}</th>
          </tr>
        </thead>
        <tbody>
          {differencesOf(draft, theirs).map(({ field, one, other }) => (
            <tr key={field}>
              <th scope="row" class="mono">
                {field}
              </th>
              <td class="mono">{one}</td>
              <td class="mono">{other}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <div class="toolbar">
        <button type="button" onClick={onTakeTheirs}>
          {t('take_theirs')}
        </button>
        <button type="button" onClick={onKeepMine}>
          {t('keep_mine')}
        </button>
      </div>
    </section>
  )
}

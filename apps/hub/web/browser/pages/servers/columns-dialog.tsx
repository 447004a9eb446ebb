// Which columns the table of servers has: the known ones, and up to five metrics. What is chosen stands in the address.
import '../../view.ts'
import { metricWords } from '../../../words/metrics.ts'
import { serversWords } from '../../../words/servers.ts'
import { shellWords } from '../../../words/shell.ts'
import { param, setParams } from '../../address/router.ts'
import { overlay } from '../../frame/overlay.ts'
import { metricTitle } from '../../metric-title.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { SelectField } from '../../parts/field.tsx'
import { textsOf } from '../../session.ts'
import { knownColumns, serverColumns } from './server-columns.tsx'

const t = textsOf(serversWords)
const shell = textsOf(shellWords)

/** As many metrics as the view gives values of. */
const METRICS_MAX = 5
const metrics = Object.keys(metricWords)
const usual: readonly string[] = serverColumns.map(({ key }) => key)

const shownKeys = (): readonly string[] => (param('cols') === '' ? usual : [...new Set(param('cols').split(','))])

/** The usual columns need no name in the address. */
const show = (keys: readonly string[]): void => {
  const cols = keys.join(',')
  setParams({ cols: cols === usual.join(',') ? null : cols }, 'replace')
}

const close = (): void => {
  overlay.value = null
}

type BoxProps = { readonly name: string; readonly text: string; readonly isFixed?: boolean }

function ColumnBox({ name, text, isFixed = false }: BoxProps) {
  const shown = shownKeys()
  const change = (isShown: boolean): void => {
    const kept = shown.filter(key => key !== name)
    // A known column stands in its usual place, a metric at the end.
    const order = [...knownColumns.map(({ key }) => key), ...kept.filter(key => metrics.includes(key)), name]
    show(isShown ? [...kept, name].sort((one, other) => order.indexOf(one) - order.indexOf(other)) : kept)
  }
  return (
    <label class="inline">
      <input
        type="checkbox"
        checked={isFixed || shown.includes(name)}
        disabled={isFixed}
        onChange={event => change(event.currentTarget.checked)}
      />
      {text}
    </label>
  )
}

export function ColumnsDialog() {
  const shown = shownKeys()
  const chosen = shown.filter(key => metrics.includes(key))
  return (
    <Dialog title={t('columns')} onClose={close}>
      <fieldset class="column-choice">
        <legend class="visually-hidden">{t('columns')}</legend>
        {knownColumns.map(({ key, title, isName = false }) => (
          <ColumnBox name={key} text={title} isFixed={isName} key={key} />
        ))}
        {chosen.map(name => (
          <ColumnBox name={name} text={metricTitle(name)} key={name} />
        ))}
      </fieldset>
      {chosen.length < METRICS_MAX ? (
        <SelectField
          label={t('add_metric')}
          value=""
          choices={[
            { value: '', text: '' },
            ...metrics.filter(name => !chosen.includes(name)).map(name => ({ value: name, text: metricTitle(name) })),
          ]}
          onChange={name => show([...shown, name])}
        />
      ) : (
        <p class="muted">{t('metrics_max', { count: METRICS_MAX })}</p>
      )}
      <div class="dialog-acts">
        <button type="button" onClick={() => show(usual)}>
          {t('columns_usual')}
        </button>
        <button type="button" class="primary" onClick={close}>
          {shell('done')}
        </button>
      </div>
    </Dialog>
  )
}
